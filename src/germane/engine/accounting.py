"""The verbs that tell how well contexts do: the ledger of them, what answers draw on, and figures over time.

Level: engine. No policy: each verb has its own room.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from germane import verbs
from germane.engine.surface import Surface

if TYPE_CHECKING:
    from germane.model.context import Context
    from germane.model.learning import Shown
    from germane.model.ledger import Assembly
    from germane.model.metrics import Metrics
    from germane.model.observed import Observed
    from germane.verbs.ledger import Ledger
    from germane.verbs.recall import Recalled

__all__ = ["Accounting"]


class Accounting(Surface):
    """What looks at assemblies after they were made."""

    def ledger(self) -> Ledger:
        """The assemblies that were recorded: to list, to show, to compare and to make again.

        Raises InvalidInput for a store that keeps no ledger.
        """
        return verbs.ledger.ledger(self._session)

    def observe(
        self,
        context: Context | Recalled | Assembly | Shown,
        response: str,
        *,
        count: bool = True,
        question: str | None = None,
    ) -> Observed:
        """Which memories of a context or a recall an answer draws on, by the telling words that it has.

        They are told to `feedback` as used, and all others as ignored; not with `count` False, or for an
        answer that says nothing. It is a guess from words, whose precision and recall are measured in the
        documentation; where somebody knows, call `feedback`. An assembly of the ledger will do as well,
        its texts read from the store. A `Shown` knows no question, so that `question` gives it.
        Raises InvalidInput or NotFound.
        """
        return verbs.observe.observe(self._session, context, response, count=count, question=question)

    def metrics(self, *, since: datetime | str | None = None) -> Metrics:
        """How well contexts do since then (30 days unless given), from what was recorded and fed back.

        Each figure is None where nothing is known that it could be made of; the documentation defines them.
        Raises InvalidInput for a store that keeps no ledger.
        """
        return verbs.metrics.metrics(self._session, since=since)
