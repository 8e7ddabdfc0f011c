"""Truncated models in Python: the chains, laws and margins of the commands with --top-k, --top-p and --min-p."""

import shutil

import numpy as np
import pytest
from conftest import ROOT
from in_process import answer

import mlmglauber as mg

TEXT = "a b a"
RULES = [{"top_k": 2}, {"top_p": 0.75}, {"min_p": 0.4}, {"top_k": 2, "min_p": 0.3}]


def flags(rule):
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in rule.items())


@pytest.fixture
def folder(tmp_path):
    shutil.copy(ROOT / "tests" / "tables" / "inc.json", tmp_path / "inc.json")
    return tmp_path


@pytest.fixture
def model(folder):
    return mg.open_model(str(folder / "inc.json"))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("allow", [None, ["a", "b"], {0: ["a", "c"]}])
def test_a_chain_is_that_of_the_command(folder, model, rule, allow):
    """Also where words are allowed everywhere, or at one site: neither restriction takes the place of the other."""
    line = f"sample -m inc.json --seed 5 --steps 60 --every 1 {flags(rule)}"
    line += " --allow a,b" if isinstance(allow, list) else ""
    text = '{"text": "a b a"%s}' % (', "allow": {"0": ["a", "c"]}' if isinstance(allow, dict) else "")
    records = answer(line, text.encode(), folder).of("state")
    states = list(mg.sample(mg.truncate(model, **rule), TEXT, steps=60, seed=5, allow=allow))
    assert [(state.step, state.ids.tolist()) for state in states] == [(one["step"], one["ids"]) for one in records]
    assert [state.logp_new for state in states[1:]] == [one["logp_new"] for one in records[1:]]


@pytest.mark.parametrize("rule", RULES)
def test_the_exact_chain_and_margins_are_those_of_the_commands(folder, model, rule):
    record, = answer(f"exact -m inc.json --allow a,b,c --tau 2 {flags(rule)}", TEXT.encode(), folder).of("exact")
    solved = mg.exact(mg.truncate(model, **rule), TEXT, words=["a", "b", "c"], tau=2.0)
    if record["likeliest"] is None:
        assert solved.law is None
    else:
        assert solved.law.max() == pytest.approx(record["likeliest"][0]["probability"], abs=1e-12)
    chain = answer(f"sample -m inc.json --seed 1 --tau 0.15 --steps 2000 --on-change {flags(rule)}", TEXT.encode(),
                   folder)
    traps = answer("traps -m inc.json --min-steps 50", chain.out, folder).of("trap")
    assert traps
    for trap in traps:
        found = mg.margins(mg.truncate(model, **rule), trap["ids"], tau=0.15)
        assert (found.margin, found.gamma.tolist(), found.escape) == (trap["margin"], trap["gamma"], trap["escape"])


def test_a_truncation_takes_the_place_of_another(model):
    twice = mg.truncate(mg.truncate(model, top_k=1), top_k=2)
    once = mg.truncate(model, top_k=2)
    states = [[state.ids.tolist() for state in mg.sample(one, TEXT, steps=40, seed=2)] for one in (twice, once)]
    assert states[0] == states[1]
    whole = mg.truncate(twice)
    assert np.array_equal([state.ids for state in mg.sample(whole, TEXT, steps=40, seed=2)],
                          [state.ids for state in mg.sample(model, TEXT, steps=40, seed=2)])


def test_what_a_truncated_model_leaves_alone_and_refuses(model):
    truncated = mg.truncate(model, top_k=1)
    assert mg.score(truncated, [TEXT])[0].total == mg.score(model, [TEXT])[0].total
    delta, whole = (mg.rectangle(one, TEXT, (0, "b"), (2, "b")).delta for one in (truncated, model))
    assert delta == whole
    with pytest.raises(ValueError, match="whole conditionals"):
        mg.influence(truncated, TEXT, seed=1)


@pytest.mark.parametrize("rule", [{"top_k": 0}, {"top_k": 1.5}, {"top_p": 0.0}, {"top_p": 1.1}, {"min_p": -0.1},
                                  {"min_p": float("nan")}, {"top_p": "0.9"}])
def test_a_wrong_rule_is_a_value_error(model, rule):
    with pytest.raises(ValueError, match=next(iter(rule))) as caught:
        mg.truncate(model, **rule)
    assert "--" not in str(caught.value)


def test_a_name_is_no_model():
    with pytest.raises(ValueError, match="open_model"):
        mg.truncate("tiny-en", top_k=3)
