"""The methods of engines and spaces that write, read, review and judge single memories.

Each method calls one operation of `germane.operations`, which holds the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from germane import operations
from germane.model.memory import GLOBAL, Draft, Memory, Outcome, Scope, Trust
from germane.model.query import Filter, Order
from germane.model.text import user_and_agent
from germane.operations.context import AgentContext
from germane.operations.embedding import Backlog, Embedding, Embeds
from germane.operations.inputs import checking_verbs
from germane.protocols import TokenCounter
from germane.stores.location import MAINTENANCE

if TYPE_CHECKING:
    from germane.ledger import Assembly, Finding, Progress, StoreStats
    from germane.lifecycle import DecisionCalibration, Reconcile, Upkeep
    from germane.model.change import UsageHistory
    from germane.model.context import Context, TraceNote
    from germane.model.learning import Feedback, Impressions, LearningReport, OutcomeResult
    from germane.model.memory import LifecycleState, RememberResult
    from germane.operations.drafts import Quality
    from germane.operations.feedback import Named
    from germane.operations.lifecycle import UpkeepCallback, Voucher
    from germane.operations.quarantine import Quarantine
    from germane.operations.search import RecallResult
    from germane.operations.working_set import WorkingSet
    from germane.provenance import Derivation, Revocation


@checking_verbs
class MemoryMethods:
    """What an engine and a space do with single memories: write and read them, and learn from their use.

    The id of a memory may be its last eight digits, as results show it; InvalidInput names the whole ids
    where several memories have these.
    Every public method checks its arguments before it runs; see `germane.operations.inputs`.
    """

    def __init__(self, session: AgentContext, *, embeds: Embeds = "by hand") -> None:
        self._session = session
        embedder = session.embedder
        backlog = None if embedder is None else Backlog(session.store, session.agent, embedder)
        self._embedding = Embedding(backlog, session.background, embeds)
        self._assembles_first = True
        # Cached by name, for the state of each between two questions.
        self._working_sets: dict[str, WorkingSet] = {}

    @property
    def agent(self) -> str:
        """Whose memory this is, also where it is bound to one user."""
        return user_and_agent(self._session.agent)[1]

    @property
    def user(self) -> str | None:
        """The user to whom the engine is bound; None for the agent itself, and for a space."""
        return user_and_agent(self._session.agent)[0]

    @property
    def counter(self) -> TokenCounter:
        """The counter that judges budgets unless a call names another."""
        return self._session.counter

    @property
    def _speaking(self) -> AgentContext:
        """Whose conversations these are: the agent's own, also where it acts in a space."""
        return self._session

    @contextmanager
    def _then(self, as_of: datetime | str | None) -> Iterator[AgentContext]:
        """The agent's side, of now or of then."""
        if as_of is None:
            yield self._session
            return
        with operations.past.past(self._session, as_of) as (session, _):
            yield session

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
        updated_at: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        session: str | None = None,
        key: str | None = None,
        valid_from: datetime | str | None = None,
        valid_until: datetime | str | None = None,
        expires_at: datetime | str | None = None,
        ttl: timedelta | float | None = None,
        reconcile: bool | Reconcile = False,
        quality: Quality = "mark",
        force: bool = False,
    ) -> Memory:
        """Store one memory and return it as it is stored.

        The same memory stored again (same kind, content, subject, scope, source and key) is counted, not
        doubled, and confirmed where it is a fact; a forgotten one becomes active again. Without the times
        of its source, `created_at` and `updated_at` are now. With a `key` the current memory of that key gets
        a next version with this text, if there is one. See `Draft` for all fields, and `remember_many` for
        `reconcile`, `quality` and `force`. Raises InvalidInput, UnknownKind or NotWorthKeeping.
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
            updated_at=updated_at,
            metadata=metadata or {},
            session=session,
            key=key,
            valid_from=valid_from,
            valid_until=valid_until,
            expires_at=expires_at,
            ttl=ttl,
        )
        return self.remember_many([draft], reconcile=reconcile, quality=quality, force=force)[0].memory

    def remember_many(
        self,
        drafts: Iterable[Draft | str | Mapping[str, Any]],
        *,
        revive: bool = True,
        reconcile: bool | Reconcile = False,
        quality: Quality = "mark",
        force: bool = False,
        allow_secrets: bool = False,
    ) -> tuple[RememberResult, ...]:
        """Store many memories, a thousand to a transaction; all are checked before the first is stored.

        `revive=False` leaves a forgotten memory forgotten that the drafts hold again, as an import
        should. With `reconcile` a fact that says nearly the same as a known one confirms it, and one that
        says something similar of the same subject replaces it. What is hardly worth keeping (empty talk,
        passing states, answers that answer nothing) is stored with a mark, or refused with
        `quality="refuse"`. What looks like a secret, and what is external and looks like an instruction to a
        model, is stored in quarantine: see `quarantine`. `force` asks no such question, and `allow_secrets`
        none about secrets. A draft with a key is stored by itself, as `remember` does. Raises InvalidInput,
        UnknownKind or NotWorthKeeping.
        """
        judged: Quality = "keep" if force else quality
        with self._embedding.woken():
            return operations.memories.remember_many(
                self._session,
                drafts,
                revive=revive,
                reconcile=reconcile,
                quality=judged,
                screens=not force,
                allow_secrets=allow_secrets,
            )

    def import_memories(
        self, memories: Iterable[Memory], *, lifecycle_states: Mapping[str, LifecycleState] | None = None
    ) -> tuple[RememberResult, ...]:
        """Store whole memories as they are: from an export, or from another store.

        Ids, versions, statuses, stages and times are preserved; the memories become this agent's.
        `lifecycle_states` says by `Memory.ref` what was counted of their lives (see
        `Engine.lifecycle_states`). One that is there already stays as it is, and a later version of one
        becomes the current one. A `content_hash` that doesn't match the other fields is computed anew.
        """
        with self._embedding.woken():
            return operations.drafts.import_memories(
                self._session, memories, lifecycle_states=lifecycle_states
            )

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
        pinned: bool | None = None,
        metadata: Mapping[str, Any] | None = None,
        valid_from: datetime | str | None = None,
        valid_until: datetime | str | None = None,
        expires_at: datetime | str | None = None,
        ttl: timedelta | float | None = None,
        expected: int | None = None,
        force: bool = False,
    ) -> Memory:
        """Store the next version of a memory and return it; the version before stays as history.

        The id stays, and only what is named changes. With a later `valid_from` the version before ends at
        that time; all versions expire with this one, see `remember`. With `expected`, the number of the
        version that was read, nothing is done where another version is current. What looks like a secret, or
        in external text like an instruction to a model, goes to quarantine as a memory of its own, which is
        returned, and becomes the next version when it is released; with `force` nothing is searched.
        Raises NotFound, InvalidInput, or StaleRevision for another version, and when somebody else revises
        it at the same time.
        """
        with self._embedding.woken():
            return operations.memories.revise(
                self._session,
                memory_id,
                expected=expected,
                force=force,
                content=content,
                subject=subject,
                tags=tags,
                importance=importance,
                confidence=confidence,
                outcome=outcome,
                pinned=pinned,
                metadata=metadata,
                valid_from=valid_from,
                valid_until=valid_until,
                expires_at=expires_at,
                ttl=ttl,
            )

    def supersede(
        self, memory_id: str, draft: Draft | Mapping[str, Any], *, expected: int | None = None
    ) -> Memory:
        """Store a draft as the next version of a memory and return it, as when its source was edited.

        Unlike `revise` it may change the kind, scope, source and time as well. What the draft leaves at
        None stays as it was, and so does a pin. Raises NotFound, InvalidInput, or StaleRevision, as
        `revise` does.
        """
        with self._embedding.woken():
            return operations.memories.supersede(self._session, memory_id, draft, expected=expected)

    def forget(self, memory_id: str) -> Memory:
        """Keep a memory out of every result until it is restored. Raises NotFound."""
        return operations.memories.forget_many(self._session, [memory_id])[0]

    def forget_many(self, memory_ids: Iterable[str]) -> tuple[Memory, ...]:
        """Keep memories out of every result, in one transaction: all of them or none. Raises NotFound."""
        return operations.memories.forget_many(self._session, memory_ids)

    def restore(self, memory_id: str) -> Memory:
        """Undo a forget. Raises NotFound, or InvalidInput when the memory isn't forgotten."""
        with self._embedding.woken():
            return operations.memories.restore(self._session, memory_id)

    def purge(self, memory_id: str, *, confirm: bool = False) -> int:
        """Remove a memory, all its versions, and every trace of their text from the store.

        Returns how many versions went. It can't be undone, so it needs `confirm=True`. Raises
        PurgeNotConfirmed or NotFound.
        """
        return operations.memories.purge_many(self._session, [memory_id], confirm=confirm)

    def purge_many(self, memory_ids: Iterable[str], *, confirm: bool = False) -> int:
        """Remove memories as `purge` does, in one transaction: all of them or none.

        Returns how many versions went. Raises PurgeNotConfirmed or NotFound.
        """
        return operations.memories.purge_many(self._session, memory_ids, confirm=confirm)

    def quarantine(self) -> Quarantine:
        """What is stored and never shown, since a rule marked it: to list, to release and to purge."""
        return operations.quarantine.quarantine(self._session)

    def trace_back(self, memory_id: str) -> Derivation:
        """Where a memory comes from: its versions, quoted messages, learning runs, import and merges.

        The memories that it was derived from follow, and theirs in turn: those that a reflection summarizes,
        and those that its metadata names in `_derived_from`. Raises NotFound.
        """
        return operations.provenance.trace_back(self._session, memory_id)

    def revoke(self, source: str, *, confirm: bool = False, dry_run: bool = False) -> Revocation:
        """Purge all that comes from a source, and what was derived from it, in one transaction.

        `source` is a session, the project of an import, the id of a memory, or the text in `Memory.source` or
        its beginning up to a separator, such as a file or a URL. Only versions of that source go: earlier and
        later ones of the same memory stay, without their usage history. A session's conversation is purged as
        well. With `dry_run` nothing changes. It can't be undone, so it needs `confirm=True`. Raises
        PurgeNotConfirmed, NotFound where nothing comes from the source, or InvalidInput.
        """
        with self._embedding.woken():
            return operations.provenance.revoke(self._session, source, confirm=confirm, dry_run=dry_run)

    def embed_pending(self, *, limit: int | None = None, progress: Progress | None = None) -> int:
        """Embed the memories that wait for a vector, at most `limit`, newest first; how many it were.

        Memories wait that were stored without an embedder or with one that isn't `eager`. `progress` is
        called after each batch with the number embedded and the total. Raises InvalidInput without an
        embedder, and EmbeddingFailed for what can't be embedded, after all else is.
        """
        return self._embedding.embed_pending(limit=limit, progress=progress)

    def get(
        self,
        memory_id: str | None = None,
        *,
        key: str | None = None,
        as_of: datetime | str | None = None,
    ) -> Memory:
        """The memory of that id or key in its current version, or the version `id@n`, whatever its status.

        With `as_of` it is as at that time; what was purged since doesn't come back. Raises NotFound, also for
        one that has expired, and InvalidInput unless one of both is given.
        """
        with self._then(as_of) as session:
            return operations.read.get_named(session, memory_id, key)

    def history(self, memory_id: str, *, limit: int | None = None, after: int = 0) -> tuple[Memory, ...]:
        """Every version of a memory, the first version first, whichever is named.

        `limit` is the most to return, `after` the `version` that ended the page before. Raises NotFound or
        InvalidInput.
        """
        return operations.read.history(self._session, memory_id, limit=limit, after=after)

    def memories(
        self,
        where: Filter | str | Mapping[str, Any] | None = None,
        *,
        order: Order | str = Order.NEWEST,
        limit: int | None = None,
        after: str | None = None,
        as_of: datetime | str | None = None,
    ) -> tuple[Memory, ...]:
        """The memories that pass a filter (the active ones by default), a page at a time.

        `after` is the `ref` of the memory that ended the page before. With `as_of` they are as at that time;
        what was purged since doesn't come back. Raises InvalidInput, or NotFound where `after` is gone.
        """
        with self._then(as_of) as session:
            return operations.read.memories(session, Filter.of(where), order=order, limit=limit, after=after)

    def count(
        self,
        where: Filter | str | Mapping[str, Any] | None = None,
        *,
        as_of: datetime | str | None = None,
    ) -> int:
        """How many memories pass a filter (the active ones by default), now or at a time."""
        with self._then(as_of) as session:
            return operations.read.count(session, Filter.of(where))

    def filter_warnings(self, where: Filter | str | Mapping[str, Any]) -> tuple[TraceNote, ...]:
        """What is worth knowing of a filter beside what passes it: a kind that nobody knows, and the nearest.

        `recall` and `assemble` say the same in their notes.
        """
        return operations.read.filter_warnings(self._session, Filter.of(where))

    def expand(self, memory_id: str) -> str:
        """The whole text of a memory, fenced, to be shown as the result of a tool call. Raises NotFound."""
        return operations.read.expand(self._session, memory_id)

    def stats(self) -> StoreStats:
        """Figures about this agent's memories and the store that holds them."""
        figures = self._session.store.stats(self._session.agent)
        # The size of the whole store grows with what is stored of other users.
        return figures if self._speaking.base is None else replace(figures, bytes=0)

    def doctor(self) -> tuple[Finding, ...]:
        """What is wrong with the store, each with its remedy, and advice on what is too long; or nothing.

        Each memory is compared with its hash, and the index with what its texts make: about a second for
        5,000 memories.
        """
        maintenance = MAINTENANCE.of(self._session.store)
        found = maintenance.check(self._session.agent) if maintenance else ()
        # A memory that can't be read is a finding already.
        readable = not any(each.code == "content" for each in found)
        return (
            *found,
            *(operations.drafts.content_findings(self._session) if readable else ()),
            *self._embedding.findings(),
            *operations.read.large_findings(self._session),
        )

    def confirm(
        self,
        memory_id: str,
        *,
        core: bool = False,
        vouched_by: Voucher | None = None,
    ) -> Memory:
        """Say that a fact was met again; the third time, or with `core`, makes it a core fact.

        With `vouched_by` "user" or "operator" a memory of any kind gets the trust "owner", or "peer" in a
        space, and nothing else raises trust. Its next version notes in the metadata, under `vouched`, who
        vouches for it, when, and its trust before. Call it only for a person who has read the memory. Raises
        NotFound, or InvalidInput for what can't be confirmed: other kinds without `vouched_by`, and what is
        superseded or out of use.
        """
        return operations.lifecycle.confirm(self._session, memory_id, core=core, vouched_by=vouched_by)

    def contradict(self, memory_id: str, *, by: str | None = None) -> Memory:
        """Say that something speaks against a fact, such as the memory `by`: its confidence falls by 0.2.

        Raises NotFound, or InvalidInput for what can't be contradicted.
        """
        return operations.lifecycle.contradict(self._session, memory_id, by=by)

    def review(self, decision_id: str, outcome: Outcome | str, *, result: str | None = None) -> Memory:
        """Say how a decision turned out, and what came of it; returns its next version.

        "ongoing" says that its work goes on, "pending" that it is done and its outcome awaited, "abandoned"
        leaves it out of what is found. The same for a procedure counts a success or a failure of it. Raises
        NotFound, or InvalidInput for kinds without outcomes.
        """
        return operations.lifecycle.outcome_of(self._session, decision_id, outcome, result=result)

    def record_trigger(self, constraint_id: str, *, false_positive: bool = False) -> Memory:
        """Say that a constraint was triggered, and whether that was a false alarm; returns its latest
        version.

        A constraint that warns begins to block at the third trigger that was no false alarm. One whose
        triggers were false alarms for more than a half, of five or more, is retired. Raises NotFound,
        or InvalidInput for what is no constraint in use.
        """
        return operations.lifecycle.record_trigger(
            self._session, constraint_id, false_positive=false_positive
        )

    def retire(self, memory_id: str) -> Memory:
        """Take a fact, a procedure or a constraint out of use, or archive an episode; `restore` undoes it.

        Raises NotFound, or InvalidInput for kinds that can't be retired, such as decisions.
        """
        return operations.lifecycle.retire(self._session, memory_id)

    def lifecycle_state(self, memory_id: str) -> LifecycleState:
        """The stage of a memory now, and what is counted of it. Raises NotFound."""
        return operations.lifecycle.lifecycle_state(self._session, memory_id)

    def lifecycle_states(self, memory_ids: Sequence[str]) -> tuple[LifecycleState, ...]:
        """The stages of memories, or of versions `id@n`, and their counters, in the order of `memory_ids`.

        Raises NotFound.
        """
        return operations.lifecycle.lifecycle_states(self._session, memory_ids)

    def maintain(self, *, dry_run: bool = False, progress: UpkeepCallback | None = None) -> Upkeep:
        """Purge what has expired, age and archive episodes, settle what was counted, merge duplicate facts,
        and mark outdated quotations.

        Answers to requests that are older than a day go as well (see `StoreHandle.once`).
        Each step is a transaction of its own, so that an interruption anywhere loses nothing: call it
        again. With `dry_run` nothing is changed, and the steps say what would be. `progress` is called after
        each step with the number done, the total and the step. Raises EmbeddingFailed before
        anything is done, or InvalidInput for a store that keeps no lives.
        """
        with self._embedding.woken():
            return operations.lifecycle.maintain(self._session, dry_run=dry_run, progress=progress)

    def calibration(self) -> DecisionCalibration:
        """How well the agent judges itself: Brier score, bias, and one sentence of advice.

        It goes by its decisions with a confidence and an outcome.
        """
        return operations.read.calibration(self._session)

    def feedback(
        self,
        context: Context | RecallResult | Assembly | Impressions,
        used: Iterable[Named],
        *,
        ignored: Iterable[Named] | None = None,
    ) -> Feedback:
        """Say which of the memories that a context or a recall showed were used, by id or as they are.

        Their `access_count` and `accessed_at` move: once for each context, however often it is reported.
        Those not used count as ignored, or only those that `ignored` names. The layered plan ranks what is
        used more than other memories higher, from the second showing on; while learning is on (see
        `set_learning`) each memory shown is an example besides. Raises InvalidInput or NotFound.
        """
        return operations.feedback.feedback(self._session, context, used=used, ignored=ignored)

    def outcome(
        self,
        context: Context | RecallResult | Assembly | Impressions,
        outcome: Outcome | str,
        *,
        memories: Iterable[Named] | None = None,
    ) -> OutcomeResult:
        """Say how work turned out with what a context or a recall showed: success, partial or failure.

        It speaks a little for or against each memory shown, and more where `memories` names those that helped
        or misled; a procedure among these counts it (see `review`). The scoped plan ranks by it within a
        kind, bounded, and half as much after 90 days. For the same context, the latest report
        counts. Raises InvalidInput.
        """
        return operations.feedback.outcome(self._session, context, outcome, memories=memories)

    def set_learning(self, on: bool | None = None) -> LearningReport:
        """Switch learning from feedback on or off for this agent (it is off), and say what is learned.

        The setting stays with the agent. If off, no weights are fitted or applied and no score parts stored;
        they stay until `reset_learning`. Uses are counted either way. Raises InvalidInput when the store
        can't keep examples.
        """
        return operations.feedback.set_learning(self._session, on)

    def usage_history(self) -> UsageHistory:
        """What the agent went through with its memories: showings, uses, outcomes, lifecycle events, runs.

        It is what an export takes along for another store. Only learning runs have texts: of what was
        learned from conversations, and of the quotations. What `reset_learning` removed isn't in it.
        """
        return operations.feedback.usage_history(self._session)

    def import_usage_history(self, usage_history: UsageHistory) -> int:
        """Add another store's usage history of memories with the same ids; returns how many entries are new.

        It is counted nowhere, since what was counted came with the memories (see `import_memories`). What is
        known here stays, so that the same given again changes nothing; what speaks of no memory here is
        passed over, except learning runs, which mark no message as read. Learning is switched on where it was
        on there and no use was reported here. Raises InvalidInput.
        """
        return operations.feedback.import_usage_history(self._session, usage_history)

    def reset_learning(self) -> int:
        """Forget all that was learned; returns from how many examples. Uses stay counted."""
        return operations.feedback.reset_learning(self._session)
