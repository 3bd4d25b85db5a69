"""Keeps what became of memories that were shown: uses counted once, and examples to learn from.

Level: stores (imports model and errors). No text is kept: hashes, numbers and the parts of scores.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Final

from germane.errors import InvalidInput
from germane.model.learning import Example, LearningState
from germane.stores.relational.connection import Connection
from germane.stores.relational.rows import microseconds, ref_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from germane.model.change import Judge

__all__ = [
    "MOST_JUDGED",
    "examples_of",
    "judge",
    "keep_showing",
    "key_of",
    "set_learning",
    "stamp_of",
    "unlearn",
]

MOST_JUDGED: Final = 5000
"""Judgements kept for an agent: some hundreds of contexts, and fitted in a few milliseconds."""

_NO_PARTS: Final = "{}"
"""What is kept of a score while the agent doesn't learn: that a memory was shown, and nothing of why."""

_DIGITS: Final = 6
_KEY_BYTES: Final = 16
_AGENT_BITS: Final = 40
"""Nobody is told anything so many times that it would reach into the agent's number."""


def judge(connection: Connection, agent: int, num: int, change: Judge) -> bool:
    """Store one judgement; returns whether it tells of a use that wasn't known.

    Raises InvalidInput for a context that is no key, or parts that are no numbers.
    """
    learns = _state_of(connection, agent).on
    _, counts = _keep(connection, agent, num, change, change.parts if learns else None)
    if counts:
        at = microseconds(change.at, name="at")
        connection.run("use_memory", {"agent": agent, "num": num, "at": at})
    return counts


def keep_showing(connection: Connection, agent: int, num: int, showing: Example, *, later: int) -> bool:
    """Store what another store was told of a memory in a context; returns whether any of it is new.

    It is told by so many numbers `later` than the latest; further apart than what is kept, none matters.
    """
    new, _ = _keep(connection, agent, num, showing, showing.parts, later=min(later, MOST_JUDGED))
    return new


def stamp_of(agent: int, told: int) -> int:
    """A name for what an agent was told so many times, 0 for nothing.

    An agent that is removed and begins anew is another one, and has no stamp in common with it.
    """
    return (agent << _AGENT_BITS) + told if told else 0


def set_learning(connection: Connection, agent: int, *, on: bool) -> None:
    """Switch an agent's learning on or off; its examples stay."""
    connection.run("set_learning", {"agent": agent, "on": int(on)})


def examples_of(connection: Connection, agent: int) -> tuple[Example, ...]:
    """The agent's judgements, by context and then by memory; those without parts tell of use alone."""
    return tuple(
        Example(
            context=context.hex(),
            memory_id=ref_of(*version),
            used=bool(used),
            parts=json.loads(parts),
            given=given,
        )
        for context, *version, used, parts, given in connection.run("examples", {"agent": agent})
    )


def unlearn(connection: Connection, agent: int) -> int:
    """Remove the agent's examples and return how many there were; that uses were counted stays known."""
    (count,) = connection.run("count_examples", {"agent": agent}).fetchone()
    connection.run("remove_unused", {"agent": agent})
    connection.run("remove_parts", {"agent": agent})
    connection.run("count_judgement", {"agent": agent, "by": 1})
    return int(count)


def key_of(context: str) -> bytes:
    """The bytes of a context's key. Raises InvalidInput for what is none."""
    try:
        key = bytes.fromhex(context)
    except (TypeError, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise InvalidInput(
            f"context={context!r} is no key of a context: give {2 * _KEY_BYTES} hexadecimal digits, as "
            "germane.model.learning.context_key makes them."
        )
    return key


def _state_of(connection: Connection, agent: int) -> LearningState:
    """Whether an agent learns; one that isn't known doesn't."""
    row = connection.run("learning", {"agent": agent}).fetchone()
    learns, judged = row or (False, 0)
    return LearningState(on=bool(learns), stamp=stamp_of(agent, judged))


def _keep(
    connection: Connection,
    agent: int,
    num: int,
    told: Judge | Example,
    parts: Mapping[str, float] | None,
    *,
    later: int = 1,
) -> tuple[bool, bool]:
    """Store what was told unless it is known; returns whether any of it is new, and whether a use is."""
    values = {"agent": agent, "num": num, "context": key_of(told.context)}
    packed = _packed(told.memory_id, parts) if parts else _NO_PARTS
    known = connection.run("judgement", values).fetchone()
    was_used, kept_parts = known or (False, None)
    counts = told.used and not was_used
    # What was kept to learn from stays; a showing of which nothing was kept may still become an example.
    if known and not counts and (kept_parts == packed or kept_parts not in (None, _NO_PARTS)):
        return False, False
    connection.run("count_judgement", {"agent": agent, "by": later})
    connection.run("insert_judgement", {**values, "used": int(told.used), "parts": packed})
    connection.run("remove_old_judgements", {"agent": agent, "most": MOST_JUDGED})
    return True, counts


def _packed(memory_id: str, given: Mapping[str, float]) -> str:
    parts = {name: round(float(part), _DIGITS) for name, part in sorted(given.items())}
    if not all(math.isfinite(part) for part in parts.values()):
        raise InvalidInput(
            f"The parts {dict(given)} of memory {memory_id!r} hold what is no number, "
            "so nothing can be learned from them. Give finite numbers."
        )
    return json.dumps(parts)
