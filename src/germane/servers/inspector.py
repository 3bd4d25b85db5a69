"""The inspector: a page at the root of the server that shows, over REST alone, why a context is as it is."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from http import HTTPStatus
from importlib.resources import files
from typing import Final

from fastapi import FastAPI, Request
from starlette.responses import Response

from germane.servers.guard import HEADERS
from germane.servers.problems import problem

_TYPES: Final[Mapping[str, str]] = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

_POLICY: Final = f"{HEADERS['content-security-policy']}; require-trusted-types-for 'script'"
"""Beyond what every answer has: the browser refuses to make markup of a text, wherever a script tried to."""


class Asset:
    """A file of the page, with the entity tag of its content."""

    def __init__(self, name: str, content: bytes) -> None:
        self._content = content
        self._headers = {
            "content-type": _TYPES[name.rpartition(".")[2]],
            "content-security-policy": _POLICY,
            # Nothing in it is secret, and a newer version of germane is seen at once.
            "cache-control": "no-cache",
            "etag": f'"{hashlib.sha256(content).hexdigest()[:16]}"',
        }

    def answer(self, request: Request) -> Response:
        """The file, or 304 to whom has it."""
        if self._headers["etag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=self._headers)
        return Response(self._content, headers=self._headers)


def add_inspector(app: FastAPI) -> None:
    """Add the page at `/` and its files under `/inspector/`. They need no key: all data come over `/v1`."""
    folder = files("germane.servers") / "static"
    assets = {
        each.name: Asset(each.name, each.read_bytes())
        for each in folder.iterdir()
        if each.name.rpartition(".")[2] in _TYPES
    }

    @app.get("/", include_in_schema=False)
    def page(request: Request) -> Response:
        return assets["index.html"].answer(request)

    @app.get("/inspector/{name}", include_in_schema=False)
    def asset(request: Request, name: str) -> Response:
        found = assets.get(name)
        if found is None:
            return problem(HTTPStatus.NOT_FOUND, f"The inspector has no file {name[:100]!r}.")
        return found.answer(request)
