"""The commands `mcp` and `hook`: an agent's memory for hosts, as tools and at their events."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from enum import StrEnum
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from germane.cli.call import MADE, Call, check_exists, command, observed
from germane.cli.hook_client import DEADLINE, folder, log_of, write_log
from germane.cli.options import opt
from germane.cli.output import warn
from germane.errors import GermaneError, InvalidInput, MissingExtra
from germane.stores.location import is_address, location_of

if TYPE_CHECKING:
    from germane import Engine
    from germane.servers.hook import HostEvents
    from germane.servers.mcp_tools import MemoryTools

_PATIENCE: Final = 5
"""Seconds to wait for the rest of an event."""
_LOCAL: Final = ("127.0.0.1", "localhost", "::1")


class _Host(StrEnum):
    """A host whose configuration can be printed."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CODEX = "codex"
    CURSOR = "cursor"
    VSCODE = "vscode"


@command("mcp")
def _mcp(
    call: Call,
    *,
    tools: Annotated[
        str,
        opt("--tools SETS", "read, core, working, conversation, spaces and chatgpt; +working adds to core."),
    ] = "core",
    read_only: Annotated[bool, opt("--read-only", "Offer no tool that writes.")] = False,
    record: Annotated[bool, opt("--record", "Record each context in the ledger.")] = False,
    budget_max: Annotated[int, opt("--budget-max N", "Maximum tokens of a result.")] = 20_000,
    http: Annotated[bool, opt("--http", "Serve streamable HTTP instead of standard input.")] = False,
    host: Annotated[
        str, opt("--host NAME", "With --http; another than this machine's needs --keys.")
    ] = "127.0.0.1",
    port: Annotated[int, opt("--port N", "With --http.", min=1, max=65535)] = 8765,
    keys: Annotated[
        bool, opt("--keys", "With --http: the key of a request decides whose memory it uses.")
    ] = False,
    allow_host: Annotated[
        list[str] | None, opt("--allow-host NAME", "With --keys: a name that clients use. Repeatable.")
    ] = None,
    print_config: Annotated[
        _Host | None, opt("--print-config HOST", "Print a host's configuration, and serve nothing.")
    ] = None,
) -> None:
    """Hosts start it by themselves; --print-config shows what to add to theirs.

    Hosts: claude-code, claude-desktop, codex, cursor, vscode.
    """
    if print_config is not None:
        if find_spec("mcp") is None:
            warn(str(MissingExtra(feature="The MCP server", extra="mcp")))
        typer.echo(_configuration(print_config, call, sys.argv))
        return
    if host not in _LOCAL and not keys:
        raise InvalidInput(
            f"--host {host} would let other machines read this memory without a key. Create one with "
            "`germane keys create`, and add --http --keys."
        )
    if (keys and not http) or (allow_host and not keys):
        raise InvalidInput(
            f"--keys needs --http, and --allow-host {' '.join(allow_host or ())} needs --keys: on standard "
            "input the host that starts the server is the only caller."
        )
    if read_only:
        check_exists(call.database)
    options: dict[str, Any] = {
        "tools": tools, "read_only": read_only, "record": record, "budget_max": budget_max,
    }  # fmt: skip
    try:
        if keys:
            _serve_keys(call, host=host, port=port, names=allow_host or (), options=options)
            return
        _serve_one(call, options, {"host": host, "port": port} if http else None)
    except ModuleNotFoundError as error:
        if (error.name or "germane").partition(".")[0] == "germane":
            raise
        raise MissingExtra(feature="The MCP server", extra="mcp") from error


def _serve_one(call: Call, options: dict[str, Any], http: dict[str, Any] | None) -> None:
    """Serve one agent's memory, on standard input unless `http` says where."""
    # The collector would look through the SDK's thousands of classes again and again while they are made.
    gc.disable()
    try:
        from germane.servers.mcp import load_after_first_answer, mcp_server  # noqa: PLC0415 - An extra.
    finally:
        gc.enable()

    with ExitStack() as stack:

        def open_engine() -> Engine:
            return observed(stack.enter_context(call.engine(makes=not options["read_only"])))

        server, memory = mcp_server(open_engine, agent=call.agent, **options)
        load_after_first_answer(server, partial(_load, memory))
        if http is None:
            server.run("stdio")
        else:
            server.run("streamable-http", stateless_http=True, **http)


def _serve_keys(call: Call, *, host: str, port: int, names: Sequence[str], options: dict[str, Any]) -> None:
    """Serve the agents of a store to who has a key, over HTTP."""
    # As above.
    import uvicorn  # noqa: PLC0415 - An extra.

    from germane.servers.connections import Connection  # noqa: PLC0415 - An extra.
    from germane.servers.guard import LOCAL_HOSTS  # noqa: PLC0415 - An extra.
    from germane.servers.mcp_http import keyed_mcp  # noqa: PLC0415 - An extra.

    hosts = [*LOCAL_HOSTS, *(each.lower() for each in names)]
    with call.handle(read_only=options["read_only"]) as handle:
        app = keyed_mcp(observed(handle), hosts=hosts, **options)
        uvicorn.run(app, host=host, port=port, http=Connection, log_level="warning", server_header=False)


