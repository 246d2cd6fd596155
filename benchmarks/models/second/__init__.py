"""A second set of posteriors, of what people write: they were written down before any of them was timed."""
