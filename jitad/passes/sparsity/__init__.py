"""Structural sparsity: patterns, how they go through a tape, and the colours of columns that are computed together."""
from jitad.passes.sparsity import custom, rules, scan

__all__ = ["custom", "rules", "scan"]
