"""The store on disk: bytes by key, written atomically, never trusted blindly, never in the way.

One file for each entry, named by its key, in one flat folder that only its owner can enter. A file is made under
another name and then renamed, so that no reader ever sees half of one; it carries a magic number, a format version,
the lengths of its parts and a checksum over them and the key. What is wrong with a file, the folder or the disk costs
one warning for each cause, and the caller computes what it would have read. Nothing that is read is ever executed or
unpickled here.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import stat
import struct
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["DiskCacheWarning", "DiskEntry", "DiskStore", "default_root"]

MAGIC = b"\x89JITAD\r\n"
FORMAT = 1
SUFFIX = ".jitad"
TEMPORARY = ".new-"
STALE = 3600.0  # seconds after which a temporary file has lost its writer
LOW_WATER = 0.9  # of the allowed bytes are kept when there is too much
SCAN_EVERY = 32  # writes, after which the folder is measured again: other processes write too
_HEADER = struct.Struct("<8sIIQ32s")


class DiskCacheWarning(UserWarning):
    """Something is wrong with the disk cache; the call goes on without it."""


class DiskEntry(NamedTuple):
    """What is known of an entry without its payload. Times are seconds since the epoch."""

    key: str
    nbytes: int
    used: float
    meta: dict[str, Any]


def default_root() -> str:
    """The folder of the disk cache: `JITAD_CACHE_DIR`, else the user's cache folder; "" if there is no home."""
    given = os.environ.get("JITAD_CACHE_DIR", "").strip()
    if given:
        return os.path.abspath(os.path.expanduser(given))
    import platformdirs

    try:
        home = Path.home()
        root = Path(platformdirs.user_cache_dir("jitad", appauthor=False))
    except (RuntimeError, OSError, KeyError):
        return ""
    homeless = root.is_relative_to(home) and not home.is_dir()
    return "" if homeless or not root.is_absolute() else str(root)


