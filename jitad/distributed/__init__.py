"""Data and draws beyond one process: likelihoods in shards, on one machine or on the workers of a Dask cluster."""
