"""The protocols that users implement. Structural: an object with these members fits, nothing to inherit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from germane.model.query import Candidate, Filter, Order, Query, SearchResult

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from germane.ledger import Assembly, Finding, MemoryChange, StoreStats
    from germane.model.change import Applied, Change
    from germane.model.conversation import ConversationChange, ConversationInfo, GroupScores, Message
    from germane.model.learning import Example, LearningStatus, OutcomeHistory
    from germane.model.memory import LifecycleEvent, LifecycleState, Memory
    from germane.model.plan import Frame
    from germane.model.space import SpaceAct, SpaceEvent, SpaceInfo
    from germane.working_sets import Features, HeldChange, StoredWorkingSet, WorkingSetEvent

__all__ = [
    "Candidate",
    "Checkable",
    "Clock",
    "ConversationStore",
    "Embedder",
    "FeedbackStore",
    "FrameSelector",
    "LedgerStore",
    "LifecycleStore",
    "MultilingualStore",
    "OutcomeStore",
    "Query",
    "Scorer",
    "SpaceStore",
    "Store",
    "Summarizer",
    "TokenCounter",
    "WorkingSetStore",
]


@runtime_checkable
class TokenCounter(Protocol):
    """Counts tokens.

    `name` identifies the counting (it is stored beside the counts). `margin` is the error bound
    as a fraction: the true count is at most `count * (1 + margin)`. Exact counters have margin 0.
    """

    @property
    def name(self) -> str: ...

    @property
    def margin(self) -> float: ...

    def count(self, text: str) -> int:
        """How many tokens the text has; never negative, 0 for an empty text."""
        ...


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors. `name` and `dimension` are stored with them.

    An embedder may have an attribute `eager`. Where it is False, nothing waits for the embedder that
    writes: a thread of the engine's embeds afterwards. Without it, what is stored has its vector at once.
    `least_cosine` is what its vectors of two texts need to be told from chance: 0.18 unless it says.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row per text, in order: float32 of shape (len(texts), dimension), any length of vector."""
        ...


@runtime_checkable
class Summarizer(Protocol):
    """Shortens a text, by a language model for instance."""

    def summarize(self, text: str, tokens: int) -> str:
        """The text in about `tokens` tokens or fewer."""
        ...


@runtime_checkable
class Store(Protocol):
    """Keeps memories. It speaks storage, not features: six methods, all but the last per agent.

    Every implementation has to pass `germane.testing.contract.StoreContract`, which says what
    each method promises.
    """

    def apply(self, agent: str, changes: Sequence[Change]) -> tuple[Applied, ...]:
        """Apply all changes in one transaction, in order, or none of them."""
        ...

    def get(self, agent: str, ids: Sequence[str]) -> tuple[Memory | None, ...]:
        """The memories of these ids whatever their status, in the order asked; None where there is none."""
        ...

    def find(
        self,
        agent: str,
        where: Filter,
        *,
        order: Order = Order.NEWEST,
        limit: int | None = None,
        after: str | None = None,
    ) -> tuple[Memory, ...]:
        """The memories that pass the filter, in order; `after` is the last id of the page before."""
        ...

    def search(self, agent: str, query: Query) -> SearchResult:
        """The candidates for a query, from one snapshot of the store."""
        ...

    def stats(self, agent: str) -> StoreStats:
        """Figures about this agent's memories and the store that holds them."""
        ...

    def close(self) -> None:
        """Release what the store holds. Closing twice is fine."""
        ...


@runtime_checkable
class Checkable(Protocol):
    """What only some stores can do: look for damage in themselves."""

    def check(self, agent: str) -> tuple[Finding, ...]:
        """What is wrong with the store or this agent's part of it; empty when nothing is."""
        ...


@runtime_checkable
class MultilingualStore(Protocol):
    """What only some stores can do: index the words of each agent in a language of its own."""

    def settle_language(self, agent: str, language: str | None) -> str:
        """Make this the language of the agent's words; with None leave it. Returns the one that holds.

        Raises InvalidInput for a language without a stemmer.
        """
        ...


