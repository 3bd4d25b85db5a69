"""The command `mcp`: an agent's memory for hosts that speak the Model Context Protocol."""

from __future__ import annotations

import json
import shutil
import sys
from contextlib import ExitStack, suppress
from enum import StrEnum
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from germane.cli.call import Call, check_exists, command
from germane.cli.options import opt
from germane.errors import GermaneError, InvalidInput, MissingExtra
from germane.stores.location import is_address

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

    from germane.servers.mcp import MemoryTools

_LOCAL: Final = ("127.0.0.1", "localhost", "::1")


class _Tools(StrEnum):
    """Which tools a server offers."""

    READ = "read"
    CORE = "core"
    CHATGPT = "chatgpt"


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
    tools: Annotated[_Tools, opt("--tools SET", "read, core, or chatgpt (search and fetch).")] = _Tools.CORE,
    read_only: Annotated[bool, opt("--read-only", "Offer no tool that writes.")] = False,
    record: Annotated[bool, opt("--record", "Record each context in the ledger.")] = False,
    budget_max: Annotated[int, opt("--budget-max N", "Maximum tokens of a result.")] = 20_000,
    http: Annotated[bool, opt("--http", "Serve streamable HTTP instead of standard input.")] = False,
    host: Annotated[str, opt("--host NAME", "With --http: a name of this machine only.")] = "127.0.0.1",
    port: Annotated[int, opt("--port N", "With --http.", min=1, max=65535)] = 8765,
    print_config: Annotated[
        _Host | None, opt("--print-config HOST", "Print a host's configuration, and serve nothing.")
    ] = None,
) -> None:
    """Hosts start it by themselves; --print-config shows what to add to theirs.

    Hosts: claude-code, claude-desktop, codex, cursor, vscode.
    """
    if print_config is not None:
        typer.echo(_configuration(print_config, call, sys.argv))
        return
    if http and host not in _LOCAL:
        raise InvalidInput(
            f"--host {host} would let other machines read this memory without a key. Use 127.0.0.1, and a "
            "proxy that checks who asks."
        )
    if read_only:
        check_exists(call.database)
    with ExitStack() as stack:
        options: dict[str, Any] = {"record": record, "budget_max": budget_max}
        server, memory = _server(call, stack, tools=tools, read_only=read_only, **options)
        Thread(target=_load, args=[memory], name="germane-mcp-load", daemon=True).start()
        try:
            if http:
                server.run("streamable-http", host=host, port=port, stateless_http=True)
            else:
                server.run("stdio")
        finally:
            memory.close()


def _server(
    call: Call, stack: ExitStack, *, tools: _Tools, read_only: bool, **options: Any
) -> tuple[MCPServer, MemoryTools]:
    """The server and its tools; the engine that it opens is closed by the stack."""
    try:
        from germane.servers.mcp import mcp_server  # noqa: PLC0415 - The SDK is an extra, and takes a second.
    except ModuleNotFoundError as error:
        raise MissingExtra(feature="The MCP server", extra="mcp") from error
    return mcp_server(
        lambda: stack.enter_context(call.engine(makes=not read_only)),
        agent=call.agent,
        tools=tools.value,
        read_only=read_only,
        **options,
    )


def _load(memory: MemoryTools) -> None:
    """Load what the first call needs. What fails here fails again, with a message, at that call."""
    with suppress(GermaneError):
        memory.engine.assemble("What is known?", budget=100, record=False)


def _configuration(host: _Host, call: Call, arguments: list[str]) -> str:
    """What to add to a host's configuration, with absolute paths."""
    program = shutil.which("germane") or str(Path(arguments[0]).absolute())
    database = call.database if is_address(call.database) else str(Path(call.database).absolute())
    command_line = [program, "mcp", "--db", database, "--agent", call.agent]
    command_line += [] if call.user is None else ["--user", call.user]
    entry: dict[str, Any] = {"command": program, "args": command_line[1:]}
    if host is _Host.CLAUDE_CODE:
        return "claude mcp add germane -- " + " ".join(map(_quoted, command_line))
    if host is _Host.CODEX:
        listed = ", ".join(json.dumps(each) for each in command_line[1:])
        return f"[mcp_servers.germane]\ncommand = {json.dumps(program)}\nargs = [{listed}]"
    if host is _Host.VSCODE:
        return json.dumps({"servers": {"germane": {"type": "stdio", **entry}}}, indent=2)
    return json.dumps({"mcpServers": {"germane": entry}}, indent=2)


def _quoted(text: str) -> str:
    import shlex  # noqa: PLC0415 - One host needs it.

    return shlex.quote(text)
