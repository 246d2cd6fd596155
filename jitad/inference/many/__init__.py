"""Chains on a cluster, fits of many data sets, and what is made of them: calibration, cross-validation."""
