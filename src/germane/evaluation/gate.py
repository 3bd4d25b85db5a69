"""A gate for continuous integration: figures that a change must not push below a floor.

Level: evaluation. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from germane.errors import InvalidInput
from germane.evaluation.columns import percent
from germane.evaluation.report import Report

__all__ = ["Floor", "Gauge", "Judged", "judged"]

Gauge: TypeAlias = Literal["evidence_recall", "all_evidence"]
_PLACES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The least that a figure may be at a budget, a share from 0 to 1."""

    gauge: Gauge
    budget: int
    least: float

    @classmethod
    def parse(cls, text: str, *, gauge: Gauge, name: str) -> Floor:
        """The floor of a text such as `1000=0.84`; `name` is what asked for it. Raises InvalidInput."""
        budget, _, least = text.partition("=")
        try:
            floor = cls(gauge=gauge, budget=int(budget.replace("_", "")), least=float(least))
        except ValueError:
            floor = None
        if floor is None or not 0 <= floor.least <= 1:
            raise InvalidInput(
                f"{name} {text!r} is no floor. Write BUDGET=SHARE, such as 1000=0.84, with a share of 0 to 1."
            )
        return floor


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A floor and what one retriever reached."""

    floor: Floor
    retriever: str
    reached: float

    @property
    def passed(self) -> bool:
        """Whether the figure is at its floor or above."""
        return self.reached >= self.floor.least

    def as_dict(self) -> dict[str, Any]:
        """The judgement as JSON will hold it."""
        return {
            "retriever": self.retriever,
            "budget": self.floor.budget,
            "gauge": self.floor.gauge,
            "least": self.floor.least,
            "reached": round(self.reached, _PLACES),
            "passed": self.passed,
        }

    def __str__(self) -> str:
        what = self.floor.gauge.replace("_", " ")
        return (
            f"{'passed' if self.passed else 'MISSED'}: {what} of {self.retriever} at {self.floor.budget} "
            f"tokens is {percent(self.reached)} %, and at least {percent(self.floor.least)} % was asked for."
        )


def judged(report: Report, floors: Iterable[Floor], *, retriever: str) -> tuple[Judged, ...]:
    """What one retriever reached beside each floor. Raises InvalidInput for a budget that wasn't measured."""
    of = {result.budget: result.overall for result in report.of(retriever)}
    found = []
    for floor in floors:
        if floor.budget not in of:
            raise InvalidInput(
                f"A floor at {floor.budget} tokens can't be judged: {retriever} was measured at "
                f"{', '.join(map(str, of)) or 'no budget'}. Add it to --budgets."
            )
        reached = getattr(of[floor.budget], floor.gauge)
        found.append(Judged(floor=floor, retriever=retriever, reached=reached))
    return tuple(found)
