"""Keeps how work turned out with memories that contexts showed.

Level: stores (imports model and errors). No text is kept: hashes and numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from germane.errors import InvalidInput
from germane.model.counts import sign_of_outcome
from germane.model.learning import Attested, Evidence
from germane.model.stage import Sign
from germane.stores.relational.connection import Connection
from germane.stores.relational.experience.learning import key_of, stamp_of
from germane.stores.relational.rows import microseconds, moment, ref_of

if TYPE_CHECKING:
    from germane.model.change import Attest

__all__ = ["MOST_OUTCOMES", "Told", "attest", "evidence_of", "keep_outcome"]

MOST_OUTCOMES: Final = 5000
"""Outcomes kept for an agent, one for each memory of a context: some hundreds of contexts."""


class Told(NamedTuple):
    """What an outcome told: whether it is news, and what it and the one before it count in a life."""

    news: bool
    sign: Sign | None = None
    former: Sign | None = None

    @property
    def counts(self) -> bool:
        """Whether a life is another one by it."""
        return self.sign is not self.former


def attest(connection: Connection, agent: int, num: int, change: Attest) -> Told:
    """Store one outcome; returns what it told.

    Raises InvalidInput for a context that is no key, or a worth or weight out of range.
    """
    known = _known(connection, agent, num, change)
    if known == (change.worth, change.weight):
        return Told(news=False)
    _keep(connection, agent, num, change)
    worth, weight = known or (0.5, 0.0)
    return Told(
        news=True,
        sign=sign_of_outcome(change.lifecycle, worth=change.worth, weight=change.weight),
        former=sign_of_outcome(change.lifecycle, worth=worth, weight=weight),
    )


def keep_outcome(connection: Connection, agent: int, num: int, outcome: Attested) -> bool:
    """Store what another store was told of a memory in a context, unless something is known of it here.

    Returns whether it is new. Raises as `attest` does.
    """
    if _known(connection, agent, num, outcome) is not None:
        return False
    _keep(connection, agent, num, outcome)
    return True


def evidence_of(connection: Connection, agent: int, known: int | None) -> Evidence | None:
    """What is attested for an agent, unless its stamp is the one that is known."""
    row = connection.run("attested", {"agent": agent}).fetchone()
    stamp = stamp_of(agent, row[0]) if row else 0
    if stamp == known:
        return None
    rows = connection.run("outcomes", {"agent": agent})
    return Evidence(
        stamp=stamp,
        attested=tuple(
            Attested(
                context=context.hex(), memory_id=ref_of(*version), worth=worth, weight=weight, at=moment(at)
            )
            for context, *version, worth, weight, at in rows
        ),
    )


def _known(
    connection: Connection, agent: int, num: int, told: Attest | Attested
) -> tuple[float, float] | None:
    """The worth and the weight that are kept for a memory and a context."""
    if not (0 <= told.worth <= 1 and 0 < told.weight <= 1):
        raise InvalidInput(
            f"An outcome of worth {told.worth} and weight {told.weight} says nothing: worth is from 0 to "
            "1, and weight above 0 and at most 1."
        )
    values = {"agent": agent, "num": num, "context": key_of(told.context)}
    row = connection.run("outcome", values).fetchone()
    if row is None:
        return None
    worth, weight = row
    return float(worth), float(weight)


def _keep(connection: Connection, agent: int, num: int, told: Attest | Attested) -> None:
    values = {"agent": agent, "num": num, "context": key_of(told.context)}
    at = microseconds(told.at, name="at")
    connection.run("count_outcome", {"agent": agent})
    connection.run("insert_outcome", {**values, "worth": told.worth, "weight": told.weight, "at": at})
    connection.run("remove_old_outcomes", {"agent": agent, "most": MOST_OUTCOMES})
