"""`python -m jitad cache`: where the disk cache is, what is in it, and emptying it."""

import os
import subprocess
import sys
import time

import pytest

from jitad.__main__ import main
from jitad.cache.disk import DiskStore
from tests.helpers.light import LINALG

KEYS = [f"{n:02x}" * 20 for n in range(4)]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("JITAD_CACHE_DIR", str(tmp_path / "cache"))
    return DiskStore(tmp_path / "cache")


@pytest.fixture
def filled(store):
    now = time.time()
    store.put(KEYS[0], b"x" * 50_000, {"function": "logp", "kind": "code", "created": now - 3 * 86400})
    store.put(KEYS[1], b"x" * 100, {"function": "logp", "kind": "plan", "created": now - 3 * 86400})
    store.put(KEYS[2], b"x" * 2000, {"function": "Model.potential", "kind": "code"})
    store.put(KEYS[3], b"x", {"kind": "code", "created": "nonsense"})
    for key, days in zip(KEYS, (2, 2, 0.05, 0), strict=True):
        os.utime(os.path.join(store.root, key + ".jitad"), (now - 86400 * days,) * 2)
    return store


def run(capsys, *arguments, status=0):
    assert main(["cache", *arguments]) == status
    return capsys.readouterr().out


def test_path_and_info(filled, capsys, monkeypatch):
    monkeypatch.setenv("JITAD_DISK_CACHE", "1")
    assert run(capsys, "path") == filled.root + "\n"
    lines = dict(line.split(None, 1) for line in run(capsys, "info").replace("last used", "last_used").splitlines())
    assert lines["folder"] == filled.root and lines["state"] == "on" and lines["oldest"] == "3 days ago"
    assert lines["functions"] == "3" and lines["compiled"] == "3" and lines["last_used"] == "just now"
    assert lines["size"].startswith("52.") and lines["size"].endswith("of at most 536.9 MB")
    monkeypatch.setenv("JITAD_DISK_CACHE", "0")
    assert "off (JITAD_DISK_CACHE)" in run(capsys, "info")


def test_list(filled, capsys):
    lines = run(capsys, "list").splitlines()
    assert lines[0].split() == ["function", "size", "made", "last", "used", "key"]
    assert [line.split()[0] for line in lines[1:]] == ["?", "Model.potential", "logp"], "the last used first"
    assert "50.1 kB" in lines[3] and "3 days ago" in lines[3] and "2 days ago" in lines[3] and "0" * 12 in lines[3]
    assert "1 hour ago" in lines[2]
    assert len(run(capsys, "list", "potential").splitlines()) == 2 and len(filled.get(KEYS[0])) == 50_000


def test_in_a_terminal_tables_are_drawn_where_rich_is_installed(filled, capsys, monkeypatch):
    plain = run(capsys, "list")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for name, value in (("TERM", "xterm"), ("COLUMNS", "150"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    listed, facts = run(capsys, "list"), run(capsys, "info")
    assert listed.count("╭") == listed.count("╰") == 1 and "Model.potential" in listed and "╭" in facts
    assert filled.root in facts and "3 days ago" in facts
    monkeypatch.setitem(sys.modules, "rich", None)
    assert run(capsys, "list") == plain


def test_clear_counts_as_info_does(filled, capsys):
    compiled = next(line.split()[1] for line in run(capsys, "info").splitlines() if line.startswith("compiled"))
    assert run(capsys, "clear").split()[0] == compiled


def test_clear(filled, capsys):
    assert run(capsys, "clear", "other") == "0 entries removed, 0 B.\n"
    assert run(capsys, "clear", "--older-than", "10", "logp").startswith("0 entries")
    assert run(capsys, "clear", "--older-than", "1").startswith("1 entry removed, 50."), "and a plan"
    assert run(capsys, "clear", "potential").startswith("1 entry removed, 2.")
    assert run(capsys, "clear").startswith("1 entry removed") and filled.total_bytes() == 0
    assert run(capsys, "list") == "The disk cache is empty.\n"


def test_an_empty_or_missing_folder(store, capsys):
    assert run(capsys, "list") == "The disk cache is empty.\n" and "0 B of" in run(capsys, "info")
    assert run(capsys, "clear") == "0 entries removed, 0 B.\n" and not os.path.exists(store.root), "looking makes none"


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX")
def test_a_folder_that_is_refused(filled, capsys):
    os.chmod(filled.root, 0o777)
    assert main(["cache", "list"]) == 1
    assert "owned or writable by others" in capsys.readouterr().err


def test_a_missing_home(monkeypatch, tmp_path, capsys):
    if sys.platform != "linux":
        pytest.skip("the rules of one platform")
    for name in ("JITAD_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    assert main(["cache", "path"]) == 0 and "no home" in capsys.readouterr().out
    assert main(["cache", "info"]) == 1 and "JITAD_CACHE_DIR" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["cache"], ["cache", "burn"], ["else"]])
def test_wrong_arguments(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2 and "usage: python -m jitad" in capsys.readouterr().err


def test_the_command_needs_no_compiler(filled):
    code = (
        "import runpy, sys; sys.argv = ['jitad', 'cache', 'list']\n"
        "try: runpy.run_module('jitad', run_name='__main__')\n"
        "except SystemExit as end: assert not end.code\n"
        f"heavy = {set(LINALG) | {'numba', 'scipy.special', 'platformdirs', 'jitad.compile.entry.kernel'}}\n"
        "assert not heavy & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and "Model.potential" in done.stdout, done.stderr
