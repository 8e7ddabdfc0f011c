"""Principal components against the singular value decomposition."""

import numpy as np
import pytest

from mlmglauber.measures.drift.projection import project


def test_components_are_singular_vectors_with_fixed_signs():
    vectors = np.random.default_rng(0).normal(size=(40, 7)) * np.arange(1, 8)
    found = project(vectors, 3)
    _, values, rows = np.linalg.svd(vectors - vectors.mean(0), full_matrices=False)
    assert np.abs(np.abs(found.components @ rows[:3].T) - np.eye(3)).max() < 1e-9
    assert found.explained == pytest.approx(values[:3] ** 2 / (values**2).sum())
    assert (found.components[np.arange(3), np.abs(found.components).argmax(1)] > 0).all()
    assert found.points == pytest.approx((vectors - vectors.mean(0)) @ found.components.T)
    assert found.mean == pytest.approx(vectors.mean(0))
    mirrored = project(-vectors, 3)
    assert mirrored.components == pytest.approx(found.components)


def test_what_cannot_be_projected():
    with pytest.raises(ValueError, match="0 principal components"):
        project(np.eye(3), 0)
    for none in (np.ones(3), np.empty((0, 4))):
        with pytest.raises(ValueError, match="give an array of shape"):
            project(none, 1)
    with pytest.raises(ValueError, match="not finite"):
        project(np.array([[np.nan, 1], [1, 2]]), 1)


def test_the_rank_decides_how_many_components_there_are():
    """Points on a line have one, whatever rounding in float32 adds; equal points and one point have none."""
    random = np.random.default_rng(1)
    for rank in range(4):
        for count in (rank + 1, 30):
            spread = random.normal(size=(count, rank)) @ random.normal(size=(rank, 50))
            found = project((spread + random.normal(size=50)).astype(np.float32), 3)
            assert found.points.shape == (count, min(rank, 3))
            assert found.explained.sum() == pytest.approx(1 if rank else 0)
            assert found.components.shape == (min(rank, 3), 50)
    assert project(np.ones((4, 3)), 2).points.shape == (4, 0)
    tiny = 1e-3 * random.normal(size=(5, 1)) @ random.normal(size=(1, 8)) + 1  # small, and yet no rounding
    assert project(tiny.astype(np.float32), 2).points.shape == (5, 1)
