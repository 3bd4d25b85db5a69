"""The verb that keeps a context as long as it serves.

Level: engine. No policy: each verb has its own room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from germane import verbs
from germane.engine.surface import Surface
from germane.model.scope import Scope
from germane.protocols import TokenCounter
from germane.tokens import CachedCounter, get_counter

if TYPE_CHECKING:
    from germane.model.context import Context
    from germane.model.plan import Plan
    from germane.model.refreshed import Refreshed
    from germane.verbs.framing import Framing

__all__ = ["Refreshing"]


class Refreshing(Surface):
    """What is asked at each turn."""

    def refresh(
        self,
        context: Context | None,
        new_input: str,
        *,
        budget: int | None = None,
        room: int | None = None,
        acting: bool = False,
        plan: str | Plan = "layered",
        frame: Framing = "auto",
        counter: str | TokenCounter | None = None,
        scopes: Sequence[Scope | str] = (),
    ) -> Refreshed:
        """Whether a context still serves what is said now: `needed, reason, context`.

        What was said and names nothing to look for ("go ahead") is taken for the context's question. A new
        one is made when there was none, when the frame switches, when the agent is about to act
        (`acting`, or it says so), and when what is said has less than half to do with the context. One that
        is larger than `room` loses what has least to do with its question, never its constraints and its
        frame. `budget`, `plan`, `frame`, `counter` and `scopes` are those of `assemble`. Raises
        BudgetTooSmall or InvalidInput.
        """
        return verbs.refresh.refresh(
            self._session,
            context,
            new_input,
            plan=plan,
            frame=frame,
            budget=budget,
            room=room,
            acting=acting,
            where=verbs.question.filter_of(scopes=scopes),
            counter=self._session.counter if counter is None else CachedCounter(get_counter(counter)),
        )
