"""MCP over HTTP for many callers: a key says whose memory a call is for, and what it may do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS
from starlette.types import ASGIApp, Receive, Scope, Send

from germane.access import AccessRight
from germane.servers.guard import LOCAL_HOSTS, Guard, Limits
from germane.servers.identity import Caller, Identities
from germane.servers.live import Served
from germane.servers.mcp import instructions_for, memory_server
from germane.servers.mcp_tools import MOST_BUDGET, WRITES, MemoryTools, tool_names
from germane.servers.problems import problem

if TYPE_CHECKING:
    from germane.engine import Engine
    from germane.engine.handle import StoreHandle

_CALLER: Final[ContextVar[Caller]] = ContextVar("germane_mcp_caller")
_PATH: Final = "/mcp"


class CallersMcp:
    """An ASGI application that speaks MCP for the callers that a `Guard` before it found.

    A key without the right to write is shown neither tools nor prompts that write. The application starts
    with its first request, and `close` ends it.
    """

    def __init__(
        self,
        *,
        tools: str = "core",
        read_only: bool = False,
        record: bool = False,
        budget_max: int = MOST_BUDGET,
    ) -> None:
        """Raises InvalidInput as `mcp_server` does."""
        self._names = tool_names(tools, read_only=read_only)
        memory = MemoryTools(_engine, record=record and not read_only, budget_max=budget_max)
        server = memory_server(memory, self._names)
        server.middleware.append(self._for_caller)
        # The guard has checked the Host already.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._app = server.streamable_http_app(stateless_http=True, transport_security=security)
        self._task: asyncio.Task[None] | None = None
        self._ending = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["path"] != _PATH:
            missing = problem(HTTPStatus.NOT_FOUND, f"MCP is at {_PATH}, and there is nothing else.")
            await missing(scope, receive, send)
            return
        caller: Caller = scope["state"]["caller"]
        refused = caller.refusal(AccessRight.READ)
        if refused is not None:
            await refused(scope, receive, send)
            return
        await self._started()
        await self._app({**scope, "raw_path": _PATH.encode(), "root_path": ""}, receive, send)

    async def close(self) -> None:
        """End what works for it."""
        self._ending.set()
        if self._task is not None:
            await self._task

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        for event in ("startup", "shutdown"):
            await receive()
            if event == "shutdown":
                await self.close()
            await send({"type": f"lifespan.{event}.complete"})

    async def _started(self) -> None:
        if self._task is None:
            self._ready = asyncio.Event()
            self._task = asyncio.create_task(self._running())
        await self._ready.wait()

    async def _running(self) -> None:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._app.router.lifespan_context(self._app))
            self._ready.set()
            await self._ending.wait()

    async def _for_caller(self, ctx: Any, call_next: Any) -> Any:
        """Answer a message as its key allows."""
        caller: Caller = ctx.request.scope["state"]["caller"]
        writes = AccessRight.WRITE in caller.key.may
        names = [each for each in self._names if writes or each not in WRITES]
        called = (ctx.params or {}).get("name")
        if not writes and (called in WRITES or (ctx.method == "prompts/get" and called == "keep")):
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown name: {called}. This key may not write.")
        token = _CALLER.set(caller)
        try:
            answer = await call_next(ctx)
        finally:
            _CALLER.reset(token)
        return _shown_to(answer, caller, names, writes=writes)


def _shown_to(answer: Any, caller: Caller, names: Sequence[str], *, writes: bool) -> Any:
    if not isinstance(answer, dict):
        return answer
    shown = dict(answer)
    if "serverInfo" in shown or "supportedVersions" in shown:
        shown["instructions"] = instructions_for(caller.key.agent, names)
    if "tools" in shown:
        shown["tools"] = [each for each in shown["tools"] if each["name"] in names]
    if "prompts" in shown:
        shown["prompts"] = [each for each in shown["prompts"] if writes or each["name"] != "keep"]
    return shown


def _engine() -> Engine:
    return _CALLER.get().engine


def keyed_mcp(handle: StoreHandle, *, hosts: Sequence[str] = LOCAL_HOSTS, **options: Any) -> ASGIApp:
    """MCP at `/mcp` for the keys of a store, and nothing else; `options` are those of `CallersMcp`.

    `hosts` are the names that a Host header may have. Raises InvalidInput as `mcp_server` does.
    """
    return Guard(
        CallersMcp(**options), identities=Identities(handle), limits=Limits(), hosts=hosts, served=Served()
    )
