"""`python -m jitad cache info|list|clear|path`: what is in the disk cache, and how to empty it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

from .bounds import Limits
from .disk import DiskCacheWarning, DiskEntry, DiskStore, default_root
from .settings import initial
from .tables import in_bytes, show, show_facts

__all__ = ["add_commands"]

Action = Callable[[DiskStore, argparse.Namespace], None]


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Give the parser of `python -m jitad cache` its commands. What they set as `run` takes the options, and returns
    the exit status: 0, or 1 if the folder of the cache cannot be used."""
    commands = parser.add_subparsers(required=True, metavar="info|list|clear|path")
    _command(commands, "info", _info, "where the cache is, how much is in it and how old that is")
    listing = _command(commands, "list", _list, "one line for each compiled function, the last used first")
    clearing = _command(commands, "clear", _clear, "remove what is in the cache")
    for command in (listing, clearing):
        command.add_argument("function", nargs="?", help="only functions of this name")
    clearing.add_argument("--older-than", type=float, metavar="DAYS", help="only what was not used for so many days")
    _command(commands, "path", _path, "print the folder of the cache")


def _command(commands: Any, name: str, act: Action, text: str) -> argparse.ArgumentParser:
    def run(options: argparse.Namespace) -> int:
        try:
            act(DiskStore(default_root(), warn=_refuse), options)
        except DiskCacheWarning as trouble:
            print(trouble, file=sys.stderr)
            return 1
        return 0
    command: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    command.set_defaults(run=run)
    return command


def _refuse(message: str) -> None:
    raise DiskCacheWarning(message)


def _path(store: DiskStore, options: argparse.Namespace) -> None:
    print(store.root or "no home folder: set JITAD_CACHE_DIR")


def _info(store: DiskStore, options: argparse.Namespace) -> None:
    entries = list(store.entries())
    codes = [entry for entry in entries if entry.meta.get("kind") != "plan"]
    state = "on" if initial(Limits()).disk else "off (JITAD_DISK_CACHE)"
    facts = {
        "folder": store.root or "none: there is no home folder",
        "state": state,
        "functions": f"{len({entry.meta.get('function') for entry in codes})}",
        "compiled": f"{len(codes)}",
        "size": f"{in_bytes(store.total_bytes())} of at most {in_bytes(store.maxbytes)}",
    }
    if entries:
        facts["oldest"] = _age(min(_created(entry) for entry in entries))
        facts["last used"] = _age(max(entry.used for entry in entries))
    show_facts(facts.items(), max(map(len, facts)))


def _list(store: DiskStore, options: argparse.Namespace) -> None:
    chosen = [e for e in store.entries() if e.meta.get("kind") != "plan" and _is_named(e, options.function)]
    rows = [
        [_name(entry), in_bytes(entry.nbytes), _age(_created(entry)), _age(entry.used), entry.key[:12]]
        for entry in sorted(chosen, key=lambda entry: -entry.used)
    ]
    if rows:
        show(["function", "size", "made", "last used", "key"], rows)
    else:
        print("The disk cache is empty.")


def _clear(store: DiskStore, options: argparse.Namespace) -> None:
    before = store.total_bytes()
    codes = [entry.key for entry in store.entries() if entry.meta.get("kind") != "plan"]  # as `info` counts
    if options.function is None and options.older_than is None:
        store.clear()
    else:
        limit = time.time() - 86400 * (options.older_than or 0)
        store.clear(lambda entry: _is_named(entry, options.function) and entry.used <= limit)
    count = len(set(codes) - {entry.key for entry in store.entries()})
    print(f"{count} {'entry' if count == 1 else 'entries'} removed, {in_bytes(before - store.total_bytes())}.")


def _name(entry: DiskEntry) -> str:
    return str(entry.meta.get("function", "?"))


def _is_named(entry: DiskEntry, function: str | None) -> bool:
    """Whether an entry is of a function with this name, which may leave out class and enclosing function."""
    return function is None or f".{_name(entry)}".endswith(f".{function}")


def _created(entry: DiskEntry) -> float:
    created = entry.meta.get("created")
    return float(created) if isinstance(created, (int, float)) else entry.used


def _age(moment: float) -> str:
    seconds = max(time.time() - moment, 0)
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {unit}{'s' if number != 1 else ''} ago"
    return "just now"
