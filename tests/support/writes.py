"""One write of each sort, to be counted and timed again and again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from germane import Level, Memory, Message, Status
from germane.conversation import MessageRole, TextPart
from germane.ledger import Assembly, LedgerEntry
from germane.model.conversation import Append
from germane.model.text import tenant_of
from germane.spaces import Create
from germane.stores import Insert, Revise, SetStatus
from germane.stores.location import WORKING_SETS
from germane.stores.relational.store import RelationalStore
from germane.testing.fakes import START, make_id, make_memories, make_memory, make_revision
from germane.working_sets import AddItem, SetChange, Touch

__all__ = ["writes"]

_AGENT = "writer"
_SPACE = "team"
_CANDIDATES = 60


def writes(store: RelationalStore) -> dict[str, Callable[[], object]]:
    """By name what does each sort of write once, every time with something new, in a store that was empty."""
    one = _Writer(store)
    return {
        "remember": one.remember,
        "remember 1,000": one.remember_many,
        "revise": one.revise,
        "forget": one.forget,
        "append to a conversation": one.append,
        "record an assembly": one.record,
        "remember in a space": one.tell,
        "touch in a shared set": one.touch,
        "both: remember and take in": one.take_in,
    }


class _Writer:
    """An agent that is alone in a space."""

    def __init__(self, store: RelationalStore) -> None:
        self._numbers = count()
        self._store = store
        store.spaces.apply(_SPACE, Create(by=_AGENT, at=START))
        self._member = store.spaces.enter(_SPACE, _AGENT)
        self._head, self._recorded, self._shared = self.remember(), self.remember(), self.tell()
        self._hold(AddItem(memory_id=self._shared.id, at=START))

    def remember(self) -> Memory:
        made = make_memory(f"Noted as number {next(self._numbers)}.", agent=_AGENT)
        self._store.apply(_AGENT, [Insert(memory=made)])
        return made

    def remember_many(self) -> None:
        made = make_memories(1000, seed=next(self._numbers), agent=_AGENT)
        self._store.apply(_AGENT, [Insert(memory=each) for each in made])

    def revise(self) -> None:
        self._head = make_revision(self._head, f"Noted anew as number {next(self._numbers)}.")
        self._store.apply(_AGENT, [Revise(memory=self._head)])

    def forget(self) -> None:
        status = Status.FORGOTTEN if next(self._numbers) % 2 else Status.ARCHIVED
        self._store.apply(_AGENT, [SetStatus(memory_id=self._recorded.id, status=status, at=START)])

    def append(self) -> None:
        message = Message(
            role=MessageRole.USER,
            parts=(TextPart(text="Well?"),),
            id=make_id(f"{next(self._numbers)}"),
            group="g",
            created_at=START,
        )
        self._store.conversations.apply(_AGENT, "talk", [Append(messages=(message,))])

    def record(self) -> None:
        self._store.ledger.record(_AGENT, _assembly(self._recorded, next(self._numbers)))

    def tell(self) -> Memory:
        made = make_memory(f"Told as number {next(self._numbers)}.", agent=tenant_of(_SPACE))
        self._member.apply(tenant_of(_SPACE), [Insert(memory=made)])
        return made

    def touch(self) -> None:
        self._hold(Touch(memory_id=self._shared.id, at=START))

    def take_in(self) -> None:
        self._hold(AddItem(memory_id=self.tell().id, at=START))

    def _hold(self, change: SetChange) -> None:
        WORKING_SETS.required(self._member).apply(tenant_of(_SPACE), "set", [change], by=_AGENT)


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
