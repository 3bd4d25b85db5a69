"""Opens a store for an agent, and embeds what waits for a vector."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Lock, Thread, current_thread
from typing import Final, Literal

from germane import operations
from germane.embedders.static import OnnxEmbedder, StaticEmbedder
from germane.errors import (
    EmbedderMismatch,
    EmbeddingFailed,
    GermaneError,
    InvalidInput,
    MissingExtra,
    NotFound,
    StoreUnavailable,
    shown,
)
from germane.forks import renewed
from germane.ids import IdSequence
from germane.kinds import BUILT_IN, Kind
from germane.ledger import EmbeddingIdentity, Finding, Progress
from germane.model.memory import NOWHERE, Memory, Status
from germane.model.plan import Frame
from germane.model.query import Filter
from germane.operations.context import AgentContext, settled_language
from germane.operations.inputs import Reranking, checked_agent, checked_count, checking, embed_texts, is_eager
from germane.protocols import Clock, Embedder, FrameSelector, Reranker, Store, Summarizer, TokenCounter
from germane.stores.location import exists, open_store
from germane.stores.relational.store import RelationalStore
from germane.tokens import CachedCounter, get_counter

AUTO: Final = "auto"
"""No embedder in particular: that of the environment variable, else the store's, else the bundled one."""

VARIABLE: Final = "GERMANE_EMBEDDER"


