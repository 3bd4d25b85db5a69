"""What is learned from conversations: proposals, decisions, runs, and what is known of an entity.

Nothing here reads a clock, a random source or a file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from germane.errors import InvalidInput
from germane.model.memory import LifecycleState, Memory, Stage, Status
from germane.model.validation import checked_fields


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class Quote:
    """Words of a message that support a proposal: the id of the message, and its exact words.

    `withheld` has who wrote the message and on which day, in place of words that not all readers may see.
    """

    message: str
    text: str
    withheld: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields(confidence=(0, 1))
class Proposal:
    """A statement that an extractor proposes to learn, with the words that support it.

    `kind` is that of the memory, `subject` whom or what it is about ("user" for the user). `attribute` names
    a property of which the subject has one value at a time, such as "home": a later statement of the same
    subject and attribute revises the earlier one. It holds from `valid_from` until before `valid_until`;
    None leaves an end open. `confidence` runs from 0 to 1. `replaces` is the id of a known memory that it
    corrects. Raises InvalidInput for a value of another type or out of range.
    """

    content: str
    quotes: tuple[Quote, ...]
    kind: str = "fact"
    subject: str | None = None
    attribute: str | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    confidence: float = 1.0
    replaces: str | None = None

    def evolve(self, **changes: Any) -> Self:
        """A copy with the named fields changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """One call of a model: the SHA-256 of its request, the answer as it came, and the tokens of both."""

    request: str
    answer: str
    tokens: int = 0


class Extraction(tuple[Proposal, ...]):  # noqa: SLOT001 - no tuple can have slots with names in them.
    """The proposals of an extractor that calls a model: with each call, and why it stopped early, if it did.

    `stopped` is empty where all messages were read.
    """

    answers: tuple[ModelAnswer, ...]
    stopped: str

    def __new__(
        cls, proposals: Iterable[Proposal] = (), *, answers: Iterable[ModelAnswer] = (), stopped: str = ""
    ) -> Self:
        made = super().__new__(cls, proposals)
        made.answers, made.stopped = tuple(answers), stopped
        return made


