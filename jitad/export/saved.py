"""Tapes in files: what ``CompiledTape.save`` writes and `jitad.load` reads.

A file is a zip archive of ``tape.json`` and one ``.npy`` for each constant and captured array. It holds data
alone: reading one runs no code, whatever is in it, and what is not a right tape is refused.
"""
from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from jitad import cache
from jitad.cache.keys.captures import Plan
from jitad.cache.keys.signature import Signature
from jitad.call.build.specialization import Specialization
from jitad.call.compiled import CompiledTape
from jitad.call.request.request import Request
from jitad.call.request.results import Frame, Result
from jitad.call.request.sparse import Matrix
from jitad.errors import SignatureError, TapeFileError
from jitad.export.data import tape_data, tape_of
from jitad.tape.display import Text
from jitad.tape.evaluate import GuardMiss
from jitad.tape.tape import Tape
from jitad.tape.types import Aval
from jitad.trace.leaves import altered, as_plain, is_complex, is_dynamic, refusal
from jitad.trace.pytree import TreeDef, count_leaves, flatten, leaves_of, unflatten
from jitad.trace.where import user_line
from jitad.version import __version__

FORMAT = "jitad tape"
VERSION = 1
UNPACKED, TIMES = 1 << 26, 100                  # bytes that a file may always unpack to, or so many times its own size
LISTED = 1 << 20                                # and those of the list of nodes, which take more when they are read


@dataclass(frozen=True)
class SavedArgument:
    """One argument: its name, the structure in plain containers, and what is not a number in it, by leaf. One that is
    `loose` is in ``**kwargs``, the order of which the function sees."""

    name: str
    structure: Any
    static: tuple[tuple[int, Any], ...] = ()
    loose: bool = False

    def inputs(self, value: Any) -> tuple[list[Any], list[str]]:
        """The numbers and arrays of the argument and their paths; raises `SignatureError` for another structure."""
        leaves, paths, tree = flatten(value, self.name)
        if plain_structure(tree) != self.structure:
            raise SignatureError(f"argument `{self.name}` has another structure than it was saved with (called at "
                                 f"{user_line()}); named tuples and dataclasses count as dicts")
        static = dict(self.static)
        for number, expected in static.items():
            if type(leaves[number]) is not type(expected) or leaves[number] != expected:
                raise SignatureError(f"argument `{paths[number]}` was saved as {expected!r}, and cannot be "
                                     f"{leaves[number]!r} (called at {user_line()})")
        dynamic = [n for n in range(len(leaves)) if n not in static]
        return [leaves[n] for n in dynamic], [paths[n] for n in dynamic]


