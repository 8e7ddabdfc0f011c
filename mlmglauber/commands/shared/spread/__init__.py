"""One run on the workers of dask.distributed."""