class ProposalOutcome(StrEnum):
    """What became of a proposal."""

    NEW = "new"  # It was stored as a new memory.
    CONFIRMED = "confirmed"  # A known memory says the same, and was confirmed.
    REVISED = "revised"  # A known memory got it as its next version.
    CONTRADICTED = "contradicted"  # It was stored beside a known memory that says the opposite.
    REFUSED = "refused"  # Its quotations don't support it, or it isn't to be learned.
    NOTHING = "nothing"  # It is known already, and nothing changed.


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryState:
    """How a memory stands, as far as learning changes it: version, status, validity, and what is counted.

    `version` is 0 where there is no memory.
    """

    version: int = 0
    status: Status = Status.ACTIVE
    updated_at: datetime | None = None
    valid_until: datetime | None = None
    confidence: float = 1.0
    state: LifecycleState | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a decision did to a memory: how it stood before and after, by which it is undone."""

    memory: str
    before: MemoryState
    after: MemoryState


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided on a proposal, and why.

    `memory` is the id of the memory that was stored, confirmed or revised, or that says it already; None for
    none. `other` is the id of a memory that says the opposite. `undone` says whether it was undone since. The
    texts of the proposal are empty once the memory or the message that has them was purged.
    """

    proposal: Proposal
    outcome: ProposalOutcome
    reason: str
    memory: str | None = None
    other: str | None = None
    undone: bool = False
    effects: tuple[Effect, ...] = ()

    def evolve(self, **changes: Any) -> Self:
        """A copy with the named fields changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRun:
    """One run of an extractor over messages, and what was decided on each of its proposals.

    `session` names the conversation, None for messages that aren't stored. The run read the messages after
    the one numbered `since`, up to `through`, where the next run begins. `answers` are the calls of a model.
    `stopped` says why it ended early, empty where it read all. `undone_at` is when it was undone, None for
    one that stands. A `dry_run` stored nothing.
    """

    id: str
    extractor: str
    at: datetime
    session: str | None = None
    since: int = 0
    through: int = 0
    decisions: tuple[Decision, ...] = ()
    answers: tuple[ModelAnswer, ...] = ()
    stopped: str = ""
    dry_run: bool = False
    undone_at: datetime | None = None

    def evolve(self, **changes: Any) -> Self:
        """A copy with the named fields changed."""
        return replace(self, **changes)

    def withholding(self, authors: Mapping[str, str]) -> Self:
        """The run without words of messages, whose ids `authors` has with who wrote them and on which day.

        The texts of refused proposals and of a model's calls go as well: nobody decided that others may see
        them. Itself where there is no such message.
        """
        if not authors:
            return self
        return self.evolve(
            decisions=tuple(_withholding(each, authors) for each in self.decisions),
            answers=tuple(replace(each, request="", answer="") for each in self.answers),
        )

    @property
    def counts(self) -> Mapping[ProposalOutcome, int]:
        """How many decisions had each outcome; those without any are left out."""
        return Counter(each.outcome for each in self.decisions)

    @property
    def memories(self) -> tuple[str, ...]:
        """The ids of the memories that the run stored, confirmed or revised, each once."""
        changed = (each.memory for each in self.decisions if each.effects and each.memory)
        return tuple(dict.fromkeys(changed))

    @property
    def tokens(self) -> int:
        """The tokens that its calls of a model took."""
        return sum(each.tokens for each in self.answers)

    def without(self, *, memories: Iterable[str] = (), messages: Iterable[str] = ()) -> Self:
        """The run without the texts that purged memories or messages had; itself where it has none of them.

        The answers of a model go with them, since they have these texts too.
        """
        gone, unsaid = frozenset(memories), frozenset(messages)
        decisions = tuple(_without(each, gone, unsaid) for each in self.decisions)
        if decisions == self.decisions:
            return self
        return self.evolve(decisions=decisions, answers=())


def _withholding(decision: Decision, authors: Mapping[str, str]) -> Decision:
    proposal, is_refused = decision.proposal, decision.outcome is ProposalOutcome.REFUSED
    quotes = tuple(
        replace(each, text="", withheld=each.withheld or authors.get(each.message, ""))
        if is_refused or each.message in authors
        else each
        for each in proposal.quotes
    )
    if not is_refused:
        return decision.evolve(proposal=proposal.evolve(quotes=quotes))
    bare = Proposal(content="", quotes=quotes, kind=proposal.kind)
    return decision.evolve(proposal=bare, reason="It was refused; its text is withheld.")


def _without(decision: Decision, memories: frozenset[str], messages: frozenset[str]) -> Decision:
    named = {
        decision.memory,
        decision.other,
        decision.proposal.replaces,
        *(each.memory for each in decision.effects),
    }
    cited = {quote.message for quote in decision.proposal.quotes}
    if not (named & memories or cited & messages):
        return decision
    bare = Proposal(content="", quotes=(), kind=decision.proposal.kind)
    return decision.evolve(
        proposal=bare,
        reason="Its text was purged.",
        memory=None if decision.memory in memories else decision.memory,
        other=None if decision.other in memories else decision.other,
        effects=tuple(each for each in decision.effects if each.memory not in memories),
    )


# What is known about somebody or something: its names with their reasons, and the facts, in time.


@dataclass(frozen=True, slots=True, kw_only=True)
class NameMerge:
    """Two names that stand for one entity, why, and the ids of the memories that say so.

    `decided` says whether `Engine.same_name` did it; `Engine.learning_runs` of its memory has the run, by
    which it is undone.
    """

    names: tuple[str, str]
    reason: str
    memories: tuple[str, ...] = ()
    decided: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityFact:
    """A memory that is about an entity, or merely names it (`mentioned`).

    It holds from `since`, the time of its statement where it names no other, until before `until`, None
    where that is open. `current` says whether it is the current version, active, and holds at the time of
    the report. `quotes` are the messages of a conversation that state it, with their words.
    """

    memory: Memory
    since: datetime
    until: datetime | None
    current: bool
    mentioned: bool = False
    quotes: tuple[Quote, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """Somebody or something: its names, the longest first, why they are one entity, and its facts in time."""

    name: str
    names: tuple[str, ...]
    merges: tuple[NameMerge, ...] = ()
    facts: tuple[EntityFact, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityReport:
    """What is known about a name, at a time.

    `entities` has one entity; none where nothing is known; and several where the name fits several, which
    then stay apart. `unclear` are facts that name one of these without saying which. `notes` say why names
    weren't merged, and what was left out.
    """

    name: str
    at: datetime
    entities: tuple[Entity, ...] = ()
    unclear: tuple[EntityFact, ...] = ()
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[EntityFact]:
        """The facts of all its entities and the unclear ones, in order of time, each once."""
        facts = {each.memory.version_id: each for one in self.entities for each in one.facts}
        facts |= {each.memory.version_id: each for each in self.unclear}
        return iter(sorted(facts.values(), key=lambda each: (each.since, each.memory.version_id)))

    def __bool__(self) -> bool:
        return bool(self.entities or self.unclear)


# A run as JSON, as stores keep it: with every digit, since it restores what was before.


def run_to_text(run: LearningRun) -> str:
    """The JSON of a run."""
    return json.dumps(asdict(run), ensure_ascii=False, separators=(",", ":"), default=datetime.isoformat)


def run_from_text(text: str) -> LearningRun:
    """The run of a JSON that `run_to_text` wrote. Raises InvalidInput for anything else."""
    try:
        fields: Any = json.loads(text)
        return LearningRun(
            **{
                **fields,
                "at": _moment(fields["at"]),
                "undone_at": _moment(fields["undone_at"]),
                "decisions": tuple(map(_decision, fields["decisions"])),
                "answers": tuple(ModelAnswer(**each) for each in fields["answers"]),
            }
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"No learning run can be read from this JSON: {error!r}.") from error


def _decision(fields: Mapping[str, Any]) -> Decision:
    proposal = dict(fields["proposal"])
    proposal["quotes"] = tuple(Quote(**each) for each in proposal["quotes"])
    for name in ("valid_from", "valid_until"):
        proposal[name] = _moment(proposal[name])
    return Decision(
        **{
            **fields,
            "proposal": Proposal(**proposal),
            "outcome": ProposalOutcome(fields["outcome"]),
            "effects": tuple(map(_effect, fields["effects"])),
        }
    )


def _effect(fields: Mapping[str, Any]) -> Effect:
    return Effect(
        memory=fields["memory"], before=_state_of(fields["before"]), after=_state_of(fields["after"])
    )


def _state_of(fields: Mapping[str, Any]) -> MemoryState:
    state = fields["state"]
    if state is not None:
        stage = None if state["stage"] is None else Stage(state["stage"])
        state = LifecycleState(**{**state, "stage": stage, "renewed_at": _moment(state["renewed_at"])})
    times = {name: _moment(fields[name]) for name in ("updated_at", "valid_until")}
    return MemoryState(**{**fields, **times, "status": Status(fields["status"]), "state": state})


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
