"""The plane that shows most of a cloud of embeddings: principal components with fixed signs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Projection(NamedTuple):
    """points (N, k), the share of variance that each component explains (k,), components (k, d), mean (d,).

    points = (vectors - mean) @ components.T
    """

    points: NDArray[np.float64]
    explained: NDArray[np.float64]
    components: NDArray[np.float64]
    mean: NDArray[np.float64]


def project(vectors: NDArray[np.floating], k: int) -> Projection:
    """Principal components of (N, d) vectors by scikit-learn's PCA, full singular value decomposition.

    The largest loading of each component is positive, so the same vectors give the same picture everywhere.
    ValueError when fewer than two vectors, or k below 1 or above min(N, d).
    """
    from sklearn.decomposition import PCA

    vectors = np.asarray(vectors, dtype=np.float64)
    if vectors.ndim != 2:
        raise ValueError(f"an array of shape {vectors.shape} is no list of vectors; give one of shape (N, d)")
    if len(vectors) < 2 or not 1 <= k <= min(vectors.shape):
        raise ValueError(f"{len(vectors)} vectors of {vectors.shape[1]} dimensions have no {k} principal components")
    if not np.isfinite(vectors).all():
        raise ValueError("a vector is not finite")
    pca = PCA(k, svd_solver="full")
    with np.errstate(invalid="ignore", divide="ignore"):
        points = pca.fit_transform(vectors)
    largest = np.abs(pca.components_).argmax(axis=1)
    signs = np.where(pca.components_[np.arange(k), largest] < 0, -1.0, 1.0)
    explained = np.nan_to_num(pca.explained_variance_ratio_)  # equal vectors have no variance to explain
    return Projection(points * signs, explained, pca.components_ * signs[:, None], pca.mean_)
