"""unlearn: undo what a run of learning changed, except where it was changed since.

Undoing restores every byte of what is shown: the versions, states and confidence from before the run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from germane.errors import InvalidInput, NotFound, StaleRevision
from germane.model.change import Change, RecordRun, Reinstate, Reword
from germane.model.extraction import Decision, Effect, LearningRun, MemoryState
from germane.model.validation import as_utc
from germane.operations.context import AgentContext
from germane.operations.expiry import whole
from germane.operations.learning import learning_run, memory_state
from germane.operations.read import without_mark

_TRIES: Final = 5


def unlearn(session: AgentContext, run_id: str) -> LearningRun:
    """Undo a run; the run as it is afterwards. Raises RunNotFound, or InvalidInput for one undone before."""
    for left in reversed(range(_TRIES)):
        run = learning_run(session, run_id)
        if run.undone_at is not None:
            raise InvalidInput(f"Learning run {run.id!r} was undone at {run.undone_at:%Y-%m-%d %H:%M} UTC.")
        now = as_utc(session.clock(), name="clock")
        undoing = _Undoing(session, now)
        decisions = tuple(reversed([undoing.undone(each) for each in reversed(run.decisions)]))
        is_whole = all(each.undone or not each.effects for each in decisions)
        after = run.evolve(decisions=decisions, undone_at=now if is_whole else None)
        try:
            session.store.apply(session.agent, [*undoing.changes, RecordRun(run=after)])
        except (StaleRevision, NotFound):
            if not left:
                raise
            continue
        session.lines.clear()
        session.passages.clear()
        return after
    raise AssertionError("The last try returns or raises.")


@dataclass(slots=True)
class _Undoing:
    """The changes that undo decisions, the latest decision first; what was changed since is left alone."""

    session: AgentContext
    now: datetime
    changes: list[Change] = field(default_factory=list)
    _memory_states: dict[str, MemoryState] = field(default_factory=dict)

    def undone(self, decision: Decision) -> Decision:
        """The decision as undone, unless one of its memories was changed since: then with the reason."""
        if decision.undone or not decision.effects:
            return decision
        changed = [each for each in decision.effects if self._is_changed(each)]
        if changed:
            return decision.evolve(
                reason=f"{decision.reason} Not undone: {changed[0].memory} was changed since."
            )
        for effect in reversed(decision.effects):
            self._undo(effect)
        return decision.evolve(undone=True)

    def _is_changed(self, effect: Effect) -> bool:
        now = self._state_of(effect.memory)
        if now is None:
            return False  # It was purged: nothing is left to undo.
        return not _alike(now, effect.after)

    def _state_of(self, memory_id: str) -> MemoryState | None:
        if memory_id not in self._memory_states:
            memory = whole(self.session.store).get(self.session.agent, [memory_id])[0]
            if memory is None:
                return None
            self._memory_states[memory_id] = memory_state(self.session, memory, {})
        return self._memory_states[memory_id]

    def _undo(self, effect: Effect) -> None:
        before, after = effect.before, effect.after
        if self._state_of(effect.memory) is None:
            return
        self._memory_states[effect.memory] = before
        former = None
        if before.version:
            name = f"{effect.memory}@{before.version}"
            (stored,) = whole(self.session.store).get(self.session.agent, [name])
            if stored is None:
                raise NotFound(name, self.session.agent)
            former = stored.evolve(
                status=before.status,
                superseded_by=None,
                updated_at=before.updated_at,
                valid_until=before.valid_until,
                confidence=before.confidence,
                stage=None if before.state is None else before.state.stage,
            )
            if before.version != after.version:
                self.changes += [Reword(memory=each) for each in without_mark(self.session, stored)]
        self.changes.append(
            Reinstate(
                memory_id=effect.memory,
                expected=after.version,
                at=self.now,
                memory=former,
                lifecycle_state=before.state,
            )
        )


def _alike(one: MemoryState, other: MemoryState) -> bool:
    """Whether nothing changed that undoing would set back."""
    counted = one.state is None or other.state is None or one.state.confirmations == other.state.confirmations
    same = (one.version, one.status, one.confidence) == (other.version, other.status, other.confidence)
    return counted and same
