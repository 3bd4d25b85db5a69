"""learn_from, learning_runs, unlearn: facts from conversations, with their sources and a way back.

An extractor proposes, the gate refuses what the messages don't support, and consolidation decides what the
rest does to what is known. All that a batch of messages changes is one transaction, with the log of the
decisions and the mark of how far the conversation was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from heapq import nlargest
from typing import Any, Final, TypeAlias

from germane.conversation.formats import read_messages
from germane.embedders.static import StaticEmbedder
from germane.errors import InvalidInput, MessageNotFound, RunNotFound, StaleRevision
from germane.extractors.conflicts import Remark
from germane.extractors.consolidation import Verdict, clash, is_trusted, verdict
from germane.extractors.corrections import is_correction
from germane.extractors.gate import refusal, trust_of
from germane.extractors.references import refers_back, with_value_of
from germane.extractors.rules import SHORTEST, USER, RuleExtractor
from germane.extractors.statements import third_person
from germane.ids import by_short_id
from germane.lifecycle import CONTRADICTED, next_state, stage_of
from germane.model.change import ApplySignal, Change, Insert, RecordRun
from germane.model.conversation import Message, MessageRole
from germane.model.extraction import (
    Decision,
    Effect,
    Extraction,
    LearningRun,
    MemoryState,
    Proposal,
    ProposalOutcome,
)
from germane.model.memory import (
    Cause,
    Draft,
    LifecycleSignal,
    LifecycleState,
    Memory,
    Status,
    Vector,
)
from germane.model.query import Filter, Query, Slice
from germane.model.text import text_cache, user_and_agent
from germane.model.validation import as_utc, checked_text
from germane.operations.context import AgentContext
from germane.operations.conversation import Conversation, conversation, message_of
from germane.operations.drafts import content_hash_of, memory_of
from germane.operations.inputs import checked_count, checked_time, embed_texts, vectors_to_store
from germane.operations.read import by_key, head_of, version_changes
from germane.operations.spaces import Sharing
from germane.protocols import Extractor
from germane.retrieval.tokenizer import query_terms
from germane.stores.location import CONVERSATIONS, LEARNING, LIFECYCLE

Learnable: TypeAlias = "Conversation | str | Iterable[Message | Mapping[str, Any]]"
"""What can be learned from: a conversation, the name of its session, or messages."""

_BATCH: Final = 40
"""Messages of one transaction, and of one call of an extractor."""
_CONTEXT: Final = 4
"""Messages before those that are new: a correction names what it corrects only there."""
_LOOKED_AT: Final = 20
_LATEST: Final = 200
"""Memories of the same batch that a new one may repeat or contradict, so that a batch takes linear time."""
_TRIES: Final = 5
_LONGEST_QUERY: Final = 1000


def learn_from(
    session: AgentContext,
    source: Learnable,
    *,
    extractor: Extractor | None = None,
    since: datetime | str | None = None,
    again: bool = False,
    dry_run: bool = False,
    sharing: Sharing | None = None,
) -> LearningRun:
    """Learn from the messages that weren't read before, from those of `since` on, or from all `again`.

    `sharing` says whose messages they are where they aren't the session's. Raises InvalidInput, also for a
    store that keeps no log of what was learned, and MessageNotFound.
    """
    using: Extractor = RuleExtractor() if extractor is None else extractor
    if sharing is not None:
        sharing.check()
    name, messages = _messages_of(session if sharing is None else sharing.member, source)
    if sharing is not None:
        name, messages = sharing.renamed(name, messages)
    tables = LEARNING.required(session.store)
    for left in reversed(range(_TRIES)):
        mark = 0 if name is None else tables.through(session.agent, name)
        now = as_utc(session.clock(), name="clock")
        start = 0 if again else mark
        if since is not None:
            start = _start(session, messages, since)
        run = LearningRun(
            id=session.ids.next(now),
            extractor=checked_text(using.name, name="name of the extractor"),
            at=now,
            session=name,
            since=start,
            through=max(mark, start),
            dry_run=dry_run,
        )
        try:
            return _read_all(session, using, run, messages, mark=mark, sharing=sharing)
        except StaleRevision:
            # Somebody else learned from the same conversation, or revised one of the memories.
            if not left:
                raise
    raise AssertionError("The last try returns or raises.")


def consolidate(
    session: AgentContext,
    *,
    extractor: Extractor | None = None,
    dry_run: bool = False,
    sharing: Sharing | None = None,
) -> tuple[LearningRun, ...]:
    """Learn from every conversation with messages that weren't read, `sharing` the member's with a space."""
    if sharing is not None:
        sharing.check()
    own = session if sharing is None else sharing.member
    tables, log = LEARNING.required(session.store), CONVERSATIONS.required(own.store)
    runs = []
    for info in log.sessions(own.agent):
        name = info.session if sharing is None else sharing.renamed(info.session, ())[0]
        mark = tables.through(session.agent, name or info.session)
        latest = log.latest(own.agent, info.session, 1)
        if latest and latest[-1].seq > mark:
            runs.append(
                learn_from(session, info.session, extractor=extractor, dry_run=dry_run, sharing=sharing)
            )
    return tuple(runs)


def learning_runs(
    session: AgentContext,
    *,
    of_session: str | None = None,
    memory_id: str | None = None,
    limit: int | None = None,
    after: str | None = None,
) -> tuple[LearningRun, ...]:
    """The runs of the agent, the latest first. Raises InvalidInput."""
    most = None if limit is None else checked_count(limit, name="limit")
    tables = LEARNING.required(session.store)
    if memory_id is None:
        return tables.runs(session.agent, session=of_session, limit=most, after=after)
    runs = tables.runs(session.agent, session=of_session, after=after)
    named = [
        run
        for run in runs
        if any(memory_id in (each.memory, each.other) or _is_short(memory_id, each) for each in run.decisions)
    ]
    return tuple(named[:most])


def learning_run(session: AgentContext, run_id: str) -> LearningRun:
    """The run of that id, or of its last eight digits. Raises RunNotFound."""
    tables = LEARNING.required(session.store)
    found = tables.get(session.agent, checked_text(run_id, name="run_id"))
    if found is None:
        runs = {run.id: run for run in tables.runs(session.agent)}
        found = runs.get(by_short_id(run_id, runs, "learning runs"))
    if found is None:
        raise RunNotFound(run_id, session.agent)
    return found


def _is_short(memory_id: str, decision: Decision) -> bool:
    return len(memory_id) >= 8 and (decision.memory or "").endswith(memory_id)  # noqa: PLR2004 - A short id.


def _messages_of(session: AgentContext, source: Learnable) -> tuple[str | None, Sequence[Message]]:
    """The session and the messages to learn from; without an id a message gets that of its place."""
    if isinstance(source, str):
        name, source = source, conversation(session, source)
        if not source.exists():
            raise MessageNotFound("conversation", name, name)
    if isinstance(source, Conversation):
        if source.agent != session.agent:
            raise InvalidInput(
                f"Conversation {source.session!r} belongs to {source.agent!r}, not to {session.agent!r}. "
                "Learn from it with the engine that it is from."
            )
        return source.session, source.without_state(source.messages())
    given = list(source)
    if any(isinstance(each, Message) for each in given):
        read: Sequence[Message] = [message_of(each, None, (), (), None) for each in given]
    else:
        read = read_messages(given, None)
    numbered = [
        each.evolve(seq=each.seq or place, id=each.id or str(each.seq or place))
        for place, each in enumerate(read, 1)
    ]
    return None, numbered


def _start(session: AgentContext, messages: Sequence[Message], since: datetime | str) -> int:
    """The number of the message after which to begin."""
    moment = checked_time(since, name="since", clock=session.clock)
    later = (each.seq for each in messages if each.created_at is None or each.created_at >= moment)
    return next(later, messages[-1].seq + 1 if messages else 1) - 1


def _read_all(
    session: AgentContext,
    extractor: Extractor,
    run: LearningRun,
    messages: Sequence[Message],
    *,
    mark: int,
    sharing: Sharing | None,
) -> LearningRun:
    """Read the messages after `run.since` in batches, each with its changes in one transaction."""
    new = [each for each in messages if each.seq > run.since]
    earlier = [each for each in messages if each.seq <= run.since][-_CONTEXT:]
    most = getattr(extractor, "max_tokens", None)
    for start in range(0, len(new), _BATCH):
        if most is not None and run.tokens >= most:
            run = run.evolve(stopped=f"The calls of the run took {run.tokens:,} of {most:,} tokens.")
            break
        batch = new[start : start + _BATCH]
        learning = LearningBatch(session, earlier, batch, run.at, sharing)
        found = extractor.extract([*earlier, *batch], learning.known(extractor))
        answers = found.answers if isinstance(found, Extraction) else ()
        stopped = found.stopped if isinstance(found, Extraction) else ""
        doubtful = () if stopped else _doubtful(extractor, [*earlier, *batch], found)
        decisions = () if stopped else tuple(learning.decide(found, doubtful))
        through = run.through if stopped else max(run.through, batch[-1].seq)
        run = run.evolve(
            decisions=(*run.decisions, *decisions),
            answers=(*run.answers, *answers),
            through=through,
            stopped=stopped,
        )
        if sharing is not None:
            run = run.withholding(sharing.authors([*earlier, *batch]))
        if not run.dry_run:
            session.store.apply(session.agent, [*learning.changes, RecordRun(run=run, expected=mark)])
        if stopped:
            break
        mark = through
        earlier = [*earlier, *batch][-_CONTEXT:]
    return run


def _doubtful(
    extractor: Extractor, messages: Sequence[Message], proposed: Iterable[Proposal]
) -> Iterable[Proposal]:
    """The sentences of which the rules propose nothing; a model has read them all."""
    return extractor.doubtful(messages, tuple(proposed)) if isinstance(extractor, RuleExtractor) else ()


@dataclass(slots=True)
class LearningBatch:
    """The decisions on the proposals of some messages, and the changes that they mean, in order.

    What one decision changes the next ones see, before any of it is stored.
    """

    session: AgentContext
    earlier: Sequence[Message]
    messages: Sequence[Message]
    now: datetime
    sharing: Sharing | None = None
    changes: list[Change] = field(default_factory=list)
    _made: dict[str, Memory] = field(default_factory=dict)
    _states: dict[str, LifecycleState | None] = field(default_factory=dict)
    _offered: dict[str, Memory] = field(default_factory=dict)

    def known(self, extractor: Extractor) -> tuple[Memory, ...]:
        """The memories that may be related to the messages, for an extractor that looks at them."""
        if isinstance(extractor, RuleExtractor) and not any(map(refers_back, self.messages)):
            return ()
        text = "\n".join(each.own_text for each in self.messages)[-_LONGEST_QUERY:]
        self._offered = {each.id: each for each, _ in self._near(text, None)}
        return tuple(self._offered.values())

    def decide(self, proposals: Iterable[Proposal], doubtful: Iterable[Proposal] = ()) -> Iterable[Decision]:
        """What becomes of each proposal; those of earlier messages alone were decided on before.

        Of those that are `doubtful` only what speaks against a known memory is decided on.
        """
        by_id = {each.id: each for each in (*self.earlier, *self.messages)}
        read = {each.id for each in self.earlier}
        for proposal in proposals:
            if not isinstance(proposal, Proposal):
                raise InvalidInput(
                    f"{proposal!r} is no proposal. Extractors return germane.extractors.Proposal."
                )
            cited = {quote.message for quote in proposal.quotes}
            if cited and cited <= read:
                continue
            why = refusal(
                proposal,
                by_id,
                known={each.id: each.content for each in self._offered.values()},
                kinds=self.session.kinds,
                language=self.session.language,
            )
            if why:
                yield Decision(proposal=proposal, outcome=ProposalOutcome.REFUSED, reason=why)
            else:
                stated = proposal if self.sharing is None else self.sharing.named(proposal)
                yield self._decided(stated, by_id)
        for proposal in doubtful:
            if proposal.quotes[-1].message not in read:
                stated = proposal if self.sharing is None else self.sharing.named(proposal)
                yield from self._of_doubtful(stated, by_id)

    def _of_doubtful(self, proposal: Proposal, messages: Mapping[str, Message]) -> Iterator[Decision]:
        new, remark = self._memory(proposal, messages), _remark(proposal, messages)
        near = self._near(new.content, new)
        found = self._clash(new, remark, near)
        target = None if found is None else found.target
        if found is None or target is None:
            return
        if len(remark.sentence.split()) < SHORTEST:
            content = with_value_of(target.content, remark.sentence)
            if content is None:
                return
            proposal = proposal.evolve(content=content, replaces=target.id)
            new = self._memory(proposal, messages)
        known = {target.id: target.content}
        if not refusal(
            proposal, messages, known=known, kinds=self.session.kinds, language=self.session.language
        ):
            yield self._applied(proposal, new, found)

    def _decided(self, proposal: Proposal, messages: Mapping[str, Message]) -> Decision:
        new = self._memory(proposal, messages)
        near = self._near(new.content, new)
        keyed = None if new.key is None else self._keyed(new.key)
        keyed = keyed or self._former(new)
        named = None if proposal.replaces is None else self._current(self._offered[proposal.replaces])
        language, (user, _) = self.session.language, user_and_agent(self.session.agent)
        found = verdict(new, proposal, keyed=keyed, named=named, near=near, language=language, user=user)
        if found.outcome is ProposalOutcome.NEW:
            found = self._clash(new, _remark(proposal, messages), near) or found
        return self._applied(proposal, new, found)

    def _clash(self, new: Memory, remark: Remark, near: Sequence[tuple[Memory, float]]) -> Verdict | None:
        """What a remark speaks against in words that no rule knows, of what wasn't learned in this run.

        The weights are fitted to the bundled embedder, whatever the store's own.
        """
        others = [other for other, _ in near if other.id not in self._made]
        if self.session.language != "english" or not others:
            return None
        vector, *rows = StaticEmbedder().embed([remark.statement, *(other.content for other in others)])
        cosines = [(other, float(row @ vector)) for other, row in zip(others, rows, strict=True)]
        return clash(new, remark, sorted(cosines, key=lambda each: (-each[1], each[0].id)))

    def _applied(self, proposal: Proposal, new: Memory, found: Verdict) -> Decision:
        found = _own(new, found)
        target, outcome = found.target, found.outcome
        made = Decision(proposal=proposal, outcome=outcome, reason=found.reason)
        if outcome is ProposalOutcome.NEW:
            return self.inserted(made, new)
        if target is None:
            raise AssertionError("A verdict on what is known names it.")
        if outcome is ProposalOutcome.CONFIRMED:
            effect = self._signal(target, LifecycleSignal.CONFIRM, Cause.REPEATED)
            if effect is None:
                return made.evolve(outcome=ProposalOutcome.NOTHING, memory=target.id)
            return made.evolve(memory=target.id, effects=(effect,))
        if outcome is ProposalOutcome.REVISED:
            return self.revised(made, new, target)
        if outcome is ProposalOutcome.CONTRADICTED:
            beside = new.evolve(key=None)
            made = self.inserted(
                made.evolve(other=target.id), beside.evolve(content_hash=content_hash_of(beside))
            )
            if target.agent == new.agent and is_trusted(new, target):
                effect = self._signal(target, LifecycleSignal.CONTRADICT, Cause.REQUESTED)
                made = made if effect is None else made.evolve(effects=(*made.effects, effect))
            return made
        return made.evolve(memory=target.id)

    def _memory(self, proposal: Proposal, messages: Mapping[str, Message]) -> Memory:
        """The memory that a proposal would be, with the source, time and trust of its last message."""
        message = messages[proposal.quotes[-1].message]
        subject = proposal.subject
        # What somebody else makes a rule of is none for the agent.
        is_of_other = self.sharing is None and subject not in (None, USER) and proposal.kind == "rule"
        draft = Draft(
            content=proposal.content,
            kind="fact" if is_of_other else proposal.kind,
            subject=subject,
            trust=trust_of(proposal, messages),
            confidence=proposal.confidence,
            source=f"conversation:{message.session}#{message.id}" if message.session else None,
            created_at=message.created_at,
            session=message.session or None,
            key=f"{subject or 'user'}: {proposal.attribute}".casefold() if proposal.attribute else None,
            valid_from=proposal.valid_from,
            valid_until=proposal.valid_until,
        )
        return memory_of(self.session, draft, now=self.now)

    def inserted(self, made: Decision, new: Memory) -> Decision:
        """The decision with its effect: `new` is stored."""
        lifecycle = self.session.kinds.of(new).lifecycle
        vector = self._vector(new)
        self.changes.append(Insert(memory=new, vector=vector, revive=False, lifecycle=lifecycle, at=self.now))
        self._made[new.id] = new
        self._states[new.id] = LifecycleState(stage=new.stage)
        return made.evolve(memory=new.id, effects=(_effect(new.id, MemoryState(), self._state_of(new)),))

    def revised(self, made: Decision, new: Memory, old: Memory) -> Decision:
        """The next version of `old`, which holds from when it was stated unless it says from when."""
        before = self._state_of(old)
        starts: datetime | None = new.valid_from or new.created_at
        if old.valid_from is not None and starts is not None and starts <= old.valid_from:
            starts = new.created_at
        quotes = made.proposal.quotes
        corrects = len(quotes) > 1 and new.valid_from is None and is_correction(quotes[-1].text)
        if corrects and (old.source or "").endswith(f"#{quotes[-2].message}"):
            # It corrects what was stated before, which never held.
            starts = old.valid_from
        after = new.evolve(
            id=old.id,
            version=old.version + 1,
            key=old.key if new.key is None else new.key,
            valid_from=starts,
            pinned=old.pinned,
            expires_at=old.expires_at,
        )
        after = after.evolve(content_hash=content_hash_of(after))
        self.changes += version_changes(
            self.session, old, after, self._vector(after), cause=Cause.REVISED, at=self.now
        )
        self._made[old.id] = after
        self._states[old.id] = LifecycleState(stage=after.stage)
        return made.evolve(memory=old.id, effects=(_effect(old.id, before, self._state_of(after)),))

    def _signal(self, memory: Memory, sign: LifecycleSignal, cause: Cause) -> Effect | None:
        """Let a memory be confirmed or contradicted; None where its kind doesn't know that."""
        lifecycle = self.session.kinds.of(memory).lifecycle
        before = self._state_of(memory)
        if before.state is None or LIFECYCLE.of(self.session.store) is None:
            return None
        state = next_state(lifecycle, before.state, sign, memory=memory, at=self.now)
        if state is None:
            return None
        self.changes.append(
            ApplySignal(memory_id=memory.id, lifecycle=lifecycle, sign=sign, cause=cause, at=self.now)
        )
        doubt = CONTRADICTED if sign is LifecycleSignal.CONTRADICT else 0.0
        confidence = max(0.0, round(memory.confidence - doubt, 9)) if doubt else memory.confidence
        self._made[memory.id] = memory.evolve(confidence=confidence, stage=state.stage)
        self._states[memory.id] = state
        return _effect(memory.id, before, self._state_of(self._made[memory.id]))

    def _state_of(self, memory: Memory) -> MemoryState:
        return memory_state(self.session, memory, self._states)

    def _current(self, memory: Memory) -> Memory:
        return self._made.get(memory.id, memory)

    def _keyed(self, key: str) -> Memory | None:
        made = next((each for each in reversed(self._made.values()) if each.key == key), None)
        return made or by_key(self.session, key)

    def _former(self, new: Memory) -> Memory | None:
        """What stands for a former memory of the very same text, source and subject, or what is forgotten."""
        terms = query_terms(new.content, language=self.session.language)
        where = Filter(statuses=(Status.FORGOTTEN, Status.SUPERSEDED, Status.ARCHIVED))
        query = Query(text=new.content, terms=terms, filter=where, slices=(Slice(limit=_LOOKED_AT),))
        found = self.session.store.search(self.session.agent, query).slices[0] if terms else ()
        same = (each.memory for each in found if each.memory.content_hash == new.content_hash)
        former = next(same, None)
        return None if former is None else self._current(head_of(self.session, former))

    def _near(self, text: str, new: Memory | None) -> list[tuple[Memory, float]]:
        """The active memories most like a text, the most alike first, each with its cosine."""
        vector = embed_texts(self.session.embedder, [text])[0]
        terms = query_terms(text, language=self.session.language)
        query = Query(
            text=text, terms=terms, vector=vector, filter=Filter(), slices=(Slice(limit=_LOOKED_AT),)
        )
        stored = [
            self._current(each.memory)
            for side in self.session.sides
            for each in side.store.search(side.agent, query).slices[0]
        ]
        fresh = () if new is None else self._made_alike(terms)
        others = list({each.id: each for each in (*stored, *fresh)}.values())
        vectors = embed_texts(self.session.embedder, [other.content for other in others])
        near = [
            (other, 0.0 if vector is None or row is None else float(vector @ row))
            for other, row in zip(others, vectors, strict=True)
        ]
        return sorted(near, key=lambda each: (-each[1], each[0].id))

    def _made_alike(self, terms: Sequence[str]) -> list[Memory]:
        """Those of the latest memories of the batch that share most terms, as many as a search returns."""
        latest = [*self._made.values()][-_LATEST:]
        mine, language = {*terms}, self.session.language
        return nlargest(
            _LOOKED_AT,
            latest,
            key=lambda made: len(mine.intersection(_terms_of(made.content, language))),
        )

    def _vector(self, memory: Memory) -> Vector | None:
        return vectors_to_store(self.session.embedder, [memory.content])[0]


