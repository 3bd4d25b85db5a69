"""What stands before an application: the Host check, the key, and the limits of body, time and concurrency.

A body is read whole before a request counts as running, so that a slow client holds nothing but its socket.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from http import HTTPStatus
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from germane.errors import InvalidInput
from germane.model.text import counted
from germane.model.validation import checked_fields
from germane.servers.identity import Caller, Identities, checked_user
from germane.servers.problems import problem

OPEN: Final = frozenset({"/healthz", "/readyz", "/openapi.json"})
"""Addresses without a key; they show nothing of any memory."""

HEADERS: Final[Mapping[str, str]] = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}
"""What every answer has, unless it says otherwise itself."""

_TAGS: Final = "^[!-~]([ -~]*[!-~])?$"
HEADER_FORMS: Final[Mapping[str, str]] = {
    "germane-user": "^[A-Za-z0-9._~%-]+$",
    "idempotency-key": "^[!-~]+$",
    "if-match": _TAGS,
    "if-none-match": _TAGS,
}
"""The headers that requests may have beside the key, and the pattern of each."""
HEADER_MOST: Final = 2000
"""The most characters of such a header."""

LOCAL_HOSTS: Final = ("127.0.0.1", "localhost", "[::1]")
_STREAMS: Final = frozenset({"/v1/events"})


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class Limits:
    """What a server takes at most; beyond it answers 413, 408, 429 or 503.

    `body` is in bytes; `body_seconds` is how long a client may take to send it, `seconds` how long an answer
    may take; `running` requests run at once, `waiting` more wait for `wait_seconds`. `per_key` requests of
    one key are under way at once, and `rate` of them start in a second (0: any). `streams` are open at once.
    Raises InvalidInput for a negative or infinite one.
    """

    body: int = 4 << 20
    body_seconds: float = 20.0
    seconds: float = 60.0
    running: int = 32
    waiting: int = 256
    wait_seconds: float = 10.0
    per_key: int = 128
    rate: int = 0
    streams: int = 64

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not 0 <= value < math.inf:
                raise InvalidInput(
                    f"{each.name}={value!r} is out of range. Use a finite number of 0 or more."
                )


@dataclass(slots=True)
class Usage:
    """What a key does now, and its allowance of requests."""

    running: int = 0
    allowance: float = 0.0
    at: float = field(default_factory=time.monotonic)


class Guard:
    """An ASGI application before another one, which it lets only checked requests reach."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        identities: Identities,
        limits: Limits,
        hosts: Sequence[str] | None,
        served: Any,
    ) -> None:
        """`hosts` are the names that a Host header may have, None for any. `served` counts answers."""
        self.app = app
        self.identities = identities
        self.limits = limits
        self.hosts = hosts
        self.served = served
        self._slots = asyncio.Semaphore(limits.running)
        self._waiting = 0
        self._streams = 0
        self._usage: OrderedDict[str, Usage] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let the application do it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            refused = await self._guarded(scope, receive, sending)
            if refused is not None:
                await refused(scope, receive, sending)
        finally:
            self.served.add(scope, status, time.perf_counter() - started)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        """Pass the request on, or return the answer that refuses it."""
        headers = Headers(scope=scope)
        if not self._is_host(headers.get("host", "")):
            return problem(
                HTTPStatus.MISDIRECTED_REQUEST,
                f"Host {headers.get('host', '')[:100]!r} isn't a name of this server. "
                "Add it: --allow-host NAME.",
            )
        wrong = _wrong_header(headers)
        if wrong is not None:
            return wrong
        # Names in a path may have slashes, which stand encoded in it: routes see it as it was sent.
        scope["path"] = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1").partition("?")[0]
        if scope["path"] in OPEN or not _needs_key(scope["path"]):
            await self.app(scope, receive, send)
            return None
        who = headers.get("authorization"), headers.get("germane-user")
        if self.identities.knows(who[0]):
            found = self.identities.caller(*who)
        else:
            found = await run_in_threadpool(self.identities.caller, *who)
        if isinstance(found, Response):
            return found
        refused = checked_user(found)
        if refused is not None:
            return refused
        scope.setdefault("state", {})["caller"] = found
        return await self._counted(scope, headers, receive, send)

    async def _counted(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> Response | None:
        """The same within the allowance of the key."""
        caller: Caller = scope["state"]["caller"]
        usage = self._usage.setdefault(caller.key.id, Usage(allowance=float(self.limits.rate)))
        if usage.running >= self.limits.per_key or not self._allowed(usage):
            return problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"This key has {counted(usage.running, 'request')} under way, or too many in this second. "
                f"At most {self.limits.per_key} may be under way; send fewer at once.",
            )
        usage.running += 1
        try:
            if scope["path"] in _STREAMS:
                return await self._streamed(scope, receive, send)
            body = await self._body(headers, receive)
            if isinstance(body, Response):
                return body
            return await self._run(scope, body, receive, send)
        finally:
            usage.running -= 1

    def _allowed(self, usage: Usage) -> bool:
        if not self.limits.rate:
            return True
        now = time.monotonic()
        usage.allowance = min(self.limits.rate, usage.allowance + (now - usage.at) * self.limits.rate)
        usage.at = now
        if usage.allowance < 1:
            return False
        usage.allowance -= 1
        return True

    async def _streamed(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        if self._streams >= self.limits.streams:
            return problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"The most streams that there may be are open: {self.limits.streams:,}.",
            )
        self._streams += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self._streams -= 1
        return None

    async def _body(self, headers: Headers, receive: Receive) -> bytes | Response:
        """The whole body, or the answer to one that is too large, too slow or cut off."""
        most = self.limits.body
        too_large = problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"The body has more than {counted(most, 'byte')}, the limit. Send less at once.",
        )
        declared = headers.get("content-length", "0")
        if declared.isdigit() and int(declared) > most:
            return too_large
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return problem(HTTPStatus.BAD_REQUEST, "The connection ended within the body.")
                    size += len(message.get("body", b""))
                    if size > most:
                        return too_large
                    parts.append(message.get("body", b""))
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            return problem(
                HTTPStatus.REQUEST_TIMEOUT,
                f"The body didn't arrive within {self.limits.body_seconds:g} s. Send it faster.",
                headers={"connection": "close"},
            )

    async def _run(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> Response | None:
        """Let the application answer when one of its places is free."""
        if self._waiting >= self.limits.waiting:
            return problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"As many requests wait as may wait: {self._waiting:,}. Try again.",
            )
        self._waiting += 1
        try:
            async with asyncio.timeout(self.limits.wait_seconds):
                await self._slots.acquire()
        except TimeoutError:
            return problem(HTTPStatus.SERVICE_UNAVAILABLE, "The server is busy. Try again.")
        finally:
            self._waiting -= 1
        has_begun = False

        async def sending(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        task = asyncio.create_task(self._called(scope, _given(body, receive), sending))
        # A verb can't be interrupted: its place is free when it is done, though its client no longer waits.
        task.add_done_callback(lambda _: self._slots.release())
        try:
            async with asyncio.timeout(self.limits.seconds):
                await asyncio.shield(task)
        except TimeoutError:
            if has_begun:
                raise
            task.cancel()
            return problem(
                HTTPStatus.SERVICE_UNAVAILABLE, f"It took longer than {self.limits.seconds:g} s, the limit."
            )
        return None

    async def _called(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)

    def _is_host(self, header: str) -> bool:
        return self.hosts is None or re.sub(r":\d+$", "", header).lower() in self.hosts


def _wrong_header(headers: Headers) -> Response | None:
    """The answer to a header whose value isn't of its form; None where all are."""
    for name, form in HEADER_FORMS.items():
        value = headers.get(name)
        if value is not None and (len(value) > HEADER_MOST or not re.fullmatch(form, value)):
            return problem(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"The header {name} is {value[:40]!r}; it has to match {form}, in "
                f"at most {HEADER_MOST:,} characters.",
            )
    return None


def _needs_key(path: str) -> bool:
    return path.startswith(("/v1/", "/mcp", "/metrics")) or path == "/v1"


def _given(body: bytes, receive: Receive) -> Receive:
    """What gives a body that was read already, and then what the connection gives."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