class DiskStore:
    """Bytes under hexadecimal keys in the folder `root`, at most `maxbytes` in all; the least recently used go first.

    Any number of processes and threads may use one folder; each may be killed at any instant. `root` is made when
    something is written first, for its owner alone; one that others own or may write to is not used. "" stands for a
    missing home. `warn(message)` is called once for each cause of trouble.
    """

    def __init__(
        self, root: str | os.PathLike[str], maxbytes: int = 512 * 1024**2, warn: Callable[[str], None] | None = None
    ) -> None:
        if isinstance(maxbytes, bool) or not isinstance(maxbytes, int):
            raise TypeError(f"maxbytes must be an integer, not {maxbytes!r}")
        if maxbytes < 1:
            raise ValueError(f"maxbytes must be at least 1, not {maxbytes}")
        self.root = os.fspath(root)
        self.maxbytes = maxbytes
        self._warn = warn if warn is not None else _warn
        self._warned: set[str] = set()
        self._usable: bool | None = None  # None: not looked at yet
        self._estimate: int | None = None  # bytes in the folder, by the last scan and what was written since
        self._writes = 0

    def get(self, key: str) -> bytes | None:
        """Return the payload under `key`, or None if there is none that is whole and ours.

        Raises `ValueError` for a key that is not hexadecimal.
        """
        found = self.read(key)
        return found[0] if found is not None else None

    def read(self, key: str) -> tuple[bytes, dict[str, Any]] | None:
        """Return payload and meta under `key`, or None; as `get` otherwise."""
        path = self._path(key)
        if not self._ready():
            return None
        try:
            data = _read_own(path, self.maxbytes)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._complain("unreadable", f"an entry cannot be read ({_reason(error)})")
            return None
        found = _unpack(key, data) if data is not None else None
        if found is None:
            # Out of the way, unless another process has replaced it meanwhile: then that one is lost, no more.
            _unlink(path)
            why = "is broken or was not written by jitad" if data is not None else "is too large, or not owned by you"
            self._complain("broken", f"the entry {key[:16]}... {why}; it is ignored and removed")
            return None
        with contextlib.suppress(OSError):  # read-only, or evicted just now
            os.utime(path)
        return found

    def put(self, key: str, payload: bytes, meta: dict[str, Any] | None = None, replace: bool = True) -> bool:
        """Store `payload` with `meta`, small and for `json`; return whether it is there now.

        With `replace=False` an entry that is there already stays, and the result is False. Never raises for
        trouble with the disk. Raises `ValueError` for a key that is not hexadecimal.
        """
        path = self._path(key)
        data = _pack(key, payload, {"created": time.time(), **(meta or {})})
        if len(data) > self.maxbytes or not self._ready(make=True):
            return False
        try:
            done = _write(path, data, replace)
        except FileNotFoundError:  # the folder has been removed meanwhile
            done = self._write_again(path, data, replace)
        except OSError as error:
            done = self._failed(error)
        if done:
            self._account(len(data), path)
        return done

    def _write_again(self, path: str, data: bytes, replace: bool) -> bool:
        self._usable = None
        try:
            return self._ready(make=True) and _write(path, data, replace)
        except OSError as error:
            return self._failed(error)

    def _failed(self, error: OSError) -> bool:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        self._complain("full" if full else "unwritable", f"an entry cannot be written ({_reason(error)})")
        return False

    # --- what is there -------------------------------------------------------------------------------------------

    def entries(self) -> Iterator[DiskEntry]:
        """Yield every whole entry, in no order; broken and foreign files are passed over."""
        for path, size, used in self._files():
            with contextlib.suppress(OSError):
                key = os.path.basename(path)[: -len(SUFFIX)]
                data = _read_own(path, self.maxbytes)
                found = _unpack(key, data) if data is not None else None
                if found is not None:
                    yield DiskEntry(key, size, used, found[1])

    def total_bytes(self) -> int:
        """Return the bytes of all entries."""
        return sum(size for _, size, _ in self._files())

    def clear(self, predicate: Callable[[DiskEntry], bool] | None = None) -> int:
        """Remove all entries, broken ones too, or those whole ones that `predicate` takes; return how many."""
        self._estimate = None
        if predicate is not None:
            chosen = [self._path(entry.key) for entry in self.entries() if predicate(entry)]
        else:
            chosen = [path for path, _, _ in self._files(stale=0.0)]
        return sum(map(_unlink, chosen))

    def _files(self, stale: float = STALE) -> list[tuple[str, int, float]]:
        """(path, size, time of last use) of the entries. Temporary files that nobody finished are removed."""
        found: list[tuple[str, int, float]] = []
        if not self._ready():
            return found
        with contextlib.suppress(OSError), os.scandir(self.root) as items:
            for item in items:
                with contextlib.suppress(OSError):  # removed just now
                    state = item.stat(follow_symlinks=False)
                    if item.name.endswith(SUFFIX):
                        found.append((item.path, state.st_size, state.st_mtime))
                    elif item.name.startswith(TEMPORARY) and state.st_mtime <= time.time() - stale:
                        os.unlink(item.path)
        return found

    # --- bounds --------------------------------------------------------------------------------------------------

    def _account(self, written: int, path: str) -> None:
        self._writes += 1
        if self._estimate is not None:
            self._estimate += written
        if self._estimate is None or self._estimate > self.maxbytes or self._writes % SCAN_EVERY == 0:
            self._shrink(path)

    def _shrink(self, spared: str) -> None:
        """Remove the least recently used entries, if there is too much, but not the one just written."""
        files = self._files()
        total = sum(size for _, size, _ in files)
        if total > self.maxbytes:
            latest = time.time() + STALE  # a clock that was wrong: what says later would stay for ever
            for path, size, _ in sorted(files, key=lambda file: file[2] if file[2] <= latest else 0.0):
                if total <= LOW_WATER * self.maxbytes:
                    break
                if path != spared:
                    _unlink(path)
                    total -= size
        self._estimate = total

    # --- the folder ----------------------------------------------------------------------------------------------

    def _path(self, key: str) -> str:
        if not 8 <= len(key) <= 128 or key.strip("0123456789abcdef"):
            raise ValueError(f"a key has 8 to 128 hexadecimal digits, unlike {key!r}")
        return os.path.join(self.root, key + SUFFIX)

    def _ready(self, make: bool = False) -> bool:
        """Whether the folder can be used; looked at once, and made if asked for."""
        if self._usable is None:
            self._usable = self._look(make)
        return bool(self._usable)

    def _look(self, make: bool) -> bool | None:
        if not self.root:
            self._complain("home", "there is no home folder to keep it in; set JITAD_CACHE_DIR to a folder of your own")
            return False
        try:
            if make:
                os.makedirs(self.root, mode=0o700, exist_ok=True)
            state = os.stat(self.root)
        except OSError as error:
            if not make and isinstance(error, FileNotFoundError):
                return None
            why = f"the folder cannot be used ({_reason(error)})"
            self._complain("folder", f"{why}; set JITAD_CACHE_DIR to another one")
            return False
        if not stat.S_ISDIR(state.st_mode):
            self._complain("folder", "that is not a folder; set JITAD_CACHE_DIR to one")
            return False
        if not _is_own(state):
            self._complain("unsafe", "the folder is owned or writable by others, who could put code there; make it "
                                     "yours alone (chmod 700) or set JITAD_CACHE_DIR to another one")  # fmt: skip
            return False
        return True

    def _complain(self, cause: str, what: str) -> None:
        if cause not in self._warned:
            self._warned.add(cause)
            self._warn(f"the disk cache{f' in {self.root}' if self.root else ''} does not work: {what}. Calls go on "
                       "without it, and compile anew; jitad.cache.configure(disk=False) turns it off")  # fmt: skip


