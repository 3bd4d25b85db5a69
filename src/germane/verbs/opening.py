"""open: bring together what the verbs work with, and settle what the store decides.

Level: verbs.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from germane import verbs
from germane.embedders.static import StaticEmbedder
from germane.errors import EmbedderMismatch, InvalidInput, shown
from germane.ids import IdSequence
from germane.kinds import BUILT_IN, Kind
from germane.model.frame import Frame
from germane.protocols import Clock, Embedder, FrameSelector, Store, Summarizer, TokenCounter
from germane.stores.opening import open_store
from germane.tokens import CachedCounter, get_counter
from germane.verbs.checks import checked_agent
from germane.verbs.language import settled_language
from germane.verbs.reembed import identity_of
from germane.verbs.session import Session

__all__ = ["opened"]


def opened(
    location: str | Path | Store,
    *,
    agent: str,
    embedder: Embedder | Literal["bundled"] | None,
    counter: str | TokenCounter,
    summarizer: Summarizer | None,
    kinds: Iterable[Kind],
    frames: Iterable[Frame] | str | Path,
    frame_selector: FrameSelector | None,
    language: str | None,
    durability: Literal["full", "relaxed"],
    read_only: bool,
    replica: str | None,
    clock: Clock | None,
    ids: IdSequence | None,
    record: bool,
) -> Session:
    """An agent's side of a store. A store that was opened here is closed again if anything fails."""
    checked_agent(agent)
    _check_given(embedder=embedder, summarizer=summarizer, kinds=kinds, clock=clock, ids=ids)
    own = verbs.framing.own_frames(frames) if frames != () else ()
    known, counting = BUILT_IN.with_kinds(kinds), CachedCounter(get_counter(counter))
    if isinstance(location, str | Path):
        store, used, set_aside = _kept(
            location, embedder, durability=durability, read_only=read_only, replica=replica
        )
    else:
        store, used, set_aside = _own(location, embedder, replica)
    try:
        spoken = settled_language(store, agent, language)
    except BaseException:
        if store is not location:
            store.close()
        raise
    return Session(
        agent=agent,
        store=store,
        counter=counting,
        kinds=known,
        frames=own,
        frame_selector=frame_selector,
        clock=clock or _system_clock,
        ids=ids or IdSequence(secrets.randbits),
        embedder=used,
        set_aside=set_aside,
        summarizer=summarizer,
        records=record,
        language=spoken,
    )


def _check_given(*, embedder: object, summarizer: object, kinds: object, clock: object, ids: object) -> None:
    """Refuse now what would fail later, far from where it was given."""
    if not (embedder is None or embedder == "bundled" or callable(getattr(embedder, "embed", None))):
        raise InvalidInput(
            f"embedder={shown(embedder)} is no embedder: it needs name, dimension and embed(texts). Pass "
            "'bundled', None for words alone, or such an object, of `germane.embedders` for instance."
        )
    if summarizer is not None and not callable(getattr(summarizer, "summarize", None)):
        raise InvalidInput(
            f"summarizer={shown(summarizer)} is no summarizer: it needs summarize(text, tokens). Pass such "
            "an object, of `germane.summarizers` for instance, or None."
        )
    if not isinstance(kinds, Iterable) or isinstance(kinds, str):
        raise InvalidInput(f"kinds={shown(kinds)} is one value; pass a sequence of germane.Kind.")
    if clock is not None and not callable(clock):
        raise InvalidInput(
            f"clock={shown(clock)} is {type(clock).__name__}; pass a function that tells the time, such as "
            "lambda: datetime.now(timezone.utc)."
        )
    if ids is not None and not isinstance(ids, IdSequence):
        raise InvalidInput(
            f"ids={shown(ids)} is {type(ids).__name__}; pass a germane.ids.IdSequence, such as "
            "germane.testing.fakes.seeded_ids(1), or None for ids of which no two are alike."
        )


def _own(
    store: Store, embedder: Embedder | Literal["bundled"] | None, replica: str | None
) -> tuple[Store, Embedder | None, str]:
    """A store of the caller's, whose vectors only an embedder that was given can have made."""
    if replica is not None:
        raise InvalidInput("replica=… goes with an address. A Store of your own reads where it was told to.")
    return store, None if embedder == "bundled" else embedder, ""


def _kept(
    location: str | Path,
    embedder: Embedder | Literal["bundled"] | None,
    *,
    durability: Literal["full", "relaxed"],
    read_only: bool,
    replica: str | None,
) -> tuple[Store, Embedder | None, str]:
    """A store, the embedder that its vectors allow, and whose vectors stand against the bundled one.

    An embedder that was asked for must fit, or the error says so; the bundled one, which nobody
    asked for, gives way to the model that made the vectors.
    """

    def store_with(used: Embedder | None) -> Store:
        identity = None if used is None else identity_of(used)
        return open_store(
            location, embedding=identity, durability=durability, read_only=read_only, replica=replica
        )

    if embedder != "bundled":
        return store_with(embedder), embedder, ""
    bundled = StaticEmbedder()
    try:
        return store_with(bundled), bundled, ""
    except EmbedderMismatch as mismatch:
        return store_with(None), None, mismatch.stored


def _system_clock() -> datetime:
    return datetime.now(UTC)
