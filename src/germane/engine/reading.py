"""The verbs that read: get and list, recall and assemble, and what tells of the store itself.

Level: engine. No policy: each verb has its own room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from germane import verbs
from germane.engine.refreshing import Refreshing
from germane.model.memory import Memory
from germane.model.names import DEFAULT_BUDGET, DEFAULT_FRAME, DEFAULT_RANKER
from germane.model.query import Filter, Order
from germane.model.scope import Scope
from germane.protocols import Checkable, Scorer, TokenCounter
from germane.tokens import CachedCounter, get_counter

if TYPE_CHECKING:
    from germane.model.context import Context
    from germane.model.frame import Frame
    from germane.model.plan import Plan
    from germane.model.stats import Finding, StoreStats
    from germane.model.trace import Note
    from germane.plans.scoped import Scoped
    from germane.verbs.conversation import Conversation
    from germane.verbs.framing import Framing
    from germane.verbs.rankers import Ranker
    from germane.verbs.recall import Recalled
    from germane.verbs.working_set import WorkingSet, Wrapping

__all__ = ["DEFAULT_BUDGET", "Reading"]


class Reading(Refreshing):
    """What changes nothing, however often it is asked."""

    def get(self, memory_id: str) -> Memory:
        """The memory of that id in its current version, or the version `id@n`, whatever its status.

        Raises NotFound.
        """
        return verbs.read.get(self._session, memory_id)

    def history(self, memory_id: str) -> tuple[Memory, ...]:
        """Every version of a memory, the first version first, whichever is named. Raises NotFound."""
        return verbs.read.history(self._session, memory_id)

    def memories(
        self,
        where: Filter | None = None,
        *,
        order: Order | str = Order.NEWEST,
        limit: int | None = None,
        after: str | None = None,
    ) -> tuple[Memory, ...]:
        """The memories that pass a filter (the active ones by default), a page at a time.

        `after` is the `ref` of the memory that ended the page before. Raises InvalidInput, or NotFound
        where that is gone.
        """
        asked = Filter() if where is None else where
        return verbs.read.memories(self._session, asked, order=order, limit=limit, after=after)

    def count(self, where: Filter | None = None) -> int:
        """How many memories pass a filter (the active ones by default)."""
        return verbs.read.count(self._session, Filter() if where is None else where)

    def notes_on(self, where: Filter) -> tuple[Note, ...]:
        """What is worth knowing of a filter beside what passes it: a kind that nobody knows, and the nearest.

        `recall` and `assemble` say the same in their notes.
        """
        return verbs.read.notes_on(self._session, where)

    def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        scopes: Sequence[Scope | str] = (),
        subject: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        min_importance: float | None = None,
        include_superseded: bool = False,
        include_archived: bool = False,
        include_abandoned: bool = False,
        where: Filter | None = None,
        gate: bool = True,
        scorer: Scorer | None = None,
        ranker: Ranker | str = DEFAULT_RANKER,
        into: WorkingSet | Wrapping | None = None,
        spaces: Sequence[str] = (),
    ) -> Recalled:
        """The memories that have most to do with a question, best first, with the parts of their scores.

        A time in the question ("in May 2023") restricts what is found; one that names nothing finds the
        newest. What has nothing to do with it is left out unless `gate` is False. `ranker="hybrid"` weighs
        meaning, tags, recency and accesses instead. The best enter the working set `into`, as many as fit.
        `where` filters further; those of `spaces` take part. Raises InvalidInput, UnknownSpace, NotAllowed.
        """
        held = None if into is None else verbs.working_set.set_for(into, self._session.agent, spaces)
        clock = self._session.clock
        where = verbs.question.filter_of(
            clock,
            kinds=kinds,
            tags=tags,
            scopes=scopes,
            subject=subject,
            since=since,
            until=until,
            min_importance=min_importance,
            include_superseded=include_superseded,
            include_archived=include_archived,
            include_abandoned=include_abandoned,
            where=where,
        )
        own, beside = self._session, verbs.together.entered_spaces(self._session, spaces)
        found = verbs.recall.recall(
            own, query, where=where, limit=limit, scorer=scorer, ranker=ranker, gated=gate, spaces=beside
        )
        if held is not None:
            held.add_recalled(found)
        return found

    def assemble(
        self,
        query: str = "",
        *,
        budget: int | None = None,
        plan: str | Plan | Scoped = "layered",
        frame: Framing | None = None,
        guidance: bool | None = None,
        counter: str | TokenCounter | None = None,
        pins: Sequence[str] = (),
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        scopes: Sequence[Scope | str] = (),
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        min_importance: float | None = None,
        where: Filter | None = None,
        scorer: Scorer | None = None,
        spaces: Sequence[str] = (),
        conversation: str | Conversation | None = None,
        record: bool | None = None,
        task: str | None = None,
        paths: Sequence[str] = (),
        changed: Mapping[str, datetime] | None = None,
        gate: bool | None = None,
        dates: bool = True,
        sources: bool = True,
        ids: bool = False,
    ) -> Context:
        """The best context for a query, never longer than `budget` tokens by `counter`.

        No budget is the frame's total, or 8,000 without a frame. `frame` is its name, a Frame, "auto" for
        what the query says, or who chooses; "task" unless given. The text of a named frame stands in the
        context where nothing else needs its tokens, or as `guidance` says. `gate=True` leaves out what has
        nothing to do with the query even where all memories fit, `gate=False` lets everything take part.
        `dates` and `sources` end facts, decisions and episodes with their day and a short source; `ids`
        ends each item with an id that `expand` takes. What a running `conversation` (a text or one of the
        engine's) contains is left out. `pins` are ids that must stand in it, whatever the filters. These
        bind all else; only a time is lifted for what is always shown, with a note. `plan="scoped"` is for a
        `task`, by id or in words, and `paths`; a note on a `changed` file ranks lower. `record` fills the
        ledger. Raises BudgetTooSmall or InvalidInput.
        """
        filter_of, clock = verbs.question.filter_of, self._session.clock
        where = filter_of(clock, kinds=kinds, tags=tags, scopes=scopes, where=where)
        where = filter_of(clock, since=since, until=until, min_importance=min_importance, where=where)
        work = {"task": task, "paths": paths or None, "changed": changed, "conversation": conversation}
        shows = {"dates": dates, "sources": sources, "ids": ids}
        how = {"budget": budget, "plan": plan, "pins": pins, "scorer": scorer, "gate": gate}
        return self._assembled(
            query,
            record,
            where=where,
            frame=DEFAULT_FRAME if frame is None else frame,
            counter=self._session.counter if counter is None else CachedCounter(get_counter(counter)),
            spaces=verbs.together.entered_spaces(self._session, spaces),
            guidance=verbs.framing.guidance_of(frame) if guidance is None else guidance,
            **shows,
            **work,
            **how,
        )

    def frames(self) -> tuple[Frame, ...]:
        """The frames that this engine knows: the built-in ones, and those that it was opened with."""
        return verbs.framing.frames_of(self._session)

    def expand(self, memory_id: str) -> str:
        """The whole text of a memory, fenced, to be shown as the result of a tool call. Raises NotFound."""
        return verbs.read.expand(self._session, memory_id)

    def stats(self) -> StoreStats:
        """Figures about this agent's memories and the store that holds them."""
        return self._session.store.stats(self.agent)

    def doctor(self) -> tuple[Finding, ...]:
        """What is wrong with the store, each with its remedy, and advice on what is too long; or nothing."""
        store = self._session.store
        found = store.check(self.agent) if isinstance(store, Checkable) else ()
        return (*found, *self._embedding.findings(), *verbs.read.large_findings(self._session))

    def _assembled(self, query: str, record: bool | None, **asked: Any) -> Context:
        """Assembled, and recorded where that is wanted."""
        cold, self._assembles_first = self._assembles_first, False
        if self._session.records if record is None else record:
            return verbs.recording.assemble_recorded(self._session, query, cold=cold, **asked)
        return verbs.assembling.assemble(self._session, query, **asked)
