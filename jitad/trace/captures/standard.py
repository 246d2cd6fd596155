"""What functions of Python's standard library may read: their arguments. All others would be frozen, and are refused.

A list of what is allowed: whole modules, or some names of a module.
"""
from __future__ import annotations

import abc
import functools
import io
import logging
import sys
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from jitad.errors import CaptureError
from jitad.trace.where import is_library_file, user_line

__all__ = ["OUTLETS", "Outlet", "outlet_of", "reads_state"]

_PURE = frozenset("""
abc array ast base64 bdb binascii bisect builtins calendar cmath codecs collections colorsys copy contextlib copyreg
dataclasses datetime difflib dis enum fnmatch fractions functools graphlib hashlib heapq html itertools json keyword
marshal math numbers operator pathlib pdb pickle pprint re reprlib shlex sre statistics string struct textwrap
traceback types typing unicodedata zlib
""".split())
_NAMES = {
    "sys": frozenset({"intern", "exc_info", "exit"}),
    "os": frozenset({"fspath", "fsencode", "fsdecode"}),
    "warnings": frozenset({"warn", "warn_explicit", "simplefilter", "filterwarnings", "resetwarnings"}),
    "logging": frozenset("debug info warning error critical exception log getLogger".split()),
    "inspect": frozenset("""cleandoc isabstract isbuiltin isclass iscode isfunction isgenerator isgeneratorfunction
        ismethod ismethoddescriptor ismodule isroutine signature unwrap""".split()),
    **dict.fromkeys(("posixpath", "ntpath", "genericpath"), frozenset(
        "basename commonpath commonprefix dirname isabs join normcase normpath split splitdrive splitext".split()))}
_NEVER = frozenset({id, abc.get_cache_token})
_OF_NUMPY = frozenset("""geterr geterrcall getbufsize get_printoptions seterr seterrcall setbufsize
set_printoptions""".split())
_FUNCTIONS = (BuiltinFunctionType, FunctionType, type(functools.lru_cache(len)))


def reads_state(value: Any) -> bool:
    """Whether this is a function of the standard library's, or of NumPy's, that may read more than its arguments."""
    if type(value) is MethodType:                            # a class method
        value = value.__func__
    if type(value) not in _FUNCTIONS:
        return False
    owner = getattr(value, "__self__", None)
    if not (owner is None or isinstance(owner, ModuleType)):
        return False                                         # a method, of an object or a type
    if value in _NEVER:
        return True
    module, name = getattr(value, "__module__", None), value.__name__
    if not isinstance(module, str):
        return False
    top = module.partition(".")[0]
    if top == "numpy":
        return name in _OF_NUMPY
    if top not in sys.stdlib_module_names or not _is_library(value):
        return False
    top = top.lstrip("_")
    return top not in _PURE and name not in _NAMES.get(top, ())


def _is_library(value: Any) -> bool:
    """Whether the code is the library's own, and not in a user's file of the same name."""
    code = getattr(value, "__code__", None)
    return code is None or code.co_filename.startswith("<") or is_library_file(code.co_filename)


# --- what is only written to -----------------------------------------------------------------

OUTLETS = (logging.Logger, type(sys.stdout), io.StringIO)
_WRITING = frozenset("""write writelines flush debug info warning warn error critical exception log name""".split())


class Outlet:
    """A logger or stream in recorded code: what is written is written while recording, and nothing can be read."""

    __slots__ = ("_jitad_outlet",)

    def __init__(self, outlet: Any) -> None:
        self._jitad_outlet = outlet

    @property                                                       # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._jitad_outlet)

    def __getattr__(self, name: str) -> Any:
        if name not in _WRITING:
            raise CaptureError(f"`{name}` of a {type(self._jitad_outlet).__name__} is read at {user_line()}, which may "
                               "be another one in later calls; read it outside and pass it in as an argument")
        return getattr(self._jitad_outlet, name)


def outlet_of(*args: Any, **kwargs: Any) -> Outlet:
    """``logging.getLogger`` in recorded code."""
    return Outlet(logging.getLogger(*args, **kwargs))
