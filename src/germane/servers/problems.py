"""Errors as `application/problem+json` (RFC 9457): germane's own, and those of the web framework."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from germane import errors
from germane.encoding import error_json
from germane.errors import GermaneError

if TYPE_CHECKING:
    from fastapi import FastAPI

MEDIA_TYPE: Final = "application/problem+json"
RETRY_SECONDS: Final = 1

_log = logging.getLogger("germane.servers")

_STATUS: Final[Sequence[tuple[type[GermaneError], HTTPStatus]]] = (
    (errors.NotFound, HTTPStatus.NOT_FOUND),
    (errors.AssemblyNotFound, HTTPStatus.NOT_FOUND),
    (errors.MessageNotFound, HTTPStatus.NOT_FOUND),
    (errors.NotInWorkingSet, HTTPStatus.NOT_FOUND),
    (errors.RunNotFound, HTTPStatus.NOT_FOUND),
    (errors.UnknownSpace, HTTPStatus.NOT_FOUND),
    (errors.NotAMember, HTTPStatus.NOT_FOUND),
    (errors.StaleRevision, HTTPStatus.CONFLICT),
    (errors.SpaceTaken, HTTPStatus.CONFLICT),
    (errors.DuplicateMember, HTTPStatus.CONFLICT),
    (errors.LastActive, HTTPStatus.CONFLICT),
    (errors.NotAllowed, HTTPStatus.FORBIDDEN),
    (errors.MissingExtra, HTTPStatus.NOT_IMPLEMENTED),
    (errors.EmbeddingFailed, HTTPStatus.BAD_GATEWAY),
    (errors.RerankingFailed, HTTPStatus.BAD_GATEWAY),
    (errors.StoreBusy, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.StoreUnavailable, HTTPStatus.SERVICE_UNAVAILABLE),
    (errors.StoreError, HTTPStatus.INTERNAL_SERVER_ERROR),
    (GermaneError, HTTPStatus.UNPROCESSABLE_ENTITY),
)
"""The status of each error; the first class that fits counts."""

PROBLEM_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "description": "An error. Errors of germane have further members, such as `memory_id` or `needed`.",
    "properties": {
        "type": {"type": "string", "description": "`germane:` and the error's name, or `about:blank`."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"where": {"type": "string"}, "message": {"type": "string"}},
                "required": ["where", "message"],
            },
        },
    },
    "required": ["type", "title", "status", "detail"],
}


def problem(
    status: int,
    detail: str,
    *,
    error: str | None = None,
    headers: Mapping[str, str] | None = None,
    **members: Any,
) -> Response:
    """A response that describes an error; `error` is its name, for one that is germane's own."""
    retry = {"retry-after": str(RETRY_SECONDS)} if status in _RETRIED else {}
    body = {
        "type": "about:blank" if error is None else f"germane:{error}",
        "title": HTTPStatus(status).phrase if error is None else error,
        "status": status,
        "detail": detail,
        **members,
    }
    # What a client sent wrongly may stand in it, half characters included.
    content = json.dumps(body).encode()
    return Response(content, status, media_type=MEDIA_TYPE, headers={**retry, **(headers or {})})


_RETRIED: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


def problem_of(error: GermaneError, *, precondition: bool = False) -> Response:
    """The response to an error of germane; with `precondition` a stale version fails an If-Match."""
    status = next(status for kind, status in _STATUS if isinstance(error, kind))
    if precondition and isinstance(error, errors.StaleRevision):
        status = HTTPStatus.PRECONDITION_FAILED
    shape = error_json(error)["error"]
    name, message = shape.pop("type"), shape.pop("message")
    for taken in ("title", "status", "detail"):
        shape.pop(taken, None)
    return problem(status, message, error=name, **shape)


def add_handlers(app: FastAPI) -> None:
    """Answer every error of an application with a problem."""
    from fastapi.exceptions import RequestValidationError  # noqa: PLC0415 - MCP alone needs no FastAPI.

    @app.exception_handler(GermaneError)
    def _ours(_: Request, error: Exception) -> Response:
        return problem_of(error) if isinstance(error, GermaneError) else _unexpected(error)

    @app.exception_handler(RequestValidationError)
    def _invalid(_: Request, error: Exception) -> Response:
        found = error.errors() if isinstance(error, RequestValidationError) else ()
        listed = [_wrong(each) for each in found]
        first = f"{listed[0]['where']}: {listed[0]['message']}" if listed else "The request is invalid."
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, first, errors=listed)

    @app.exception_handler(HTTPException)
    def _framework(request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            return _unexpected(error)
        headers = dict(error.headers or {})
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            # The framework names the methods of one route; each verb of an address is a route of its own.
            routes = [each for each in request.app.routes if each.matches(request.scope)[0] is not Match.NONE]
            methods = {name for each in routes if each.path == routes[0].path for name in each.methods or ()}
            headers["Allow"] = ", ".join(sorted(methods))
        return problem(error.status_code, str(error.detail), headers=headers)

    @app.exception_handler(Exception)
    def _other(_: Request, error: Exception) -> Response:
        return _unexpected(error)


def _wrong(found: Mapping[str, Any]) -> dict[str, str]:
    """Where in a request something is wrong, and what."""
    where = [str(each) for each in found.get("loc", ())]
    if found.get("type") == "json_invalid":
        why = found.get("ctx", {}).get("error", "unreadable")
        return {"where": "body", "message": f"This isn't JSON at character {where[-1]}: {why}."}
    return {"where": ".".join(where), "message": str(found.get("msg", ""))}


def log_failure(error: BaseException) -> None:
    """Log where an error came from, without its text, which may quote a memory."""
    where = "".join(traceback.format_tb(error.__traceback__))
    _log.error("A request failed: %s\n%s", type(error).__name__, where)


def _unexpected(error: Exception) -> Response:
    log_failure(error)
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "The server failed; its log says where.")
