"""How work turned out with an agent's memories, as it stands at a moment.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from germane.model.learning import Evidence
from germane.protocols import Store, Validating
from germane.ranking.outcomes import leanings

__all__ = ["KnownOutcomes"]


class KnownOutcomes:
    """The leanings of the latest outcomes seen, by agent. Threads may share it: at worst one reads twice.

    They are never stored: what a purge removed has no part in them from then on.
    """

    __slots__ = ("_evidence", "_leanings")

    def __init__(self) -> None:
        self._evidence: dict[str, Evidence] = {}
        self._leanings: dict[str, tuple[int, datetime, Mapping[str, float]]] = {}

    def of(self, store: Store, agent: str, *, now: datetime) -> Mapping[str, float]:
        """How each memory leans by its outcomes, from -1 to 1, as of the last full hour."""
        if not isinstance(store, Validating):
            return {}
        known = self._evidence.get(agent)
        evidence = store.evidence(agent, known=None if known is None else known.stamp) or known
        if evidence is None:
            return {}
        self._evidence[agent] = evidence
        hour = now.replace(minute=0, second=0, microsecond=0)
        made = self._leanings.get(agent)
        if made is None or made[:2] != (evidence.stamp, hour):
            # Nothing fades within an hour that anybody could tell, so the same answer serves all of it.
            made = self._leanings[agent] = (
                evidence.stamp,
                hour,
                leanings(evidence.attested, now=hour),
            )
        return made[2]
