"""A way to a server like a pooler that knows prepared statements: it names them itself, and the process."""

from __future__ import annotations

import shutil
import socket
import struct
import tempfile
from contextlib import suppress
from pathlib import Path
from threading import Thread
from urllib.parse import quote

__all__ = ["Renaming"]

# What a client names a statement by, and what the server gets instead, as long as the other.
_THEIRS, _OURS = (b"germane_", b"_pg3_"), (b"POOLER1_", b"POOL_")

# The messages that name statements: Parse, Bind, Describe and Close.
_NAMING = b"PBDC"


class Renaming:
    """Passes on whole messages. `close` it in the end."""

    def __init__(self, server: Path) -> None:
        self.renamed = 0
        self._server = str(server / ".s.PGSQL.5432")
        self._folder = tempfile.mkdtemp(prefix="germane-renaming-")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{self._folder}/.s.PGSQL.5432")
        self._listener.listen()
        Thread(target=self._accept, daemon=True).start()

    def url(self, database: str) -> str:
        """The address of a database by this way."""
        return f"postgresql://postgres@/{database}?host={quote(self._folder, safe='')}"

    def close(self) -> None:
        """Let nobody in any more."""
        self._listener.close()
        shutil.rmtree(self._folder)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self._server)
            back = Thread(target=self._answer, args=(client, server), daemon=True)
            back.start()
            self._ask(client, server)
            back.join()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError, EOFError):
            # What a client begins with has no kind.
            server.sendall(_message(client, b""))
            while True:
                kind = _read(client, 1)
                message = _message(client, kind)
                if kind in _NAMING:
                    for theirs, ours in zip(_THEIRS, _OURS, strict=True):
                        self.renamed += theirs in message
                        message = message.replace(theirs, ours)
                server.sendall(message)
        _shut(server)

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError, EOFError):
            while True:
                kind = _read(server, 1)
                message = _message(server, kind)
                # The number of the process, by which a client would cancel.
                client.sendall(message[:5] + b"\0\0\0\1" + message[9:] if kind == b"K" else message)
        _shut(client)


def _message(source: socket.socket, kind: bytes) -> bytes:
    length = _read(source, 4)
    return kind + length + _read(source, struct.unpack("!i", length)[0] - len(length))


def _read(source: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        some = source.recv(count - len(found))
        if not some:
            raise EOFError
        found += some
    return found


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
