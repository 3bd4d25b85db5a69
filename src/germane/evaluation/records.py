"""Records that are imported for a run: a folder, a file or a repository, as `germane import` reads it.

Level: evaluation. Reads files; the clock only where no moment is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from germane.engine import Engine, open_engine
from germane.exchange.detect import Layout, layout_of, read
from germane.exchange.importing import import_source
from germane.model.memory import Memory, Status
from germane.model.query import Filter
from germane.protocols import Embedder, TokenCounter

__all__ = ["Records", "all_memories", "names_of", "numbered", "open_records", "record_key"]

_PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """What is imported into a store in memory and then asked about.

    `source` is what `germane import` takes. `now` is the moment of the import and of the questions; the
    time of the run unless given.
    """

    source: str | Path
    now: datetime | None = None


def open_records(
    records: Records, *, now: datetime, embedder: Embedder | None, counter: TokenCounter
) -> Engine:
    """An engine in memory with the records imported. Raises UnreadableSource."""
    engine = open_engine(
        ":memory:", agent="evaluation", embedder=embedder, counter=counter, clock=lambda: now
    )
    try:
        import_source(engine, str(records.source))
    except BaseException:
        engine.close()
        raise
    return engine


def record_key(memory: Memory) -> tuple[str, str | None, str]:
    """What names a memory alike in every import of the same source, where its id differs."""
    return memory.kind, memory.source, memory.content


def names_of(memory: Memory) -> Iterator[str]:
    """The names by which evidence may call a memory of a file.

    Its source, the file of its source, and both without leading folders.
    """
    if memory.source is None:
        return
    path, mark, section = memory.source.partition("#")
    parts = path.split("/")
    for place in range(len(parts)):
        tail = "/".join(parts[place:])
        yield tail
        if mark:
            yield f"{tail}#{section}"


def numbered(records: Records, memories: Sequence[Memory]) -> Mapping[int, tuple[str, ...]]:
    """The ids of the memories of each line of JSON lines, counted from 1; empty for other layouts."""
    if layout_of(str(records.source)) is not Layout.MEMORIES:
        return {}
    of: dict[tuple[str, str], list[str]] = {}
    for memory in memories:
        of.setdefault((memory.kind, memory.content.strip()), []).append(memory.id)
    drafts = enumerate(read(str(records.source)), 1)
    return {number: tuple(of.get((draft.kind, draft.content.strip()), ())) for number, draft in drafts}


def all_memories(engine: Engine) -> Iterator[Memory]:
    """Every memory of any status: evidence that was forgotten or superseded is reported as such."""
    after: str | None = None
    everything = Filter(statuses=tuple(Status))
    while page := engine.memories(everything, limit=_PAGE, after=after):
        yield from page
        after = page[-1].ref