def opened(
    location: str | Path | Store,
    *,
    agent: str,
    embedder: Embedder | str | None,
    counter: str | TokenCounter,
    summarizer: Summarizer | None,
    reranker: Reranker | None,
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
) -> AgentContext:
    """An agent's side of a store. A store that was opened here is closed again if anything fails."""
    checked_agent(agent)
    _check_given(embedder=embedder, summarizer=summarizer, kinds=kinds, clock=clock, ids=ids)
    reranking = None if reranker is None else Reranking(reranker)
    own = operations.frame.own_frames(frames) if frames != () else ()
    known, counting = BUILT_IN.with_kinds(kinds), CachedCounter(get_counter(counter))
    if isinstance(location, str | Path):
        store, used, set_aside = _open_store(
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
    return AgentContext(
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
        reranking=reranking,
        records=record,
        language=spoken,
    )


def _check_given(*, embedder: object, summarizer: object, kinds: object, clock: object, ids: object) -> None:
    """Refuse now what would fail later, far from where it was given."""
    if not (embedder is None or isinstance(embedder, str) or callable(getattr(embedder, "embed", None))):
        raise InvalidInput(
            f"embedder={shown(embedder)} is no embedder: it needs name, dimension and embed(texts). Pass "
            "such an object, of `germane.embedders` for instance, 'bundled', 'minilm' or None."
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
    store: Store, embedder: Embedder | str | None, replica: str | None
) -> tuple[Store, Embedder | None, str]:
    """A store of the caller's, whose vectors only an embedder that was given can have made."""
    if replica is not None:
        raise InvalidInput("replica=… goes with an address. A Store of your own reads where it was told to.")
    return store, None if embedder == AUTO else _named(embedder), ""


def _open_store(
    location: str | Path,
    embedder: Embedder | str | None,
    *,
    durability: Literal["full", "relaxed"],
    read_only: bool,
    replica: str | None,
) -> tuple[Store, Embedder | None, str]:
    """A store, the embedder that its vectors allow, and why there is none where the store has vectors.

    An embedder that was requested must fit, or the error says so. Otherwise it is the one that made the
    vectors, if it has a name here and is installed.
    """

    def store_with(used: Embedder | None) -> Store:
        identity = None if used is None else identity_of(used)
        return open_store(
            location, embedding=identity, durability=durability, read_only=read_only, replica=replica
        )

    used = _requested(embedder)
    if used != AUTO:
        return store_with(used), used, ""
    bundled = StaticEmbedder()
    try:
        return store_with(bundled), bundled, ""
    except EmbedderMismatch as mismatch:
        known, set_aside = _that_made(mismatch.stored)
    return store_with(known), known, set_aside


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


def _system_clock() -> datetime:
    return datetime.now(UTC)


# What waits for a vector, embedded batch by batch: in the foreground, or by a thread of its own.
#
# Nothing is kept here that a crash could lose: which memories wait, the store knows.

_EAGER_BATCH: Final = 1000
_SLOW_BATCH: Final = 64
_BATCHES_OF_A_PAGE: Final = 8
_FEWER: Final = 4  # A batch that failed is tried again with a quarter as many.
_FAILURES_IN_A_ROW: Final = 8
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
_LOOK_AGAIN: Final = 30.0
_LONGEST_PATIENCE: Final = 3600.0
_MOST_DOUBLINGS: Final = 10
_GOODBYE: Final = 5.0

_WAITING: Final = Filter(embedded=False, statuses=(Status.ACTIVE, Status.SUPERSEDED, Status.ARCHIVED))
"""What is forgotten isn't shown to any model; restored, it waits again."""


class Embedding:
    """An engine's side of it: its agent's backlog if there is an embedder, a thread if that is slow."""

    def __init__(self, session: AgentContext, *, in_background: bool) -> None:
        self._backlog = (
            None if session.embedder is None else Backlog(session.store, session.agent, session.embedder)
        )
        self._background: BackgroundEmbedding | None = None
        if self._backlog is not None and in_background:
            self._background = BackgroundEmbedding(self._backlog)

    def embed_pending(self, *, limit: int | None, progress: Progress | None) -> int:
        """Embed what waits, as `Backlog.drain` does. Raises InvalidInput where there is no embedder."""
        if self._backlog is None:
            raise InvalidInput(
                "There is no embedder to do it: the store was opened without one. Open it with embedder=..., "
                "on the command line with --embedder or GERMANE_EMBEDDER."
            )
        if limit is not None:
            checked_count(limit, name="limit")
        return self._backlog.drain(limit=limit, progress=progress)

    @contextmanager
    def woken(self) -> Iterator[None]:
        """Whatever is stored inside, even by half, is embedded soon."""
        try:
            yield
        finally:
            if self._background is not None:
                self._background.wake()

    def findings(self) -> tuple[Finding, ...]:
        """What `doctor` has to say of the backlog."""
        if self._backlog is None:
            return ()
        attended = self._background is not None and self._background.is_alive
        return self._backlog.findings(attended=attended)

    def stop(self) -> None:
        """End the thread, if there is one."""
        if self._background is not None:
            self._background.stop()


class Backlog:
    """The memories of an agent that wait for a vector, newest first: they are asked for soonest.

    Threads may share it. A batch that the embedder refuses is made smaller, until the text that it
    refuses is alone; that one is set aside, so that it holds up no other, and tried again last.
    Several processes may embed the same memory at the same time: the same vector is then stored twice.
    """

    def __init__(self, store: Store, agent: str, embedder: Embedder) -> None:
        self._store = store
        self._agent = agent
        self._embedder = embedder
        self._most = _EAGER_BATCH if is_eager(embedder) else _SLOW_BATCH
        self._size = self._most
        self._page: list[str] = []
        self._aside: set[str] = set()
        self._turn = renewed(Lock())
        self.failures = 0
        self.last_error: GermaneError | None = None

    def step(self, most: int | None = None) -> int:
        """Embed a batch of at most so many memories: how many; 0 when none waits that isn't set aside.

        Raises EmbeddingFailed or StoreError. What was embedded before stays.
        """
        with self._turn:
            batch = self._next(self._size if most is None else min(self._size, most))
            if not batch:
                return 0
            try:
                self._embed(batch)
            except GermaneError as error:
                self._note(error, batch)
                raise
            self.failures = 0
            if not self._aside:
                self.last_error = None
            self._size = min(self._most, self._size * _FEWER)
            return len(batch)

    def drain(self, *, limit: int | None = None, progress: Progress | None = None) -> int:
        """Embed all that waits, or `limit` memories of it: how many it was.

        Raises EmbeddingFailed when some of it can't be, after everything else is done, or after
        failures in a row that tell of an embedder that doesn't work at all; StoreError at once.
        """
        self._begin_again()
        done = 0
        waiting = self._store.stats(self._agent).pending if progress else 0
        while limit is None or done < limit:
            try:
                count = self.step(None if limit is None else limit - done)
            except EmbeddingFailed:
                if self.failures >= _FAILURES_IN_A_ROW:
                    break
                continue
            if not count:
                break
            done += count
            if progress is not None:
                progress(done, max(done, waiting if limit is None else min(waiting, limit)))
        if self.last_error is not None:
            left = self._store.stats(self._agent).pending
            raise EmbeddingFailed(
                f"{done} memories were embedded, {left} still wait for a vector: {self.last_error} "
                "They are found by their words until then; mend the embedder, and call again."
            ) from self.last_error
        return done

    @property
    def has_set_aside(self) -> bool:
        """Whether some memory waits that the embedder refused."""
        return bool(self._aside)

    def retry_aside(self) -> None:
        """Let what was set aside wait like everything else."""
        with self._turn:
            self._aside.clear()

    def findings(self, *, attended: bool) -> tuple[Finding, ...]:
        """What `doctor` says of it: nothing while all is embedded, or an attended backlog makes progress."""
        pending = self._store.stats(self._agent).pending
        error = self.last_error
        if not pending or (attended and error is None):
            return ()
        failed = f"; the last of {self.failures or 'several'} failures: {error}" if error is not None else ""
        return (
            Finding(
                code="pending-vectors",
                text=f"{pending} memories wait for a vector of {self._embedder.name!r}{failed}.",
                remedy="They are found by their words meanwhile. Embed them now with `germane db embed` "
                "(Engine.embed_pending in Python).",
            ),
        )

    def _begin_again(self) -> None:
        with self._turn:
            self._aside.clear()
            self._page.clear()
            self._size = self._most
            self.failures = 0
            self.last_error = None

    def _next(self, count: int) -> list[Memory]:
        """The next memories to embed, as they are now: some of the page may be gone or forgotten."""
        while True:
            if not self._page:
                limit = self._most * _BATCHES_OF_A_PAGE + len(self._aside)
                found = self._store.find(self._agent, _WAITING, limit=limit)
                self._page = [memory.version_id for memory in found if memory.version_id not in self._aside]
                if not self._page:
                    return []
            ids, self._page = self._page[:count], self._page[count:]
            stored = self._store.get(self._agent, ids)
            batch = [each for each in stored if each is not None and each.status in _WAITING.statuses]
            if batch:
                return batch

    def _embed(self, batch: list[Memory]) -> None:
        from germane.model.change import SetVector  # noqa: PLC0415 - Most processes embed nothing later.

        vectors = embed_texts(self._embedder, [memory.content for memory in batch])
        changes = [
            SetVector(memory_id=memory.version_id, vector=NOWHERE if vector is None else vector)
            for memory, vector in zip(batch, vectors, strict=True)
        ]
        while changes:
            try:
                self._store.apply(self._agent, changes)
            except NotFound as purged:
                # Somebody purged it while its vector was made.
                changes = [each for each in changes if each.memory_id != purged.memory_id]
            else:
                return

    def _note(self, error: GermaneError, batch: list[Memory]) -> None:
        self.failures += 1
        self.last_error = error
        self._page.clear()
        if not isinstance(error, EmbeddingFailed):
            return
        if len(batch) == 1:
            self._aside.add(batch[0].version_id)
        else:
            self._size = max(1, len(batch) // _FEWER)


class BackgroundEmbedding:
    """A daemon thread that embeds a backlog: when woken, every half minute, and after a crash at once.

    After a failure it waits 1, 2, 4 … 60 seconds. What was set aside is tried again when all else is
    done: after half a minute, then a minute, and so on up to an hour.
    """

    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog
        self._woken = renewed(Event())
        self._stopped = renewed(Event())
        self._thread = Thread(target=self._run, name="germane-embedding", daemon=True)
        self._patience = _LOOK_AGAIN
        self._idle = 0.0
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread still works."""
        return self._thread.is_alive()

    def wake(self) -> None:
        """Say that something was stored."""
        self._woken.set()

    def stop(self) -> None:
        """End the thread after one more batch; what takes longer than 5 seconds is left to end by itself."""
        self._stopped.set()
        self._woken.set()
        if self._thread is not current_thread():
            self._thread.join(_GOODBYE)

    def _run(self) -> None:
        stopping = False
        while not stopping:
            self._woken.clear()
            # What was stored just before the end is the newest, so it is in the batch after it.
            stopping = self._stopped.is_set()
            if stopping and self._backlog.failures:
                return
            try:
                count = self._backlog.step()
            except GermaneError:
                # The backlog keeps the error for `doctor`. A write doesn't cut this pause short: the
                # embedder is no better for it.
                doublings = min(self._backlog.failures - 1, _MOST_DOUBLINGS)
                self._stopped.wait(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**doublings))
                continue
            if not (count or stopping or self._woken.wait(_LOOK_AGAIN)):
                self._look_again()

    def _look_again(self) -> None:
        if not self._backlog.has_set_aside:
            self._patience, self._idle = _LOOK_AGAIN, 0.0
            return
        self._idle += _LOOK_AGAIN
        if self._idle >= self._patience:
            self._backlog.retry_aside()
            self._patience, self._idle = min(2 * self._patience, _LONGEST_PATIENCE), 0.0


# reembed: another model makes the vectors of a whole store.
#
# Unlike other operations it is not limited to one agent: the vectors of one store are all of one model.


@checking
def reembed(
    location: str | Path, *, embedder: Embedder | str, again: bool = False, progress: Progress | None = None
) -> int:
    """Let another model make the vectors of all agents in a store; how many memories it embedded.

    `embedder` may be "bundled" or "minilm"; `germane.open` then uses that model unless another is given. The
    vectors of the model before go first, in one transaction; until its new vector is there, a
    memory is found by its words. A call that was interrupted is gone on with by the same call.
    `again` also drops the vectors that this very model made. `progress` is told after each batch how
    many are embedded, and of how many. Raises StoreUnavailable, StoreBusy, EmbeddingFailed, InvalidInput or
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
    with closing(open_store(location, embedding=identity_of(model), replace_embedding=True)) as store:
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
