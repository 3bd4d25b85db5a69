"""`germane serve` in a process of its own, and sockets that send it anything."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

__all__ = ["Serving", "exchange", "free_port", "serving"]


@dataclass(frozen=True)
class Serving:
    """A server that answers: its address, its token (None with --keys), and its process."""

    address: str
    port: int
    token: str | None
    process: subprocess.Popen[str]

    @property
    def headers(self) -> dict[str, str]:
        """The header of its token."""
        return {"authorization": f"Bearer {self.token}"}

    def connect(self) -> socket.socket:
        """A connection that waits for half a minute at most."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)


def free_port() -> int:
    """A port that nothing listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def serving(
    database: Path | str,
    *options: str,
    agent: str = "newton",
    embedder: str | None = "none",
    program: Sequence[str] = ("-m", "germane"),
    errors: IO[str] | None = None,
) -> Iterator[Serving]:
    """A server of a store, ended with the context; `embedder` is None for the default one.

    `program` is what Python runs, and `errors` the file for what it prints on standard error.
    """
    port = free_port()
    command = [sys.executable, *program, "serve", "--db", str(database), "--agent", agent]
    command += ["--port", str(port), "--json", *options]
    environment = {**os.environ, **({} if embedder is None else {"GERMANE_EMBEDDER": embedder})}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            started: dict[str, Any] = json.loads(process.stdout.readline())
            _wait(port, process)
            yield Serving(started["address"], port, started["token"], process)
        finally:
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait(port: int, process: subprocess.Popen[str]) -> None:
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            continue
        return
    raise AssertionError(f"The server ended with code {process.returncode} before it answered.")


def exchange(connection: socket.socket, sent: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send bytes, and read the answer until the server closes the connection: status, headers, body."""
    connection.sendall(sent)
    return answer(connection)


def answer(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """The answer that a connection gives before it is closed."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    head, _, body = b"".join(parts).partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return int(first.split(" ")[1]), headers, body
