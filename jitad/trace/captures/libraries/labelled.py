"""Captured data with labels: what recorded code sees of the objects of pandas, xarray and polars.

What is computed from such data alone is computed by their library, while recording and again in each call, as one
step of the path to the result (`cache.keys.computed`): ``df["x"].to_numpy()``, ``da - da.mean()``, ``np.log(series)``.
An array or number that comes out is a captured input like any other, texts and flags are guarded. Where data meet a
value that is computed from arguments, labels would have to be followed, and the code is asked for plain arrays.
"""
from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, NoReturn

import numpy as np

from jitad.cache.keys.captures import Path
from jitad.cache.keys.computed import Call, fill, template
from jitad.errors import CaptureError
from jitad.tape.builder import Value
from jitad.trace.captures.objects.standins import mutation
from jitad.trace.captures.policy import LABELLED
from jitad.trace.dispatch import FUNCTIONS, plain
from jitad.trace.where import user_line

__all__ = ["labelled"]

ADVICE = "compute it outside of the function"
ARRAYS = "use its array where the two meet, by .to_numpy()"
# What reads nothing but the data and plain arguments, changes nothing and draws nothing.
_READ = frozenset("""
T abs add agg aggregate all any argmax argmin argsort array assign assign_coords astype at attrs axes between bfill
broadcast_equals broadcast_like cast cat categories ceil center clip coarsen codes collapse columns combine_first
concat contains coords copy corr corrwith cos count cov cross cummax cummin cumprod cumsum data date day dayofweek
dayofyear days days_in_month describe diff differentiate dim dims div divide dot drop drop_duplicates drop_isel
drop_nulls drop_sel drop_vars dropna dt dtype dtypes duplicated empty endswith eq equals ewm exp expand_dims expanding
explode factorize ffill fill_nan fill_null fillna first first_valid_index floor floordiv ge get get_group
get_level_values get_loc group_by groupby groupby_bins groups gt hasnans head height hour iat identical idxmax idxmin
iloc index indexes indices infer_objects integrate interp interpolate interpolate_na intersect1d is_duplicated
is_empty is_in is_monotonic_decreasing is_monotonic_increasing is_nan is_not_null is_null is_unique isel isin isna
isnull isocalendar item join kurt kurtosis last last_valid_index le len length levels loc log log10 log1p lower lstrip
lt mask max mean median melt merge microsecond min minute mod mode month mul multiply n_unique name names nbytes ndim
ne nlargest notna notnull nsmallest null_count nunique pct_change pivot pivot_table pow prod product quantile quarter
radd rank rdiv reindex reindex_like rename rename_axis rename_vars reorder_levels replace resample reset_coords
reset_index rfloordiv rmod rmul rolling round rpow rstrip rsub rtruediv schema second sel sem set_index shape shift
sign sin size sizes skew sort sort_index sort_values sortby sqrt squeeze stack startswith std str sub subtract sum
swap_dims swaplevel tail take tan tanh to_array to_dataframe to_dataset to_dict to_dummies to_frame to_index to_list
to_numpy to_pandas to_series tolist total_seconds transpose truediv truncate tz unique unstack upper value_counts
values var var_names variables week weekday weighted where width xs year""".split())
_BINARY = "add sub mul truediv floordiv mod pow matmul and_ or_ xor lt le gt ge eq ne".split()
_REFLECTED = "add sub mul truediv floordiv mod pow matmul and_ or_ xor".split()
_UNARY = "neg pos abs invert".split()
_KINDS = frozenset({MethodType, FunctionType, BuiltinFunctionType})


def _library(cls: type) -> str:
    return cls.__module__.partition(".")[0] if isinstance(cls.__module__, str) else ""


def is_labelled(value: Any) -> bool:
    """Whether this is an object of one of these libraries, and no instance of a class of the user's."""
    return _library(type(value)) in LABELLED and not isinstance(value, (type, BaseException, np.ndarray))


def labelled(value: Any) -> Callable[[Any, Any, Path], Any] | None:
    """How a captured object, class or function of such a library is taken; None for any other."""
    if type(value) is FunctionType:
        return take_function if str(value.__module__).partition(".")[0] in LABELLED else None
    if isinstance(value, type):
        return take_class if _library(value) in LABELLED and not issubclass(value, BaseException) else None
    return take_object if is_labelled(value) else None


def take_object(captures: Any, value: Any, path: Path) -> LabelledView:
    """The stand-in for one that the function captures."""
    if captures.is_static(path):
        return captures.static(value, path)
    cls = type(value)
    for name in ("__module__", "__qualname__"):
        captures.guard(getattr(cls, name), path.step("type").step("attr", name))
    _guard_version(captures, _library(cls))
    return _view(captures, value, path)