@runtime_checkable
class FeedbackStore(Protocol):
    """What only some stores can do: keep what was used, for an agent that wants to learn from it.

    Such a store keeps an example of each `Judge` that names parts, while the agent learns. It keeps
    a bounded number for each agent, and the oldest leave; a purged memory takes its own with it.
    """

    def settle_learning(self, agent: str, on: bool | None) -> LearningStatus:
        """Switch an agent's learning on or off; with None leave it. Returns how it is now."""
        ...

    def examples(self, agent: str) -> tuple[Example, ...]:
        """The agent's showings and examples, by context and then by memory, from one snapshot of the store.

        Those that were told while it didn't learn have no parts.
        """
        ...

    def reset_learning(self, agent: str) -> int:
        """Remove all examples of an agent, and return how many there were; uses stay counted."""
        ...


@runtime_checkable
class OutcomeStore(Protocol):
    """What only some stores can do: keep how work turned out with what contexts showed.

    Such a store applies `Attest`. It keeps a bounded number for each agent, and the oldest leave; a
    purged memory takes its own with it.
    """

    def outcome_history(self, agent: str, *, known: int | None = None) -> OutcomeHistory | None:
        """What is attested, by context and then by memory; None while its stamp is still `known`."""
        ...


@runtime_checkable
class LifecycleStore(Protocol):
    """What only some stores can do: keep how memories stand in their lives, and the log of what moved them.

    Such a store applies `Live`, `Merge` and `Reword`, asks the rules of `germane.lifecycle` inside the
    transaction, and writes an event for each in the same. A purged memory takes its own with it.
    """

    def lifecycle_states(self, agent: str, ids: Sequence[str]) -> tuple[LifecycleState | None, ...]:
        """How memories stand, in the order asked; None where there is no memory of that id."""
        ...

    def life_events(
        self, agent: str, memory_id: str | None = None, *, since: int = 0, limit: int | None = None
    ) -> tuple[LifecycleEvent, ...]:
        """What happened to all versions of a memory, or to every memory, after the event `since`, in order.

        Raises NotFound when the agent has no such memory.
        """
        ...


@runtime_checkable
class LedgerStore(Protocol):
    """What only some stores can do: keep a ledger of assemblies, and look back at what the store was then.

    It keeps a bounded number for each agent, and the oldest leave. It keeps no text of a memory; a purged
    memory takes its entries with it in the same transaction, and the hash of every text that it stood in.
    A point is the store's own business: equal points of an agent say that its memories are the same.
    """

    def record(self, agent: str, assembly: Assembly) -> None:
        """Keep an assembly. Raises InvalidInput where one of that id is kept already."""
        ...

    def recorded(self, agent: str, assembly_id: str) -> Assembly | None:
        """The agent's assembly of that id, with what feedback has said since; None where there is none."""
        ...

    def recordings(
        self, agent: str, *, since: datetime | None = None, limit: int | None = None, after: str | None = None
    ) -> tuple[Assembly, ...]:
        """The agent's assemblies made at `since` or later, the latest first.

        `after` is the last id of the page before. Raises NotFound where that is gone.
        """
        ...

    def point(self, agent: str) -> Mapping[str, int]:
        """How far the agent's memories have come."""
        ...

    def altered(self, agent: str, point: Mapping[str, int]) -> tuple[MemoryChange, ...]:
        """What happened since a point to memories that were there then, and which were added."""
        ...

    def as_of(self, agent: str, point: Mapping[str, int]) -> Store:
        """A copy of the agent's memories as they were at a point, as far as the store knows.

        It doesn't know all, so a copy proves nothing by itself. It is for reading, and has to be closed.
        """
        ...


