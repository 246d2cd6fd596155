"""Where the time of a compiled function goes: `g.profile`."""
