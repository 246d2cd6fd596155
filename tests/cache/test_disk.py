"""The store on disk: what is written is read, what is broken is not, and nothing is worse than no cache."""

import errno
import json
import os
import stat
import sys
import time
import warnings

import pytest

from jitad import cache
from jitad.cache import disk
from jitad.cache.disk import DiskCacheWarning, DiskStore, default_root

posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX")
KEY, OTHER = "ab" * 20, "cd" * 20


@pytest.fixture
def told():
    return []


@pytest.fixture
def store(tmp_path, told):
    return DiskStore(tmp_path / "cache", warn=told.append)


def file_of(store, key=KEY):
    return os.path.join(store.root, f"{key}.jitad")


def age(store, key, seconds):
    os.utime(file_of(store, key), (time.time() - seconds,) * 2)


def test_what_is_put_is_got(store, told):
    assert store.get(KEY) is None and not os.path.exists(store.root), "reading makes no folder"
    assert store.put(KEY, b"payload", {"function": "logp"}) and store.put(OTHER, b"")
    assert store.get(KEY) == b"payload" and store.get(OTHER) == b""
    assert store.put(KEY, b"new") and store.get(KEY) == b"new"
    assert not store.put(KEY, b"newer", replace=False) and store.get(KEY) == b"new"
    assert store.put("ef" * 8, b"x", replace=False)
    assert DiskStore(store.root).get(KEY) == b"new" and told == []


def test_entries_tell_of_themselves(store):
    store.put(KEY, b"x" * 1000, {"function": "logp", "versions": {"numpy": "2"}})
    store.put(OTHER, b"y")
    age(store, OTHER, 100)
    entries = {entry.key: entry for entry in store.entries()}
    assert entries.keys() == {KEY, OTHER} and entries[KEY].meta["versions"] == {"numpy": "2"}
    assert abs(entries[KEY].meta["created"] - time.time()) < 60
    assert 1000 < entries[KEY].nbytes < 1300 and 90 < time.time() - entries[OTHER].used < 110
    assert store.total_bytes() == sum(entry.nbytes for entry in entries.values())
    assert store.clear(lambda entry: entry.meta.get("function") == "logp") == 1 and store.get(OTHER) == b"y"
    assert store.clear() == 1 and store.total_bytes() == 0 and list(store.entries()) == []
    assert store.put(KEY, b"z") and store.get(KEY) == b"z"


@pytest.mark.parametrize("key", ["", "abc", "../../etc/passwd", "AB" * 20, "ab" * 20 + "\n", "ab" * 100, "a/" * 10])
def test_odd_keys_are_refused(store, key):
    with pytest.raises(ValueError, match="key"):
        store.get(key)
    with pytest.raises(ValueError, match="key"):
        store.put(key, b"")


@pytest.mark.parametrize("maxbytes, error", [(0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError)])
def test_odd_bounds_are_refused(tmp_path, maxbytes, error):
    with pytest.raises(error, match="maxbytes"):
        DiskStore(tmp_path, maxbytes)


@posix
def test_only_the_owner_may_look(store):
    old = os.umask(0)
    try:
        store.put(KEY, b"secret")
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(store.root).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(file_of(store)).st_mode) == 0o600
    assert os.listdir(store.root) == [f"{KEY}.jitad"]


# --- bounds ---------------------------------------------------------------------------------------------------------


def test_the_least_recently_used_go(tmp_path):
    store, keys = DiskStore(tmp_path / "cache", maxbytes=12_000), [f"{n:040x}" for n in range(10)]
    for n, key in enumerate(keys[:9]):
        store.put(key, b"x" * 1000)
        age(store, key, 1000 - n)
    assert store.get(keys[0]) is not None, "a hit makes it the last used"
    for key in ("aa" * 20, "bb" * 20, "cc" * 20):
        store.put(key, b"x" * 1000)
    kept = {entry.key for entry in store.entries()}
    assert store.total_bytes() <= 12_000 and keys[0] in kept and "cc" * 20 in kept and keys[1] not in kept


