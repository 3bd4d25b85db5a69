"""What a server tells of itself and of its memories as they change: figures, and a stream of events."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.types import Scope

from germane.encoding import to_json
from germane.ledger import MemoryChangeKind

if TYPE_CHECKING:
    from germane.engine import Engine

_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_EVERY, _HEARTBEAT, _PAGE = 0.25, 15.0, 500

_EVENTS: Final[Mapping[MemoryChangeKind, str]] = {
    MemoryChangeKind.ADDED: "stored",
    MemoryChangeKind.REVISED: "revised",
    MemoryChangeKind.FORGOTTEN: "forgotten",
    MemoryChangeKind.PURGED: "purged",
}
"""The names of events that aren't just "changed"."""


class Served:
    """How many requests were answered, how long they took, and how many are under way."""

    def __init__(self) -> None:
        self._answers: Counter[tuple[str, str, int]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()

    def add(self, scope: Scope, status: int, seconds: float) -> None:
        """Count one answer. A stream counts when it ends, and not for its length."""
        route = getattr(scope.get("route"), "path", "other")
        self._answers[scope["method"] if scope["method"] in _METHODS else "other", route, status] += 1
        if route.endswith("/events"):
            return
        self._counts[route] += 1
        self._seconds[route] += seconds  # type: ignore[assignment] # A counter of floats.
        for bound in _BOUNDS:
            if seconds <= bound:
                self._buckets[route, bound] += 1

    def text(self, store: Mapping[str, float]) -> str:
        """The figures in Prometheus' text format; those of the store have no names of agents."""
        lines = ["# HELP germane_requests_total Answers.", "# TYPE germane_requests_total counter"]
        for (method, route, status), count in sorted(self._answers.items()):
            labels = f'method="{method}",route="{route}",status="{status}"'
            lines.append(f"germane_requests_total{{{labels}}} {count}")
        lines += [
            "# HELP germane_request_seconds Time of answers.",
            "# TYPE germane_request_seconds histogram",
        ]
        for route, count in sorted(self._counts.items()):
            for bound in _BOUNDS:
                labels = f'route="{route}",le="{bound}"'
                lines.append(f"germane_request_seconds_bucket{{{labels}}} {self._buckets[route, bound]}")
            lines.append(f'germane_request_seconds_bucket{{route="{route}",le="+Inf"}} {count}')
            lines.append(f'germane_request_seconds_sum{{route="{route}"}} {float(self._seconds[route]):.6f}')
            lines.append(f'germane_request_seconds_count{{route="{route}"}} {count}')
        for name, value in store.items():
            lines += [f"# HELP germane_{name} Of the whole store.", f"# TYPE germane_{name} gauge"]
            lines.append(f"germane_{name} {value:g}")
        return "\n".join(lines) + "\n"


_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


async def event_stream(
    engine: Engine, last: str | None, stopping: Callable[[], bool], *, every: float = _EVERY
) -> AsyncIterator[bytes]:
    """Server-sent events of an engine's memories, from those after the id `last`, else from now on.

    An id is the number of a change and the id of an assembly, `NUMBER.ID`: each grows in every process, so
    that a client goes on at any server of the same store.
    """
    number, assembly = await run_in_threadpool(_start, engine, last)
    yield b"retry: 2000\n\n"
    quiet = 0.0
    while not stopping():
        found = await run_in_threadpool(_look, engine, number, assembly)
        for event, number, assembly, data in found:
            yield f"id: {number}.{assembly}\nevent: {event}\ndata: {json.dumps(data)}\n\n".encode()
        quiet = 0.0 if found else quiet + every
        if quiet >= _HEARTBEAT:
            quiet = 0.0
            yield b": still here\n\n"
        if len(found) < _PAGE:
            await asyncio.sleep(every)


def _start(engine: Engine, last: str | None) -> tuple[int, str]:
    number, _, assembly = (last or "").partition(".")
    if number.isdigit():
        return int(number), assembly
    latest = engine.ledger().list(limit=1)
    return engine.latest_change(), latest[0].id if latest else ""


def _look(engine: Engine, number: int, assembly: str) -> list[tuple[str, int, str, dict[str, Any]]]:
    """The events after a number and an assembly, oldest first, with the number and the id to go on from."""
    found: list[tuple[str, int, str, dict[str, Any]]] = []
    if engine.latest_change() > number:
        for change in engine.changes(after=number, limit=_PAGE):
            number = change.number
            found.append((_EVENTS.get(change.what, "changed"), number, assembly, to_json(change)))
    # Ids of assemblies begin with their time, so that later ones are greater.
    made = [each for each in engine.ledger().list(limit=_PAGE) if each.id > assembly]
    for each in reversed(made):
        assembly = each.id
        data = {"id": each.id, "tokens": each.tokens, "budget": each.budget, "included": len(each.included)}
        found.append(("assembled", number, assembly, data))
    return found
