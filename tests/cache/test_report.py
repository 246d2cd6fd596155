"""The cache in words: `explain` and `report`, at a prompt and in a notebook."""

import threading

import pytest
from rich.console import Console

from jitad import cache
from jitad.cache.contents import owner_name
from jitad.cache.keys.identity import code_key
from jitad.cache.memory import Store
from tests.cache.memos import Memo

pytestmark = pytest.mark.usefixtures("own_store")


class Entry:
    nbytes, seconds = 12_345, 100.0


def logp(x):
    return x


@pytest.fixture(autouse=True)
def resolver(monkeypatch):
    monkeypatch.setattr(cache, "_resolve", lambda f: code_key(f))


def call(f, key, *reasons, entry=Entry):
    def build():
        cache.store.note_miss(code_key(f), reasons)
        return entry()

    return cache.store.get_or_build(code_key(f), key, build)


def test_explain_says_cause_time_and_hits():
    first = call(logp, 1)
    call(logp, 2, "argument `X`: shape (3,) -> (4,)", "global `mode`: 'a' -> 'b'")
    memo = Memo()
    cache.store.attach(code_key(logp), memo, first).hits += 41
    call(logp, 1)
    text = cache.explain(logp)
    lines = [
        "miss 2 (the last): argument `X`: shape (3,) -> (4,); global `mode`: 'a' -> 'b' "
        "[compiled in 100.0 s, 0 hits since]",
        "miss 1: first call [compiled in 100.0 s, 42 hits since]",
    ]
    assert str(text).splitlines() == repr(text).splitlines() == lines
    last = text.misses[-1]
    assert last.number == 2 and last.reasons[0] == "argument `X`: shape (3,) -> (4,)"
    assert last.hits == 0 and last.seconds > 100 and last.cached
    html = text._repr_html_()
    assert html.startswith("<table>") and html.index("<td>2</td>") < html.index("<td>1</td>")
    assert "(3,) -&gt; (4,)<br>global `mode`" in html and "<td>42</td>" in html and "first call" in html
    assert "│ global `mode`: 'a' -> 'b'" in drawn(text) and drawn(cache.explain(drawn)).startswith("No call has missed")


def drawn(table):
    """What a terminal with rich shows, without colours."""
    console = Console(width=100, force_terminal=True, color_system=None, legacy_windows=False)
    with console.capture() as caught:
        console.print(table)
    return caught.get()


def test_explain_of_nothing():
    text = cache.explain(logp)
    assert str(text) == "No call has missed the cache." and text._repr_html_() == f"<p>{text}</p>"


def test_a_dropped_entry_is_still_explained():
    call(logp, 1), call(logp, 1)
    cache.resize(1)
    call(logp, 2, "argument `x`: Python float -> Python int")
    assert "miss 1: first call [compiled in 100.0 s, 1 hit since, dropped]" in cache.explain(logp)
    assert "1 (dropped)" in cache.explain(logp)._repr_html_()
    assert not cache.explain(logp).misses[0].cached


def test_misses_of_builds_in_builds_and_in_threads_find_their_entries():
    store = Store()

    def build(name, *inner):
        def run():
            for other in inner:
                store.get_or_build("f", other, build(other))
            store.note_miss("f", [name])
            entry = Entry()
            entry.seconds = float(len(name))
            return entry

        return run

    threads = [
        threading.Thread(target=store.get_or_build, args=("f", n, build(n, n + "-inner"))) for n in ("a", "bb", "ccc")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    misses = store.misses("f")
    assert len(misses) == 6 and all(int(miss.seconds) == len(miss.reasons[0]) for miss in misses)


def test_a_failed_build_explains_no_other_entry():
    store = Store()

    def fail():
        store.note_miss("f", ["bad"])
        raise KeyError

    with pytest.raises(KeyError):
        store.get_or_build("f", 1, fail)
    store.get_or_build("f", 2, lambda: (store.note_miss("f", ["good"]), Entry())[1])
    bad, good = store.misses("f")
    assert bad.seconds is None and good.seconds is not None


def test_report_has_a_line_for_each_function():
    def other(x):
        return x + 1

    assert repr(cache.report()) == "The cache is empty." and "empty" in cache.report()._repr_html_()
    call(logp, 1), call(logp, 1), call(logp, 2), call(other, 1)
    report = cache.report()
    assert [row[:4] for row in report.rows] == [("logp", 2, 1, 2), ("other", 1, 0, 1)]
    assert report.rows[0].nbytes == 24_690 and report.rows[0].seconds >= 200 and report.total[1:4] == (3, 1, 3)
    lines = repr(report).splitlines()
    assert lines[0].split() == ["function", "entries", "hits", "misses", "compile", "time", "size"]
    assert lines[1].split() == ["logp", "2", "1", "2", "200.0", "s", "24.7", "kB"]
    assert lines[-1].split() == ["total", "3", "1", "3", "300.0", "s", "37.0", "kB"]
    html = report._repr_html_()
    assert html.count("<tr>") == 4 and "<td>24.7 kB</td>" in html
    shown = drawn(report).splitlines()
    assert [line.strip("│ ").split() for line in shown if "│" in line] == [
        ["function", "│", "entries", "│", "hits", "│", "misses", "│", "compile", "time", "│", "size"],
        ["logp", "│", "2", "│", "1", "│", "2", "│", "200.0", "s", "│", "24.7", "kB"],
        ["other", "│", "1", "│", "0", "│", "1", "│", "100.0", "s", "│", "12.3", "kB"],
        ["total", "│", "3", "│", "1", "│", "3", "│", "300.0", "s", "│", "37.0", "kB"]]


def test_report_sees_entries_that_have_grown_and_counts_of_dropped_ones():
    entry = call(logp, 1)
    entry.nbytes = 5_000_000
    assert cache.report().rows[0].nbytes == 5_000_000
    cache.resize(1)
    call(lambda x: x, 1)
    rows = {row.function: row for row in cache.report().rows}
    assert rows["logp"][1:4] == (0, 0, 1) and rows["logp"].seconds >= 100 and rows["logp"].nbytes == 0
    assert "&lt;lambda&gt;" in cache.report()._repr_html_()


def test_functions_of_one_name_are_told_apart():
    for source in ("x + 1", "x + 2"):
        call(eval(f"lambda x: {source}"), 1)
    names = [row.function for row in cache.report().rows]
    assert len(set(names)) == 2 and all(n.startswith("<lambda> (code ") for n in names)
    assert owner_name("f") == "f" and owner_name(3) == "3" and owner_name("a-b") == "a-b"


def test_info_keeps_its_five_integers():
    call(logp, 1)
    info = cache.info(logp)
    assert info._fields == ("hits", "misses", "compiles", "currsize", "maxsize") and info == (0, 1, 1, 1, 1024)
    assert all(type(value) is int for value in info)
