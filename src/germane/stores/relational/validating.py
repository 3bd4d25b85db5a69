"""Keeps how work turned out with memories that contexts showed.

Level: stores (imports model and errors). No text is kept: hashes and numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from germane.errors import InvalidInput
from germane.model.learning import Attested, Evidence
from germane.stores.relational.connection import Connection
from germane.stores.relational.learning import key_of
from germane.stores.relational.rows import id_text, microseconds, moment

if TYPE_CHECKING:
    from germane.model.change import Attest

__all__ = ["MOST_OUTCOMES", "attest", "evidence_of"]

MOST_OUTCOMES: Final = 5000
"""Outcomes kept for an agent, one for each memory of a context: some hundreds of contexts."""


def attest(connection: Connection, agent: int, num: int, change: Attest) -> bool:
    """Store one outcome; returns whether it tells what wasn't known.

    Raises InvalidInput for a context that is no key, or a worth or weight out of range.
    """
    if not (0 <= change.worth <= 1 and 0 < change.weight <= 1):
        raise InvalidInput(
            f"An outcome of worth {change.worth} and weight {change.weight} says nothing: worth is from 0 to "
            "1, and weight above 0 and at most 1."
        )
    values = {"agent": agent, "num": num, "context": key_of(change.context)}
    known = connection.run("outcome", values).fetchone()
    if known == (change.worth, change.weight):
        return False
    told = {"worth": change.worth, "weight": change.weight, "at": microseconds(change.at, name="at")}
    connection.run("count_outcome", {"agent": agent})
    connection.run("insert_outcome", values | told)
    connection.run("remove_old_outcomes", {"agent": agent, "most": MOST_OUTCOMES})
    return True


def evidence_of(connection: Connection, agent: int, known: int | None) -> Evidence | None:
    """What is attested for an agent, unless its stamp is the one that is known."""
    row = connection.run("attested", {"agent": agent}).fetchone()
    stamp = row[0] if row else 0
    if stamp == known:
        return None
    rows = connection.run("outcomes", {"agent": agent})
    return Evidence(
        stamp=stamp,
        attested=tuple(
            Attested(context=context.hex(), memory_id=id_text(raw), worth=worth, weight=weight, at=moment(at))
            for context, raw, worth, weight, at in rows
        ),
    )
