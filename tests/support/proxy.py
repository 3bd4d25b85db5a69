"""A way to a server that breaks where a test wants it to."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Literal
from urllib.parse import quote

__all__ = ["Broken", "Way"]

Broken = Literal["before", "after", "meanwhile"]


class Way:
    """Passes on what clients and the server send, until a message of a client's holds certain words.

    Then it breaks once: "before" the server gets them, "after" the server has answered, whose answer is
    lost, or "meanwhile": the client's side breaks first, and `late` runs before the server gets them.
    `turns` counts how often the server has answered what clients had sent since its last word.
    """

    def __init__(self, server: Path) -> None:
        self.broken = 0
        self.turns = 0
        self._negotiated: set[socket.socket] = set()
        self._guard = Lock()
        self._server = str(server / ".s.PGSQL.5432")
        self._folder = tempfile.mkdtemp(prefix="germane-way-")
        self._plan: tuple[bytes, Broken, Callable[[], None]] | None = None
        self._unheard: socket.socket | None = None
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{self._folder}/.s.PGSQL.5432")
        self._listener.listen()
        Thread(target=self._accept, daemon=True).start()

    def url(self, database: str) -> str:
        """The address of a database by this way."""
        return f"postgresql://postgres@/{database}?host={quote(self._folder, safe='')}"

    def break_at(self, words: bytes, when: Broken, late: Callable[[], None] = lambda: None) -> None:
        """Break at the next message that holds these words."""
        self._plan = (words, when, late)

    def close(self) -> None:
        """Let nobody in any more."""
        self._listener.close()
        shutil.rmtree(self._folder)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                try:
                    server.connect(self._server)
                except OSError:
                    # The server is down just now; whoever comes later may find it.
                    server.close()
                    client.close()
                    continue
                Thread(target=self._pass_on, args=(client, server), daemon=True).start()
                Thread(target=self._answer, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while sent := client.recv(1 << 16):
                with self._guard:
                    self._negotiated.add(client)
                if self._plan is not None and self._plan[0] in sent:
                    _, when, late = self._plan
                    self._plan = None
                    self.broken += 1
                    if when == "before":
                        break
                    if when == "after":
                        self._unheard = client
                    else:
                        _shut(client)
                        late()
                server.sendall(sent)
            # The end of what is sent lets the server finish what it got.
            server.shutdown(socket.SHUT_WR)

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while answer := server.recv(1 << 16):
                with self._guard:
                    self.turns += client in self._negotiated
                    self._negotiated.discard(client)
                if self._unheard is client:
                    break
                client.sendall(answer)
        for each in (client, server):
            _shut(each)
            each.close()


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
