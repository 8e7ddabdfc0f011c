"""Scores of texts: against closed forms on tables, and against one call of the bare model for each token."""

from functools import partial
from itertools import product

import families
import numpy as np
import pytest
import torch
from oracles import TABLE_A
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

from mlmglauber.dynamics.engine import Engine
from mlmglauber.measures.score.scoring import conditionals_of, different_conditionals, score_texts
from mlmglauber.measures.score.text_score import by_word
from mlmglauber.measures.traps.margins import is_argmax, margins, site_rows
from mlmglauber.models.causal_lm import CausalLM
from mlmglauber.models.conditionals import FILL, TableConditional, stack
from mlmglauber.models.masked_lm import MaskedLM
from mlmglauber.models.table_text import TableText
from mlmglauber.models.token_scores import device_token_scores, token_scores
from mlmglauber.models.words import word_spans

TEXTS = ["the quick brown fox jumps over the lazy dog", "she read the papers; politics, food and sports!",
         "xylophonists philosophize: the cat sat", "the", "on the mat on the log on the mat"]


def words_of(model, texts):
    return [word_spans(model, ids.tolist()) for ids in texts]


def scores_of(model, texts, **options):
    return score_texts(model, texts, words_of(model, texts), **options)


# Scores of single tokens


def place_in(row, token):
    """The place of a token from 1 on, likeliest first and lowest id first among equals."""
    return 1 + sorted(range(len(row)), key=lambda other: (-row[other], other)).index(token)


def rows_with_ties(generator, count, vocab):
    rows = np.log(generator.dirichlet(np.ones(vocab), count)).round(1)  # rounding makes ties
    rows[generator.random(rows.shape) < 0.1] = -np.inf
    rows[:, 0] = np.where(np.isfinite(rows.max(axis=1)), rows[:, 0], 0.0)
    return rows


def on_device(rows, tokens):
    return device_token_scores(torch, torch.from_numpy(rows), torch.from_numpy(tokens))


@pytest.mark.parametrize("scores", [token_scores, on_device])
@pytest.mark.parametrize("vocab", [1, 2, 7, 300])
def test_rank_and_margin_are_those_of_a_sorted_row(scores, vocab):
    generator = np.random.default_rng(vocab)
    rows = rows_with_ties(generator, 40, vocab)
    rows -= np.log(np.exp(rows).sum(axis=1, keepdims=True))
    tokens = generator.integers(0, vocab, (40, 3))
    tokens[generator.random(tokens.shape) < 0.2] = FILL
    found = scores(rows, tokens)
    for row, given, logp, gamma, rank in zip(rows, tokens, *found, strict=True):
        for k, token in enumerate(given.tolist()):
            if token == FILL:
                assert (np.isnan(logp[k]), np.isnan(gamma[k]), rank[k]) == (True, True, 0)
                continue
            assert rank[k] == place_in(row, token)
            assert (rank[k] == 1) == is_argmax(row[None], np.array([token]))[0]
            assert logp[k] == pytest.approx(row[token], abs=1e-12)
            rivals = np.delete(row, token)
            rival = rivals.max() if len(rivals) else -np.inf
            expected = -np.inf if row[token] == -np.inf else row[token] - rival
            assert gamma[k] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("scores", [token_scores, on_device])
def test_a_row_that_is_no_distribution_has_no_scores(scores):
    rows = np.array([[np.nan, 0.0], [0.0, np.nan], [-np.inf, -np.inf], [np.inf, 0.0], [np.log(0.5), np.log(0.5)]])
    found = scores(rows, np.zeros((5, 1), dtype=np.int64))
    assert np.isnan(found.logp[:4]).all()
    assert np.isnan(found.gamma[:4]).all()
    assert found.rank[:, 0].tolist() == [0, 0, 0, 0, 1]
    assert found.gamma[4, 0] == 0


# Closed forms


