"""Bad arguments at every public verb, route and tool: only documented errors, and nothing changed."""

from __future__ import annotations

import asyncio
import inspect
import json
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

from mcp import Client
from starlette.testclient import TestClient

import germane
from germane import Conversation, Engine, GermaneError, Ledger, Space, WorkingSet
from germane.servers import mcp_server, openapi_document, rest_app
from property.test_bad_arguments import BAD, World
from torture.task import Task

__all__ = ["Commits", "commits_of", "of_routes", "of_tools", "of_verbs"]

_OWNERS: Final = (Engine, Space, Conversation, WorkingSet, Ledger)
_NEVER: Final = ("close", "changes_since")
_DEEPEST: Final = 100
"""Levels of nesting that clients send at all."""
_EACH: Final = 200
"""Calls on one store."""


def of_verbs(task: Task) -> None:
    """Call random verbs with one to three bad arguments each."""
    verbs = [
        (owner, name)
        for owner in _OWNERS
        for name, _ in inspect.getmembers(owner, inspect.isfunction)
        if not name.startswith("_") and name not in _NEVER
    ]
    for _round in task.each_round():
        with _stored() as (path, engine), commits_of(path) as commits:
            world = World(engine)
            for _ in range(_EACH):
                owner, name = task.chance.choice(verbs)
                _call(world, owner, name, commits, task)


