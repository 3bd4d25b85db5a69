"""Opens an agent's memory.

Level: engine (imports verbs and everything above them).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from germane.engine.whole import Engine
from germane.ids import IdSequence
from germane.kinds import Kind
from germane.model.frame import Frame
from germane.protocols import Clock, Embedder, FrameSelector, Store, Summarizer, TokenCounter
from germane.verbs.checks import checking
from germane.verbs.embed import is_eager
from germane.verbs.opening import opened

__all__ = ["DEFAULT_COUNTER", "open_engine"]

DEFAULT_COUNTER = "o200k"


@checking
def open_engine(
    location: str | Path | Store,
    *,
    agent: str = "default",
    embedder: Embedder | Literal["bundled"] | None = "bundled",
    counter: str | TokenCounter = DEFAULT_COUNTER,
    summarizer: Summarizer | None = None,
    kinds: Iterable[Kind] = (),
    frames: Iterable[Frame] | str | Path = (),
    frame_selector: FrameSelector | None = None,
    language: str | None = None,
    durability: Literal["full", "relaxed"] = "full",
    read_only: bool = False,
    replica: str | None = None,
    clock: Clock | None = None,
    ids: IdSequence | None = None,
    record: bool = False,
) -> Engine:
    """Open an agent's memory: a path to a SQLite file, ":memory:", a PostgreSQL address, or your own Store.

    The file, or the tables at an address ("postgresql://…", with the extra `postgres`), are made when they
    aren't there. `replica` is the address of a standby of that server, which answers what is read once it has
    what this process wrote. The bundled embedder is used unless another is given, or None for words alone;
    vectors of another model are then left aside. A Store of your own uses an embedder only if you give one.
    `durability="relaxed"` may lose the last moments before a power cut, never consistency. `language` is the
    one whose endings are cut from words, by its Snowball name; it stays with the agent ("english" until one
    is given); another indexes its memories anew. `frames` are further frames, or a TOML file of them;
    `frame_selector` chooses one where "auto" is asked for. `clock` replaces the system's, and `ids` what
    makes ids, for tests and replays. With `record`, assemblies go into the ledger. Raises InvalidInput,
    UnreadableSource, MissingExtra, StoreUnavailable, StoreBusy, SchemaTooNew, and EmbedderMismatch.
    """
    session = opened(
        location,
        agent=agent,
        embedder=embedder,
        counter=counter,
        summarizer=summarizer,
        kinds=kinds,
        frames=frames,
        frame_selector=frame_selector,
        language=language,
        durability=durability,
        read_only=read_only,
        replica=replica,
        clock=clock,
        ids=ids,
        record=record,
    )
    slow = session.embedder is not None and not is_eager(session.embedder) and not read_only
    return Engine(session, embed_in_background=slow)