def test_the_bound_holds_with_other_processes_writing(tmp_path):
    stores = [DiskStore(tmp_path / "cache", maxbytes=50_000) for _ in range(4)]
    for n in range(400):
        stores[n % 4].put(f"{n:040x}", b"x" * 900)
    assert stores[0].total_bytes() <= 50_000 + 4 * disk.SCAN_EVERY * 1100
    for n in range(disk.SCAN_EVERY):
        stores[0].put(f"{n:040x}", b"x" * 900)
    assert stores[0].total_bytes() <= 50_000


def test_what_is_larger_than_the_bound_is_not_kept(tmp_path, told):
    store = DiskStore(tmp_path / "cache", maxbytes=1000, warn=told.append)
    store.put(OTHER, b"small")
    assert not store.put(KEY, b"x" * 1000) and store.get(OTHER) == b"small" and told == []


def test_files_that_nobody_finished_are_removed(store):
    store.put(KEY, b"x")
    for name, seconds in (("old", 2 * disk.STALE), ("young", 10)):
        path = os.path.join(store.root, disk.TEMPORARY + name)
        open(path, "w").close()
        os.utime(path, (time.time() - seconds,) * 2)
    assert store.total_bytes() == os.path.getsize(file_of(store))
    assert sorted(os.listdir(store.root)) == [".new-young", f"{KEY}.jitad"]
    store.clear()
    assert os.listdir(store.root) == []


# --- broken and foreign entries -------------------------------------------------------------------------------------


def flip(place):
    def change(data):
        changed = bytearray(data)
        changed[place] ^= 1
        return bytes(changed)

    return change


BREAK = {
    "empty": lambda data: b"", "header": lambda data: data[:20], "truncated": lambda data: data[:-1],
    "longer": lambda data: data + b"\0", "magic": flip(1), "version": flip(8), "length": flip(16), "checksum": flip(30),
    "meta": flip(60), "payload": flip(-1), "foreign": lambda data: b"#!/bin/sh\n" * 100,
    "zeros": lambda data: bytes(len(data)),
}  # fmt: skip


@pytest.mark.parametrize("how", BREAK)
def test_broken_entries_are_no_entries(store, told, how):
    for key in (KEY, OTHER):
        store.put(key, b"payload" * 100)
        with open(file_of(store, key), "rb") as file:
            data = file.read()
        with open(file_of(store, key), "wb") as file:
            file.write(BREAK[how](data))
    assert list(store.entries()) == []
    assert store.get(KEY) is None and store.get(OTHER) is None
    assert len(told) == 1 and "broken" in told[0] and store.root in told[0] and KEY[:16] in told[0]
    assert store.put(KEY, b"again") and store.get(KEY) == b"again"


def test_an_entry_under_another_key_is_broken(store, told):
    store.put(KEY, b"payload")
    os.rename(file_of(store), file_of(store, OTHER))
    assert store.get(OTHER) is None and len(told) == 1


def test_meta_that_is_no_meta_is_broken(store, told):
    store.put(KEY, b"payload")
    text = json.dumps([1]).encode()
    header = disk._HEADER.pack(disk.MAGIC, disk.FORMAT, len(text), 1, disk._checksum(KEY, text, b"x"))
    with open(file_of(store), "wb") as file:
        file.write(header + text + b"x")
    assert store.get(KEY) is None and len(told) == 1


@posix
@pytest.mark.parametrize("what", ["link", "folder", "pipe", "writable"])
def test_entries_that_are_not_plain_files_of_ours_are_not_read(store, told, tmp_path, what):
    store.put(KEY, b"payload")
    path = file_of(store)
    if what == "writable":
        os.chmod(path, 0o666)
    else:
        os.rename(path, tmp_path / "elsewhere")
        make = {"link": lambda: os.symlink(tmp_path / "elsewhere", path), "folder": lambda: os.mkdir(path),
                "pipe": lambda: os.mkfifo(path)}  # fmt: skip
        make[what]()
    assert store.get(KEY) is None and store.get(KEY) is None and len(told) == 1


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root to give a file away")
def test_entries_of_others_are_not_read(store, told):
    store.put(KEY, b"payload")
    os.chown(file_of(store), 12345, -1)
    assert store.get(KEY) is None and "not owned by you" in told[0]


