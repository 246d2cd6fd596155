"""`python -m jitad`: the command line, with all its commands."""
from __future__ import annotations

import argparse
import inspect
import platform
import sys
from collections.abc import Sequence

from jitad import errors
from jitad.cache import cli
from jitad.version import __version__, versions


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status.

    Raises `SystemExit` for wrong arguments.
    """
    parser = argparse.ArgumentParser(prog="python -m jitad", description="Gradients of plain NumPy code.")
    parser.add_argument("--version", action="version", version=_versions())
    commands = parser.add_subparsers(required=True, metavar="cache|coverage|demo|doctor|explain")
    cli.add_commands(commands.add_parser("cache", help="the compiled code that is kept on disk"))
    text = "what is differentiated, constant or refused of NumPy and SciPy: the table in COVERAGE.md"
    coverage = commands.add_parser("coverage", help=text, description=text)
    coverage.add_argument("file", nargs="?", help="write the table there instead of printing it")
    coverage.set_defaults(run=_coverage)
    text = "two real posteriors, sampled with compiled gradients"
    commands.add_parser("demo", help=text, description=text).set_defaults(run=_demo)
    text = "versions, processor, BLAS, cache folder, and whether gradients come out right here"
    commands.add_parser("doctor", help=text, description=text).set_defaults(run=_doctor)
    text = "what an error or a warning means and what to do about it; without a name, which there are"
    explaining = commands.add_parser("explain", help=text, description=text)
    explaining.add_argument("error", nargs="?", metavar="NAME", help="as the message has it: MutationError")
    explaining.set_defaults(run=_explain)
    options = parser.parse_args(argv)
    return int(options.run(options))


def _versions() -> str:
    """The versions that a report of a fault should name."""
    own = [f"jitad {__version__}", f"Python {platform.python_version()}"]
    return ", ".join([*own, *versions("numpy", "scipy", "numba", "llvmlite"), platform.platform()])


def _doctor(options: argparse.Namespace) -> int:
    from jitad.testing.doctor import doctor

    return doctor()


def _explain(options: argparse.Namespace) -> int:
    pages = {name: inspect.getdoc(kind) or "" for name, kind in vars(errors).items() if isinstance(kind, type)
             and issubclass(kind, Exception)}
    if options.error is None:
        width = max(map(len, pages))
        print("\n".join(f"{name:<{width}}  {_summary(page)}" for name, page in pages.items()))
    elif options.error in pages:
        print(f"{options.error}: {pages[options.error]}")
    else:
        print(f"no error of jitad is called {options.error}; python -m jitad explain lists them", file=sys.stderr)
        return 1
    return 0


def _summary(page: str) -> str:
    return " ".join(page.split("\n\n")[0].split())


def _coverage(options: argparse.Namespace) -> int:
    from jitad.testing.coverage import table

    if options.file is None:
        print(table())
    else:
        with open(options.file, "w", encoding="utf-8") as file:
            file.write(table())
    return 0


def _demo(options: argparse.Namespace) -> int:
    from jitad.demo import main as demo

    return demo()


if __name__ == "__main__":
    sys.exit(main())
