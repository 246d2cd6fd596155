"""Random effects integrated out by Laplace's approximation."""
