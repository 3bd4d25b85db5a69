"""The verbs by which memories live: confirmed, contradicted, judged, triggered, out of use; and their upkeep.

Level: engine. No policy: each verb has its own room, and the rules stand in `germane.lifecycle`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from germane import verbs
from germane.engine.surface import Surface
from germane.model.memory import Memory, Outcome

if TYPE_CHECKING:
    from germane.model.judgement import Judgement
    from germane.model.stage import LifeEvent, Standing
    from germane.model.upkeep import Upkeep
    from germane.verbs.upkeep import Told

__all__ = ["Ageing", "LifeStory"]


class Ageing(Surface):
    """What moves memories from one stage of their lives to another."""

    def confirm(self, memory_id: str, *, core: bool = False) -> Memory:
        """Say that a fact was met again; the third time, or with `core`, makes it a core fact.

        Raises NotFound, or InvalidInput for what can't be confirmed: other kinds, and what is
        superseded or out of use.
        """
        return verbs.living.confirm(self._session, memory_id, core=core)

    def contradict(self, memory_id: str, *, by: str | None = None) -> Memory:
        """Say that something speaks against a fact, such as the memory `by`: its confidence falls by 0.2.

        Raises NotFound, or InvalidInput for what can't be contradicted.
        """
        return verbs.living.contradict(self._session, memory_id, by=by)

    def review(self, decision_id: str, outcome: Outcome | str, *, result: str | None = None) -> Memory:
        """Say how a decision turned out, and what came of it; returns its next version.

        "pending" says that its work is done and its outcome awaited, "abandoned" leaves it out of what
        is found. The same for a procedure counts a success or a failure of it. Raises NotFound, or
        InvalidInput for kinds without outcomes.
        """
        return verbs.living.outcome_of(self._session, decision_id, outcome, result=result)

    def triggered(self, censor_id: str, *, false_positive: bool = False) -> Memory:
        """Say that a censor was triggered, and whether that was a false alarm; returns its latest version.

        A censor that warns begins to block at the third trigger that was no false alarm. One whose
        triggers were false alarms for more than a half, of five or more, is retired. Raises NotFound,
        or InvalidInput for what is no censor in use.
        """
        return verbs.living.triggered(self._session, censor_id, false_positive=false_positive)

    def retire(self, memory_id: str) -> Memory:
        """Take a fact, a procedure or a censor out of use, or archive an episode; `restore` undoes it.

        Raises NotFound, or InvalidInput for kinds that can't be retired: decisions are kept.
        """
        return verbs.living.retire(self._session, memory_id)

    def standing(self, memory_id: str) -> Standing:
        """The stage of a memory now, and what is counted of it. Raises NotFound."""
        return verbs.living.standing(self._session, memory_id)

    def standings(self, memory_ids: Sequence[str]) -> tuple[Standing, ...]:
        """The stages of memories, or of versions `id@n`, and what is counted of them, in the order asked.

        Raises NotFound.
        """
        return verbs.living.standings(self._session, memory_ids)

    def maintain(self, *, dry_run: bool = False, progress: Told | None = None) -> Upkeep:
        """Age and archive episodes, settle what was counted, merge duplicate facts, mark outdated quotations.

        Each step is a transaction of its own, so that an interruption anywhere loses nothing: call it
        again. With `dry_run` nothing is changed, and the steps say what would be. `progress` is told after
        each step how many are done, of how many, and which it was. Raises EmbeddingFailed before
        anything is done, or InvalidInput for a store that keeps no lives.
        """
        with self._embedding.woken():
            return verbs.upkeep.maintain(self._session, dry_run=dry_run, progress=progress)

    def calibration(self) -> Judgement:
        """How well the agent judges itself: Brier score, bias, and one sentence of advice.

        It goes by its decisions with a confidence and an outcome.
        """
        return verbs.judging.calibration(self._session)


class LifeStory(Surface):
    """What is told of the lives of memories."""

    def events(
        self, memory_id: str | None = None, *, since: int = 0, limit: int | None = None
    ) -> tuple[LifeEvent, ...]:
        """What moved a memory in all its versions, or all memories: who, when and why, oldest first.

        `since` is the number of the last event known, `limit` the most to return. Raises NotFound.
        """
        return verbs.living.events(self._session, memory_id, since=since, limit=limit)
