"""Opens stores for engines, and lets another model embed a whole store."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self

from germane import operations
from germane.embedders.static import OnnxEmbedder, StaticEmbedder
from germane.errors import EmbedderMismatch, InvalidInput, MissingExtra, StoreUnavailable, shown
from germane.ids import IdSequence
from germane.kinds import BUILT_IN, Kind, Kinds
from germane.model.plan import Frame
from germane.model.query import EmbeddingIdentity
from germane.operations.context import AgentContext, AgentLanguage, Arrangements
from germane.operations.embedding import BackgroundEmbedding, Backlog
from germane.operations.inputs import Reranking, checked_count, checking
from germane.operations.passages import PassageCache
from germane.packing.lines import RememberedLines
from germane.protocols import Clock, Embedder, FrameSelector, Reranker, Store, Summarizer, TokenCounter
from germane.stores.location import TIMEOUT, exists, open_store, shared_store
from germane.stores.relational.store import RelationalStore
from germane.tokens import CachedCounter, get_counter

if TYPE_CHECKING:
    from germane.ledger import Progress

DEFAULT_COUNTER: Final = "o200k"

AUTO: Final = "auto"
"""No embedder in particular: that of the environment variable, else the store's, else the bundled one."""

VARIABLE: Final = "GERMANE_EMBEDDER"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStore:
    """A store for engines of this process, with the embedder that its vectors allow.

    `set_aside` says why there is no embedder where the store has vectors.
    """

    store: Store
    embedder: Embedder | None
    set_aside: str = ""

    def shared(self, counter: TokenCounter) -> Shared:
        """What all engines of the store share that count by this counter, whoever opened them."""
        every = self.store.companions if isinstance(self.store, RelationalStore) else {}
        key = id(counter), None if self.embedder is None else identity_of(self.embedder)
        # The counter is in the value, so that no other one gets its address.
        found: Shared = every.setdefault(key, Shared(counter=CachedCounter(counter)))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Caches for all agents of a store by one counter, and the thread that embeds for all of them."""

    counter: TokenCounter
    lines: RememberedLines = field(default_factory=RememberedLines)
    passages: PassageCache = field(default_factory=PassageCache)
    arrangements: Arrangements = field(default_factory=Arrangements)
    background: BackgroundEmbedding = field(default_factory=BackgroundEmbedding)

    def clear(self) -> None:
        """Forget every text, as after a purge."""
        self.lines.clear()
        self.passages.clear()
        self.arrangements.clear()


def opened(
    location: str | Path | Store,
    embedder: Embedder | str | None,
    *,
    durability: Literal["full", "relaxed"],
    read_only: bool,
    replica: str | None,
    timeout: float = TIMEOUT,
    pool_size: int | None = None,
    cache_bytes: int | None = None,
    key: bytes | str | None = None,
) -> OpenStore:
    """The store at a location, shared with all who have it open in this process, or the caller's own.

    Raises what `germane.open` raises.
    """
    if not (embedder is None or isinstance(embedder, str) or callable(getattr(embedder, "embed", None))):
        raise InvalidInput(
            f"embedder={shown(embedder)} is no embedder: it needs name, dimension and embed(texts). Pass "
            "such an object, of `germane.embedders` for instance, 'bundled', 'minilm' or None."
        )
    if pool_size is not None:
        checked_count(pool_size, name="pool_size", least=1)
    if cache_bytes is not None:
        checked_count(cache_bytes, name="cache_bytes")
    if not isinstance(location, str | Path):
        return OpenStore(
            store=_own(location, replica), embedder=None if embedder == AUTO else _named(embedder)
        )

    def store_with(used: Embedder | None) -> Store:
        return shared_store(
            location,
            embedding=None if used is None else identity_of(used),
            durability=durability,
            read_only=read_only,
            replica=replica,
            timeout=timeout,
            pool_size=pool_size,
            cache_bytes=cache_bytes,
            key=key,
        )

    return _with_fitting(store_with, _requested(embedder))


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """What every engine of a store is opened with, checked when it is made: raises InvalidInput."""

    counter: TokenCounter
    kinds: Kinds
    frames: tuple[Frame, ...]
    frame_selector: FrameSelector | None
    summarizer: Summarizer | None
    reranking: Reranking | None
    clock: Clock
    ids: IdSequence
    record: bool

    @classmethod
    def of(
        cls,
        *,
        counter: str | TokenCounter,
        kinds: Iterable[Kind],
        frames: Iterable[Frame] | str | Path,
        frame_selector: FrameSelector | None,
        summarizer: Summarizer | None,
        reranker: Reranker | None,
        clock: Clock | None,
        ids: IdSequence | None,
        record: bool,
    ) -> Self:
        """The options in the forms that callers use."""
        _check_given(summarizer=summarizer, kinds=kinds, clock=clock, ids=ids)
        return cls(
            counter=get_counter(counter),
            kinds=BUILT_IN.with_kinds(kinds),
            frames=operations.frame.own_frames(frames) if frames != () else (),
            frame_selector=frame_selector,
            summarizer=summarizer,
            reranking=None if reranker is None else Reranking(reranker),
            clock=clock or partial(datetime.now, UTC),
            ids=ids or IdSequence(secrets.randbits),
            record=record,
        )

    def context(self, opened: OpenStore, agent: str, language: str | None) -> AgentContext:
        """An agent's side of a store. Nothing is read of the store until its language is needed."""
        shared = opened.shared(self.counter)
        return AgentContext(
            agent=agent,
            store=opened.store,
            counter=shared.counter,
            kinds=self.kinds,
            frames=self.frames,
            frame_selector=self.frame_selector,
            clock=self.clock,
            ids=self.ids,
            embedder=opened.embedder,
            set_aside=opened.set_aside,
            summarizer=self.summarizer,
            reranking=self.reranking,
            records=self.record,
            words=AgentLanguage(opened.store, agent, language),
            lines=shared.lines,
            passages=shared.passages,
            arrangements=shared.arrangements,
            background=shared.background,
        )


