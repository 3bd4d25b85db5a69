"""What is asked of a request, as one value.

Level: ranking (imports model, errors, protocols and conversation). Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from germane.conversation.arranging import Arrangement
from germane.conversation.counting import as_json, message_tokens
from germane.conversation.tiers import Tiers
from germane.model.conversation import GroupScores
from germane.model.forms import checked_fields
from germane.model.message import Message
from germane.model.plan import Share
from germane.model.recalled import fenced
from germane.model.request import Block, RequestState

__all__ = ["AIM", "FULL", "Remembered", "RequestShares", "Wanted", "block_cost", "entry_of"]

FULL: Final = 0.9
"""The share of what may be spent that a request takes at least, where more than that is on offer."""

AIM: Final = 0.96
"""The share that it is filled to, since its parts don't end where the room does, and since what is counted
high for safety is less by a plainer count."""


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class RequestShares:
    """How what a request may spend is split, once all that must stand in it does.

    Each part has a weight, a floor and a ceiling in tokens; what one leaves, the others take.
    `recalled` is what matches from before the window, and counts only where the window doesn't hold all.
    It has more than its ceiling only where less than 90 % of the room would be used else.
    """

    memory: Share = field(default_factory=lambda: Share(weight=15, ceiling=8_000))
    recalled: Share = field(default_factory=lambda: Share(weight=40, ceiling=16_000))
    history: Share = field(default_factory=lambda: Share(weight=45))


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What memory offers: a text, and how much each memory in it has to do with the question.

    What is `required` stands in the request whole, or none is made.
    """

    text: str
    shows: Mapping[str, float] = field(default_factory=dict)
    required: bool = False


Remember: TypeAlias = Callable[[int], Remembered]
"""Memory of at most so many tokens. Raises BudgetTooSmall where what is required has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One request: what must stand in it, what may, and how much there is to spend.

    `limit` is in tokens by the arrangement's counter, all margins taken off. `asked` tells two questions
    of the same group apart, `admits` two filters of memory. `still_stands` says whether memories that were
    shown are what they were. With `opens`, a line of the user's stands first, where the provider has it so
    and nothing else does.
    """

    limit: int
    system: Sequence[Message] = ()
    tools: Sequence[Mapping[str, Any]] = ()
    anchors: Mapping[str, str] = field(default_factory=dict)
    pins: frozenset[str] = frozenset()
    remember: Remember | None = None
    found: Callable[[], GroupScores] = GroupScores
    still_stands: Callable[[Sequence[str]], bool] = lambda _: True
    asked: str = ""
    admits: str = ""
    shares: RequestShares = field(default_factory=RequestShares)
    tiers: Tiers = field(default_factory=Tiers)
    previous: RequestState | None = None
    opens: bool = False


def block_cost(block: Block, arranged: Arrangement) -> int:
    """What a block costs as the message that it is sent as."""
    return message_tokens(_message(block), arranged.provider, arranged.counter)


def entry_of(block: Block, arranged: Arrangement) -> tuple[str, int]:
    """A block as it is sent, and its cost."""
    return as_json(_message(block)), block_cost(block, arranged)


def _message(block: Block) -> dict[str, Any]:
    """The user's and not the system's: what was recalled informs and doesn't instruct."""
    return {"role": "user", "content": fenced(block.text)}
