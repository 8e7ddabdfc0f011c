"""Regions without labels: k-means clusters of embeddings."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STARTS = 10
"""Number of runs of k-means from different centres; the one with the smallest sum of squares is used."""

SHOWN = 2000
"""Maximum number of vectors, drawn at random, for the silhouette, whose cost is quadratic."""


class Clusters(NamedTuple):
    """K clusters of N vectors, the largest first.

    members: (N,) the cluster of each vector. sizes: (K,). nearest: (K,) index of the vector nearest to each centre.
    silhouette: mean silhouette coefficient, from -1 to 1; None where each vector is a cluster of its own.
    """

    members: NDArray[np.int64]
    sizes: NDArray[np.int64]
    nearest: NDArray[np.int64]
    silhouette: float | None


def cluster(units: NDArray[np.float64], k: int, seed: int) -> Clusters:
    """k-means (scikit-learn) of (N, d) vectors of length 1; the same seed gives the same clusters.

    The clusters depend on all vectors: adding vectors, even of the same chain, changes them. ValueError where fewer
    than k vectors are different.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    distinct = len(np.unique(units, axis=0))
    if distinct < k:
        raise ValueError(f"{k} clusters need {k} different vectors, there are {distinct}")
    model = KMeans(k, n_init=STARTS, random_state=seed).fit(units)
    order = np.argsort(-np.bincount(model.labels_, minlength=k), kind="stable")
    members = np.argsort(order)[model.labels_]
    distances = model.transform(units)[:, order]
    silhouette = None
    if 1 < k < len(units):
        shown = np.random.default_rng(seed).permutation(len(units))[:SHOWN]
        if 1 < len(np.unique(members[shown])) < len(shown):
            silhouette = float(silhouette_score(units[shown], members[shown]))
    return Clusters(members, np.bincount(members, minlength=k), distances.argmin(axis=0), silhouette)
