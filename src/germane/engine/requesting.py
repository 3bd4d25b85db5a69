"""The verbs that make the whole request to a model, and a conversation shorter.

Level: engine. No policy: each verb has its own room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from germane import verbs
from germane.engine.surface import Surface
from germane.model.names import DEFAULT_FRAME, DEFAULT_PROVIDER
from germane.model.query import Filter
from germane.protocols import TokenCounter

if TYPE_CHECKING:
    from germane.conversation.tiers import Tiers
    from germane.conversation.wanted import RequestShares
    from germane.model.calibration import Calibration
    from germane.model.compaction import Compaction
    from germane.model.context import Context
    from germane.model.message import Group, Provider
    from germane.model.plan import Plan
    from germane.model.request import Request
    from germane.verbs.conversation import Conversation
    from germane.verbs.request import Sayable
    from germane.verbs.session import Session

__all__ = ["Requesting", "Shortening"]


class Shortening(Surface):
    """What makes a conversation shorter."""

    def compaction(
        self,
        conversation: Conversation,
        *,
        budget: int,
        keep: int = 2,
        counter: str | TokenCounter | None = None,
        tiers: Tiers | None = None,
    ) -> Compaction:
        """What would make a conversation fit `budget` tokens; nothing is done until `compact`.

        Tool results are cut first; if that isn't enough, the oldest groups go but for the last `keep`, and
        a summary stands for them: the engine's summarizer's, or the most telling sentences. What was said
        in them that sounds worth keeping is proposed as `drafts`, for `remember_many`. Raises
        BudgetTooSmall or InvalidInput.
        """
        return verbs.compact.compaction(
            self._session, conversation, budget=budget, keep=keep, counter=counter, tiers=tiers
        )

    def compact(self, conversation: Conversation, proposed: Compaction) -> Compaction:
        """Hide what a compaction hides, and keep its summary as an anchor. Raises NotSaid.

        The log keeps all, and `uncompact` undoes it.
        """
        return verbs.compact.compact(self._session, conversation, proposed)

    def uncompact(self, conversation: Conversation, done: Compaction) -> Compaction:
        """Put back what a compaction hid, and the summary that stood before it. Raises NotSaid."""
        return verbs.compact.uncompact(self._session, conversation, done)


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
        provider: str | Provider = DEFAULT_PROVIDER,
        previous: Request | None = None,
        pins: Sequence[str | Group] = (),
        anchors: Mapping[str, str] | None = None,
        shares: RequestShares | None = None,
        tiers: Tiers | None = None,
        calibration: Calibration | None = None,
        frame: str = DEFAULT_FRAME,
        spaces: Sequence[str] = (),
        record: bool | None = None,
        where: Filter | None = None,
    ) -> Request:
        """A request that fits a model's window beside the answer, as the provider's client takes it.

        `messages` are a conversation of the agent's own, in a space too, or messages in any layout. System,
        tools, what belongs to no group, anchors, pinned groups and the current group must stand in it, in
        this group tool results cut if need be. `memory` is the plan of a context for the `query`, the
        latest prompt or its topic unless one is given, of what `where` admits, in which the memories of
        `spaces` take part; or a context, which must stand whole. What is left goes to the history, and from
        before it to what matches, by `shares`. With `previous`, the request before, as much of its
        beginning stays as can. The counter is the engine's, or Claude's for Anthropic. `record` notes a new
        assembly of memory in the ledger. Raises RequestTooLarge, InvalidInput, NotSaid for pins, and
        UnknownSpace or NotAllowed for spaces.
        """
        return verbs.request.request(
            self._speaking,
            messages,
            spending=verbs.request.Spending(
                window=window, reserve=reserve, counter=counter, calibration=calibration
            ),
            shares=shares,
            tiers=tiers,
            provider=provider,
            system=system,
            tools=tools,
            remembering=self._remembering(
                memory, spaces, frame=frame, query=query, record=record, where=where
            ),
            anchors=anchors,
            pins=pins,
            previous=previous,
        )

    @property
    def _speaking(self) -> Session:
        """Whose conversations these are: the agent's own, also where it acts in a space."""
        return self._session

    def _remembering(
        self,
        memory: str | Plan | Context | None,
        spaces: Sequence[str],
        *,
        where: Filter | None,
        **asked: Any,
    ) -> verbs.request.Remembering:
        cold = self._assembles_first
        if memory is not None:
            self._assembles_first = False
        sessions = (self._session, *verbs.together.entered_spaces(self._session, spaces))
        admits = None if where is None else verbs.question.filter_of(self._session.clock, where=where)
        return verbs.request.Remembering(of=sessions, memory=memory, cold=cold, where=admits, **asked)
