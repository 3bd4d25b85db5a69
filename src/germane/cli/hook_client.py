"""The short process of `germane hook`: it passes a host's event to a background process.

Hosts run a command for each event, and loading an engine takes most of a second. So the first event starts a
process that stays for the next ones and listens on a socket that only this user may open. Only the standard
library is imported here. Whatever goes wrong, nothing is printed and the process ends with 0: a host would
stop the user's work for any other code.
"""

from __future__ import annotations

import os
import socket
import stat
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

DEADLINE: Final = 8.0
"""Seconds after which an event is left without an answer, unless `--deadline` says otherwise."""

_BY_ITSELF: Final = frozenset({"--help", "-h", "--check", "--print-config", "--listen", "--json"})
_MOST_BYTES: Final = 1_000_000
_ENVIRONMENT: Final = (
    *("GERMANE_DB", "GERMANE_AGENT", "GERMANE_USER", "GERMANE_EMBEDDER", "GERMANE_KEY", "XDG_DATA_HOME"),
)


def is_event(arguments: list[str]) -> bool:
    """Whether the arguments of the command line are those with which a host passes an event."""
    return arguments[:1] == ["hook"] and not _BY_ITSELF.intersection(
        each.partition("=")[0] for each in arguments
    )


def pass_event(arguments: list[str]) -> None:
    """Print the answer to the event on standard input. Never raises; what goes wrong is in the log."""
    try:
        end = time.monotonic() + float(option(arguments, "--deadline") or DEADLINE)
        event = sys.stdin.buffer.read(_MOST_BYTES)
        answer = _answer(arguments, event, end)
        sys.stdout.buffer.write(answer + b"\n" if answer else b"")
        sys.stdout.buffer.flush()
    except Exception as error:  # noqa: BLE001 - See above.
        with suppress(OSError):
            write_log(log_of(arguments), f"{type(error).__name__}: {error}")


def option(arguments: list[str], name: str) -> str | None:
    """The value of an option among arguments; None where it isn't given."""
    for place, each in enumerate(arguments):
        word, equals, value = each.partition("=")
        if word == name:
            return value if equals else next(iter(arguments[place + 1 :]), None)
    return None


def log_of(arguments: list[str]) -> Path:
    """The file with what went wrong: that of `--log`, else `hook.log` in the user's cache folder."""
    named = option(arguments, "--log")
    return folder() / "hook.log" if named is None else Path(named)


def write_log(log: Path, message: str) -> None:
    """Add a line to the log."""
    with log.open("a", encoding="utf-8") as file:
        file.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {message}\n")


def folder() -> Path:
    """The folder of sockets and the log, which is this user's alone. Raises PermissionError for another's."""
    made = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "germane"
    made.mkdir(mode=0o700, parents=True, exist_ok=True)
    state = made.stat()
    if hasattr(os, "getuid") and (state.st_uid != os.getuid() or stat.S_IMODE(state.st_mode) & 0o077):
        raise PermissionError(f"{made} is open to other users: chmod 700 {made}")
    return made


def address_of(arguments: list[str]) -> Path:
    """The socket of the background process that has these arguments, environment and working directory."""
    settings = [*arguments, *(os.environ.get(name, "") for name in _ENVIRONMENT), str(Path.cwd())]
    return folder() / f"{sha256(chr(0).join([__file__, *settings]).encode()).hexdigest()[:16]}.sock"


def ask(address: Path, event: bytes, end: float) -> bytes:
    """The answer of the process at a socket. Raises OSError where none listens, or it answers too late."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(max(end - time.monotonic(), 0.001))
        connection.connect(str(address))
        connection.sendall(event)
        connection.shutdown(socket.SHUT_WR)
        parts = []
        while part := connection.recv(65536):
            connection.settimeout(max(end - time.monotonic(), 0.001))
            parts.append(part)
        return b"".join(parts)


def _answer(arguments: list[str], event: bytes, end: float) -> bytes:
    from subprocess import DEVNULL, Popen, run  # noqa: PLC0415 - Seldom needed; see the loop.

    if not hasattr(socket, "AF_UNIX"):
        command = [*_program(arguments), "--listen", "-"]
        with log_of(arguments).open("ab") as log:
            left = end - time.monotonic()
            return run(command, input=event, stdout=-1, stderr=log, timeout=left, check=True).stdout  # noqa: S603 - This program.
    address = address_of(arguments)
    started: Popen[bytes] | None = None
    while True:
        try:
            return ask(address, event, end)
        except (FileNotFoundError, ConnectionRefusedError):
            if started is None:
                with log_of(arguments).open("ab") as log:
                    started = Popen(  # noqa: S603 - This program itself.
                        [*_program(arguments), "--listen", str(address)],
                        stdin=DEVNULL,
                        stdout=DEVNULL,
                        stderr=log,
                        start_new_session=True,
                    )
            if started.poll() is not None:
                raise ChildProcessError("The background process ended; see above for its error.") from None
            if time.monotonic() > end:
                raise TimeoutError("The background process didn't start before the deadline.") from None
            time.sleep(0.02)


def _program(arguments: list[str]) -> list[str]:
    return [sys.executable, "-m", "germane", *arguments]