@contextmanager
def _stored() -> Iterator[tuple[Path, Engine]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.db")
        with germane.open(path, embedder=None) as engine:
            yield path, engine


class Commits:
    """Whether anything was committed to a file since it was last looked at."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw
        self._seen = self._version()

    def any(self) -> bool:
        before, self._seen = self._seen, self._version()
        return before != self._seen

    def _version(self) -> int:
        return int(self._raw.execute("PRAGMA data_version").fetchone()[0])


@contextmanager
def commits_of(path: Path) -> Iterator[Commits]:
    """The commits to a file by anyone else."""
    with closing(sqlite3.connect(path, check_same_thread=False)) as raw:
        yield Commits(raw)


def _call(world: World, owner: type, name: str, commits: Commits, task: Task) -> None:
    verb = getattr(world.subjects()[owner], name)
    parameters = [
        each
        for each in inspect.signature(verb).parameters.values()
        if each.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    if not parameters:
        return
    bad = {
        each.name: task.chance.choice([*BAD])
        for each in task.chance.sample(parameters, min(len(parameters), task.chance.randrange(1, 4)))
        if each.name not in ("progress", "callback")
    }
    needed = [each.name for each in parameters if each.default is inspect.Parameter.empty]
    if len(needed) == 1:  # Some verbs take nothing that another verb needs as well.
        bad = {needed[0]: task.chance.choice([*BAD])} | bad
    given = {each: world.required(each, of=owner) for each in needed if each not in bad}
    given |= {each: BAD[what] for each, what in bad.items()}
    by_place = [given.pop(each.name) for each in parameters if each.kind is inspect.Parameter.POSITIONAL_ONLY]
    where = f"{owner.__name__}.{name}({', '.join(f'{each}={what!r}' for each, what in bad.items())})"
    task.figures["calls"] += 1
    commits.any()
    try:
        found = verb(*by_place, **given)
        if isinstance(found, Iterator):
            list(found)
    except GermaneError:
        task.figures["refused"] += 1
        if commits.any():
            task.findings.append(f"{where} is refused, and something is stored")
    except Exception as error:  # noqa: BLE001 - What is looked for.
        task.findings.append(f"{where}: {type(error).__name__}: {str(error)[:100]}")


# What a client can send to a server.

_SENT: Final = tuple(
    value
    for value in (
        *BAD.values(),
        [],
        {},
        [1],
        "\u202e",
        "2026-13-45",
        "-1",
        0,
        1e308,
        [["a"]],
        {"a": {"b": []}},
    )
    if isinstance(value, str | int | float | bool | list | dict | None)
)


def _sendable() -> list[Any]:
    """The values that JSON can carry."""
    found = []
    for value in _SENT:
        try:
            written = json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError, RecursionError):
            continue
        if written.count(b"[") < _DEEPEST:
            found.append(value)
    return found


def of_routes(task: Task) -> None:
    """Send bad paths, parameters and bodies to every route of the HTTP server."""
    values = _sendable()
    operations = [
        (path, method, operation)
        for path, methods in openapi_document()["paths"].items()
        for method, operation in methods.items()
        if "stream" not in path and "changes" not in path and "events" not in path
    ]
    for _round in task.each_round():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a.db")
            with germane.connect(path, embedder=None) as handle, commits_of(path) as commits:
                World(handle.agent("newton"))
                key = handle.create_key("newton", may=("read", "write", "admin")).text
                app = rest_app(handle, hosts=["testserver"])
                headers = {"authorization": f"Bearer {key}"}
                with TestClient(app, headers=headers, raise_server_exceptions=False) as http:
                    for _ in range(_EACH):
                        _send(http, task.chance.choice(operations), values, commits, task)


def _send(http: TestClient, operation: Any, values: list[Any], commits: Commits, task: Task) -> None:
    path, method, described = operation
    chance, parts = task.chance, {}
    for each in described.get("parameters", ()):
        if each.get("in") == "path":
            path = path.replace(
                "{" + each["name"] + "}", chance.choice(("x", "%00", "a" * 300, "-1", "é", "talk"))
            )
        elif each.get("in") == "query" and chance.random() < 0.5:
            parts[each["name"]] = str(chance.choice(values))[:200]
    body = {name: chance.choice(values) for name in _fields(described, chance)}
    task.figures["requests"] += 1
    commits.any()
    answer = http.request(method, path, params=parts, json=body if method not in ("get", "delete") else None)
    refused = answer.status_code >= 400
    task.figures["refused"] += refused
    where = f"{method} {path} {parts} {str(body)[:200]}"
    if answer.status_code >= 500:
        task.findings.append(f"{where}: {answer.status_code} {answer.text[:200]}")
    elif refused and commits.any():
        task.findings.append(f"{where} is refused with {answer.status_code}, and something is stored")


def _fields(described: Mapping[str, Any], chance: Random) -> list[str]:
    names = [
        *described.get("x-fields", ()),
        "content",
        "query",
        "budget",
        "kind",
        "limit",
        "messages",
        "name",
    ]
    return chance.sample(names, chance.randrange(0, 5))


def of_tools(task: Task) -> None:
    """Call every tool of the MCP server with bad arguments."""
    values = _sendable()

    async def session(engine: Engine, commits: Commits) -> None:
        server, _ = mcp_server(lambda: engine, agent=engine.agent)
        async with Client(server, raise_exceptions=True) as client:
            tools = (await client.list_tools()).tools
            for _ in range(_EACH):
                await _use(client, task.chance.choice(tools), values, commits, task)

    for _round in task.each_round():
        with _stored() as (path, engine), commits_of(path) as commits:
            World(engine)
            asyncio.run(session(engine, commits))


async def _use(client: Client, tool: Any, values: list[Any], commits: Commits, task: Task) -> None:
    names = [*tool.input_schema.get("properties", {}), "unknown"]
    given = {name: task.chance.choice(values) for name in names if task.chance.random() < 0.6}
    task.figures["calls"] += 1
    commits.any()
    try:
        result = await client.call_tool(tool.name, given)
    except Exception as error:  # noqa: BLE001 - What is looked for.
        task.findings.append(f"{tool.name} {str(given)[:200]}: {type(error).__name__}: {str(error)[:100]}")
        return
    task.figures["refused"] += bool(result.is_error)
    if result.is_error and commits.any():
        task.findings.append(f"{tool.name} {str(given)[:200]} is refused, and something is stored")
