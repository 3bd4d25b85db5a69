"""A circuit breaker: after some failures in a row nobody asks for a while, then a few try.

Level: summarizers (imports errors). Pure: a state is a value, and the moment is handed in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from germane.errors import InvalidInput

__all__ = ["Circuit", "CircuitState"]


class CircuitState(StrEnum):
    """Whether what it guards is asked."""

    CLOSED = "closed"  # It is.
    OPEN = "open"  # It isn't, until it has rested.
    HALF_OPEN = "half_open"  # A few try.


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """How it stands. `failures` in a row open it, `rest` seconds later `trials` successes close it.

    The figures are those of HTM: 5 failures, 60 seconds, 3 trials. A failure of a trial opens it again.
    Moments are seconds of any clock that never steps back.
    """

    failures: int = 5
    rest: float = 60.0
    trials: int = 3
    failed: int = 0
    succeeded: int = 0
    begun: int = 0
    opened_at: float | None = None

    def __post_init__(self) -> None:
        if self.failures < 1 or self.trials < 1 or not self.rest >= 0:
            raise InvalidInput(
                f"A circuit of {self.failures} failures, {self.rest} s and {self.trials} trials can't be: "
                "give 1 or more failures and trials, and 0 or more seconds."
            )

    def state(self, now: float) -> CircuitState:
        """How it stands at a moment."""
        if self.opened_at is None:
            return CircuitState.CLOSED
        return CircuitState.HALF_OPEN if now - self.opened_at >= self.rest else CircuitState.OPEN

    def asked(self, now: float) -> Circuit | None:
        """The circuit once somebody asks; None where nobody may: it rests, or enough try already."""
        state = self.state(now)
        if state is CircuitState.CLOSED:
            return self
        if state is CircuitState.OPEN or self.begun >= self.trials:
            return None
        return replace(self, begun=self.begun + 1)

    def success(self, now: float) -> Circuit:
        """The circuit after an answer."""
        if self.state(now) is not CircuitState.HALF_OPEN:
            return replace(self, failed=0)
        if self.succeeded + 1 >= self.trials:
            return replace(self, failed=0, succeeded=0, begun=0, opened_at=None)
        return replace(self, succeeded=self.succeeded + 1)

    def failure(self, now: float) -> Circuit:
        """The circuit after none."""
        if self.state(now) is CircuitState.CLOSED and self.failed + 1 < self.failures:
            return replace(self, failed=self.failed + 1)
        return replace(self, failed=self.failures, succeeded=0, begun=0, opened_at=now)
