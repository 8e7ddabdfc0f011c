"""Principal components against the singular value decomposition."""

import numpy as np
import pytest

from mlmglauber.measures.projection import project


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
    with pytest.raises(ValueError, match="3 vectors of 2 dimensions have no 3"):
        project(np.zeros((3, 2)), 3)
    with pytest.raises(ValueError, match="have no 1"):
        project(np.zeros((1, 5)), 1)
    with pytest.raises(ValueError, match="have no 0"):
        project(np.eye(3), 0)
    with pytest.raises(ValueError, match="no list of vectors"):
        project(np.ones(3), 1)
    with pytest.raises(ValueError, match="not finite"):
        project(np.array([[np.nan, 1], [1, 2]]), 1)
    assert project(np.ones((4, 3)), 2).explained.tolist() == [0, 0]
