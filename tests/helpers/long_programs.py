"""Programs that are long and irregular."""
from __future__ import annotations

import numpy as np


def irregular(count, width=12, seed=1):
    """A program whose choices come from a congruential generator."""
    def f(x):
        s, r = [x[i] for i in range(width)], seed
        for _ in range(count):
            r = (r * 6364136223846793005 + 1442695040888963407) % 2**64
            op, a, b = (r >> 33) % 7, s[(r >> 37) % width], s[(r >> 45) % width]
            s[(r >> 52) % width] = (a + b if op == 0 else a - b * 0.25 if op == 1 else a * b if op == 2 else np.sin(a)
                                    if op == 3 else a / 1.5 if op == 4 else np.tanh(b) if op == 5 else np.maximum(a, b))
        result = 0.0
        for v in s:
            result = result + v if r % 2 else result - v
        return result
    return f