def take_function(captures: Any, function: FunctionType, path: Path) -> Any:
    """A function of such a library: what it makes of data is data."""
    captures.guard(function, path)

    def run(*args: Any, **kwargs: Any) -> Any:
        if function.__name__ not in _FUNCTIONS:
            raise _refused(path, "is not known to read nothing but its arguments")
        return _through(captures, function, args, kwargs)
    return run


_FUNCTIONS = frozenset("""isna isnull notna notnull get_dummies cut qcut concat merge to_numeric to_datetime factorize
unique crosstab align broadcast where dot corr cov zeros_like ones_like full_like melt pivot pivot_table""".split())


def take_class(captures: Any, cls: type, path: Path) -> LabelledClass:
    """A class of such a library, which is asked about, not called."""
    captures.guard(cls, path)
    return LabelledClass(captures, cls, path)


def _guard_version(captures: Any, library: str) -> None:
    module = sys.modules.get(library)
    if module is not None and hasattr(module, "__version__"):
        captures.guard(module.__version__, Path.of(("module", library), ("attr", "__version__")))


class LabelledClass:
    """A class of data with labels in recorded code."""

    __slots__ = ("_jitad_state",)

    def __init__(self, captures: Any, cls: type, path: Path) -> None:
        self._jitad_state = (captures, cls, path)

    def __instancecheck__(self, instance: Any) -> bool:
        return isinstance(instance, self._jitad_state[1])

    def __getattr__(self, name: str) -> Any:
        return self()

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        _, cls, path = self._jitad_state
        raise _refused(path, f"makes a {cls.__name__} inside of the function", "make it outside, or use arrays")


# --- the stand-in ---------------------------------------------------------------------------------