def test_every_state_of_table_a():
    table = TableText(TableConditional(TABLE_A), ["a", "b", "c"], "a", "")
    states = list(table.table.states())
    for ids, score in zip(states, scores_of(table, states), strict=True):
        x, y = ids.tolist()
        p = [TABLE_A[0][y][x], TABLE_A[1][x][y]]
        assert np.exp(score.logp) == pytest.approx(p)
        assert score.total == pytest.approx(np.log(p[0] * p[1]))
        assert score.total == pytest.approx(Engine(table.table).pll(ids))
        assert score.perplexity == pytest.approx((p[0] * p[1]) ** -0.5)
        assert (score.tokens, score.scored_words, score.word_perplexity) == (2, 2, score.perplexity)
        known = margins(site_rows(table, ids, np.arange(2)), ids, 1.0, 3)
        assert score.gamma == pytest.approx(known.gamma)
        assert score.margin == pytest.approx(known.margin)
        assert score.total_within_word == pytest.approx(score.total)  # each word is one token
        assert score.rank.tolist() == [place_in(TABLE_A[0][y], x), place_in(TABLE_A[1][x], y)]


class WordTable(TableText):
    """A joint law of n sites whose conditionals are known with further sites masked; sites 0 to 2 are one word."""

    def __init__(self, joint):
        vocab = joint.shape[0]
        super().__init__(TableConditional.from_joint(joint), [f"t{k}" for k in range(vocab)], "word", "")
        self.joint_law, self.mask_id, self.asked = joint, vocab, []

    def log_probs(self, ids, sites):
        """p(v | the tokens that are not masked): the joint law summed over masked sites."""
        rows = np.empty((len(ids), self.vocab_size))
        for row, state, site in zip(rows, ids.tolist(), sites.tolist(), strict=True):
            self.asked.append((site, tuple(FILL if k == site else token for k, token in enumerate(state))))
            place = tuple(slice(None) if k == site or token == self.mask_id else token
                          for k, token in enumerate(state))
            kept = self.joint_law[place]
            free = [k for k, part in enumerate(place) if isinstance(part, slice)]
            row[:] = kept.sum(axis=tuple(axis for axis, k in enumerate(free) if k != site))
        return np.log(rows / rows.sum(axis=1, keepdims=True))


WORDS = [(0, 3), (3, 4)]


def test_within_word_scores_of_a_joint_law_add_up_to_the_word_given_the_others():
    """By the chain rule, which fails for the original PLL of the same law: the test tells the two apart."""
    joint = np.random.default_rng(3).dirichlet(np.ones(81)).reshape(3, 3, 3, 3)
    model = WordTable(joint)
    states = [np.array(state) for state in product(range(3), repeat=4)]
    different = []
    for ids, score in zip(states, score_texts(model, states, [WORDS] * 81), strict=True):
        a, b, c, d = ids.tolist()
        word = by_word(score)
        assert word.logp_within_word[0] == pytest.approx(np.log(joint[a, b, c, d] / joint[..., d].sum()))
        assert word.logp[1] == pytest.approx(np.log(joint[a, b, c, d] / joint[a, b, c].sum()))
        assert word.logp_within_word[1] == word.logp[1]
        different.append(abs(word.logp[0] - word.logp_within_word[0]))
        assert word.gamma[0] == score.gamma[:3].min()
        assert word.rank[0] == score.rank[:3].max()
    assert min(different) > 1e-6


def test_each_context_is_computed_once():
    """81 states of 4 sites have 4 * 27 contexts with one mask; masked word ends add 9 and 3 * 3 at sites 0 and 1."""
    model = WordTable(np.full((3, 3, 3, 3), 1 / 81))
    states = [np.array(state) for state in product(range(3), repeat=4)]
    score_texts(model, [*states, *states], [WORDS] * 162)
    assert len(model.asked) == len(set(model.asked)) == 4 * 27 + 3 + 9
    assert different_conditionals(model, states, [WORDS] * 81, True) == len(model.asked)
    assert conditionals_of(model, WORDS, True) == 6
    assert conditionals_of(model, WORDS, False) == 4
    model.asked.clear()
    advanced = []
    score_texts(model, states, [WORDS] * 81, within_word=False, advance=advanced.append)
    assert len(model.asked) == sum(advanced) == 4 * 27