@command("hook")
def _hook(
    call: Call,
    *,
    budget: Annotated[int, opt("--budget TOKENS", "Maximum tokens of a context.", min=1)] = 800,
    deadline: Annotated[
        float, opt("--deadline SECONDS", "Print nothing if an answer takes longer.")
    ] = DEADLINE,
    idle: Annotated[
        int, opt("--idle SECONDS", "End the background process after so long without an event.", min=1)
    ] = 3600,
    learn: Annotated[
        bool, opt("--learn", "Learn facts from a session at its end; see `germane learn`.")
    ] = False,
    log: Annotated[Path | None, opt("--log FILE", "Where errors go; default: in the cache folder.")] = None,
    check: Annotated[bool, opt("--check", "Answer a session's start, and show the latest errors.")] = False,
    print_config: Annotated[
        bool, opt("--print-config", "Print what to add to the host's settings, and do nothing.")
    ] = False,
    listen: Annotated[
        str | None, opt("--listen PATH", "Used by the command itself: serve this socket; -: standard input.")
    ] = None,
) -> None:
    """An event is a JSON object on standard input. Text for the model is printed, or nothing; the exit code
    is 0 also after an error. The first event starts a background process, which answers all.
    """
    from germane.servers.hook import EVENTS, HostEvents  # noqa: PLC0415 - Only here.

    if print_config:
        options = ["--learn"] if learn else []
        options += [] if log is None else ["--log", str(log.absolute())]
        words = [*_command_line("hook", call, sys.argv), "--budget", str(budget), *options]
        entry = {"type": "command", "command": " ".join(map(_quoted, words)), "timeout": int(deadline) + 2}
        hooks = {name: [{"hooks": [entry]}] for name in EVENTS}
        typer.echo(json.dumps({"hooks": hooks}, indent=2))
        return
    path = log_of([] if log is None else ["--log", str(log)])
    note = warn if listen in (None, "-") else partial(write_log, path)
    with call.engine(makes=True, record=True, note=note) as engine:
        events = HostEvents(engine, budget=budget, refs=None if check else _refs_of(call), learns=learn)
        if check:
            text = events.answer({"hook_event_name": "SessionStart"})
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            errors = [line for line in lines if MADE not in line][-10:]
            shown = text or "No memory holds for every task yet, so a session starts with nothing."
            report = [shown, f"Latest errors in {path}:", *(errors or ["none"])]
            call.answer({"text": text, "log": str(path), "errors": errors}, "\n".join(report))
        elif listen in (None, "-"):
            typer.echo(events.answer(sys.stdin.buffer.read()), nl=False)
        else:
            _listen(Path(str(listen)), events, idle=idle, log=path)


def _refs_of(call: Call) -> Path:
    """The file of the hook's last contexts in this memory."""
    words = [location_of(call.database), call.agent, call.user or ""]
    return folder() / f"{sha256(chr(0).join(words).encode()).hexdigest()[:16]}.json"


def _listen(address: Path, events: HostEvents, *, idle: int, log: Path) -> None:
    """Answer the events that arrive at a socket until none has arrived for `idle` seconds."""
    import socket  # noqa: PLC0415 - Only here.

    with socket.socket(socket.AF_UNIX) as server:
        # Of two that start at the same time the later one serves, and the other ends when it is idle.
        own = address.with_suffix(f".{os.getpid()}")
        server.bind(str(own))
        server.listen(16)
        own.replace(address)
        here = address.stat().st_ino
        server.settimeout(idle)
        try:
            while address.exists() and address.stat().st_ino == here:
                connection, _ = server.accept()
                with connection:
                    _answer(connection, events, log)
        except TimeoutError:
            pass
        finally:
            with suppress(OSError):
                if address.stat().st_ino == here:
                    address.unlink()


def _answer(connection: Any, events: HostEvents, log: Path) -> None:
    connection.settimeout(_PATIENCE)
    try:
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
        connection.sendall(events.answer(b"".join(parts)).encode())
    except Exception as error:  # noqa: BLE001 - One event's error ends no session, and is in the log.
        write_log(log, f"{type(error).__name__}: {error}")


def _load(memory: MemoryTools) -> None:
    """Load what the first call needs. What fails here fails again, with a message, at that call."""
    with suppress(GermaneError):
        memory.engine.assemble("What is known?", budget=100, record=False)


def _configuration(host: _Host, call: Call, arguments: list[str]) -> str:
    """What to add to a host's configuration, with absolute paths."""
    command_line = _command_line("mcp", call, arguments)
    program = command_line[0]
    entry: dict[str, Any] = {"command": program, "args": command_line[1:]}
    if host is _Host.CLAUDE_CODE:
        return "claude mcp add germane -- " + " ".join(map(_quoted, command_line))
    if host is _Host.CODEX:
        listed = ", ".join(json.dumps(each) for each in command_line[1:])
        return f"[mcp_servers.germane]\ncommand = {json.dumps(program)}\nargs = [{listed}]"
    if host is _Host.VSCODE:
        return json.dumps({"servers": {"germane": {"type": "stdio", **entry}}}, indent=2)
    return json.dumps({"mcpServers": {"germane": entry}}, indent=2)


def _command_line(name: str, call: Call, arguments: list[str]) -> list[str]:
    own = Path(arguments[0]).absolute()
    # `python -m germane` names a file that isn't a program.
    started = [sys.executable, "-m", "germane"] if own.name == "__main__.py" else [str(own)]
    installed = shutil.which("germane")
    database = call.database if is_address(call.database) else str(Path(call.database).absolute())
    program = started if installed is None else [installed]
    words = [*program, name, "--db", database, "--agent", call.agent]
    return words if call.user is None else [*words, "--user", call.user]


def _quoted(text: str) -> str:
    import shlex  # noqa: PLC0415 - One host needs it.

    return shlex.quote(text)
