"""Regions without names: k-means clusters of embeddings."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STARTS = 10
"""Runs of k-means from different centres, of which the tightest counts."""

SHOWN = 2000
"""Vectors, drawn at random, that the silhouette is computed on; its cost is quadratic."""


class Clusters(NamedTuple):
    """members (N,): the cluster of each vector, the largest cluster first; sizes (K,); nearest (K,): the index of the
    vector nearest to each centre; silhouette, from -1 to 1: how much nearer vectors are to their own cluster than to
    the next, None where each vector is a cluster of its own.
    """

    members: NDArray[np.int64]
    sizes: NDArray[np.int64]
    nearest: NDArray[np.int64]
    silhouette: float | None


def cluster(units: NDArray[np.float64], k: int, seed: int) -> Clusters:
    """k-means (scikit-learn) of N vectors of length 1 (N, d): the same seed gives the same clusters.

    The clusters are those of these vectors: others, or more of one chain, give other ones. ValueError when fewer than
    k vectors differ.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    distinct = len(np.unique(units, axis=0))
    if distinct < k:
        raise ValueError(f"{distinct} different vectors make no {k} clusters")
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
