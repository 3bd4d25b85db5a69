"""outcome: say how work turned out with what a context showed.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Iterable

from germane.errors import InvalidInput
from germane.model.change import Attest
from germane.model.context import Context
from germane.model.learning import Shown, Validation
from germane.model.ledger import Assembly
from germane.model.memory import Outcome, as_utc
from germane.protocols import Validating
from germane.ranking.outcomes import NAMED, SHOWN
from germane.verbs.checks import checked_word
from germane.verbs.feedback import Named, ids_shown, shown_of, still_there
from germane.verbs.recall import Recalled
from germane.verbs.session import Session

__all__ = ["outcome"]

_WORTH = {Outcome.SUCCESS: 1.0, Outcome.PARTIAL: 0.5, Outcome.FAILURE: 0.0}


def outcome(
    session: Session,
    context: Context | Recalled | Assembly | Shown,
    result: Outcome | str,
    *,
    memories: Iterable[Named] | None = None,
) -> Validation:
    """Note how work turned out with the memories that a context showed, or those of them that are named.

    A procedure that is named counts a success or a failure. Said again for the same context, the latest word
    stands and nothing counts twice. Raises InvalidInput for an outcome that says nothing yet, a memory that
    wasn't shown, or a store that keeps none.
    """
    told = checked_word(Outcome, result, name="outcome")
    if told not in _WORTH:
        known = ", ".join(map(str, _WORTH))
        raise InvalidInput(f"outcome={str(told)!r} says neither success nor failure. Say one of {known}.")
    if not isinstance(session.store, Validating):
        raise InvalidInput(
            f"{type(session.store).__name__} keeps no outcomes. Use a SQLite store, or give it the method of "
            "germane.Validating."
        )
    shown = shown_of(context)
    now = as_utc(session.clock(), name="clock")
    ids = list(shown.parts) if memories is None else ids_shown(memories, shown, name="memories")
    weight = SHOWN if memories is None else NAMED
    changes = [
        Attest(
            memory_id=name,
            context=shown.key,
            worth=_WORTH[told],
            weight=weight,
            at=now,
            lifecycle=session.kinds.of(one).lifecycle,
        )
        for name, one in still_there(session, ids).items()
    ]
    applied = session.store.apply(session.agent, changes)
    return Validation(memories=len(changes), told=sum(each.created for each in applied))
