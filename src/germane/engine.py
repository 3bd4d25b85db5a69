"""The engine: one agent's store, counter, kinds and clock, and each verb's turn with them. No policy.

Level: engine (imports verbs and everything above them).
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from germane.kinds import Kind
from germane.model.context import Context
from germane.model.draft import Draft, Remembered
from germane.model.learning import Feedback, Lessons, Shown
from germane.model.memory import Memory, Outcome, Trust
from germane.model.plan import Frame, Plan
from germane.model.query import Filter, Order
from germane.model.scope import GLOBAL, Scope
from germane.model.stats import Finding, StoreStats
from germane.plans.frames import DEFAULT_FRAME
from germane.protocols import Checkable, Clock, Embedder, Scorer, Store, Summarizer, TokenCounter
from germane.tokens import CachedCounter, get_counter
from germane.verbs import assemble, feedback, lifecycle, read, recall, remember
from germane.verbs.embed import is_eager
from germane.verbs.embedding import Embedding, Progress
from germane.verbs.feedback import Named
from germane.verbs.opening import opened
from germane.verbs.question import filter_of
from germane.verbs.recall import Recalled
from germane.verbs.session import Session

__all__ = ["DEFAULT_BUDGET", "DEFAULT_COUNTER", "Engine", "open_engine"]

DEFAULT_BUDGET = 8000
"""Tokens, as in two of the four designs that germane grew from."""
DEFAULT_COUNTER = "o200k"


def open_engine(
    location: str | Path | Store,
    *,
    agent: str = "default",
    embedder: Embedder | Literal["bundled"] | None = "bundled",
    counter: str | TokenCounter = DEFAULT_COUNTER,
    summarizer: Summarizer | None = None,
    kinds: Iterable[Kind] = (),
    language: str | None = None,
    durability: Literal["full", "relaxed"] = "full",
    read_only: bool = False,
    clock: Clock | None = None,
) -> Engine:
    """Open an agent's memory: a path to a SQLite file, ":memory:", or a Store of your own.

    The file is made when it isn't there. The embedder that comes with the package is used unless
    another is given, or None for words alone; a file whose vectors another model made is then
    searched by its words. With a Store of your own, only an embedder that you give is used.
    `durability="relaxed"` may lose the last moments before a power cut, never consistency.
    `language` is the one whose endings are cut from words, by its Snowball name; it stays with the
    agent ("english" until one is given), and another than before indexes the agent's memories
    anew. `clock` replaces the system's, for tests and replays. Raises InvalidInput,
    StoreUnavailable, SchemaTooNew or, for an embedder that was given, EmbedderMismatch.
    """
    session = opened(
        location,
        agent=agent,
        embedder=embedder,
        counter=counter,
        summarizer=summarizer,
        kinds=kinds,
        language=language,
        durability=durability,
        read_only=read_only,
        clock=clock,
    )
    slow = session.embedder is not None and not is_eager(session.embedder)
    return Engine(session, embed_in_background=slow and not read_only)


class Engine:
    """One agent's memory. Made by `germane.open`; safe to share between threads; a context manager.

    Every method works on this agent's memories only. Each raises StoreError when the store can't
    do what is asked; what else it raises is named there.
    """

    def __init__(self, session: Session, *, embed_in_background: bool = False) -> None:
        self._session = session
        self._embedding = Embedding(session, in_background=embed_in_background)
        if embed_in_background:
            # The thread must not outlive an engine that nobody closed.
            weakref.finalize(self, self._embedding.stop)

    @property
    def agent(self) -> str:
        """Whose memory this is."""
        return self._session.agent

    @property
    def counter(self) -> TokenCounter:
        """The counter that judges budgets unless a call names another."""
        return self._session.counter

    def remember(
        self,
        content: str,
        *,
        kind: str = "note",
        subject: str | None = None,
        tags: Sequence[str] = (),
        scope: Scope | str = GLOBAL,
        importance: float | None = None,
        confidence: float | None = None,
        outcome: Outcome | str | None = None,
        trust: Trust | str | None = None,
        source: str | None = None,
        pinned: bool = False,
        created_at: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Memory:
        """Store one memory and return it as it is stored.

        The same memory said again (same kind, content, subject, scope and source) is counted, not
        doubled; a forgotten one becomes active again. Raises InvalidInput or UnknownKind.
        """
        draft = Draft(
            content=content,
            kind=kind,
            subject=subject,
            tags=tags,
            scope=scope,
            importance=importance,
            confidence=confidence,
            outcome=outcome,
            trust=trust,
            source=source,
            pinned=pinned,
            created_at=created_at,
            metadata=metadata or {},
        )
        return self.remember_many([draft])[0].memory

    def remember_many(
        self, drafts: Iterable[Draft | str | Mapping[str, Any]], *, revive: bool = True
    ) -> tuple[Remembered, ...]:
        """Store many memories, a thousand to a transaction; all are checked before the first is stored.

        `revive=False` leaves a forgotten memory forgotten that the drafts hold again, as an import
        should. Raises InvalidInput or UnknownKind.
        """
        with self._embedding.woken():
            return remember.remember_many(self._session, drafts, revive=revive)

    def adopt(self, memories: Iterable[Memory]) -> tuple[Remembered, ...]:
        """Store whole memories as they are: from an export, or from another store.

        Ids, versions, statuses and times are kept; the memories become this agent's. One that is
        there already changes nothing but its count.
        """
        with self._embedding.woken():
            return remember.adopt(self._session, memories)

    def get(self, memory_id: str) -> Memory:
        """The memory of that id, whatever its status. Raises NotFound."""
        return read.get(self._session, memory_id)

    def history(self, memory_id: str) -> tuple[Memory, ...]:
        """Every version of a memory, the first version first. Raises NotFound."""
        return read.history(self._session, memory_id)

    def memories(
        self,
        where: Filter | None = None,
        *,
        order: Order = Order.NEWEST,
        limit: int | None = None,
        after: str | None = None,
    ) -> tuple[Memory, ...]:
        """The memories that pass a filter (the active ones by default), a page at a time.

        `after` is the id that ended the page before.
        """
        return read.memories(self._session, where or Filter(), order=order, limit=limit, after=after)

    def revise(
        self,
        memory_id: str,
        content: str | None = None,
        *,
        subject: str | None = None,
        tags: Sequence[str] | None = None,
        importance: float | None = None,
        confidence: float | None = None,
        outcome: Outcome | str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Memory:
        """Store the next version of a memory and return it; the version before stays as history.

        Only what is named changes. Raises NotFound, InvalidInput, or StaleRevision when somebody
        else revised it first.
        """
        changes = lifecycle.Changes(
            content=content,
            subject=subject,
            tags=tags,
            importance=importance,
            confidence=confidence,
            outcome=outcome,
            metadata=metadata,
        )
        with self._embedding.woken():
            return lifecycle.revise(self._session, memory_id, changes)

    def forget(self, memory_id: str) -> Memory:
        """Keep a memory out of every result until it is restored. Raises NotFound."""
        return lifecycle.forget(self._session, memory_id)

    def restore(self, memory_id: str) -> Memory:
        """Undo a forget. Raises NotFound, or InvalidInput when the memory isn't forgotten."""
        with self._embedding.woken():
            return lifecycle.restore(self._session, memory_id)

    def purge(self, memory_id: str, *, confirm: bool = False) -> int:
        """Remove a memory, all its versions, and every trace of their text from the store.

        Returns how many versions went. It can't be undone, so it needs `confirm=True`. Raises
        PurgeNotConfirmed or NotFound.
        """
        return lifecycle.purge(self._session, memory_id, confirm=confirm)

    def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        scopes: Sequence[Scope | str] = (),
        subject: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        min_importance: float | None = None,
        include_superseded: bool = False,
        gate: bool = True,
        scorer: Scorer | None = None,
    ) -> Recalled:
        """The memories that have most to do with a question, best first, with the parts of their scores.

        A time in the question ("last week", "in May 2023") restricts what is found. A question
        that names nothing finds the newest memories. What has nothing to do with the question is
        left out unless `gate` is False. Raises InvalidInput.
        """
        where = filter_of(
            kinds=kinds,
            tags=tags,
            scopes=scopes,
            subject=subject,
            since=since,
            until=until,
            min_importance=min_importance,
            include_superseded=include_superseded,
        )
        return recall.recall(self._session, query, where=where, limit=limit, scorer=scorer, gated=gate)

    def assemble(
        self,
        query: str = "",
        *,
        budget: int = DEFAULT_BUDGET,
        plan: str | Plan = "layered",
        frame: str | Frame = DEFAULT_FRAME,
        counter: str | TokenCounter | None = None,
        pins: Sequence[str] = (),
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        scopes: Sequence[Scope | str] = (),
        since: datetime | None = None,
        until: datetime | None = None,
        min_importance: float | None = None,
        scorer: Scorer | None = None,
    ) -> Context:
        """The best context for a query, never longer than `budget` tokens by `counter`.

        `pins` are ids that must stand in it. The filters restrict what is ranked, not what the
        plan always shows. Reading changes nothing, and the same store, query and clock give the
        same bytes. Raises BudgetTooSmall when what is required doesn't fit, InvalidInput, NotFound.
        """
        where = filter_of(
            kinds=kinds, tags=tags, scopes=scopes, since=since, until=until, min_importance=min_importance
        )
        return assemble.assemble(
            self._session,
            query,
            budget=budget,
            where=where,
            plan=plan,
            frame=frame,
            counter=self._session.counter if counter is None else CachedCounter(get_counter(counter)),
            pins=pins,
            scorer=scorer,
        )

    def feedback(
        self,
        context: Context | Recalled | Shown,
        used: Iterable[Named],
        *,
        ignored: Iterable[Named] | None = None,
    ) -> Feedback:
        """Say which of the memories that a context or a recall showed were used, by id or as they are.

        Their `access_count` and `accessed_at` move: once for each context, however often it is said.
        While learning is on (see `learn`), each memory shown becomes an example; those not used count
        as ignored, or only those that `ignored` names. Raises InvalidInput or NotFound.
        """
        return feedback.feedback(self._session, context, used=used, ignored=ignored)

    def learn(self, on: bool | None = None) -> Lessons:
        """Switch learning from feedback on or off for this agent (it is off), and say what is learned.

        The setting stays with the agent. Off, nothing learned applies and nothing is collected;
        what was stays until `unlearn`. Raises InvalidInput when the store can't keep examples.
        """
        return feedback.learn(self._session, on)

    def unlearn(self) -> int:
        """Forget all that was learned; returns from how many examples. Uses stay counted."""
        return feedback.unlearn(self._session)

    def expand(self, memory_id: str) -> str:
        """The whole text of a memory, fenced, to be shown as the result of a tool call. Raises NotFound."""
        return read.expand(self._session, memory_id)

    def embed_pending(self, *, limit: int | None = None, progress: Progress | None = None) -> int:
        """Embed the memories that wait for a vector, at most `limit`, newest first; how many it were.

        Memories wait that were stored without an embedder or with one that isn't `eager`. `progress` is
        told after each batch how many are embedded, and of how many. Raises InvalidInput without an
        embedder, and EmbeddingFailed for what can't be embedded, after all else is.
        """
        return self._embedding.embed_pending(limit=limit, progress=progress)

    def stats(self) -> StoreStats:
        """Figures about this agent's memories and the store that holds them."""
        return self._session.store.stats(self.agent)

    def doctor(self) -> tuple[Finding, ...]:
        """What is wrong with the store, each finding with its remedy; empty when nothing is."""
        store = self._session.store
        found = store.check(self.agent) if isinstance(store, Checkable) else ()
        return (*found, *self._embedding.findings())

    def close(self) -> None:
        """Release the store. Closing twice is fine.

        What is being embedded just now is waited for, 5 seconds at most; the rest waits in the store.
        """
        self._embedding.stop()
        self._session.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<germane.Engine agent={self.agent!r} counter={self.counter.name!r}>"
