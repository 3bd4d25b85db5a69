"""remember, as it is called: judge what is said, let it meet what is known, and store it.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from germane.errors import InvalidInput
from germane.model.draft import Draft, Remembered
from germane.model.memory import Memory, as_utc
from germane.model.upkeep import Reconcile
from germane.verbs.outdated import checked_quotations
from germane.verbs.reconciling import reconciled, rules_of
from germane.verbs.remember import draft_of, given_in, keep, memory_of, updated
from germane.verbs.session import Session
from germane.verbs.weighing import Quality, weighed

__all__ = ["remember_many"]


def remember_many(
    session: Session,
    drafts: Iterable[Draft | str | Mapping[str, Any]],
    *,
    revive: bool = True,
    reconcile: bool | Reconcile = False,
    quality: Quality = "mark",
) -> tuple[Remembered, ...]:
    """Store drafts in order. All of them are checked before the first is stored.

    With `reconcile` each is stored by itself, so that it meets those before it. Raises InvalidInput,
    UnknownKind or NotWorthKeeping.
    """
    rules = rules_of(reconcile)
    now = as_utc(session.clock(), name="clock")
    made, given = _memories(session, list(drafts), now)
    judged = weighed(session, made, quality)
    memories = checked_quotations(session, [memory for memory, _ in judged])
    if rules is None:
        stored = keep(session, memories, revive=revive, given=given, at=now)
    else:
        stored = tuple(
            _reconciled(session, memory, rules, given, now)
            or keep(session, [memory], revive=revive, given=given, at=now)[0]
            for memory in memories
        )
    return tuple(
        replace(one, doubt=doubt) if doubt else one for one, (_, doubt) in zip(stored, judged, strict=True)
    )


def _reconciled(
    session: Session, memory: Memory, rules: Reconcile, given: Mapping[str, frozenset[str]], now: datetime
) -> Remembered | None:
    """What became of a fact that meets a known one; a confirmed one gets what is new as well."""
    met = reconciled(session, memory, rules)
    if met is None or met.created:
        return met
    return updated(session, met, memory, given.get(memory.id, frozenset()), now)


def _memories(
    session: Session, drafts: Sequence[Draft | str | Mapping[str, Any]], now: datetime
) -> tuple[list[Memory], dict[str, frozenset[str]]]:
    """The memories that drafts become, and by id the fields that were given of each.

    Where there are several, an error names the place of the draft.
    """
    made: list[Memory] = []
    given: dict[str, frozenset[str]] = {}
    for place, each in enumerate(drafts):
        try:
            draft = draft_of(each)
            made.append(memory_of(session, draft, now=now))
            if fields := given_in(draft):
                given[made[-1].id] = fields
        except InvalidInput as error:
            if len(drafts) > 1:
                error.args = (f"drafts[{place}]: {error}", *error.args[1:])
            raise
    return made, given
