"""calibration: what the agent's confidence was worth.

Level: verbs. `Judgement.advice` is the sentence that a section for the agent's calibration can show: the
layered plan may take it as the text of an item, beside memories of the kind `calibration`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from germane.model.judgement import Judgement
from germane.model.memory import Memory, Status
from germane.model.query import Filter, Order
from germane.ranking.calibration import calibrated
from germane.verbs.session import Session

__all__ = ["calibration"]

_PAGE: Final = 1000


def calibration(session: Session) -> Judgement:
    """Brier score, bias and advice, from all decisions that stand, archived ones included."""
    return calibrated(_decisions(session))


def _decisions(session: Session) -> Iterator[Memory]:
    kinds = tuple(kind.name for kind in session.kinds if kind.lifecycle == "decision")
    if not kinds:
        return
    where = Filter(kinds=kinds, statuses=(Status.ACTIVE, Status.ARCHIVED))
    after: str | None = None
    while page := session.store.find(session.agent, where, order=Order.OLDEST, limit=_PAGE, after=after):
        yield from page
        after = page[-1].ref
