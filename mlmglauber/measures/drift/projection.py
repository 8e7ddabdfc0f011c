"""Principal components of embeddings, with fixed signs."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Projection(NamedTuple):
    """r principal components of N vectors; r is at most the rank of the centred vectors.

    points: (N, r) = (vectors - mean) @ components.T. explained: (r,) share of variance of each component. components:
    (r, d). mean: (d,).
    """

    points: NDArray[np.float64]
    explained: NDArray[np.float64]
    components: NDArray[np.float64]
    mean: NDArray[np.float64]


def project(vectors: NDArray[np.floating], k: int) -> Projection:
    """The first k principal components of (N, d) vectors by scikit-learn's PCA, full singular value decomposition.

    The largest loading of each component is positive, so that the same vectors give the same signs on every machine.
    There are at most as many components as the rank of the centred vectors: singular values up to eps32 max |x| (sqrt N
    + sqrt d), the rounding error of float32, count as 0. ValueError where k is below 1 or a vector is not finite.
    """
    from sklearn.decomposition import PCA

    vectors = np.asarray(vectors, dtype=np.float64)
    if vectors.ndim != 2 or not len(vectors):
        raise ValueError(f"vectors have the shape {vectors.shape}; give an array of shape (N, d)")
    if k < 1:
        raise ValueError(f"{k} principal components; ask for 1 or more")
    if not np.isfinite(vectors).all():
        raise ValueError("a vector is not finite")
    count, size = vectors.shape
    mean = vectors.mean(axis=0)
    noise = np.finfo(np.float32).eps * np.abs(vectors).max(initial=0) * (np.sqrt(count) + np.sqrt(size))
    if count < 2 or np.linalg.norm(vectors - mean) <= noise:  # no direction at all
        return Projection(np.empty((count, 0)), np.empty(0), np.empty((0, size)), mean)
    pca = PCA(min(k, count, size), svd_solver="full")
    points = pca.fit_transform(vectors)
    rank = int((pca.singular_values_ > noise).sum())
    components = pca.components_[:rank]
    largest = np.abs(components).argmax(axis=1)
    signs = np.where(components[np.arange(rank), largest] < 0, -1.0, 1.0)
    return Projection(points[:, :rank] * signs, pca.explained_variance_ratio_[:rank], components * signs[:, None],
                      pca.mean_)
