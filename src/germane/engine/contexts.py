"""The methods of engines and spaces that search, make contexts and requests, and tell how well these do.

Each method calls one operation of `germane.operations`, which holds the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from germane import operations
from germane.engine.memories import MemoryMethods
from germane.errors import InvalidInput
from germane.model.context import RefreshReason
from germane.model.memory import Scope
from germane.model.plan import TaskInput
from germane.model.query import Filter
from germane.model.text import DEFAULT_FRAME, DEFAULT_PROVIDER, DEFAULT_RANKER, DEFAULT_SET
from germane.operations.inputs import checking_verbs
from germane.protocols import Scorer, TokenCounter
from germane.tokens import CachedCounter, get_counter

if TYPE_CHECKING:
    from germane.conversation.layout import RequestShares
    from germane.conversation.views import Tiers
    from germane.kinds import Kind
    from germane.ledger import Assembly, Metrics
    from germane.model.context import Context, RefreshResult
    from germane.model.conversation import Group, Provider
    from germane.model.extraction import LearningRun
    from germane.model.learning import Impressions, ObserveResult
    from germane.model.plan import Frame, Plan
    from germane.model.request import Request, RequestState, TokenCalibration
    from germane.operations.assemble import AssembleRequest
    from germane.operations.context import AgentContext
    from germane.operations.conversation import Conversation
    from germane.operations.frame import Framing
    from germane.operations.inputs import Ranker
    from germane.operations.ledger import Ledger
    from germane.operations.request import Sayable
    from germane.operations.search import RecallResult
    from germane.operations.working_set import WorkingSet, Wrapping
    from germane.plans.scoped import ScopedPlan


@checking_verbs
class ContextMethods(MemoryMethods):
    """What an engine and a space make of memories: results, contexts and requests, and how well these do."""

    def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        budget: int | None = None,
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
        where: Filter | str | Mapping[str, Any] | None = None,
        gate: bool = True,
        scorer: Scorer | None = None,
        ranker: Ranker | str = DEFAULT_RANKER,
        into: WorkingSet | Wrapping | None = None,
        spaces: Sequence[str] = (),
        conversations: bool = False,
        as_of: datetime | str | None = None,
    ) -> RecallResult:
        """The memories that have most to do with a question, best first, with the parts of their scores.

        A time in the question ("in May 2023") restricts what is found; one that names nothing finds the
        newest. What has nothing to do with it is left out unless `gate` is False. `ranker="hybrid"` weighs
        meaning, tags, recency and accesses instead. With a `budget` only those are returned whose listing
        with ids, `RecallResult.text`, takes at most so many tokens. The best enter the working set `into`, as
        many as fit. `where` filters further; those of `spaces` take part, and with `conversations` messages,
        of the kind "message". With `as_of` it is as at that time, by copies of the memories of then; what was
        purged since doesn't come back. Raises InvalidInput, UnknownSpace, NotAllowed.
        """
        target = None if into is None else operations.working_set.set_for(into, self._session.agent, spaces)
        how: dict[str, Any] = {"limit": limit, "scorer": scorer, "ranker": ranker, "gated": gate}
        given: dict[str, Any] = {
            "kinds": kinds,
            "tags": tags,
            "scopes": scopes,
            "subject": subject,
            "since": since,
            "until": until,
            "min_importance": min_importance,
            "include_superseded": include_superseded,
            "include_archived": include_archived,
            "include_abandoned": include_abandoned,
            "where": where,
        }
        with self._at(as_of, spaces, into=target) as (own, beside, then):
            if conversations:
                how["messages"] = operations.message_search.recalling(self._session, gated=gate, until=then)
            admits = operations.search.filter_of(own.clock, **given)
            found = operations.search.recall(own, query, where=admits, spaces=beside, **how)
            found = found if budget is None else operations.listing.listed(own, found, budget)
        if target is not None:
            memories = (one for one in found if not one.memory.is_message)
            target.add_recalled([one for one in memories if one.memory.agent == own.agent])
        return found

    def assemble(
        self,
        query: str = "",
        *,
        budget: int | None = None,
        plan: str | Plan | ScopedPlan = "layered",
        frame: Framing | None = None,
        guidance: bool | None = None,
        counter: str | TokenCounter | None = None,
        pins: Sequence[str] = (),
        without: Sequence[str] = (),
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        scopes: Sequence[Scope | str] = (),
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        min_importance: float | None = None,
        where: Filter | str | Mapping[str, Any] | None = None,
        scorer: Scorer | None = None,
        spaces: Sequence[str] = (),
        conversation: str | Conversation | None = None,
        conversations: bool = True,
        record: bool | None = None,
        task: str | None = None,
        paths: Sequence[str] = (),
        changed: Mapping[str, datetime] | None = None,
        gate: bool | None = None,
        dates: bool = True,
        sources: bool = True,
        ids: bool = False,
        as_of: datetime | str | None = None,
    ) -> Context:
        """The best context for a query, never longer than `budget` tokens by `counter`.

        No budget is the frame's total, or 8,000 without a frame. `frame` is its name, a Frame, "auto" for
        what the query says, or who chooses; "task" unless given. The text of a named frame stands in the
        context where nothing else needs its tokens, or as `guidance` says. `gate=True` leaves out what has
        nothing to do with the query even where all memories fit, `gate=False` lets everything take part.
        `dates` and `sources` end items with their day and a short source; `ids` ends each item with an id
        that `expand` takes. What a running `conversation` (a text or the engine's) contains is left out;
        messages of others stand under a heading, unless `conversations` is False. `pins` are ids that must
        stand in it, whatever the filters, and `without` ids that take no part. These bind all else, but for a
        time that is lifted for what is always shown. `plan="scoped"` is for a `task`, by id or in words, and
        `paths`; a note on a `changed` file ranks lower. `record` fills the ledger. With `as_of` all is as at
        that time, see `recall`, and nothing is recorded. Raises BudgetTooSmall or InvalidInput.
        """
        times: dict[str, Any] = {"since": since, "until": until, "min_importance": min_importance}
        beside = operations.frame.MessageFilter.beside
        with self._at(as_of, spaces, record=record or None) as (own, others, then):
            request = operations.assemble.AssembleRequest(
                query=query,
                where=operations.search.filter_of(
                    own.clock, kinds=kinds, tags=tags, scopes=scopes, where=where, **times
                ),
                counter=self._session.counter if counter is None else CachedCounter(get_counter(counter)),
                how=operations.frame.PlanInput.of(plan, frame=frame, guidance=guidance, budget=budget),
                spaces=others,
                pins=pins,
                without=without,
                scorer=scorer,
                conversation=conversation,
                messages=beside(self._session, conversation, on=conversations, until=then),
                gate=gate,
                work=TaskInput(task=task, paths=paths, changed=changed),
                details=operations.assemble.ItemDetails(dates=dates, sources=sources, ids=ids),
            )
            return self._assembled(own, request, record=record if then is None else False)

    def frames(self) -> tuple[Frame, ...]:
        """The frames that this engine knows: the built-in ones, and those that it was opened with."""
        return operations.frame.frames_of(self._session)

    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that this engine knows: the built-in ones, and those that it was opened with."""
        return tuple(self._session.kinds)

    def refresh(
        self,
        context: Context | None,
        new_input: str,
        *,
        budget: int | None = None,
        free_tokens: int | None = None,
        acting: bool = False,
        plan: str | Plan = "layered",
        frame: Framing = "auto",
        counter: str | TokenCounter | None = None,
        scopes: Sequence[Scope | str] = (),
        where: Filter | str | Mapping[str, Any] | None = None,
        conversation: str | Conversation | None = None,
    ) -> RefreshResult:
        """Whether a context still fits the current message: `needed, reason, context`.

        A message that names nothing to look for ("go ahead") is taken for the context's question. A new
        one is made when there was none, for another filter, when the frame switches, when the agent is about
        to act (`acting`, or it says so), and when the message's similarity to the context is below one half;
        a remark such as "it works" is no topic. One that is larger than `free_tokens` loses what has least to
        do with its question, never its constraints and its frame. The other arguments are those of
        `assemble`; without `scopes` and `where` the filter of the context holds. Raises BudgetTooSmall or
        InvalidInput.
        """
        where = context.trace.where if where is None and context is not None else Filter.of(where)
        if scopes or context is None or where != context.trace.where:
            where = operations.search.filter_of(self._session.clock, scopes=scopes, where=where)
        request = operations.refresh.RefreshRequest(
            text=new_input,
            where=where,
            counter=self._session.counter if counter is None else CachedCounter(get_counter(counter)),
            how=operations.frame.PlanInput.of(plan, frame=frame, guidance=None, budget=budget),
            free_tokens=free_tokens,
            acting=acting,
            cold=self._assembles_first,
            conversation=conversation,
        )
        refreshed = operations.refresh.refresh(self._session, context, request)
        if refreshed.needed and refreshed.reason is not RefreshReason.PRESSURE:
            self._assembles_first = False
        return refreshed

    def request(
        self,
        messages: Sayable,
        *,
        system: str | Sequence[Mapping[str, Any]] | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        memory: str | Plan | Context | None = None,
        query: str | None = None,
        window: int = 200_000,
        reserve: int = 8_000,
        counter: str | TokenCounter | None = None,
        provider: str | Provider = DEFAULT_PROVIDER,
        previous: Request | RequestState | Mapping[str, Any] | None = None,
        pins: Sequence[str | Group] = (),
        anchors: Mapping[str, str] | None = None,
        shares: RequestShares | None = None,
        tiers: Tiers | None = None,
        calibration: TokenCalibration | None = None,
        frame: str = DEFAULT_FRAME,
        spaces: Sequence[str] = (),
        record: bool | None = None,
        where: Filter | str | Mapping[str, Any] | None = None,
    ) -> Request:
        """A request that fits a model's window beside the answer, as the provider's client takes it.

        `messages` are a conversation of the agent's own, in a space too, or messages in any layout. System,
        tools, what belongs to no group, anchors, pinned groups and the current group must stand in it, in
        this group tool results cut if need be. `memory` is the plan of a context for the `query`, the
        latest prompt or its topic unless one is given, of what `where` admits, in which the memories of
        `spaces` take part; or a context, which must stand whole. What is left goes to the history, and from
        before it to what matches, by `shares`. With `previous`, the request before or its `state`, also as
        JSON, as much of its beginning stays as can. The counter is the engine's, or Claude's for Anthropic.
        `record` notes a new assembly of memory in the ledger. Raises RequestTooLarge, InvalidInput,
        MessageNotFound for pins, and UnknownSpace or NotAllowed for spaces.
        """
        return operations.request.request(
            self._speaking,
            messages,
            spending=operations.request.TokenSpending(
                window=window, reserve=reserve, counter=counter, calibration=calibration
            ),
            shares=shares,
            tiers=tiers,
            provider=provider,
            system=system,
            tools=tools,
            selection=self._selection(memory, spaces, frame=frame, query=query, record=record, where=where),
            anchors=anchors,
            pins=pins,
            previous=previous,
        )

    def working_set(self, name: str = DEFAULT_SET, *, max_tokens: int | None = None) -> WorkingSet:
        """The working set of a name, with the current memories: the same each time, also after a restart.

        `max_tokens` is set when it is given, and stays; a new set holds 128,000. Raises InvalidInput
        for an empty name, a negative limit, or a store that keeps no working sets.
        """
        found = self._working_sets.get(name) or operations.working_set.working_set(
            self._session, name, by=self._acting
        )
        if max_tokens is not None:
            found.resize(max_tokens)
        return self._working_sets.setdefault(name, found)

    def ledger(self) -> Ledger:
        """The assemblies that were recorded: to list, to show, to compare and to make again.

        Raises InvalidInput for a store that keeps no ledger.
        """
        return operations.ledger.ledger(self._session)

    def observe(
        self,
        context: Context | RecallResult | Assembly | Impressions,
        response: str,
        *,
        count: bool = True,
        question: str | None = None,
    ) -> ObserveResult:
        """Which memories of a context or a recall an answer draws on, by the telling words that it has.

        They are passed to `feedback` as used, and all others as ignored; not with `count` False, or for an
        answer that says nothing. It is a guess from words, whose precision and recall are measured in the
        documentation; where somebody knows, call `feedback`. An assembly of the ledger will do as well,
        its texts read from the store. An `Impressions` knows no question, so that `question` gives it.
        Raises InvalidInput or NotFound.
        """
        return operations.feedback.observe(self._session, context, response, count=count, question=question)

    def metrics(self, *, since: datetime | str | None = None) -> Metrics:
        """How well contexts do since then (30 days unless given), from what was recorded and fed back.

        Each figure is None where nothing is known that it could be made of; the documentation defines them.
        Raises InvalidInput for a store that keeps no ledger.
        """
        return operations.ledger.metrics(self._session, since=since)

    def _selection(
        self,
        memory: str | Plan | Context | None,
        spaces: Sequence[str],
        *,
        frame: str,
        query: str | None,
        record: bool | None,
        where: Filter | str | Mapping[str, Any] | None,
    ) -> operations.request.MemorySelection:
        cold = self._assembles_first
        if memory is not None:
            self._assembles_first = False
        return operations.request.MemorySelection(
            of=(self._session, *operations.search.entered_spaces(self._session, spaces)),
            memory=memory,
            frame=frame,
            query=query,
            record=record,
            cold=cold,
            where=None if where is None else operations.search.filter_of(self._session.clock, where=where),
        )

    @contextmanager
    def _at(
        self, as_of: datetime | str | None, spaces: Sequence[str], **changes: object
    ) -> Iterator[tuple[AgentContext, tuple[AgentContext, ...], datetime | None]]:
        """What is read: the agent's own side, the others, and the moment as of which, if it isn't now.

        `changes` are arguments that change what is stored; a time in the past allows none.
        """
        if as_of is None:
            yield self._session, operations.search.entered_spaces(self._session, spaces), None
            return
        if named := [name for name, value in changes.items() if value is not None]:
            raise InvalidInput(
                f"{named[0]} is of what is known now, and as_of={as_of!r} is of another time. Leave one out."
            )
        with operations.past.past(self._session, as_of, spaces) as (own, beside):
            yield own, beside, own.clock()

    @property
    def _acting(self) -> str:
        """Whose moves these are: the agent's own, except where it acts in a space."""
        return self._session.agent

    def _assembled(self, own: AgentContext, request: AssembleRequest, *, record: bool | None) -> Context:
        cold, self._assembles_first = self._assembles_first, False
        if self._session.records if record is None else record:
            return operations.recording.assemble_recorded(own, request, cold=cold)
        return operations.assemble.assemble(own, request)

    def learning_runs(
        self,
        *,
        session: str | None = None,
        memory_id: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> tuple[LearningRun, ...]:
        """What was learned from conversations, the latest run first: proposals, quotations and reasons.

        `session` selects the runs of one conversation, which a space names `MEMBER/SESSION`, and `memory_id`
        those that stored, changed or contradicted a memory. `limit` is the most to return, `after` the id of
        the run that ended the page before. Raises InvalidInput.
        """
        return operations.learning.learning_runs(
            self._session, of_session=session, memory_id=memory_id, limit=limit, after=after
        )

    def learning_run(self, run_id: str) -> LearningRun:
        """A learning run, by its id or its last eight digits. Raises RunNotFound."""
        return operations.learning.learning_run(self._session, run_id)

    def unlearn(self, run_id: str) -> LearningRun:
        """Undo a learning run, by its id or its last eight digits; the run as it is in the log afterwards.

        What it stored is removed, and what it changed stands as it did before, to the byte. A memory that was
        changed since is left as it is: its decision isn't `undone` and says so. The conversation still counts
        as read. Raises RunNotFound, or InvalidInput for a run that was undone before.
        """
        with self._embedding.woken():
            return operations.unlearning.unlearn(self._session, run_id)