def _own(new: Memory, found: Verdict) -> Verdict:
    """The verdict within what a user may change: only the agent changes its own memories, which they read."""
    if found.target is None or found.target.agent == new.agent:
        return found
    within = {
        ProposalOutcome.CONFIRMED: ProposalOutcome.NOTHING,
        ProposalOutcome.REVISED: ProposalOutcome.CONTRADICTED,
    }
    return replace(found, outcome=within.get(found.outcome, found.outcome))


def _remark(proposal: Proposal, messages: Mapping[str, Message]) -> Remark:
    """The last sentence that a proposal quotes, with its message and the assistant's just before."""
    quote = proposal.quotes[-1]
    message = messages[quote.message]
    before = max(
        (each for each in messages.values() if each.seq < message.seq),
        key=lambda each: each.seq,
        default=None,
    )
    is_reply = before is not None and before.role is MessageRole.ASSISTANT
    return Remark(
        sentence=quote.text,
        statement=third_person(quote.text),
        message=message.own_text,
        before=before.own_text if before is not None and is_reply else "",
    )


@text_cache(1024)
def _terms_of(text: str, language: str) -> frozenset[str]:
    return frozenset(query_terms(text, language=language))


def _effect(memory_id: str, before: MemoryState, after: MemoryState) -> Effect:
    return Effect(memory=memory_id, before=before, after=after)


def memory_state(
    session: AgentContext, memory: Memory, states: Mapping[str, LifecycleState | None]
) -> MemoryState:
    """How a memory stands; `states` are the lifecycle states that aren't stored yet, by id."""
    state = states.get(memory.id)
    if state is None:
        lifecycles = LIFECYCLE.of(session.store)
        found = lifecycles and lifecycles.states(session.agent, [memory.version_id])[0]
        stage = stage_of(session.kinds.of(memory).lifecycle, memory)
        state = replace(found or LifecycleState(stage=stage), stage=stage)
    return MemoryState(
        version=memory.version,
        status=memory.status,
        updated_at=memory.updated_at,
        valid_until=memory.valid_until,
        confidence=memory.confidence,
        state=state,
    )
