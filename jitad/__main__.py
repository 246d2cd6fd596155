"""`python -m jitad`: the command line."""
import sys

from jitad.cache.cli import main

if __name__ == "__main__":
    sys.exit(main())