class SavedTape:
    """A tape from a file, to be called as the function that it was saved from; `jitad.load` makes it.

    It serves the shapes, dtypes and the way through the branches that it was saved with, and raises `SignatureError`
    for others. Captured values are those of the day, in `captured`. Named tuples and dataclasses of arguments come
    back as dicts.
    """

    def __init__(self, name: str, tape: Tape, arguments: tuple[SavedArgument, ...], captured: Sequence[np.ndarray],
                 result: Result) -> None:
        self.__name__ = self.__qualname__ = name
        self._arguments, self._captured = arguments, tuple(captured)
        request = Request("value", parallel=cache.configuration().parallel)
        self._specialization = Specialization(name, request, Signature.of(()), tape.names, (), (), (), tape,
                                              Plan(), result, guarded=bool(tape.guards))

    @property
    def tape(self) -> Tape:
        """The tape, as it was compiled."""
        return self._specialization.tape

    @property
    def captured(self) -> dict[str, np.ndarray]:
        """The captured values that were saved with the tape, by their names on it."""
        return dict(zip(self.tape.names[len(self.tape.names) - len(self._captured):], self._captured, strict=True))

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        inputs = self._inputs(args, kwargs)
        try:
            return self._specialization.run(inputs)
        except GuardMiss as miss:
            raise SignatureError(
                f"`{self.__name__}` was saved on one way through its branches, and these arguments take another at "
                f"{miss.guard.where} (called at {user_line()}); save a tape for each way") from None

    def source(self, /, *args: Any, **kwargs: Any) -> Text:
        """The generated code for arguments like these, as Python source."""
        return Text(self._specialization.kernel(self._inputs(args, kwargs), quick=False).source)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tape to a file again."""
        write(path, self.__name__, self.tape, self._arguments, self._captured, self._specialization.result)

    def _inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        names = [argument.name for argument in self._arguments]
        given = dict(zip(names, args, strict=False))
        if len(args) > len(names) or set(kwargs) - set(names) or set(kwargs) & set(given) or len(
                given) + len(kwargs) != len(names):
            raise SignatureError(f"`{self.__name__}` takes the arguments {', '.join(names)} (called at {user_line()})")
        loose = [argument.name for argument in self._arguments if argument.loose]
        if [name for name in kwargs if name in loose] != loose:
            raise SignatureError(f"`{self.__name__}` was saved with the keywords {', '.join(loose)} in this order, "
                                 f"which its code can see (called at {user_line()}); pass them in this order")
        given |= kwargs
        inputs: list[Any] = []
        avals = [self.tape.nodes[i].aval for i in self.tape.inputs]
        for argument in self._arguments:
            for leaf, path in zip(*argument.inputs(given[argument.name]), strict=True):
                inputs.append(_fitting(leaf, path, avals[len(inputs)]))
        return [*inputs, *(x if x.ndim else x.item() for x in self._captured)]

    def __repr__(self) -> str:
        names = ", ".join(argument.name for argument in self._arguments)
        return f"<SavedTape of {self.__name__} ({names}), {len(self.tape)} nodes>"


def _fitting(leaf: Any, path: str, aval: Aval) -> Any:
    """The leaf as an input of this type."""
    if is_dynamic(leaf) and altered(type(leaf)):
        raise SignatureError(f"argument `{path}` {refusal(leaf)} (called at {user_line()})")
    if is_dynamic(leaf) and np.shape(leaf) == aval.shape:
        leaf = as_plain(leaf)
        dtype = np.asarray(leaf).dtype
        if dtype == aval.dtype:
            return leaf
        if aval.dtype == np.float64 and (dtype.kind in "iu" or (aval.weak and dtype.kind == "f")):
            return leaf.astype(aval.dtype) if isinstance(leaf, np.ndarray) else float(leaf)
    shown = f"{np.asarray(leaf).dtype} of shape {np.shape(leaf)}" if is_dynamic(leaf) else type(leaf).__name__
    raise SignatureError(f"argument `{path}` must be {aval.dtype} of shape {aval.shape}, not {shown} (called at "
                         f"{user_line()}); compile and save for these arguments")


# --- files -------------------------------------------------------------------------------------

def save(compiled: CompiledTape, path: str | os.PathLike[str]) -> None:
    """What ``compiled.save`` does."""
    write(path, *_parts(compiled))


def packed(compiled: CompiledTape) -> bytes:
    """What ``compiled.save`` writes, without a file; `unpacked` reads it."""
    content = io.BytesIO()
    _pack(content, *_parts(compiled))
    return content.getvalue()


def reader(compiled: CompiledTape) -> Callable[[], tuple[Any, ...] | None]:
    """What gives the captured values as they are now, in the order of `SavedTape.captured`; None if something else that
    the function reads is no longer what it was. It does not keep the arguments."""
    specialization, target = compiled._specialization, compiled.function.subject.target
    return lambda: specialization.captured(target)


def packed_density(name: str, tape: Tape, inputs: Sequence[Any]) -> bytes:
    """The same of a tape of values and gradients by one vector, the first of the inputs; the others are captured."""
    content = io.BytesIO()
    result = Result((("number", ""), ("array", "")), (None, (None, None)))
    _pack(content, name, tape, [SavedArgument(tape.names[0], "*")], [np.asarray(x) for x in inputs[1:]], result)
    return content.getvalue()


def unpacked_density(content: bytes) -> tuple[SavedTape, list[Any]]:
    """The tape that `packed_density` was given, as a function of the vector, and the inputs after that."""
    saved = unpacked(content, "what was sent")
    return saved, [x if x.ndim else x.item() for x in saved._captured]


def _parts(compiled: CompiledTape) -> tuple[str, Tape, list[SavedArgument], list[np.ndarray], Result]:
    specialization, given = compiled._specialization, compiled._arguments
    forms = [form for form, _ in specialization.result.forms]
    if any(map(is_complex, given.leaves)) or any(form.startswith("complex") for form in forms):
        raise TapeFileError(f"`{specialization.name}` has complex arguments or results, which cannot be in a file "
                            f"(called at {user_line()}); pass and return real and imaginary parts")
    if specialization.asked:
        raise TapeFileError(f"`{specialization.name}` compares arguments by `is`, which a file cannot tell (called at "
                            f"{user_line()}); compare names or flags instead")
    captured = [np.array(x) for x in compiled._inputs()[len(given.inputs):]]
    loose = compiled.function.subject.parameters.loose(tuple(given.kwargs))
    arguments, start = [], 0
    for name, tree, count in zip((*given.positional, *given.kwargs), given.structures, given.counts, strict=True):
        static = [(n - start, given.leaves[n]) for n in range(start, start + count) if not given.dynamic[n]]
        arguments.append(SavedArgument(name, plain_structure(tree), tuple(static), name in loose))
        start += count
    return specialization.name, specialization.tape, arguments, captured, specialization.result


def write(path: str | os.PathLike[str], name: str, tape: Tape, arguments: Sequence[SavedArgument],
          captured: Sequence[np.ndarray], result: Result) -> None:
    """Write a file in one step: there is the whole of it, or what was there before.

    Raises `TapeFileError` for what cannot be in a file, `OSError` where it cannot be written.
    """
    import tempfile

    path = Path(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            _pack(file, name, tape, arguments, captured, result)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _pack(file: IO[bytes], name: str, tape: Tape, arguments: Sequence[SavedArgument], captured: Sequence[np.ndarray],
          result: Result) -> None:
    import zipfile

    arrays = [np.asarray(x) for x in captured]
    data = {
        "format": FORMAT, "version": VERSION, "jitad": __version__, "name": name, "captured": len(captured),
        "arguments": [{"name": a.name, "structure": a.structure, "loose": a.loose,
                       "static": [[n, _atom(value, a.name)] for n, value in a.static]} for a in arguments],
        "forms": [list(form) for form in result.forms], "frame": _frame_data(result.frame),
        "tape": tape_data(tape, arrays),
    }
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tape.json", json.dumps(data, indent=1))
        for number, array in enumerate(arrays):
            content = io.BytesIO()
            np.lib.format.write_array(content, np.asarray(array), allow_pickle=False)
            packing = zipfile.ZIP_STORED if array.nbytes > UNPACKED // 4 else zipfile.ZIP_DEFLATED
            archive.writestr(f"{number}.npy", content.getvalue(), packing)


def load(path: str | os.PathLike[str]) -> SavedTape:
    """The tape in a file that ``CompiledTape.save`` wrote, ready to be called.

    Nothing in the file is run as code. The result is called as the function that was saved, for arguments of the same
    structure, shapes and dtypes.

    Raises
    ------
    TapeFileError
        If the file holds anything but a right tape, or one of a later version.
    OSError
        If there is no such file.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np, jitad
    >>> gradient = jitad.jit_grad(lambda x: np.sum(x**3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gradient.compile(np.zeros(2)).save(os.path.join(folder, "cubes.tape"))
    ...     loaded = jitad.load(os.path.join(folder, "cubes.tape"))
    >>> loaded(np.array([1.0, 2.0]))
    array([ 3., 12.])
    """
    with open(os.fspath(path), "rb") as file:       # what cannot be opened is an OSError, what cannot be read no tape
        return unpacked(file.read(), repr(os.fspath(path)))


def unpacked(written: bytes, where: str) -> SavedTape:
    """The tape in what `packed` gave, or a file of these bytes holds. Raises `TapeFileError` as `load` does."""
    import zipfile

    content = io.BytesIO(written)
    try:
        with zipfile.ZipFile(content) as archive:
            if sum(info.file_size for info in archive.infolist()) > max(UNPACKED, TIMES * content.getbuffer().nbytes):
                raise TapeFileError("more than a tape needs")
            if archive.getinfo("tape.json").file_size > max(LISTED, TIMES * content.getbuffer().nbytes):
                raise TapeFileError("a longer list of nodes than such a file has")
            data = json.loads(archive.read("tape.json"))
            arrays = [_array(archive.read(f"{number}.npy")) for number in range(len(archive.namelist()) - 1)]
        return _loaded(data, arrays)
    except Exception as error:                  # whatever broken data may cause, seeking before the start too
        raise TapeFileError(f"{where} holds no tape that this version of jitad can load ({error}); save it "
                            "again with CompiledTape.save") from None


def _array(content: bytes) -> np.ndarray:
    """An array of which all is there that its header says."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    shape, _, dtype = read(file)
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize != len(content) - file.tell():
        raise TapeFileError(f"an array of {dtype} and shape {shape} in {len(content)} bytes")
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)


def _loaded(data: Any, arrays: list[np.ndarray]) -> SavedTape:
    if data["format"] != FORMAT or data["version"] != VERSION:
        raise TapeFileError(f"it is {data['format']!r}, version {data['version']!r}; known is version {VERSION}")
    tape = tape_of(data["tape"], arrays)
    arguments = tuple(SavedArgument(str(a["name"]), a["structure"], tuple((int(n), v) for n, v in a["static"]),
                                    bool(a.get("loose"))) for a in data["arguments"])
    forms = tuple((_form(form), np.dtype(dtype).name if dtype else "") for form, dtype in data["forms"])
    result = Result(forms, _frame(data["frame"]))
    given = sum(count_leaves(structure_of(a.structure)) - len(a.static) for a in arguments)
    captured = arrays[:data["captured"]]
    held = [tape.nodes[i].aval for i in tape.inputs[given:]]
    if len(tape.inputs) != given + len(captured) or [(x.shape, x.dtype) for x in captured] != [
            (a.shape, a.dtype) for a in held]:
        raise TapeFileError("the inputs of the tape are not the arguments and captured values")
    if len(result.forms) != len(tape.outputs) or _leaves_in(result.frame) != len(tape.outputs):
        raise TapeFileError("the outputs of the tape are not those of the result")
    return SavedTape(str(data["name"]), tape, arguments, captured, result)


def _form(form: Any) -> str:
    if form not in ("array", "number", "scalar", "array0d"):
        raise TapeFileError(f"no form of a result: {form!r}")
    return form


# --- structures in plain containers --------------------------------------------------------------

def plain_structure(tree: TreeDef) -> Any:
    """A structure as JSON: ``"*"`` a leaf, ``["dict", [key, structure], ...]``, ``["list", ...]``, ``["tuple", ...]``.

    Raises `TapeFileError` for other containers and for keys that are neither text nor numbers.
    """
    return _plain(unflatten(tree, ["*"] * count_leaves(tree)))


def _plain(tree: Any) -> Any:
    if isinstance(tree, str):
        return "*"
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        tree = dict(zip(tree._fields, tree, strict=True))
    if hasattr(type(tree), "__dataclass_fields__"):
        tree = {name: getattr(tree, name) for name in type(tree).__dataclass_fields__}
    if isinstance(tree, dict):
        if not all(type(key) in (str, int) for key in tree):
            raise TapeFileError(f"a dict with the keys {list(tree)} cannot be in a file; use text as keys")
        return ["dict", *([key, _plain(value)] for key, value in tree.items())]
    if type(tree) in (list, tuple):
        return [type(tree).__name__, *map(_plain, tree)]
    raise TapeFileError(f"a {type(tree).__name__} cannot be in a file; use dicts, lists and tuples")


def structure_of(data: Any) -> TreeDef:
    """The structure that `plain_structure` was given, in plain containers."""
    return leaves_of(_tree(data))[1]


def _tree(data: Any) -> Any:
    if data == "*":
        return 0
    kind, *parts = data
    if kind == "dict":
        return {key: _tree(value) for key, value in parts}
    return {"list": list, "tuple": tuple}[kind](map(_tree, parts))


def _frame_data(frame: Frame) -> Any:
    if frame is None:
        return None
    tree, below = frame
    if isinstance(tree, Matrix):
        raise TapeFileError("a sparse matrix cannot be in a file; save the function without sparse=True")
    return [None if tree is None else plain_structure(tree), *map(_frame_data, below)]


def _frame(data: Any) -> Frame:
    if data is None:
        return None
    tree, *below = data
    made = None if tree is None else structure_of(tree)
    if made is not None and count_leaves(made) != len(below):
        raise TapeFileError("a structure with another number of leaves than it has parts")
    return made, tuple(map(_frame, below))


def _leaves_in(frame: Frame) -> int:
    return 1 if frame is None else sum(map(_leaves_in, frame[1]))


def _atom(value: Any, name: str) -> Any:
    """A static leaf, if it is one that a file can hold."""
    if value is None or type(value) in (str, bool, int):
        return value
    raise TapeFileError(f"argument `{name}` holds {value!r}, which cannot be in a file; text, numbers and None can")
