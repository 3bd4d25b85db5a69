"""The verb that keeps a context as long as it serves.

Level: engine. No policy: each verb has its own room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from germane import verbs
from germane.engine.surface import Surface
from germane.model.query import Filter
from germane.model.refreshed import RefreshReason
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
        where: Filter | None = None,
    ) -> Refreshed:
        """Whether a context still serves what is said now: `needed, reason, context`.

        What was said and names nothing to look for ("go ahead") is taken for the context's question. A new
        one is made when there was none, for another filter, when the frame switches, when the agent is about
        to act (`acting`, or it says so), and when what is said has less than half to do with the context;
        a remark such as "it works" is no topic. One that is larger than `room` loses what has least to do
        with its question, never its constraints and its frame. The other arguments are those of `assemble`;
        without `scopes` and `where` the filter of the context holds. Raises BudgetTooSmall or InvalidInput.
        """
        if where is None and context is not None:
            where = context.trace.where
        if scopes or context is None or where != context.trace.where:
            where = verbs.question.filter_of(self._session.clock, scopes=scopes, where=where)
        refreshed = verbs.refresh.refresh(
            self._session,
            context,
            new_input,
            plan=plan,
            frame=frame,
            budget=budget,
            room=room,
            acting=acting,
            where=where,
            counter=self._session.counter if counter is None else CachedCounter(get_counter(counter)),
            cold=self._assembles_first,
        )
        if refreshed.needed and refreshed.reason is not RefreshReason.PRESSURE:
            self._assembles_first = False
        return refreshed