# --- folders and disks ----------------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707])
def test_a_folder_that_others_may_write_to_is_refused(store, told, mode):
    store.put(KEY, b"payload")
    os.chmod(store.root, mode)
    fresh = DiskStore(store.root, warn=told.append)
    assert fresh.get(KEY) is None and not fresh.put(OTHER, b"x") and fresh.total_bytes() == 0 and fresh.clear() == 0
    assert len(told) == 1 and "owned or writable by others" in told[0] and "chmod 700" in told[0]
    os.chmod(store.root, 0o755)
    assert DiskStore(store.root).get(KEY) == b"payload", "others may read it, if the user has opened it"


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root to give a folder away")
def test_a_folder_of_others_is_refused(store, told):
    store.put(KEY, b"payload")
    os.chown(store.root, 12345, -1)
    fresh = DiskStore(store.root, warn=told.append)
    assert fresh.get(KEY) is None and not fresh.put(KEY, b"x") and len(told) == 1


@posix
def test_a_folder_that_cannot_be(told, tmp_path):
    (tmp_path / "file").write_text("")
    for root in (tmp_path / "file", tmp_path / "file" / "below"):
        store = DiskStore(root, warn=told.append)
        assert not store.put(KEY, b"x") and not store.put(KEY, b"x") and store.get(KEY) is None
    assert len(told) == 2 and all("JITAD_CACHE_DIR" in text for text in told)


def failing(number, name):
    def fail(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    return name, fail


@pytest.mark.parametrize(
    "number, name, word",
    [(errno.EROFS, "open", "unwritable"), (errno.EACCES, "open", "unwritable"), (errno.ENOSPC, "open", "full"),
     (errno.ENOSPC, "replace", "full"), (errno.EDQUOT, "replace", "full"), (errno.EIO, "replace", "unwritable")],
)  # fmt: skip
def test_a_full_or_read_only_disk(store, told, monkeypatch, number, name, word):
    store.put(KEY, b"before")
    with monkeypatch.context() as patch:
        patch.setattr(os, *failing(number, name))
        assert not store.put(OTHER, b"x") and not store.put(OTHER, b"x")
    assert len(told) == 1 and os.strerror(number) in told[0] and store._warned == {word}
    assert os.listdir(store.root) == [f"{KEY}.jitad"], "nothing half done stays"
    assert store.get(KEY) == b"before" and store.put(OTHER, b"later")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_write_that_fills_the_disk(store, told, monkeypatch):
    store.put(KEY, b"before")
    real = os.open

    def on_full_disk(path, flags, *mode):
        if disk.TEMPORARY in str(path):
            os.close(real(path, flags, *mode))
            return real("/dev/full", os.O_WRONLY)
        return real(path, flags, *mode)

    monkeypatch.setattr(os, "open", on_full_disk)
    assert not store.put(OTHER, b"x" * 100) and store._warned == {"full"} and len(told) == 1
    assert os.listdir(store.root) == [f"{KEY}.jitad"]


def test_an_unreadable_entry_and_a_read_only_time(store, told, monkeypatch):
    store.put(KEY, b"payload")
    with monkeypatch.context() as patch:
        patch.setattr(os, *failing(errno.EROFS, "utime"))
        assert store.get(KEY) == b"payload" and told == []
        patch.setattr(os, *failing(errno.EACCES, "open"))
        assert store.get(KEY) is None and store.get(KEY) is None
    assert len(told) == 1 and "cannot be read" in told[0] and store.get(KEY) == b"payload"


def test_a_folder_that_is_removed_is_made_again(store, told):
    store.put(KEY, b"x")
    os.unlink(file_of(store))
    os.rmdir(store.root)
    assert store.get(KEY) is None and store.total_bytes() == 0
    assert store.put(KEY, b"y") and store.get(KEY) == b"y" and told == []


def test_warnings_as_errors_leave_the_store_whole(tmp_path):
    store = DiskStore(tmp_path / "cache")
    store.put(KEY, b"x")
    with open(file_of(store), "wb"):
        pass
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DiskCacheWarning, match="disk=False"):
            store.get(KEY)
        assert store.get(KEY) is None and store.put(KEY, b"y") and store.get(KEY) == b"y"


