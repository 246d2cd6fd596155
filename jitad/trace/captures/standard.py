"""What functions and classes of Python's standard library may read: their arguments. All others would be frozen, and
are refused.

A list of what is allowed: whole modules, or some names of a module. What these read of the process is guarded.
"""
from __future__ import annotations

import abc
import enum
import functools
import io
import logging
import pathlib
import sys
from types import BuiltinFunctionType, CodeType, FunctionType, MethodDescriptorType, MethodType, ModuleType
from typing import Any

from jitad.cache.keys.captures import Path
from jitad.cache.keys.process import STATES
from jitad.errors import CaptureError
from jitad.trace.captures.notes import Notes
from jitad.trace.values.seen import printed
from jitad.trace.where import is_library_file, user_line

__all__ = ["LOGGING", "OUTLETS", "Outlet", "is_changing", "note", "note_states", "outlet_of", "reads_state", "writing"]

_PURE = frozenset("""
abc array ast base64 bdb binascii bisect builtins calendar cmath collections colorsys copy copyreg dataclasses datetime
difflib dis enum fnmatch fractions functools graphlib hashlib heapq html ipaddress itertools json keyword marshal math
numbers operator pdb pickle pprint queue re reprlib shlex sre string struct textwrap types typing unicodedata zlib
""".split())
_NAMES = {name: frozenset(names.split()) for name, names in {
    "argparse": "Namespace",
    "codecs": "encode decode lookup getencoder getdecoder",
    "concurrent": "Executor Future ThreadPoolExecutor",
    "contextlib": """AbstractAsyncContextManager AbstractContextManager AsyncExitStack ContextDecorator ExitStack
        _AsyncGeneratorContextManager _GeneratorContextManager aclosing asynccontextmanager closing contextmanager
        nullcontext redirect_stderr redirect_stdout suppress""",
    "csv": "DictReader DictWriter reader writer",
    "decimal": "Context Decimal DecimalTuple localcontext",
    "inspect": """BoundArguments Parameter Signature cleandoc isabstract isbuiltin isclass iscode isfunction isgenerator
        isgeneratorfunction ismethod ismethoddescriptor ismodule isroutine signature unwrap""",
    "io": "BytesIO StringIO",
    "logging": "debug info warning error critical exception log getLogger",
    "os": "PathLike fspath fsencode fsdecode",
    "statistics": """NormalDist correlation covariance fmean fsum geometric_mean harmonic_mean kde linear_regression
        mean median median_grouped median_high median_low mode multimode pstdev pvariance quantiles stdev variance""",
    "sys": "intern exc_info exit",
    "time": "struct_time",
    "traceback": """TracebackException extract_tb format_exc format_exception format_exception_only format_tb print_exc
        print_exception print_stack print_tb""",
    "uuid": "SafeUUID UUID",
    "warnings": "catch_warnings warn warn_explicit simplefilter filterwarnings resetwarnings",
    "pathlib": " ".join(["Path PosixPath WindowsPath PurePath PurePosixPath PureWindowsPath", *dir(pathlib.PurePath)]),
    **dict.fromkeys(("posixpath", "ntpath", "genericpath"),
                    "basename commonpath commonprefix dirname isabs join normcase normpath split splitdrive splitext"),
}.items()}
_NEVER = frozenset({id, abc.get_cache_token})
_CLOCKED = frozenset("now utcnow today".split())                        # methods of dates
_OF_NUMPY = frozenset("""geterr geterrcall getbufsize get_printoptions seterr seterrcall setbufsize set_printoptions
DataSource NpzFile memmap""".split())
_FUNCTIONS = (BuiltinFunctionType, FunctionType, MethodDescriptorType, type(functools.lru_cache(len)))
_FIXED = frozenset("byteorder flags float_info hash_info implementation int_info maxsize maxunicode platform version "
                   "version_info hexversion api_version".split())     # of `sys`: what is in all keys


def reads_state(value: Any) -> bool:
    """Whether this function, method or class of the standard library's, or of NumPy's, may read more than arguments."""
    if type(value) is MethodType:                            # a class method
        value = value.__func__
    if isinstance(value, type):
        return not issubclass(value, (BaseException, enum.Enum)) and _unlisted(value)
    if type(value) not in _FUNCTIONS:
        return False
    owner = getattr(value, "__objclass__", None) or getattr(value, "__self__", None)
    if isinstance(owner, type) and owner.__module__ == "datetime" and value.__name__ in _CLOCKED:
        return True
    if not (owner is None or isinstance(owner, ModuleType)):
        return isinstance(owner, type) and reads_state(owner)    # a method, of an object or a type
    return value in _NEVER or _unlisted(value)


def _unlisted(value: Any) -> bool:
    module, name = getattr(value, "__module__", None), value.__name__
    if not isinstance(module, str):
        return False
    top = module.partition(".")[0]
    if top == "numpy":
        return name in _OF_NUMPY
    if top not in sys.stdlib_module_names or not _is_library(value, module):
        return False
    top = top.lstrip("_")
    names = {name, getattr(value, "__qualname__", name).partition(".")[0]}       # a method is of a class
    return top not in _PURE and names.isdisjoint(_NAMES.get(top.removeprefix("py"), ()))


def _is_library(value: Any, module: str) -> bool:
    """Whether the code is the library's own, and not in a user's file of the same name."""
    code = getattr(value, "__code__", None)
    file = code.co_filename if isinstance(code, CodeType) else getattr(sys.modules.get(module), "__file__", None)
    home = file or "<frozen>"
    return home.startswith("<") or is_library_file(home)


# --- what is watched -------------------------------------------------------------------------

_STATES = {"decimal": ("decimal context",), "_decimal": ("decimal context",), "_pydecimal": ("decimal context",),
           "datetime": ("local time", "locale"), "calendar": ("locale",)}


def note_states(captures: Notes, value: Any) -> None:
    """Guard what of the process the results of something from the standard library depend on."""
    if value is sys.flags:
        note(captures, "options of the interpreter")
    owner = getattr(value, "__objclass__", None) or getattr(value, "__self__", None)
    home = owner if isinstance(owner, type) else value
    if not isinstance(home, (type, *_FUNCTIONS)):
        home = type(home)
    note(captures, *_STATES.get(home.__module__, ()))


def note(captures: Notes, *states: str) -> None:
    """Guard states of the process."""
    for name in states:
        captures.guard(STATES[name](), Path.of(("process", name)))


def is_changing(module: ModuleType, name: str, value: Any) -> bool:
    """Whether what an attribute of the library's module holds is data that may be another in a later call."""
    top = module.__name__.partition(".")[0].lstrip("_")
    data = not callable(value) and not isinstance(value, ModuleType)
    return data and top in sys.stdlib_module_names and top not in _PURE and not (top == "sys" and name in _FIXED)


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
        return writing(getattr(self._jitad_outlet, name)) if name != "name" else self._jitad_outlet.name


def writing(write: Any) -> Any:
    """A function that only writes, as recorded code sees it: the numbers are those of this recording, on which the tape
    does not depend."""
    def written(*args: Any, **kwargs: Any) -> Any:
        return write(*map(printed, args), **kwargs)
    return written


LOGGING = frozenset(getattr(logging, name) for name in sorted(_WRITING) if hasattr(logging, name))


def outlet_of(*args: Any, **kwargs: Any) -> Outlet:
    """``logging.getLogger`` in recorded code."""
    return Outlet(logging.getLogger(*args, **kwargs))