class LabelledView:
    """Captured data with labels in recorded code."""

    __slots__ = ("_jitad_state",)

    def __getattribute__(self, name: str) -> Any:
        captures, value, path = _state(self)
        if name == "__class__":
            captures.guard(type(value).__qualname__, path.step("type").step("attr", "__qualname__"))
            return type(value)
        if name in vars(LabelledView):
            return object.__getattribute__(self, name)
        if name.startswith("__"):
            raise AttributeError(f"{type(value).__name__!r} object has no attribute {name!r} in recorded code")
        if name not in _READ and hasattr(type(value), name):
            raise _refused(path.step("attr", name), "is not known to read nothing but the data")
        return _attribute(captures, value, path, name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise mutation(f"`{_state(self)[2].step('attr', name).expression()}`")

    __delattr__ = __setattr__                                       # type: ignore[assignment]

    def __setitem__(self, key: Any, value: Any) -> None:
        raise mutation(f"`{_state(self)[2].expression()}`")

    __delitem__ = __setitem__                                       # type: ignore[assignment]

    def __getitem__(self, key: Any) -> Any:
        return _through(_state(self)[0], operator.getitem, (self, key), {})

    def __contains__(self, key: Any) -> bool:
        return bool(_through(_state(self)[0], operator.contains, (self, key), {}))

    def __len__(self) -> int:
        captures, value, path = _state(self)
        captures.guard(len(value), path.step("len"))
        return len(value)

    def __iter__(self) -> Iterator[Any]:
        captures, value, path = _state(self)
        if hasattr(value, "dims") and not hasattr(value, "data_vars"):
            return (self[i] for i in range(len(self)))
        if getattr(getattr(value, "dtype", None), "kind", "") in "biuf" and hasattr(value, "to_numpy"):
            return iter(self.to_numpy())                            # type: ignore[attr-defined]
        if not hasattr(value, "columns") and not hasattr(value, "data_vars") and not hasattr(value, "tolist"):
            raise _refused(path, "is gone through in a way that cannot be followed")
        return iter(captures.take(tuple(value), path.step("keys")))

    def __bool__(self) -> bool:
        return _guarded(self, bool)                                 # type: ignore[no-any-return]

    def __int__(self) -> int:
        return _guarded(self, int)                                  # type: ignore[no-any-return]

    def __index__(self) -> int:
        return _guarded(self, operator.index)                       # type: ignore[no-any-return]

    def __float__(self) -> float:
        return _guarded(self, float)                                # type: ignore[no-any-return]

    def __str__(self) -> str:
        return _guarded(self, str)                                  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return _guarded(self, repr)                                 # type: ignore[no-any-return]


    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        _, value, path = _state(self)
        raise _meeting(value, path)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        captures, _, path = _state(self)
        if method != "__call__" or "out" in kwargs:
            raise _refused(path, f"is given to numpy.{ufunc.__name__} in a way that cannot be followed", ARRAYS)
        return _through(captures, ufunc, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        captures, _, path = _state(self)
        if function not in FUNCTIONS:
            raise _refused(path, f"is given to numpy.{function.__name__}, which cannot be followed", ARRAYS)
        return _through(captures, function, args, kwargs)

    __hash__ = None                                                 # type: ignore[assignment]

    @property
    def jitad_array(self) -> Any:
        """The elements, for functions that make arrays."""
        return _through(_state(self)[0], np.asarray, (self,), {})


def _state(view: Any) -> tuple[Any, Any, Path]:
    return object.__getattribute__(view, "_jitad_state")            # type: ignore[no-any-return]


def _view(captures: Any, value: Any, path: Path) -> LabelledView:
    view = LabelledView.__new__(LabelledView)
    object.__setattr__(view, "_jitad_state", (captures, value, path))
    return view


def _guarded(view: Any, function: Callable[[Any], Any]) -> Any:
    """A plain value of what Python's own code reads, which has to stay as it is."""
    captures, value, path = _state(view)
    result = function(value)
    captures.guard(result, path.step("made", Call(function, ("tuple", (("at", path),)), ("dict", ()))))
    return result


def _refused(path: Path, why: str, advice: str = ADVICE) -> Any:
    return CaptureError(f"{path} {why} (at {user_line(2)}); {advice}.")


def _meeting(value: Any, path: Path) -> Any:
    return _refused(path, f"is a {type(value).__name__}, whose labels cannot be followed through what is "
                                    "computed from arguments", ARRAYS)


def _handed(captures: Any, value: Any, path: Path) -> Any:
    """What recorded code gets for what the library has made."""
    taken = _view(captures, value, path) if is_labelled(value) else captures.take(value, path)
    captures.taken[path] = (value, taken)
    return taken


def _attribute(captures: Any, value: Any, path: Path, name: str) -> Any:
    at = path.step("attr", name)
    if (known := captures.taken.get(at)) is not None:
        return known[1]
    found = getattr(value, name)
    if type(found) not in _KINDS:
        return _handed(captures, found, at)

    def method(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("inplace"):
            raise mutation(f"`{path.expression()}`")
        return _computed(captures, None, at, args, kwargs, found)
    return method


def _through(captures: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of data: the path to its result goes on from the first of them."""
    first = _first((*args, *kwargs.values()))
    if first is None:
        raise CaptureError(f"`{function.__name__}` is given no captured data (at {user_line(2)}); {ADVICE}.")
    return _computed(captures, function, _state(first)[2], args, kwargs, function)


def _first(things: Any) -> Any:
    for thing in things:
        if type(thing) is LabelledView:
            return thing
        inner = thing.values() if type(thing) is dict else thing if type(thing) in (list, tuple) else ()
        if (found := _first(inner)) is not None:
            return found
    return None


def _computed(captures: Any, function: Any, path: Path, args: Any, kwargs: Any, run: Callable[..., Any]) -> Any:
    """What a call gives, and the path to it."""
    def found(thing: Any) -> Path:
        if type(thing) is LabelledView:
            return _state(thing)[2]
        if isinstance(thing, Value):
            place = next((i for i, v in enumerate(captures.inputs) if v.number == thing.number), None)
            if place is None or hasattr(type(thing), "jitad_parts"):
                met = path if function is not None else path.parent
                raise _meeting(captures.taken[met][0], met)
            return captures.plan.inputs[place]                      # type: ignore[no-any-return]
        raise _refused(path, f"is used with a {type(thing).__name__}, which cannot be followed")

    call = Call(function, template(plain(args), found), template(plain(kwargs), found))
    at = path.step("made", call)
    if (known := captures.taken.get(at)) is not None:
        return known[1]

    def look(other: Path) -> Any:
        return captures.taken[other][0]
    return _handed(captures, run(*fill(call.args, look), **fill(call.kwargs, look)), at)


def _operator(function: Any, reflected: bool = False) -> Any:
    def operate(self: Any, *others: Any) -> Any:
        return _through(_state(self)[0], function, (*others, self) if reflected else (self, *others), {})
    return operate


for _name in (*_BINARY, *_UNARY):
    setattr(LabelledView, f"__{_name.strip('_')}__", _operator(getattr(operator, _name)))
for _name in _REFLECTED:
    setattr(LabelledView, f"__r{_name.strip('_')}__", _operator(getattr(operator, _name), reflected=True))