def _warn(message: str) -> None:
    warnings.warn(message, DiskCacheWarning, stacklevel=5)


# --- files ----------------------------------------------------------------------------------------------------------


def _pack(key: str, payload: bytes, meta: dict[str, Any]) -> bytes:
    text = json.dumps(meta).encode()
    return _HEADER.pack(MAGIC, FORMAT, len(text), len(payload), _checksum(key, text, payload)) + text + payload


def _unpack(key: str, data: bytes) -> tuple[bytes, dict[str, Any]] | None:
    """Payload and meta, or None if anything is not as it was written under this key."""
    if len(data) < _HEADER.size:
        return None
    magic, version, meta_size, size, checksum = _HEADER.unpack_from(data)
    if magic != MAGIC or version != FORMAT or len(data) != _HEADER.size + meta_size + size:
        return None
    text, payload = data[_HEADER.size : _HEADER.size + meta_size], data[_HEADER.size + meta_size :]
    if checksum != _checksum(key, text, payload):
        return None
    try:
        meta = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return (payload, meta) if isinstance(meta, dict) else None


def _checksum(key: str, text: bytes, payload: bytes) -> bytes:
    state = hashlib.blake2b(f"{FORMAT}:{key}:{len(text)}:".encode(), digest_size=32)
    state.update(text)
    state.update(payload)
    return state.digest()


def _read_own(path: str, most: int) -> bytes | None:
    """The content of a plain file of at most `most` bytes that only its owner, who is the user of this process, can
    write; else None."""
    descriptor = os.open(path, os.O_RDONLY | _FLAGS)
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or not _is_own(state) or state.st_size > most:
            return None
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _write(path: str, data: bytes, replace: bool) -> bool:
    """Make the file at once or not at all. Left to the system when it reaches the disk: the checksum tells."""
    unique = f"{TEMPORARY}{os.getpid():x}-{threading.get_ident():x}-{os.urandom(6).hex()}"
    temporary = os.path.join(os.path.dirname(path), unique)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
    try:
        with open(descriptor, "wb", buffering=0) as file:
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest) :]
        if replace:
            os.replace(temporary, path)
            return True
        return _link(temporary, path)
    except BaseException:
        _unlink(temporary)
        raise


def _link(temporary: str, path: str) -> bool:
    """Give the file its name unless that is taken."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without links: the race between look and rename costs one entry
        if os.path.exists(path):
            return False
        os.replace(temporary, path)
        return True
    finally:
        _unlink(temporary)
    return True


def _unlink(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


def _is_own(state: os.stat_result) -> bool:
    if not hasattr(os, "geteuid"):  # Windows, where the user's cache folder is private
        return True
    return state.st_uid == os.geteuid() and not state.st_mode & 0o022


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(
    os, "O_NONBLOCK", 0)  # fmt: skip  # a pipe in the place of an entry must not block