def _check_given(*, summarizer: object, kinds: object, clock: object, ids: object) -> None:
    """Refuse now what would fail later, far from where it was given."""
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


def _own(store: Store, replica: str | None) -> Store:
    """A store of the caller's, whose vectors only an embedder that was given can have made."""
    if replica is not None:
        raise InvalidInput("replica=… goes with an address. A Store of your own has its own address.")
    return store


def _with_fitting(
    store_with: Callable[[Embedder | None], Store], used: Embedder | Literal["auto"] | None
) -> OpenStore:
    """A store and the embedder that its vectors allow.

    An embedder that was requested must fit, or the error says so. Otherwise it is the one that made the
    vectors, if it has a name here and is installed.
    """
    if used != AUTO:
        return OpenStore(store=store_with(used), embedder=used)
    bundled = StaticEmbedder()
    try:
        return OpenStore(store=store_with(bundled), embedder=bundled)
    except EmbedderMismatch as mismatch:
        known, set_aside = _that_made(mismatch.stored)
    return OpenStore(store=store_with(known), embedder=known, set_aside=set_aside)


def _requested(embedder: Embedder | str | None) -> Embedder | Literal["auto"] | None:
    """The embedder that the caller or the environment variable requests; "auto" where neither does."""
    if embedder != AUTO:
        return _named(embedder)
    name = os.environ.get(VARIABLE) or AUTO
    try:
        return AUTO if name == AUTO else _named(name)
    except InvalidInput as error:
        raise InvalidInput(f"The environment variable {VARIABLE}: {error}") from error


def _named(embedder: Embedder | str | None) -> Embedder | None:
    if not isinstance(embedder, str):
        return embedder
    from germane.embedders.adapters import embedder_named  # noqa: PLC0415 - Most engines name none.

    return embedder_named(embedder)


def _that_made(stored: str) -> tuple[Embedder | None, str]:
    """The embedder that made the vectors of a store, or why there is none and what to do."""
    remedy = "Open it with that embedder"
    if stored == str(EmbeddingIdentity(name=OnnxEmbedder.name, dimension=OnnxEmbedder.dimension)):
        try:
            return OnnxEmbedder(), ""
        except MissingExtra as missing:
            remedy = f"Install it with pip install 'germane[{missing.extra}]'"
    return None, (
        f"the vectors in this store were made by {stored}. {remedy} to rank by meaning as well, or replace "
        "them by those of the bundled model: `germane embedder use bundled`."
    )


# reembed: another model makes the vectors of a whole store.
#
# Unlike other operations it is not limited to one agent: the vectors of one store are all of one model.


@checking
def reembed(
    location: str | Path,
    *,
    embedder: Embedder | str,
    again: bool = False,
    progress: Progress | None = None,
    key: bytes | str | None = None,
) -> int:
    """Let another model make the vectors of all agents in a store; how many memories it embedded.

    `embedder` may be "bundled" or "minilm"; `germane.open` then uses that model unless another is given. The
    vectors of the model before go first, in one transaction; until its new vector is there, a
    memory is found by its words. A call that was interrupted is gone on with by the same call.
    `again` also drops the vectors that this very model made. `progress` is called after each batch with
    the number embedded and the total. Raises StoreUnavailable, StoreBusy, EmbeddingFailed, InvalidInput or
    MissingExtra.
    """
    if not exists(location):
        raise StoreUnavailable(f"There is no store at {location}, so there is nothing to embed.")
    model = _named(embedder)
    if model is None:
        raise InvalidInput(
            "embedder='none' makes no vectors. Use 'bundled', 'minilm' or an embedder of your own; to search "
            "by words alone, open the store with embedder=None or GERMANE_EMBEDDER=none."
        )
    identity = identity_of(model)
    with closing(open_store(location, embedding=identity, replace_embedding=True, key=key)) as store:
        if again:
            store.maintenance.drop_vectors()
        return _embed_all(store, model, progress)


def identity_of(embedder: Embedder) -> EmbeddingIdentity:
    """What a store keeps of a model, to tell it from others."""
    return EmbeddingIdentity(name=embedder.name, dimension=embedder.dimension)


def _embed_all(store: RelationalStore, embedder: Embedder, progress: Progress | None) -> int:
    agents = store.maintenance.agents()
    total = sum(store.stats(agent).pending for agent in agents) if progress else 0
    done = 0

    def report(embedded: int, _: int) -> None:
        if progress is not None:
            progress(done + embedded, max(total, done + embedded))

    for agent in agents:
        done += Backlog(store, agent, embedder).drain(progress=report if progress else None)
    return done
