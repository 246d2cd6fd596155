"""Bridges to samplers and optimisers: one small module each, imported only when it is asked for."""
