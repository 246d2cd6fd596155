"""Bridges to samplers: one small module each, imported only when it is asked for."""
