"""One write of each sort, to be counted and timed again and again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from germane.model.change import Insert, Revise, SetStatus
from germane.model.holding import Enter, Touch
from germane.model.ledger import Assembly, LedgerEntry
from germane.model.log import Append
from germane.model.memory import Level, Memory, Status
from germane.model.message import Message, Role, TextPart
from germane.model.space import Create
from germane.spaces import tenant_of
from germane.stores.relational.store import RelationalStore
from germane.testing.builders import START, make_id, make_memories, make_memory, make_revision

__all__ = ["writes"]

_AGENT = "writer"
_SPACE = "team"
_CANDIDATES = 60


def writes(store: RelationalStore) -> dict[str, Callable[[], object]]:
    """By name what does each sort of write once, every time with something new, in a store that was empty."""
    numbers = count()
    tenant = tenant_of(_SPACE)
    store.settle_space(_SPACE, Create(by=_AGENT, at=START))
    member = store.entered(_SPACE, _AGENT)

    def remember(agent: str = _AGENT) -> Memory:
        made = make_memory(f"Noted as number {next(numbers)}.", agent=agent)
        where = store if agent == _AGENT else member
        where.apply(agent, [Insert(memory=made)])
        return made

    def remember_many() -> None:
        made = make_memories(1000, seed=next(numbers), agent=_AGENT)
        store.apply(_AGENT, [Insert(memory=each) for each in made])

    head = remember()

    def revise() -> None:
        nonlocal head
        head = make_revision(head, f"Noted anew as number {next(numbers)}.")
        store.apply(_AGENT, [Revise(memory=head)])

    kept, shared = remember(), remember(tenant)

    def forget() -> None:
        status = Status.FORGOTTEN if next(numbers) % 2 else Status.ARCHIVED
        store.apply(_AGENT, [SetStatus(memory_id=kept.id, status=status, at=START)])

    def append() -> None:
        said = Message(
            role=Role.USER,
            parts=(TextPart(text="Well?"),),
            id=make_id(f"{next(numbers)}"),
            group="g",
            created_at=START,
        )
        store.converse(_AGENT, "talk", [Append(messages=(said,))])

    def record() -> None:
        store.record(_AGENT, _assembly(kept, next(numbers)))

    member.hold(tenant, "set", [Enter(memory_id=shared.id, at=START)], by=_AGENT)

    def hold() -> None:
        member.hold(tenant, "set", [Touch(memory_id=shared.id, at=START)], by=_AGENT)

    def take_in() -> None:
        made = remember(tenant)
        member.hold(tenant, "set", [Enter(memory_id=made.id, at=START)], by=_AGENT)

    return {
        "remember": remember,
        "remember 1,000": remember_many,
        "revise": revise,
        "forget": forget,
        "append to a conversation": append,
        "record an assembly": record,
        "remember in a space": lambda: remember(tenant),
        "touch in a shared set": hold,
        "both: remember and take in": take_in,
    }


def _assembly(memory: Memory, number: int) -> Assembly:
    entry = LedgerEntry(
        memory_id=memory.id,
        kind=memory.kind,
        agent=memory.agent,
        section="facts",
        score=1.0,
        parts={"lexical": 1.0},
        level=Level.FULL,
        tokens=5,
    )
    return Assembly(
        id=make_id(f"assembly {number}"),
        agent=memory.agent,
        at=START,
        question="What was noted?",
        plan="relevance",
        frame="",
        budget=100,
        counter="bytes_div_4",
        key="00" * 16,
        points={},
        makers={},
        tokens=5,
        sha256="00" * 32,
        candidates=_CANDIDATES,
        entries=(entry,) * _CANDIDATES,
    )
