"""What a head proves of every context: heads of eight families, states near the bound, heads that prove nothing."""

import families
import numpy as np
import pytest
import torch

from mlmglauber.measures.influence.matrix import oscillation_bound, oscillations, total_variations
from mlmglauber.models.head_bound import enclosing_radius, head_bound
from mlmglauber.models.masked_lm import MaskedLM
from mlmglauber.models.opening import open_model

KNOWN = ("bert", "distilbert", "roberta", "xlm-roberta", "albert", "electra", "modernbert")


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Tiny models by family, opened when first asked for."""
    made = {}

    def get(name):
        if name not in made:
            folder = families.save(name, tmp_path_factory.mktemp(name))[0]
            made[name] = MaskedLM.open(str(folder))
        return made[name]

    return get


def head_of(lm):
    """The LayerNorm and the decoder by the names that the library's source gives them."""
    model = lm.model
    kind = model.config.model_type
    if kind == "bert":
        return model.cls.predictions.transform.LayerNorm, model.cls.predictions.decoder
    if kind in ("roberta", "xlm-roberta"):
        return model.lm_head.layer_norm, model.lm_head.decoder
    if kind == "albert":
        return model.predictions.LayerNorm, model.predictions.decoder
    if kind == "electra":
        return model.generator_predictions.LayerNorm, model.generator_lm_head
    if kind == "distilbert":
        return model.vocab_layer_norm, model.vocab_projector
    return model.head.norm, model.decoder


@pytest.mark.parametrize("name", KNOWN)
def test_two_states_of_the_head_come_near_the_bound_and_none_passes_it(opened, monkeypatch, name):
    """The two rows of the decoder that lie farthest apart, and what the LayerNorm reads pointed along their difference.

    Two points at a distance s are enclosed by no ball of radius below s/2, and Jung's theorem puts s above R sqrt(2):
    so the pair reaches D / sqrt(2) but for the part of the difference that the LayerNorm takes out.
    """
    lm = opened(name)
    norm, decoder = head_of(lm)
    with torch.no_grad():  # a gain that is not 1 everywhere: leaving it out would show
        norm.weight.copy_(torch.linspace(0.2, 4, len(norm.weight)))
        if norm.bias is not None:
            norm.bias.copy_(torch.linspace(-1, 1, len(norm.bias)))
    bound = head_bound(lm)
    assert bound.reason is None
    allowed = torch.from_numpy(lm.allowed)
    rows = (decoder.weight.detach() * norm.weight.detach()).double()[allowed]
    distances = torch.cdist(rows, rows)
    v, w = divmod(int(distances.argmax()), len(rows))
    aim = (rows[v] - rows[w]).float()
    with torch.no_grad():
        one, other = decoder(norm(torch.stack([aim, -aim]) * 100)).double()[:, allowed].log_softmax(1).numpy()
    reached = oscillations(one, other[None])[0]
    assert 0.65 * bound.oscillation < reached < bound.oscillation
    pair = np.zeros(lm.vocab_size, bool)
    pair[np.flatnonzero(lm.allowed)[[v, w]]] = True
    monkeypatch.setattr(lm, "allowed", pair)  # of two points the ball is exact
    assert head_bound(lm).oscillation == pytest.approx(2 * len(aim) ** 0.5 * float(distances.max()), rel=1e-6)
    apart = total_variations(one, other[None], [reached])[0, 0]
    assert apart <= oscillation_bound(bound.oscillation, reached)


@pytest.mark.parametrize("name", [*KNOWN, "deberta-v2"])
def test_no_pair_of_contexts_passes_the_bound(opened, name):
    lm = opened(name)
    bound = head_bound(lm).oscillation
    generator = np.random.default_rng(0)
    states = generator.choice(np.flatnonzero(lm.allowed), (40, 6))
    rows = lm.log_probs(states, np.full(40, 2))[:, lm.allowed]
    for row in rows[:5]:
        assert oscillations(row, rows).max() < bound
        for tau in (5.0, 40.0):
            assert (total_variations(row, rows, [tau])[0] <= oscillation_bound(bound, tau)).all()


def test_heads_that_prove_nothing_say_why(opened, monkeypatch, tables):
    lm = opened("bert")
    assert head_bound(opened("esm")).reason == "the logits are not the decoder's output as it is"
    with monkeypatch.context() as patch:
        patch.setattr(lm.model, "get_output_embeddings", torch.nn.Identity)
        assert head_bound(lm).reason == "the decoder is not a plain linear layer"
    _, decoder = head_of(lm)
    hook = decoder.register_forward_pre_hook(lambda _, arguments: (arguments[0] * 2,))
    assert head_bound(lm).reason == "the decoder does not read a LayerNorm"
    hook.remove()

    def cap(_, __, output):
        output["logits"] = 30 * torch.tanh(output.logits / 30)
        return output

    hook = lm.model.register_forward_hook(cap)
    assert head_bound(lm) == (None, "the logits are not the decoder's output as it is")
    hook.remove()
    assert head_bound(lm).oscillation > 0
    table = open_model(str(tables / "a.json"))
    assert head_bound(table) == (None, "a table of conditionals has no head")
    assert (table.token_vectors() == np.eye(3)).all()
    assert lm.token_vectors().shape == (lm.vocab_size, 32)


def test_the_enclosing_ball():
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    assert enclosing_radius(corners) == pytest.approx(3**0.5, rel=1e-6)
    crowd = np.random.default_rng(0).normal(size=(20_000, 3)) * 0.01
    crowd[:2] = [[5, 0, 0], [-1, 0, 0]]  # the centroid is near 0, the best centre at 2
    assert 3 <= enclosing_radius(crowd) < 3.03
    assert enclosing_radius(np.ones((1, 4))) == 0
    points = np.random.default_rng(1).normal(size=(3000, 20))
    radius = enclosing_radius(points)
    diameter = max(np.linalg.norm(points - point, axis=1).max() for point in points)
    assert diameter / 2 <= radius <= diameter * np.sqrt(20 / 42) * 1.03  # Jung's theorem
