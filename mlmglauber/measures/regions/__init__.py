"""Regions of an embedding space: labels, clusters, visits."""
