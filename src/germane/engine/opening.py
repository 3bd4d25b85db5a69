"""Opens an agent's memory.

Level: engine (imports verbs and everything above them).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from germane.engine.whole import Engine
from germane.kinds import Kind
from germane.model.frame import Frame
from germane.protocols import Clock, Embedder, FrameSelector, Store, Summarizer, TokenCounter
from germane.verbs.embed import is_eager
from germane.verbs.opening import opened

__all__ = ["DEFAULT_COUNTER", "open_engine"]

DEFAULT_COUNTER = "o200k"


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
    record: bool = False,
) -> Engine:
    """Open an agent's memory: a path to a SQLite file, ":memory:", a PostgreSQL address, or your own Store.

    The file, or the tables at an address ("postgresql://…", with the extra `postgres`), are made when they
    aren't there. `replica` is the address of a standby of that server, which answers what is read once it has
    what this process wrote. The embedder that comes with the package is used unless another is given, or
    None for words alone; a store whose vectors another model made is then searched by its words. With a
    Store of your own, only an embedder that you give is used.
    `durability="relaxed"` may lose the last moments before a power cut, never consistency. `language` is
    the one whose endings are cut from words, by its Snowball name; it stays with the agent ("english" until
    one is given), and another than before indexes the agent's memories anew. `frames` are further frames,
    or a TOML file of them; `frame_selector` chooses one where "auto" is asked for. `clock` replaces the
    system's, for tests and replays. With `record`, every assembly goes into the ledger. Raises InvalidInput,
    UnreadableSource, MissingExtra, StoreUnavailable, StoreBusy, SchemaTooNew or, for an embedder that was
    given, EmbedderMismatch.
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
        record=record,
    )
    slow = session.embedder is not None and not is_eager(session.embedder) and not read_only
    return Engine(session, embed_in_background=slow)