# --- where ----------------------------------------------------------------------------------------------------------


def test_the_folder_is_that_of_the_environment_or_of_the_platform(monkeypatch, tmp_path, told):
    monkeypatch.setenv("JITAD_CACHE_DIR", str(tmp_path / "mine"))
    assert default_root() == str(tmp_path / "mine")
    monkeypatch.setenv("JITAD_CACHE_DIR", "~/mine")
    assert default_root() == os.path.expanduser("~/mine")
    monkeypatch.setenv("JITAD_CACHE_DIR", " ")
    root = default_root()
    assert os.path.isabs(root) and os.path.basename(root).lower() in ("jitad", "cache")


@pytest.mark.skipif(sys.platform != "linux", reason="the rules of one platform")
def test_a_missing_home(monkeypatch, told, tmp_path):
    monkeypatch.delenv("JITAD_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_root() == str(tmp_path / "xdg" / "jitad")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_root() == "", "a home that is not there is not made"
    store = DiskStore(default_root(), warn=told.append)
    assert store.get(KEY) is None and not store.put(KEY, b"x") and store.total_bytes() == 0
    assert len(told) == 1 and "no home" in told[0] and "JITAD_CACHE_DIR" in told[0]


def test_the_persistent_store_of_the_process(monkeypatch, tmp_path):
    monkeypatch.setenv("JITAD_CACHE_DIR", str(tmp_path / "mine"))
    monkeypatch.setattr(cache, "_persistent", None)
    monkeypatch.setattr(cache, "_configuration", cache.configuration()._replace(disk=False))
    told = []
    monkeypatch.setattr(cache, "_warn", lambda message, category: told.append(category))
    assert cache.persistent_store() is None
    cache.configure(disk=True)
    persistent = cache.persistent_store()
    assert persistent is cache.persistent_store() and persistent.disk.root == str(tmp_path / "mine")
    persistent.disk._complain("test", "test")
    assert told == [DiskCacheWarning]
    cache.configure(disk=False)
    assert cache.persistent_store() is None


def test_a_hit_is_cheap(store):
    store.put(KEY, os.urandom(50_000))
    best = 1.0
    for _ in range(50):
        start = time.perf_counter()
        assert store.get(KEY) is not None
        best = min(best, time.perf_counter() - start)
    assert best < 1e-3  # measured: 0.1 ms


def test_an_entry_that_is_larger_than_all_may_be_is_not_read(store, told):
    """Its size is looked at first: 20 GB in the folder ended in a MemoryError."""
    store.put(KEY, b"payload")
    with open(file_of(store), "r+b") as file:
        file.truncate(40 * 1024**3)  # a hole: no bytes on the disk
    assert list(store.entries()) == []
    assert store.get(KEY) is None and not os.path.exists(file_of(store))
    assert len(told) == 1 and "is too large" in told[0]


def test_entries_of_the_future_go_first(tmp_path):
    """Where a clock was wrong, they stayed for ever, and new ones evicted each other."""
    store, keys = DiskStore(tmp_path / "cache", maxbytes=12_000), [f"{n:040x}" for n in range(12)]
    for key in keys[:9]:
        store.put(key, b"x" * 1000)
        age(store, key, -10 * 365 * 86_400)
    for key in keys[9:]:
        store.put(key, b"x" * 1000)
    there = {entry.key for entry in store.entries()}
    assert there >= set(keys[9:]) and len(there) < 12
