"""Plans by name.

Level: plans. Pure.
"""

from __future__ import annotations

from germane.errors import InvalidInput
from germane.kinds import Kinds
from germane.model.plan import Frame, Plan
from germane.plans.frames import frame_named
from germane.plans.layered import layered
from germane.plans.relevance import relevance

__all__ = ["PLANS", "plan_for"]

PLANS = ("layered", "relevance")
"""The plans that can be asked for by name."""


def plan_for(plan: str | Plan, *, kinds: Kinds, frame: str | Frame) -> Plan:
    """The plan of that name for these kinds and this frame; a plan is returned as it is.

    Raises InvalidInput for an unknown name.
    """
    if isinstance(plan, Plan):
        return plan
    if plan == "layered":
        return layered(kinds, frame_named(frame) if isinstance(frame, str) else frame)
    if plan == "relevance":
        return relevance(kinds)
    raise InvalidInput(
        f"Unknown plan {plan!r}. Known plans: {', '.join(PLANS)}. Or pass a germane.Plan of your own."
    )
