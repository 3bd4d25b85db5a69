"""The verbs by which an agent learns from what was used of what it was shown.

Level: engine. No policy: each verb has its own room.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from germane import verbs
from germane.engine.surface import Surface

if TYPE_CHECKING:
    from germane.model.context import Context
    from germane.model.experience import Experience
    from germane.model.learning import Feedback, Lessons, Shown, Validation
    from germane.model.ledger import Assembly
    from germane.model.memory import Outcome
    from germane.verbs.feedback import Named
    from germane.verbs.recall import Recalled

__all__ = ["Teaching"]


class Teaching(Surface):
    """What moves uses, examples and the weights that they speak for."""

    def feedback(
        self,
        context: Context | Recalled | Assembly | Shown,
        used: Iterable[Named],
        *,
        ignored: Iterable[Named] | None = None,
    ) -> Feedback:
        """Say which of the memories that a context or a recall showed were used, by id or as they are.

        Their `access_count` and `accessed_at` move: once for each context, however often it is said.
        Those not used count as ignored, or only those that `ignored` names. The layered plan ranks what is
        used more than other memories higher, from the second showing on; while learning is on (see `learn`)
        each memory shown is an example besides. Raises InvalidInput or NotFound.
        """
        return verbs.feedback.feedback(self._session, context, used=used, ignored=ignored)

    def outcome(
        self,
        context: Context | Recalled | Assembly | Shown,
        outcome: Outcome | str,
        *,
        memories: Iterable[Named] | None = None,
    ) -> Validation:
        """Say how work turned out with what a context or a recall showed: success, partial or failure.

        It speaks a little for or against each memory shown, and more where `memories` names those that helped
        or misled; a procedure among these counts it (see `review`). The scoped plan ranks by it within a
        kind, bounded, and half as much after 90 days. Said again for the same context, the latest word
        stands. Raises InvalidInput.
        """
        return verbs.outcome.outcome(self._session, context, outcome, memories=memories)

    def learn(self, on: bool | None = None) -> Lessons:
        """Switch learning from feedback on or off for this agent (it is off), and say what is learned.

        The setting stays with the agent. Off, no weights are fitted or applied and no parts of scores kept;
        what was stays until `unlearn`. Uses are counted either way. Raises InvalidInput when the store
        can't keep examples.
        """
        return verbs.feedback.learn(self._session, on)

    def experience(self) -> Experience:
        """What the agent went through with its memories: showings and uses, outcomes, and events of lives.

        It is what an export takes along for another store, without any text of a memory. What `unlearn`
        removed isn't in it.
        """
        return verbs.experience.experience(self._session)

    def adopt_experience(self, experience: Experience) -> int:
        """Keep what another store has kept of memories that are here by the same ids; how much of it is new.

        It is counted nowhere, since what was counted came with the memories (see `adopt`). What is known here
        stays, so that the same given again changes nothing; what speaks of no memory here is passed over.
        Learning is switched on where it was on there and nothing was told of use here. Raises InvalidInput.
        """
        return verbs.experience.adopt_experience(self._session, experience)

    def unlearn(self) -> int:
        """Forget all that was learned; returns from how many examples. Uses stay counted."""
        return verbs.feedback.unlearn(self._session)
