"""Which arguments of a call are one object: a tape serves calls that answer what its code asked by ``is`` alike."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jitad.cache.keys.captures import Path, Plan
from jitad.cache.keys.identity import Target
from jitad.call.request.request import Arguments
from jitad.trace.pytree import objects_in


def named_objects(arguments: Arguments) -> list[tuple[str, Any]]:
    """The containers and leaves of the arguments, as they were given, with their names."""
    names = [*arguments.positional[:len(arguments.passed) - len(arguments.kwargs)], *arguments.kwargs]
    return [pair for name, value in zip(names, arguments.passed, strict=True) for pair in objects_in(value, name)]


def unlike(asked: Sequence[Any], arguments: Arguments, plan: Plan, target: Target) -> str:
    """The first answer that is another one for this call, in words; empty where there is none."""
    if not asked:
        return ""
    objects = named_objects(arguments)
    for places, same in asked:
        captured = dict(zip(paths := paths_in([(places, same)]), plan.found(target, paths), strict=True))
        names, things = zip(*((place.expression(), captured[place]) if isinstance(place, Path) else objects[place]
                              for place in places), strict=True)
        if (len({*map(id, things)}) == 1) if same else (len({*map(id, things)}) == len(things)):
            continue
        return f"`{' is '.join(names)}`: {same} -> {not same}"
    return ""


def paths_in(asked: Sequence[Any]) -> list[Path]:
    """The captured objects that arguments were compared with."""
    return [*dict.fromkeys(place for places, _ in asked for place in places if isinstance(place, Path))]


def conditions(asked: Sequence[Any], names: Sequence[str], captured: dict[Path, str]) -> list[str]:
    """The same as expressions of Python that are true where an answer is another one; `names` are those of the
    objects, `captured` those of the captured ones."""
    lines = []
    for places, same in asked:
        things = [captured[place] if isinstance(place, Path) else names[place] for place in places]
        if same or len(things) == 2:
            lines += [f"{things[0]} is {'not ' * same}{other}" for other in things[1:]]
        else:
            lines.append(f"len({{{', '.join(f'id({thing})' for thing in things)}}}) < {len(things)}")
    return lines