@runtime_checkable
class WorkingSetStore(Protocol):
    """What only some stores can do: keep working sets, by owner and by name, with a log of their moves.

    Each method takes the name of the tenant that owns set and memories. A memory that is forgotten or
    purged leaves every set in the same transaction, and a revised one gives its place to its next
    version; both are moves like all others.
    """

    def hold(
        self, owner: str, name: str, changes: Sequence[HeldChange], *, seen: int | None = None, by: str = ""
    ) -> tuple[WorkingSetEvent, ...] | None:
        """Apply all changes to a set in one transaction, in order, or none of them; returns the moves.

        With `seen`, only if the set's latest move has that number; else nothing is done, and None
        returned: somebody moved it since, so whoever decides has to look again. `by` is who does it,
        the owner unless named. Raises NotFound, NotInWorkingSet or InvalidInput.
        """
        ...

    def stored_working_set(self, owner: str, name: str) -> StoredWorkingSet:
        """A set as it is now, from one snapshot of the store; an empty one where there is none."""
        ...

    def working_sets(self, owner: str) -> tuple[str, ...]:
        """The names of the sets of an owner that anything was ever done to, in order."""
        ...

    def moves(self, owner: str, *, since: int = 0, limit: int | None = None) -> tuple[WorkingSetEvent, ...]:
        """What became of the owner's sets after the move numbered `since`, in order, at most `limit`.

        Touches may be left out that are older than the latest 10,000 moves.
        """
        ...

    def moved(self, owner: str) -> int:
        """The number of the owner's latest move; cheap enough to ask for many times a second."""
        ...

    def features(self, owner: str, ids: Sequence[str]) -> tuple[Features | None, ...]:
        """What the index knows of these memories, in the order asked; None where there is no memory."""
        ...


@runtime_checkable
class ConversationStore(Protocol):
    """What only some stores can do: keep the log of conversations, each of one agent and one session."""

    def converse(
        self, agent: str, session: str, changes: Sequence[ConversationChange]
    ) -> tuple[Message, ...]:
        """Apply all changes in one transaction, in order, or none of them.

        Returns the messages that they appended, moved or deleted, as they are afterwards or were before.
        """
        ...

    def messages(self, agent: str, session: str, *, hidden: bool = False) -> tuple[Message, ...]:
        """The messages of a conversation in the order of their numbers; those of hidden groups if asked."""
        ...

    def message(self, agent: str, message_id: str) -> Message | None:
        """The agent's message of that id, whatever its conversation; None where there is none."""
        ...

    def match_groups(self, agent: str, session: str, terms: Sequence[str]) -> GroupScores:
        """How well the visible groups match any of these terms, by the statistics of this session alone."""
        ...

    def anchors(self, agent: str, session: str) -> Mapping[str, str]:
        """The texts that stand outside any window, by name, in the order of their names."""
        ...

    def conversations(self, agent: str) -> tuple[ConversationInfo, ...]:
        """All conversations of the agent, by the names of their sessions."""
        ...


@runtime_checkable
class SpaceStore(Protocol):
    """What only some stores can do: keep spaces, memories that agents share by being members.

    The rules are those of `germane.spaces`; the store asks them inside the transaction that they are
    for. A space's memories and working sets are those of an agent of its own, `germane.spaces.tenant_of`
    its name, so that nothing of theirs is mixed with anything of a member's.
    """

    def settle_space(self, space: str, act: SpaceAct) -> SpaceInfo | None:
        """Do one act to a space in one transaction, or nothing where the rules don't allow it.

        Returns the space as it is then; None when it was disbanded, and all its memories purged.
        """
        ...

    def space(self, name: str) -> SpaceInfo | None:
        """A space as it is now; None where there is none of the name."""
        ...

    def spaces(self, agent: str) -> tuple[SpaceInfo, ...]:
        """The spaces that an agent is in, by name."""
        ...

    def entered(self, space: str, agent: str) -> Store:
        """The store as a member uses it, for the space's own memories; closing it closes nothing.

        It can do all that the store can. Each of its reads raises NotAllowed unless the agent is a
        member in that very snapshot, each write unless it is an active one that may write.
        """
        ...

    def events(
        self, space: str, agent: str, *, since: int = 0, limit: int | None = None
    ) -> tuple[SpaceEvent, ...]:
        """What happened in a space after the event numbered `since`, in order, for a member.

        Members, memories, and what working sets hold; touches and vectors are left out. Raises
        UnknownSpace or NotAllowed.
        """
        ...

    def latest_event(self, space: str) -> int:
        """The number of a space's latest event; cheap enough to ask for many times a second."""
        ...


Scorer: TypeAlias = Callable[[Candidate, Query, datetime], float]
"""Scores one candidate for a query at a moment. Must be pure: same arguments, same score."""

FrameSelector: TypeAlias = Callable[[str, "Sequence[Frame]"], "Frame | str"]
"""Chooses a frame for a text, a model for instance: one of the frames given, or its name.

Where it raises, or names none of them, words choose instead, and the trace says so.
"""

Clock: TypeAlias = Callable[[], datetime]
"""Tells the time, aware. Read once per call of the engine."""
