"""The memories of a store over HTTP (extra `server`): REST, events, figures, and MCP in one process."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import uvicorn
from fastapi import FastAPI, Header, Request
from fastapi.openapi.utils import get_openapi
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

import germane
from germane.access import AccessKey, AccessRight
from germane.errors import GermaneError, InvalidInput
from germane.model.text import user_and_agent
from germane.servers.connections import HEAD_BYTES, Connection
from germane.servers.endpoints import add_routes
from germane.servers.guard import LOCAL_HOSTS, Guard, Limits
from germane.servers.identity import Caller, Identities
from germane.servers.inspector import add_inspector
from germane.servers.live import Served, event_stream
from germane.servers.problems import PROBLEM_SCHEMA, add_handlers, problem
from germane.servers.routes import all_routes
from germane.servers.schemas import Schemas

if TYPE_CHECKING:
    from germane.engine.handle import StoreHandle
    from germane.servers.mcp_http import CallersMcp

__all__ = ["LOCAL_HOSTS", "Limits", "RestServer", "local_token", "openapi_document", "rest_app", "serve"]

_TITLE: Final = "germane"
_DRAIN_SECONDS: Final = 30


def local_token() -> str:
    """A random token for a server of one process, which is its only key."""
    return secrets.token_urlsafe(32)


def rest_app(
    handle: StoreHandle,
    *,
    agent: str = "default",
    user: str | None = None,
    token: str | None = None,
    may: Sequence[AccessRight | str] = tuple(AccessRight),
    hosts: Sequence[str] | None = LOCAL_HOSTS,
    limits: Limits | None = None,
    mcp: bool = True,
) -> RestServer:
    """An ASGI application that serves a store, whose keys say whose memory a request is for.

    With a `token`, that is the only key, of this `agent` and `user`, and it may do what `may` says. `hosts`
    are the names that a Host header may have, None for any. `mcp` serves MCP at `/mcp` where the extra `mcp`
    is installed. Raises InvalidInput for a `limits` that no server could have.
    """
    local = None
    if token is not None:
        rights = tuple(AccessRight(each) for each in may)
        local = AccessKey(id="local", agent=agent, user=user, may=rights, created_at=datetime.now(UTC))
    state = _State()
    served = Served()
    bounds = limits or Limits()
    app = _application(handle, state, served, mcp=mcp, seconds=bounds.seconds)
    if min(bounds.body, bounds.running, bounds.per_key) < 1:
        raise InvalidInput(f"limits={bounds} let no request through. Use 1 or more.")
    guard = Guard(app, identities=Identities(handle, local, token), limits=bounds, hosts=hosts, served=served)
    return RestServer(app=app, guard=guard, state=state)


@dataclass(slots=True)
class _State:
    stopping: bool = False
    mcp: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestServer:
    """An ASGI application, with the FastAPI application behind its checks."""

    app: FastAPI
    guard: Guard
    state: _State

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self.guard(scope, receive, send)

    def stop(self) -> None:
        """End streams, so that a server can end once all other requests are answered."""
        self.state.stopping = True


def _application(handle: StoreHandle, state: _State, served: Served, *, mcp: bool, seconds: float) -> FastAPI:
    mounted = _mounted() if mcp else None

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            if mounted is not None:
                await mounted.close()

    app = FastAPI(title=_TITLE, version=germane.__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.gives_up = 2 * seconds
    add_handlers(app)
    schemas = Schemas()
    schemas.components["Problem"] = dict(PROBLEM_SCHEMA)
    add_routes(app, all_routes(), schemas)
    _add_own(app, handle, state, served)
    add_inspector(app)
    if mounted is not None:
        app.router.routes.append(Route("/mcp", mounted))
    document: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not document:
            document.update(_document(app, schemas))
        return document

    vars(app)["openapi"] = openapi
    return app


def _document(app: FastAPI, schemas: Schemas) -> dict[str, Any]:
    made = get_openapi(
        title=_TITLE,
        version=germane.__version__,
        routes=app.routes,
        summary="The memories of agents: what is stored, found, and put into contexts.",
        openapi_version="3.1.0",
    )
    parts = made.setdefault("components", {})
    parts["schemas"] = dict(sorted({**parts.get("schemas", {}), **schemas.components}.items()))
    parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    made["security"] = [{"key": []}]
    return made


def openapi_document() -> dict[str, Any]:
    """The OpenAPI 3.1 document of the REST server."""
    with germane.connect(":memory:", embedder=None) as handle:
        return rest_app(handle, mcp=False).app.openapi()


def _add_own(app: FastAPI, handle: StoreHandle, state: _State, served: Served) -> None:
    """Add what isn't a verb: events, health, and figures."""

    @app.get("/v1/events", include_in_schema=False)
    def events(request: Request, last_event_id: Annotated[str | None, Header()] = None) -> Response:
        caller: Caller = request.state.caller
        refused = caller.refusal(AccessRight.READ)
        if refused is not None:
            return refused
        stream = event_stream(caller.engine, last_event_id, lambda: state.stopping)
        return StreamingResponse(stream, media_type="text/event-stream")

    @app.get("/healthz", include_in_schema=False)
    def healthz() -> Response:
        return JSONResponse({"status": "ok"})

    @app.get("/readyz", include_in_schema=False)
    def readyz() -> Response:
        if state.stopping:
            return problem(503, "The server is ending.")
        try:
            handle.keys()
        except GermaneError as error:
            return problem(503, "The store can't be read.", error=type(error).__name__)
        return JSONResponse({"status": "ready"})

    @app.get("/metrics", include_in_schema=False)
    def metrics(request: Request) -> Response:
        caller: Caller = request.state.caller
        refused = caller.refusal(AccessRight.ADMIN)
        if refused is not None:
            return refused
        agents, usage = handle.agents(), handle.stats()
        store: dict[str, float] = {
            "agents": sum(user_and_agent(each.name)[0] is None for each in agents),
            "users": sum(user_and_agent(each.name)[0] is not None for each in agents),
            "memories": sum(each.memories or 0 for each in agents),
            "connections": usage.connections,
        }
        return Response(served.text(store), media_type="text/plain; version=0.0.4; charset=utf-8")


def _mounted() -> CallersMcp | None:
    from importlib.util import find_spec  # noqa: PLC0415 - Only here.

    if find_spec("mcp") is None:
        return None
    from germane.servers.mcp_http import CallersMcp  # noqa: PLC0415 - An extra.

    return CallersMcp()


# Running it.


class _Server(uvicorn.Server):
    """A server that ends its streams when it is stopped, so that they keep nobody waiting."""

    def __init__(self, config: uvicorn.Config, app: RestServer) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop after the requests under way."""
        self._app.stop()
        super().handle_exit(sig, frame)


def serve(app: RestServer, *, host: str = "127.0.0.1", port: int = 8766, sockets: Any = None) -> _Server:
    """Run a server until SIGINT or SIGTERM; requests under way are answered, for 30 seconds at most."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=Connection,
        h11_max_incomplete_event_size=HEAD_BYTES,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
        lifespan="on",
        ws="none",
    )
    server = _Server(config, app)
    server.run(sockets=sockets)
    return server
