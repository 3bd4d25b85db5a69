"""feedback, learn, unlearn: say what was used of what was shown, and let the ranking learn from it.

Level: verbs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from germane.errors import InvalidInput
from germane.model.change import Judge
from germane.model.context import Context, Item
from germane.model.held import Held
from germane.model.learning import Feedback, Lessons, Shown
from germane.model.ledger import Assembly
from germane.model.memory import Memory, as_utc, split_id
from germane.model.trace import Entry, Ranked
from germane.protocols import Learning
from germane.ranking.learning import signals_of
from germane.verbs.checks import checked_flag, checked_words
from germane.verbs.recall import Recalled
from germane.verbs.session import Session

__all__ = ["Named", "feedback", "ids_shown", "learn", "shown_of", "still_there", "unlearn"]

Named: TypeAlias = str | Memory | Item | Ranked | Held
"""A memory named by its id, or by itself as a context, a recall or a working set shows it."""


def feedback(
    session: Session,
    context: Context | Recalled | Assembly | Shown,
    *,
    used: Iterable[Named],
    ignored: Iterable[Named] | None = None,
) -> Feedback:
    """Count which memories of a context or a recall were used, and learn from it where that is switched on.

    What was shown and isn't among `used` counts as ignored, unless `ignored` says what was; the rest
    is then left open. All of it is written in one transaction. Saying it again for the same context
    counts nothing twice, and what was used once stays used. Raises InvalidInput for a memory that
    wasn't shown or is named as both, and NotFound for a used one that was purged since.
    """
    shown = shown_of(context)
    used_ids = ids_shown(used, shown, name="used")
    ignored_ids = [one for one in shown.parts if one not in used_ids]
    if ignored is not None:
        ignored_ids = ids_shown(ignored, shown, name="ignored")
    if both := [one for one in ignored_ids if one in used_ids]:
        raise InvalidInput(f"Memory {both[0]!r} is named as used and as ignored. Name it once.")
    now = as_utc(session.clock(), name="clock")
    learns = isinstance(session.store, Learning) and session.store.settle_learning(session.agent, None).on
    parts = {one: _told(shown.parts[one]) for one in (*used_ids, *ignored_ids)}
    changes = [
        Judge(memory_id=one, context=shown.key, used=True, at=now, parts=parts[one]) for one in used_ids
    ]
    if isinstance(session.store, Learning):
        changes += [
            Judge(memory_id=one, context=shown.key, used=False, at=now, parts=parts[one])
            for one in still_there(session, ignored_ids)
        ]
    applied = session.store.apply(session.agent, changes)
    if isinstance(session.store, Learning):
        # Fitted here and now, so that no question has to wait for it.
        session.known_weights.of(session.store, session.agent)
    return Feedback(
        used=tuple(each.memory for each in applied[: len(used_ids)] if each.memory is not None),
        counted=sum(each.created for each in applied),
        examples=sum(1 for each in changes if each.parts) if learns else 0,
    )


def shown_of(context: Context | Recalled | Assembly | Shown) -> Shown:
    """What a context or a recall showed, with the parts of scores as they were before any weights."""
    if isinstance(context, Shown):
        return context
    if isinstance(context, Assembly):
        return _recorded(context)
    if isinstance(context, Context):
        trace = context.trace
        return Shown.of(
            "context",
            question=trace.question.text,
            now=trace.now,
            parts={_version(entry): entry.parts for entry in trace.included},
            weights=trace.weights,
            levels={_version(entry): entry.level for entry in trace.included if entry.level},
        )
    if isinstance(context, Recalled):
        return Shown.of(
            "recall",
            question=context.question.text,
            now=context.now,
            parts={one.memory.version_id: one.parts for one in context},
            weights=context.weights,
        )
    raise InvalidInput(
        f"{type(context).__name__} showed no memories. Pass what `assemble` or `recall` returned, or an "
        "assembly of the ledger."
    )


def _recorded(assembly: Assembly) -> Shown:
    # Of weights the ledger keeps a hash alone, so what was weighed by them tells of uses and no more.
    weighed = bool(assembly.makers.get("weights"))
    return Shown(
        key=assembly.key,
        parts={entry.version_id: {} if weighed else entry.parts for entry in assembly.included},
        levels={entry.version_id: entry.level for entry in assembly.included if entry.level},
    )


def learn(session: Session, on: bool | None) -> Lessons:
    """Switch learning on or off for the agent, or with None leave it; returns what is learned.

    Raises InvalidInput when the store can't keep examples.
    """
    if on is not None:
        checked_flag(on, name="on")
    if not isinstance(session.store, Learning):
        if on:
            raise InvalidInput(
                f"{type(session.store).__name__} can't learn from use: it keeps no examples. Use a SQLite "
                "store, or give it the methods of germane.Learning."
            )
        return Lessons(on=False, weights=None, examples=0)
    state = session.store.settle_learning(session.agent, on)
    return Lessons(
        on=state.on,
        weights=session.known_weights.of(session.store, session.agent),
        examples=sum(1 for one in session.store.examples(session.agent) if one.parts),
    )


def unlearn(session: Session) -> int:
    """Remove all that was learned, and return from how many examples; uses stay counted."""
    return session.store.unlearn(session.agent) if isinstance(session.store, Learning) else 0


def _told(parts: Mapping[str, float]) -> Mapping[str, float] | None:
    """What is kept of a score: the parts that have weights, or the importance that a working set went by."""
    kept = {name: part for name, part in parts.items() if name == "importance"}
    return signals_of(parts) or kept or None


def ids_shown(named: Iterable[Named], shown: Shown, *, name: str) -> list[str]:
    """The names by which `shown` has what is named, each once. Raises InvalidInput for what wasn't shown."""
    if isinstance(named, Memory | Item | Ranked | Held):
        raise InvalidInput(f"{name} is one memory; pass a sequence of them, such as [memory].")
    given = named if isinstance(named, str) else [_id_of(one) for one in named]
    # Of two versions of a memory its id names the later one.
    versions = {split_id(one)[0]: one for one in sorted(shown.parts, key=split_id)}
    ids: dict[str, None] = {}
    for one in checked_words(given, name=name):
        version = one if one in shown.parts else versions.get(split_id(one)[0])
        if version is None:
            raise InvalidInput(
                f"Memory {split_id(one)[0]!r} isn't among the {len(shown.parts)} that were shown, so nothing "
                f"is known of its use. Name in {name} only memories of this context."
            )
        ids[version] = None
    return list(ids)


def _id_of(named: Named) -> str:
    if isinstance(named, Item | Ranked | Held):
        return named.memory.version_id
    return named.version_id if isinstance(named, Memory) else named


def _version(entry: Entry) -> str:
    return f"{split_id(entry.memory_id)[0]}@{entry.version}"


def still_there(session: Session, ids: Sequence[str]) -> Mapping[str, Memory]:
    """Those that nobody has purged since, by their names; that one was ignored is no reason to fail."""
    found = session.store.get(session.agent, ids)
    return {one: memory for one, memory in zip(ids, found, strict=True) if memory is not None}
