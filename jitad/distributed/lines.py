"""Direct connections to actors: a round of small messages without the event loops of client and worker.

A line is a plain socket between the thread that asks and one of the worker's that does nothing else. It is opened by
Dask's own messages, which carry a secret that the caller must show, and listens where the worker does; workers that
speak TLS have none, and are asked by Dask's messages.
"""
from __future__ import annotations

import hmac
import pickle
import secrets
import socket
import struct
import threading
from typing import Any

OPENING = 10.0               # seconds in which the caller must come
SECRET = 32                  # bytes
LENGTH = struct.Struct("<Q")


class DirectLine:
    """The caller's end. After an `OSError`, or an interrupt, it is of no use any more."""

    def __init__(self, connection: socket.socket, secret: bytes):
        self.socket = connection
        _prepare(connection)
        connection.sendall(secret)

    def send(self, message: bytes) -> None:
        """Send what `message` gave."""
        self.socket.settimeout(None)
        self.socket.sendall(message)

    def receive(self, patience: float) -> Any:
        """The answer. Raises `TimeoutError` if it has not begun so many seconds from now, and may be asked again."""
        self.socket.settimeout(patience)
        first = self.socket.recv(1)
        self.socket.settimeout(None)
        return pickle.loads(_rest_of_message(self.socket, first))

    def close(self) -> None:
        """End it, on both sides."""
        self.socket.close()

    __del__ = close


def message(method: str, arguments: tuple[Any, ...]) -> bytes:
    """A call as bytes."""
    return _framed(pickle.dumps((method, arguments), 5))


class Answering:
    """What an actor has to be asked by lines."""

    def listen(self, secret: bytes) -> int | None:
        """Let one caller in who has the secret, and answer it in a thread; the port, or None for lines that would be
        less safe than the worker's own connections."""
        from distributed import get_worker
        from distributed.comm import get_address_host

        address = get_worker().address
        if not address.startswith("tcp://"):
            return None
        door = socket.create_server((get_address_host(address), 0))
        threading.Thread(target=_answer, args=(door, secret, self), daemon=True, name="jitad-line").start()
        return int(door.getsockname()[1])


def opened(address: str, port: int | None, secret: bytes) -> DirectLine | None:
    """A line to the actor that listens there; None where there is no way through."""
    from distributed.comm import get_address_host

    try:
        if port is None:
            return None
        return DirectLine(socket.create_connection((get_address_host(address), port), OPENING), secret)
    except OSError:
        return None


def new_secret() -> bytes:
    """What a caller shows."""
    return secrets.token_bytes(SECRET)


# --- the worker's end ------------------------------------------------------------------------------------------------

def _answer(door: socket.socket, secret: bytes, actor: Any) -> None:
    with door:
        door.settimeout(OPENING)
        try:
            caller = door.accept()[0]
        except OSError:
            return
    with caller:
        try:
            _prepare(caller)
            caller.settimeout(OPENING)
            if not hmac.compare_digest(_exactly(caller, SECRET), secret):
                return
            caller.settimeout(None)
            while True:
                method, arguments = pickle.loads(_rest_of_message(caller, caller.recv(1)))
                caller.sendall(_framed(_result(actor, method, arguments)))
        except OSError:                                          # the caller has gone
            return


def _result(actor: Any, method: str, arguments: tuple[Any, ...]) -> bytes:
    try:
        return pickle.dumps(getattr(actor, method)(*arguments), 5)
    except Exception as error:
        try:
            return pickle.dumps(error.with_traceback(None), 5)
        except Exception:                                        # it holds what cannot travel
            return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"), 5)


# --- messages: their length, and they --------------------------------------------------------------------------------

def _prepare(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def _framed(content: bytes) -> bytes:
    return LENGTH.pack(len(content)) + content


def _rest_of_message(connection: socket.socket, first: bytes) -> bytes:
    if not first:
        raise ConnectionError("the line is closed")
    (length,) = LENGTH.unpack(first + _exactly(connection, LENGTH.size - 1))
    return _exactly(connection, length)


def _exactly(connection: socket.socket, count: int) -> bytes:
    found = bytearray(count)
    view = memoryview(found)
    while view:
        got = connection.recv_into(view)
        if not got:
            raise ConnectionError("the line is closed")
        view = view[got:]
    return bytes(found)
