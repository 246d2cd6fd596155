"""A cost model of clusters, and a simulation of large ones."""