def test_tokens_that_are_never_drawn_and_broken_conditionals():
    table = TableText(TableConditional([[[0.5, 0.5]] * 2] * 2, [True, False]), ["a", "b"], "n", "")
    never, = scores_of(table, [np.array([0, 1])])
    assert (never.total, never.perplexity, never.margin) == (-np.inf, np.inf, -np.inf)
    assert (never.logp[0], never.gamma[0], never.broken) == (0, np.inf, None)
    table.log_probs = lambda ids, sites: np.where((sites == 1)[:, None], np.nan, np.log([[0.5, 0.5]] * len(ids)))
    assert scores_of(table, [np.array([0, 0])])[0].broken == 1


# Real architectures


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    made = {}

    def get(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            made[name] = families.save_causal(folder) if name == "gpt" else families.save(name, folder)[0]
        return made[name]

    return get


def loop(folder, lm, ids, masked_with):
    """log p of each token, from full logits of the bare model in a call of its own; masked_with(site): masked sites."""
    model, logp = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval(), []
    for site, token in enumerate(ids):
        whole = [*lm.prefix, *ids, *lm.suffix]
        for masked in masked_with(site):
            whole[len(lm.prefix) + masked] = lm.tokenizer.mask_token_id
        with torch.no_grad():
            logits = model(torch.tensor([whole])).logits[0, len(lm.prefix) + site].double()
        logits[torch.from_numpy(~lm.allowed)] = -torch.inf
        logp.append(float(torch.log_softmax(logits, 0)[token]))
    return logp


def later_in_word(words, site):
    """The site and the later ones of its word, by the words of the tokenizer's own pre-tokenizer."""
    return [k for k in range(site, len(words)) if words[k] == words[site]]


@pytest.mark.parametrize("all_tokens", [False, True])
@pytest.mark.parametrize("name", [*families.NAMES, "convbert", "fnet", "esm"])
def test_scores_are_those_of_one_call_a_token(checkpoints, name, all_tokens):
    if all_tokens and name not in ("bert", "roberta"):
        pytest.skip("two families show it")
    folder = checkpoints(name)
    lm = MaskedLM.open(str(folder), all_tokens=all_tokens)
    texts = ["MKTAYIAKQR", "LAG"] if name == "esm" else TEXTS
    encoded = [np.array(lm.encode(text)) for text in texts]
    several = 0
    for text, ids, score in zip(texts, encoded, scores_of(lm, encoded), strict=True):
        assert score.logp == pytest.approx(loop(folder, lm, ids.tolist(), lambda site: [site]), abs=1e-4)
        if name == "esm":
            words = list(range(len(ids)))
        else:
            words = AutoTokenizer.from_pretrained(folder)(text, add_special_tokens=False).word_ids()
        if name in ("xlm-roberta", "albert", "deberta-v2"):
            words = [sum(first <= site for first, _ in score.words) for site in range(len(ids))]  # ours: "log," is two
        several += len(words) - len(set(words))
        within = loop(folder, lm, ids.tolist(), partial(later_in_word, words))
        assert score.logp_within_word == pytest.approx(within, abs=1e-4)
    assert several > 0 or name == "esm"


@pytest.mark.parametrize("bos", [True, False])
def test_scores_of_a_causal_model_are_those_of_its_full_logits(checkpoints, bos):
    folder = checkpoints("gpt")
    lm = CausalLM.open(str(folder))
    if not bos:
        lm.prefix = []
    plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    texts = [np.array(lm.encode(text)) for text in TEXTS]
    found = scores_of(lm, texts)
    assert [score.total for score in found if score.tokens] == pytest.approx(
        lm.joint(stack(texts))[[score.tokens > 0 for score in found]], abs=1e-4)
    for ids, score in zip(texts, found, strict=True):
        with torch.no_grad():
            logits = plain(torch.tensor([[*lm.prefix, *ids]])).logits[0].double()
        rows = torch.log_softmax(logits, 1).numpy()
        assert score.logp_within_word is None
        first = 0 if bos else 1
        assert (score.tokens, score.broken) == (len(ids) - first, None)
        for site in range(first, len(ids)):
            row = rows[site - first] if bos else rows[site - 1]
            assert score.logp[site] == pytest.approx(row[ids[site]], abs=1e-4)
            assert score.gamma[site] == pytest.approx(row[ids[site]] - np.delete(row, ids[site]).max(), abs=1e-4)
            assert score.rank[site] == 1 + (row > row[ids[site]]).sum()
        assert np.isnan(score.logp[:first]).all()
