"""The commands `serve`, `inspect` and `keys …`: a store over HTTP, and the keys that open it."""

from __future__ import annotations

import re
import socket
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final

from germane import InvalidInput
from germane.access import AccessKey
from germane.cli.call import ANY_AGENT, Call, check_exists, command, observed
from germane.cli.options import arg, opt
from germane.cli.output import print_columns, print_text, warn
from germane.errors import MissingExtra

if TYPE_CHECKING:
    from germane.engine.handle import StoreHandle
    from germane.servers.rest import RestServer

_LOCAL: Final = ("127.0.0.1", "localhost", "::1")
_SPAN: Final = re.compile(r"(\d+)([hdw])")
_HOURS: Final = {"h": 1, "d": 24, "w": 168}


@command("serve")
def _serve(
    call: Call,
    *,
    host: Annotated[
        str, opt("--host NAME", "The address to listen at; another than this machine's needs keys.")
    ] = ("127.0.0.1"),
    port: Annotated[int, opt("--port N", "The port.", min=1, max=65535)] = 8766,
    keys: Annotated[
        bool, opt("--keys", "Accept the keys of the store, not a token of this process.")
    ] = False,
    allow_host: Annotated[
        list[str] | None, opt("--allow-host NAME", "A name that clients use for this server. Repeatable.")
    ] = None,
    read_only: Annotated[bool, opt("--read-only", "Let nobody write.")] = False,
    record: Annotated[bool, opt("--record", "Record contexts in the ledger.")] = False,
    max_body: Annotated[int, opt("--max-body BYTES", "Maximum size of a request.", min=1)] = 4 << 20,
    timeout: Annotated[float, opt("--timeout SECONDS", "Maximum time of an answer.", min=0.1)] = 60.0,
    concurrency: Annotated[int, opt("--concurrency N", "Requests that run at once.", min=1)] = 32,
    rate: Annotated[int, opt("--rate N", "Requests of one key in a second; 0: any.", min=0)] = 0,
) -> None:
    """Without --keys, the printed token is the only key, and only this machine is listened to. MCP is at
    /mcp. SIGTERM ends it after the requests under way.
    """
    if host not in _LOCAL and not keys:
        raise InvalidInput(
            f"--host {host} would let other machines read this memory without a key of their own. Create "
            "one with `germane keys create`, and add --keys."
        )
    options: dict[str, Any] = {
        "keys": keys,
        "allow_host": allow_host,
        "read_only": read_only,
        "record": record,
    }
    limits = {"body": max_body, "seconds": timeout, "running": concurrency, "rate": rate}
    with _opened(call, **options, limits=limits) as (rest, app, token):
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        started = {"address": address, "token": token}
        if not call.prints(started, on_a_line=True):
            print_text(f"{address}/" if token is None else f"{address}/#token={token}")
            warn(
                "Serving. The address has the token that is the only key; Ctrl-C ends it."
                if token
                else "Serving."
            )
        rest.serve(app, host=host, port=port)


@command("inspect")
def _inspect(
    call: Call,
    *,
    port: Annotated[int, opt("--port N", "The port; 0: a free one.", min=0, max=65535)] = 0,
    read_only: Annotated[bool, opt("--read-only", "Show no button that changes anything.")] = False,
    no_browser: Annotated[bool, opt("--no-browser", "Print the address, and open nothing.")] = False,
) -> None:
    """It serves this machine alone until Ctrl-C. The page's address has the token that is its only key."""
    check_exists(call.database)
    with _opened(call, read_only=read_only) as (rest, app, token), socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", port))
        except OSError as error:
            raise InvalidInput(
                f"--port {port} can't be used: {error.strerror}. Use another, or 0."
            ) from error
        # The browser may ask before the server runs: it waits for an answer.
        listening.listen()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        page = f"{address}/#token={token}"
        if not call.prints({"address": address, "token": token}, on_a_line=True):
            print_text(page)
            warn("Serving the inspector. Ctrl-C ends it.")
        if not (no_browser or call.as_json or webbrowser.open(page)):
            warn("No browser could be started. Open the address above.")
        rest.serve(app, sockets=[listening])


@contextmanager
def _opened(
    call: Call,
    *,
    keys: bool = False,
    allow_host: list[str] | None = None,
    read_only: bool = False,
    record: bool = False,
    limits: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[tuple[Any, RestServer, str | None]]:
    """The server's module, the application on the call's store, and the token that is its only key."""
    try:
        from germane.servers import rest  # noqa: PLC0415 - An extra, which takes a second.
    except ModuleNotFoundError as error:
        raise MissingExtra(feature="The HTTP server", extra="server") from error
    token = None if keys else rest.local_token()
    with call.handle(read_only=read_only, record=record) as handle:
        app = rest.rest_app(
            observed(handle),
            agent=call.agent,
            user=call.user,
            token=token,
            may=("read",) if read_only else ("read", "write", "admin"),
            hosts=[*rest.LOCAL_HOSTS, *(each.lower() for each in allow_host or ())],
            limits=rest.Limits(**limits),
        )
        yield rest, app, token


@command("keys create", user=None)
def _create(
    call: Call,
    *,
    user: Annotated[str | None, opt("--user NAME", "For this user of the agent alone.")] = None,
    may: Annotated[str, opt("--may RIGHTS", "read, write and admin, separated by commas.")] = "read,write",
    expires: Annotated[
        str | None, opt("--expires TIME", "ISO 8601, or such as 12h, 30d or 4w; default: never.")
    ] = None,
) -> None:
    """The key is printed once; the store has its hash alone."""
    span = _SPAN.fullmatch(expires or "")
    until = timedelta(hours=int(span[1]) * _HOURS[span[2]]) if span else expires
    rights = [each.strip() for each in may.split(",") if each.strip()]
    with _store(call) as handle:
        made = handle.create_key(call.agent, user=user, may=rights, expires=until)
    call.answer({"key": made.text, **_shape(made.key)}, made.text)


@command("keys list", agent=ANY_AGENT)
def _list(call: Call) -> None:
    check_exists(call.database)
    with _store(call) as handle:
        keys = handle.keys()
    if call.prints({"keys": [_shape(each) for each in keys]}):
        return
    if not keys:
        print_text("There is no key. `germane keys create` makes one.")
        return
    columns = {
        "ID": lambda each: each.id,
        "AGENT": lambda each: each.agent,
        "USER": lambda each: each.user or "",
        "MAY": lambda each: ",".join(each.may),
        "CREATED": lambda each: f"{each.created_at:%Y-%m-%d}",
        "EXPIRES": lambda each: "never" if each.expires_at is None else f"{each.expires_at:%Y-%m-%d %H:%M}",
        "": lambda each: "" if each.revoked_at is None else f"revoked {each.revoked_at:%Y-%m-%d}",
    }
    print_columns(keys, columns)


@command("keys revoke", agent=ANY_AGENT)
def _revoke(call: Call, key: Annotated[str, arg("ID", "The id of the key, from `keys list`.")]) -> None:
    """A running server accepts it for a second at most."""
    check_exists(call.database)
    with _store(call) as handle:
        revoked = handle.revoke_key(key)
    call.answer(_shape(revoked), f"Revoked: {revoked.id}, of agent {revoked.agent}.")


def _store(call: Call) -> StoreHandle:
    return call.handle(embedder=None)


def _shape(key: AccessKey) -> dict[str, Any]:
    return {name: getattr(key, name) for name in AccessKey.__dataclass_fields__}
