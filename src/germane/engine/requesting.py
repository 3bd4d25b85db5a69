"""The verb that makes the whole request to a model.

Level: engine. No policy: each verb has its own room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from germane.conversation.tiers import Tiers
from germane.conversation.wanted import RequestShares
from germane.engine.surface import Surface
from germane.model.calibration import Calibration
from germane.model.context import Context
from germane.model.message import Group, Provider
from germane.model.plan import Plan
from germane.model.request import Request
from germane.plans.frames import DEFAULT_FRAME
from germane.protocols import TokenCounter
from germane.verbs.request import Remembering, Sayable, Spending, request

__all__ = ["Requesting"]


class Requesting(Surface):
    """What is sent to a model."""

    def request(
        self,
        messages: Sayable,
        *,
        system: str | Sequence[Mapping[str, Any]] | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        memory: str | Plan | Context | None = None,
        query: str | None = None,
        window: int = 200_000,
        reserve: int = 8_000,
        counter: str | TokenCounter | None = None,
        provider: str | Provider = Provider.OPENAI,
        previous: Request | None = None,
        pins: Sequence[str | Group] = (),
        anchors: Mapping[str, str] | None = None,
        shares: RequestShares | None = None,
        tiers: Tiers | None = None,
        calibration: Calibration | None = None,
        frame: str = DEFAULT_FRAME,
    ) -> Request:
        """A request that fits a model's window beside the answer, as the provider's client takes it.

        `messages` are a conversation, or messages in any layout. System, tools, what belongs to no group,
        anchors, pinned groups and the current group must stand in it, in this group tool results cut if
        need be. `memory` is the plan of a context for the `query`, which is the latest prompt or its topic
        unless one is given; or a context, which must stand whole. What is left goes to the history, and
        from before it to what matches, by `shares`. With `previous`, the request before, as much of its
        beginning stays as can. The counter is the engine's, or Claude's for Anthropic.

        Raises RequestTooLarge, which names the parts that don't fit; InvalidInput, or NotSaid for pins.
        """
        return request(
            self._session,
            messages,
            spending=Spending(
                window=window,
                reserve=reserve,
                counter=counter,
                shares=shares or RequestShares(),
                tiers=tiers or Tiers(),
                calibration=calibration,
            ),
            provider=provider,
            system=system,
            tools=tools,
            remembering=Remembering(memory=memory, frame=frame, query=query),
            anchors=anchors,
            pins=pins,
            previous=previous,
        )
