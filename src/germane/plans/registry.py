"""Plans by name.

Level: plans. Pure.
"""

from __future__ import annotations

from germane.errors import InvalidInput, InvalidPlan
from germane.kinds import Kinds
from germane.model.frame import Frame
from germane.model.plan import Plan, Style
from germane.plans.frames import frame_named
from germane.plans.layered import layered
from germane.plans.newton import newton_exact
from germane.plans.relevance import relevance

__all__ = ["FRAMED", "PLANS", "plan_for"]

PLANS = ("layered", "newton_exact", "relevance", "scoped", "scoped_estimate")
"""The plans that can be asked for by name."""

FRAMED = ("layered", "newton_exact")
"""Those of them that are built for a frame."""


def plan_for(plan: str | Plan, *, kinds: Kinds, frame: str | Frame) -> Plan:
    """The plan of that name for these kinds and this frame; a plan is returned as it is.

    Raises InvalidInput for an unknown name, and InvalidPlan for one whose memories stand under no
    headings: such a list is a working set's.
    """
    if isinstance(plan, Plan):
        if any(section.style is not Style.BULLETS for section in plan.sections):
            raise InvalidPlan(
                f"Plan {plan.name!r} is a list of paragraphs, for what a working set holds: "
                "engine.working_set().assemble(...). Write bullets to assemble from the whole store."
            )
        return plan
    if plan in FRAMED:
        built = layered if plan == "layered" else newton_exact
        return built(kinds, frame_named(frame) if isinstance(frame, str) else frame)
    if plan == "relevance":
        return relevance(kinds)
    raise InvalidInput(
        f"Unknown plan {plan!r}. Known plans: {', '.join(PLANS)}. Or pass a germane.Plan of your own."
    )
