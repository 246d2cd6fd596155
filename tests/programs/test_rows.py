"""Every row of the table: its value, its derivative, or the words of its refusal."""
from __future__ import annotations

import importlib
import pkgutil

import pytest

import tests.programs as home
from jitad import JitadError, value_and_grad
from jitad.errors import InternalError
from tests.programs.table import Row, Table, check_derivative, check_value

TABLES: dict[str, Table] = {}
for _module in pkgutil.iter_modules(home.__path__):
    _rows = getattr(importlib.import_module(f"tests.programs.{_module.name}"), "rows", None)
    if isinstance(_rows, Table):
        TABLES[_module.name] = _rows
ALL = [pytest.param(row, id=f"{name}: {row.name}") for name, table in TABLES.items() for row in table.rows]
WORKING = [p for p in ALL if not p.values[0].says]
REFUSED = [p for p in ALL if p.values[0].says]
COMPILED = WORKING[::25]                         # through the kernel as well


@pytest.mark.parametrize("row", WORKING)
def test_row(row: Row) -> None:
    check_value(row)
    if row.smooth:
        check_derivative(row)


@pytest.mark.parametrize("row", COMPILED)
def test_row_in_the_kernel(row: Row) -> None:
    call = lambda transformed, args: transformed(*args)
    check_value(row, call)
    if row.smooth:
        check_derivative(row, call)


@pytest.mark.parametrize("row", REFUSED)
def test_refusal(row: Row) -> None:
    with pytest.raises(row.raises or JitadError) as caught:
        value_and_grad(row.function)(*row.args)
    assert not isinstance(caught.value, InternalError)
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    for words in row.says:
        assert words in text
    assert ".py:" in text


def test_the_table_is_large() -> None:
    assert len(ALL) >= 800
