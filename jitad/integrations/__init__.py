"""Bridges to samplers, optimisers and other systems of derivatives: one small module each, which imports its library
only when it is used; `pullback` is what several of them record."""
