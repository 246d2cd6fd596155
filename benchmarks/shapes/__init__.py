"""Sizes swept: where value and gradient take longer than they should. ``python -m benchmarks.shapes``"""
