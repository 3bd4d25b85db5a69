"""Connections of the HTTP server: what isn't HTTP gets a problem, and what comes too slowly is ended."""

from __future__ import annotations

import asyncio
import logging
import sys
from http import HTTPStatus
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from germane.servers.problems import log_failure, problem

__all__ = ["HEAD_BYTES", "HEAD_SECONDS", "Connection"]

HEAD_BYTES: Final = 64 << 10
"""The most bytes that the first line and the headers of a request may have together."""
HEAD_SECONDS: Final = 20.0
"""How long a client may take to send them."""

_log = logging.getLogger("germane.servers")


class Connection(H11Protocol):
    """A connection whose errors below the application are `application/problem+json` too.

    A request line with headers of more than `HEAD_BYTES` is answered with 431, one that takes longer than
    `HEAD_SECONDS` with 408, and what isn't HTTP with 400; then the connection is closed.
    """

    _late: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = _FAILURES_ALONE

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the wait."""
        self._end_wait()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a head, from its first byte on."""
        if self._late is None:
            self._wait()
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._end_wait()

    def send_400_response(self, msg: str) -> None:
        """Answer what isn't HTTP, or has too large a head, and close the connection."""
        error = sys.exc_info()[1]
        status = HTTPStatus(getattr(error, "error_status_hint", HTTPStatus.BAD_REQUEST))
        detail = (
            f"The request line and the headers have more than {HEAD_BYTES:,} bytes, the limit. Send less."
            if status == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            else f"This isn't HTTP/1.1: {error or msg}."
        )
        self._refuse(status, detail)

    def _wait(self) -> None:
        self._late = self.loop.call_later(HEAD_SECONDS, self._too_late)

    def _end_wait(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _too_late(self) -> None:
        self._refuse(
            HTTPStatus.REQUEST_TIMEOUT,
            f"The headers didn't arrive within {HEAD_SECONDS:g} s. Send them faster.",
        )

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        self._end_wait()
        if self.transport.is_closing():
            return
        # At a level that nothing prints by default: anybody can make a server write as many as they like.
        extra = {"operation": "http", "status": int(status), "error": status.phrase}
        _log.info("A request was refused: %d %s", status, status.phrase, extra=extra)
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            answer = problem(status, detail, headers={"connection": "close"})
            events = (
                h11.Response(status_code=status, headers=answer.raw_headers, reason=status.phrase),
                h11.Data(data=bytes(answer.body)),
                h11.EndOfMessage(),
            )
            for event in events:
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class _Failures(logging.Handler):
    """Passes on which errors ended a request."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1]:
            log_failure(record.exc_info[1])


# What uvicorn logs of a connection are errors that ended a request, and lines that anybody can have it write.
_FAILURES_ALONE: Final = logging.getLogger("germane.servers.connections")
_FAILURES_ALONE.setLevel(logging.ERROR)
_FAILURES_ALONE.propagate = False
_FAILURES_ALONE.addHandler(_Failures())
