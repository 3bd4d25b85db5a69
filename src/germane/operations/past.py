"""The memories of an agent as they were at a moment, for reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from germane.errors import InvalidInput
from germane.model.validation import as_utc
from germane.operations.context import AgentContext, CalibrationCache, OutcomeCache, WeightCache
from germane.operations.inputs import checked_time
from germane.operations.search import entered_spaces
from germane.packing.lines import RememberedLines
from germane.stores.location import LEDGER


@contextmanager
def past(
    session: AgentContext, as_of: datetime | str, spaces: Sequence[str] = ()
) -> Iterator[tuple[AgentContext, tuple[AgentContext, ...]]]:
    """An agent's side, and what it reads besides with these spaces, on copies of the memories of then.

    The clock of all of them says that moment. Raises InvalidInput for a moment that is still to come, and for
    a store that can't tell, as well as UnknownSpace and NotAllowed.
    """
    at = checked_time(as_of, name="as_of", clock=session.clock)
    now = as_utc(session.clock(), name="clock")
    if at > now:
        raise InvalidInput(
            f"as_of={at.isoformat()} is after now, {now.isoformat()}, and nobody knows what is stored then. "
            "Give a time that has passed, or leave it out."
        )
    beside = entered_spaces(session, spaces)
    with ExitStack() as copies:
        points = [LEDGER.required(one.store).point_at(one.agent, at) for one in (session, *beside)]
        own, *others = (
            copies.enter_context(copied(one, point, at))
            for one, point in zip((session, *beside), points, strict=True)
        )
        # The agent itself comes first among what one of its users reads.
        yield own if session.base is None else replace(own, base=others[0]), tuple(others)


@contextmanager
def copied(
    session: AgentContext, point: Mapping[str, int], at: datetime, **changes: Any
) -> Iterator[AgentContext]:
    """The session on a copy of its memories at a point, with a clock that says `at`."""
    with closing(LEDGER.required(session.store).as_of(session.agent, point)) as store:
        yield replace(
            session,
            store=store,
            clock=lambda: at,
            lines=RememberedLines(),
            weight_cache=WeightCache(),
            outcome_cache=OutcomeCache(),
            calibration_cache=CalibrationCache(),
            **changes,
        )
