"""From the start of a process to 4 x 1,000 draws, beside NumPyro and PyMC."""
