"""Changes to memories, applied inside one write transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Any

from germane.errors import InvalidInput, NotFound, StaleRevision
from germane.ids import id_text
from germane.model.change import (
    Applied,
    ApplySignal,
    Change,
    ImportUsage,
    Insert,
    Merge,
    Purge,
    PurgeConversation,
    RecordOutcome,
    RecordRun,
    RecordUse,
    Reinstate,
    Revise,
    Reword,
    SetStatus,
    SetVector,
    version_of,
)
from germane.model.memory import MEMBERS, Cause, LifecycleSignal, Memory, Stage, Status, split_id
from germane.model.query import EmbeddingIdentity
from germane.stores.relational import memory_blocks
from germane.stores.relational.inserts import (
    New,
    VersionRow,
    chain_of,
    check_continues,
    is_same,
    nums_of,
    packed_vectors,
    recognised,
    same_texts,
    store_new,
    versions,
)
from germane.stores.relational.lifecycle import (
    apply_signal,
    gone_from_sets,
    import_usage,
    keep_counts,
    record_outcome,
    record_use,
    revised_in_sets,
    sets_holding,
    sign_of_repetition,
    signal_of_outcome,
)
from germane.stores.relational.tables import (
    AGENT_SHIFT,
    AgentRow,
    Connection,
    Rows,
    memory_values,
    microseconds,
    named,
    numbered_memory,
    row_id,
)

_ENDS = (Revise, SetStatus, Purge, ApplySignal, Merge, Reinstate)
"""Changes with which the reflections on a memory may end."""
_Followed = tuple[int, int, Memory, Rows]
"""A version that a later one replaces, the number and the memory of that one, and the sets that hold it."""


def _moment_of(change: Change) -> datetime | None:
    """When a change is made, as far as it says so."""
    if isinstance(change, Insert | Revise):
        return change.at or change.memory.updated_at
    return getattr(change, "at", None)


def pack_after(transaction: WriteTransaction, known: AgentRow) -> None:
    """Pack some memories that are in no block, once in so many changes; `known` is the agent before these."""
    if known.seq // memory_blocks.FEWEST < transaction.seq // memory_blocks.FEWEST:
        embedding = transaction.embedding or known.embedding
        memory_blocks.pack_some(transaction.connection, transaction.agent, embedding)


def erases(changes: Sequence[Change]) -> bool:
    """Whether any of the changes is a purge after which what is gone has to be erased at once."""
    return any(isinstance(each, Purge) and each.erases for each in changes) or bool(purged_sessions(changes))


def purged_sessions(changes: Sequence[Change]) -> tuple[str, ...]:
    """The conversations among what is purged, which the store deletes after the other changes."""
    return tuple(dict.fromkeys(each.session for each in changes if isinstance(each, PurgeConversation)))


@dataclass(slots=True)
class WriteTransaction:
    """One transaction's work for one agent: the change number moves with every change."""

    connection: Connection
    agent: int
    name: str
    seq: int
    embedding: EmbeddingIdentity | None
    language: str = "english"
    by: str = ""
    memories: int = 0
    terms: int = 0
    gone: set[bytes] = field(default_factory=set)
    """The ids of the rows that this transaction has purged."""
    purged: set[str] = field(default_factory=set)
    """The ids of the memories that it has purged."""
    removed: set[str] = field(default_factory=set)
    """The ids of the memories that it has removed since the run that learned them was undone."""
    touched: dict[str, datetime] = field(default_factory=dict)
    """When it has replaced, hidden or removed the current version of a memory, or changed when it expires."""
    changes: list[tuple[int, int, int, str, int | None, str | None]] = field(default_factory=list)
    reworded: set[int] = field(default_factory=set)
    """The numbers of the versions of which it has changed what a block has of them."""
    at: datetime | None = None
    """When the change that is applied just now is made, where it says so."""

    def apply(self, changes: Sequence[Change]) -> tuple[Applied, ...]:
        """Apply all changes in order, and note them."""
        applied: list[Applied] = []
        # Sent ahead, so that a server answers it together with the first query of the changes.
        reflections = self._reflections() if any(isinstance(each, _ENDS) for each in changes) else None
        for kind, group in groupby(changes, type):
            if kind is Insert:
                applied += self._insert([each for each in group if isinstance(each, Insert)])
            else:
                applied += [self._apply_one(each) for each in group]
        if self.touched:
            self._end_reflections(reflections or self._reflections())
        if self.changes:
            self.connection.many("insert_change", self.changes)
            self._unpack()
        if self.purged:
            from germane.stores.relational.learning_runs import scrub_runs  # noqa: PLC0415 - Most writes purge nothing.

            scrub_runs(self.connection, self.agent, memories=self.purged)
        counters = {"agent": self.agent, "seq": self.seq, "memories": self.memories, "terms": self.terms}
        self.connection.run("advance_agent", counters)
        return tuple(applied)

    def _unpack(self) -> None:
        """Take away the blocks of what is gone or reworded, and the packed vectors of what has others."""
        gone = self.reworded.union(num for _, _, num, what, *_ in self.changes if what == "purge")
        embedded = {num for _, _, num, what, *_ in self.changes if what == "vector"}
        if gone:
            memory_blocks.unpack(self.connection, self.agent, gone)
        if embedded:
            memory_blocks.unpack(self.connection, self.agent, embedded, vectors_only=True)

    def _apply_one(self, change: Change) -> Applied:
        how: dict[type, Callable[[Any], Applied]] = {
            Revise: self._revise,
            SetStatus: self._set_status,
            SetVector: self._set_vector,
            Purge: self._purge,
            RecordUse: self._record_use,
            RecordOutcome: self._record_outcome,
            ImportUsage: self._import_usage,
            ApplySignal: self._apply_signal,
            Merge: self._merge,
            Reword: self._reword,
            RecordRun: self._record_run,
            Reinstate: self._reinstate,
            PurgeConversation: lambda _: Applied(memory=None),  # See `purged_sessions`.
        }
        self.at = _moment_of(change)
        if type(change) not in how:
            raise InvalidInput(f"{change!r} is no change. germane.model.change.Change names all there are.")
        return how[type(change)](change)

    def _insert(self, inserts: list[Insert]) -> list[Applied]:
        self.connection.expect(len(inserts))
        hashes = {each.memory.content_hash for each in inserts}
        known = self._by_hash(hashes | {each.dated for each in inserts if each.dated})
        self._purge_expired(inserts, known)
        new: list[tuple[int, Insert]] = []
        seen: set[int] = set()
        now: dict[int, Memory] = {}
        applied: list[Applied] = []
        again: list[tuple[int, int, Insert]] = []
        followed: list[_Followed] = []
        for insert in inserts:
            self.at = _moment_of(insert)
            self._check_owner(insert.memory)
            each, same = recognised(insert, known)
            num = next((num for num, stored in reversed(same) if is_same(stored, each)), None)
            if num is None:
                num = self._note_new()
                each = self._following(num, each, followed)
                new.append((num, each))
                same.append((num, each.memory))
                now[num] = each.memory
                applied.append(Applied(memory=each.memory, created=True))
            elif not each.revive:
                applied.append(Applied(memory=now.get(num) or dict(same)[num]))
            else:
                stood = (now.get(num) or dict(same)[num]).status
                self._note(num, "see", stood=stood if stood is Status.FORGOTTEN else None)
                seen.add(num)
                again.append((len(applied), num, each))
                now[num] = (now.get(num) or dict(same)[num]).repeated(each.memory)
                applied.append(Applied(memory=now[num]))
        self._store([(num, each.memory, each.vector) for num, each in new])
        for former, num, memory, holding in followed:
            self._follow_in_sets(former, num, memory, holding, at=memory.updated_at)
        for num, each in new:
            if each.lifecycle_state is not None:
                keep_counts(self.connection, self.agent, num, each.lifecycle_state)
        for num in sorted(seen):
            self._see(num, now[num])
            if now[num].superseded_by is None:
                self._expire(self._chain(now[num].id) if now[num].expires_at else (), now[num])
        for place, num, each in again:
            applied[place] = self._repeat(num, each) or applied[place]
        return applied

    def _purge_expired(self, inserts: Sequence[Insert], known: dict[str, list[tuple[int, Memory]]]) -> None:
        """Remove what has expired and would be taken for the same memory, or has the same key."""
        for insert in inserts:
            if not insert.revive:
                continue
            at, key = insert.at or insert.memory.updated_at, insert.memory.key
            same = [*known.get(insert.memory.content_hash, ()), *known.get(insert.dated, ())]
            if key is not None:
                rows = self.connection.run("head_by_key", {"agent": self.agent, "key": key})
                same += [(num, self._load(num)) for num, _ in rows]
            for memory_id in dict.fromkeys(each.id for _, each in same if each.has_expired(at)):
                self._purge(Purge(memory_id=memory_id, at=at))
        for found in known.values() if self.gone else ():
            found[:] = [one for one in found if row_id(one[1].id, one[1].version) not in self.gone]

    def _following(self, num: int, insert: Insert, followed: list[_Followed]) -> Insert:
        """Supersede the current version where an import brings a later one; what was forgotten stays so."""
        memory = insert.memory
        if memory.version == 1 or memory.superseded_by is not None:
            return insert
        for former in map(VersionRow._make, versions(self.connection, self.agent, memory.id).fetchall()):
            if former.is_head and former.number < memory.version:
                if self._load(former.num).status is Status.FORGOTTEN:
                    memory = memory.evolve(status=Status.FORGOTTEN)
                followed.append(
                    (former.num, num, memory, self._supersede(former, memory, at=memory.updated_at))
                )
            self._expire([former], memory)
        return replace(insert, memory=memory)

    def _supersede(self, before: VersionRow, memory: Memory, *, at: datetime) -> Rows:
        """Let a memory's next version replace the row `before`; the working sets that hold that one.

        It goes first: two heads of one content would break the index.
        """
        former = before.num
        holding = sets_holding(self.connection, self.agent, former)
        values = {
            "superseded_by": row_id(memory.id, memory.version),
            "updated_at": microseconds(at, name="at"),
            # Something else holds from then on.
            "ends": memory.valid_from and microseconds(memory.valid_from, name="valid_from"),
        }
        self._note(former, "supersede", stood=Status(before.status))
        self.touched[memory.id] = at
        self.connection.run("supersede_memory", {"agent": self.agent, "num": former, **values})
        return holding

    def _expire(self, chain: Sequence[VersionRow], memory: Memory) -> None:
        """Let these versions of a memory expire when `memory` does, its current one."""
        expires_at = memory.expires_at and microseconds(memory.expires_at, name="expires_at")
        for version in chain:
            if version.expires_at != expires_at:
                values = {"agent": self.agent, "num": version.num, "expires_at": expires_at}
                self._note(version.num, "expire")
                self.touched[memory.id] = self.at or memory.updated_at
                self.connection.run("expire_memory", values)

    def _follow_in_sets(self, former: int, num: int, memory: Memory, holding: Rows, *, at: datetime) -> None:
        before = row_id(memory.id, memory.version - 1)
        revised_in_sets(self.connection, self.agent, former, num, former=before, holding=holding, at=at)

    def _repeat(self, num: int, insert: Insert) -> Applied | None:
        """Apply the signal of a memory that was remembered again, if its lifecycle has one."""
        if not insert.lifecycle:
            return None
        memory = self._load(num)
        sign = sign_of_repetition(insert.lifecycle, memory)
        if sign is None:
            return None
        return self._apply_signal(
            ApplySignal(
                memory_id=memory.id,
                lifecycle=insert.lifecycle,
                sign=sign,
                cause=Cause.REPEATED,
                at=insert.at or insert.memory.updated_at,
            )
        )

    def _revise(self, change: Revise) -> Applied:
        memory = change.memory
        self._check_owner(memory)
        if memory.supersedes is None:
            raise InvalidInput(
                f"Memory {memory.id!r} is a first version, which revises none. Count `version` one up."
            )
        rows = versions(self.connection, self.agent, memory.id)
        same_text = same_texts(self.connection, self.agent, {memory.content_hash})
        chain = chain_of(rows, memory.id, self.name)
        self._check_head(memory.supersedes, chain)
        before_num = chain[-1].num
        if chain[0].id != row_id(memory.id, 1):
            check_continues(memory, self._load(before_num))
        alike = [num for num in nums_of(same_text) if num != before_num]
        for _, same in self._records(alike) if alike else ():
            if same.id != memory.id:
                raise InvalidInput(
                    f"The revised text of {memory.id!r} is what memory {same.id!r} says already. "
                    "Forget the one, and keep the other."
                )
        num = self._note_new()
        at = change.at or memory.updated_at
        holding = self._supersede(chain[-1], memory, at=at)
        self._expire(chain, memory)
        self._store([(num, memory, change.vector)])
        if change.carries:
            self.connection.run("carry_life", {"agent": self.agent, "num": before_num, "new": num})
        self._follow_in_sets(before_num, num, memory, holding, at=at)
        return Applied(memory=memory, created=True)

    def _set_status(self, change: SetStatus) -> Applied:
        num, stood = self._found(change.memory_id)
        self._note(num, "status", stood=stood)
        holding = sets_holding(self.connection, self.agent, num)
        values = {"status": change.status.value, "updated_at": microseconds(change.at, name="at")}
        self.connection.run("set_status", {"agent": self.agent, "num": num, **values})
        now = self._load(num)
        self.touched[now.id] = change.at
        if change.status is Status.FORGOTTEN:
            gone_from_sets(self.connection, self.agent, num, "forget", at=change.at, holding=holding)
        return Applied(memory=now)

    def _set_vector(self, change: SetVector) -> Applied:
        num = self._num(change.memory_id)
        self._note(num, "vector")
        (vector,) = packed_vectors([change.vector], self.embedding)
        if vector:
            self.connection.many("insert_vector", [memory_blocks.vector_row(num, self.agent, vector)])
        else:
            self.connection.run("remove_vector", {"num": num, "agent": self.agent})
        self.connection.run("remove_unembedded", {"num": num, "agent": self.agent})
        return Applied(memory=self._load(num))

    def _purge(self, change: Purge) -> Applied:
        try:
            chain = self._chain(change.memory_id)
        except NotFound:
            if named(change.memory_id)["id"] in self.gone:
                return Applied(memory=None)
            raise
        for num, raw, *_ in chain:
            merged = self.connection.run("merged_into", {"agent": self.agent, "id": raw})
            length = self.connection.run("length", {"agent": self.agent, "num": num})
            holding = sets_holding(self.connection, self.agent, num)
            # What was merged into it says the same. The list grows while it is gone through.
            chain += [VersionRow._make(row) for row in merged]
            found = length.fetchone()
            self.terms -= found[0] if found else 0
            self.memories -= 1
            self._note(num, "purge")
            gone_from_sets(self.connection, self.agent, num, "purge", at=change.at, holding=holding)
            self.connection.run("purge_memory", {"agent": self.agent, "num": num})
        self.gone |= {each.id for each in chain}
        self.purged |= {id_text(each.id) for each in chain if each.number == 1}
        self.touched |= dict.fromkeys(self.purged, change.at)
        # What was learned from it is gone as well.
        self.connection.run("count_judgement", {"agent": self.agent, "by": 1})
        self.connection.run("count_outcome", {"agent": self.agent})
        return Applied(memory=None, purged=len(chain))

    def _record_use(self, change: RecordUse) -> Applied:
        num = self._num(change.memory_id)
        counted = record_use(self.connection, self.agent, num, change)
        if counted:
            self._note(num, "see")
        return Applied(memory=self._load(num), created=counted)

    def _import_usage(self, change: ImportUsage) -> Applied:
        num = self._num(version_of(change.record))
        return Applied(created=import_usage(self.connection, self.agent, num, change), memory=self._load(num))

    def _apply_signal(self, change: ApplySignal) -> Applied:
        num = self._num(change.memory_id)
        other = None if change.other is None else self._num(change.other)
        before = self._load(num)
        after = apply_signal(
            self.connection, self.agent, num, before, change, by=self.by or self.name, other=other
        ).stage
        now = self._load(num)
        moves = now.status is not before.status
        self._note(num, "status" if moves else "see", stood=before.status if moves else None)
        self.touched |= {now.id: change.at} if moves else {}
        if after is Stage.ESCALATED and before.stage is not after and change.escalated is not None:
            memory = change.escalated.evolve(stage=after)
            return self._revise(Revise(memory=memory, vector=change.vector, carries=True))
        return Applied(memory=now)

    def _merge(self, change: Merge) -> Applied:
        num, into = self._num(change.memory_id), self._num(change.into)
        for memory_id in (change.memory_id, change.into):
            self._check_head(memory_id, self._chain(memory_id))
        (head,) = [each.id for each in self._chain(change.into) if each.num == into]
        if num == into:
            raise InvalidInput(f"Memory {change.into!r} can't be merged into itself. Name another one.")
        for one, sign, other in (
            (change.memory_id, LifecycleSignal.SUPERSEDE, change.into),
            (change.into, LifecycleSignal.CONFIRM, change.memory_id),
        ):
            self._apply_signal(
                ApplySignal(
                    memory_id=one,
                    lifecycle=change.lifecycle,
                    sign=sign,
                    cause=Cause.DUPLICATE,
                    at=change.at,
                    other=other,
                )
            )
        self._note(num, "supersede")
        self.touched[split_id(change.memory_id)[0]] = change.at
        values = {"superseded_by": head, "updated_at": microseconds(change.at, name="at")}
        self.connection.run("merge_memory", {"agent": self.agent, "num": num, **values})
        gone_from_sets(self.connection, self.agent, num, "forget", at=change.at)
        return Applied(memory=self._load(num))

    def _reword(self, change: Reword) -> Applied:
        num = self._num(change.memory.version_id)
        self.connection.run("reword_texts", memory_values(change.memory, num, self.agent))
        self.reworded.add(num)
        self._note(num, "see")
        return Applied(memory=self._load(num))

    def _record_run(self, change: RecordRun) -> Applied:
        from germane.stores.relational.learning_runs import record_run  # noqa: PLC0415 - Few agents learn.

        record_run(self.connection, self.agent, change)
        return Applied(memory=None, created=True)

    def _reinstate(self, change: Reinstate) -> Applied:
        """Remove the versions that a learning run made, and let the one before them stand as it did."""
        chain = self._chain(change.memory_id)
        self._check_head(f"{change.memory_id}@{change.expected}", chain)
        version = 0 if change.memory is None else change.memory.version
        left = [each for each in chain if each.number <= version]
        for later in reversed([each for each in chain if each.number > version]):
            if self.connection.run("merged_into", {"agent": self.agent, "id": later.id}).fetchone():
                raise StaleRevision(change.memory_id, f"{change.memory_id}@{later.number}")
            length = self.connection.run("length", {"agent": self.agent, "num": later.num}).fetchone()
            holding = sets_holding(self.connection, self.agent, later.num)
            self.terms -= length[0] if length else 0
            self.memories -= 1
            self._note(later.num, "purge")
            if left:
                number = left[-1].num
                revised_in_sets(
                    self.connection,
                    self.agent,
                    later.num,
                    number,
                    former=later.id,
                    holding=holding,
                    at=change.at,
                )
            else:
                gone_from_sets(self.connection, self.agent, later.num, "purge", at=change.at, holding=holding)
            self.connection.run("purge_memory", {"agent": self.agent, "num": later.num})
        self.touched[change.memory_id] = change.at
        if change.memory is None or not left:
            self.removed.add(change.memory_id)
            return Applied(memory=None)
        num = left[-1].num
        self._note(num, "status", stood=Status(left[-1].status))
        self.connection.run("reinstate_memory", memory_values(change.memory, num, self.agent))
        self.reworded.add(num)
        if change.lifecycle_state is not None:
            keep_counts(self.connection, self.agent, num, change.lifecycle_state)
        return Applied(memory=self._load(num))

    def _record_outcome(self, change: RecordOutcome) -> Applied:
        num = self._num(change.memory_id)
        effect = record_outcome(self.connection, self.agent, num, change)
        # What an outcome counts, it counts in the life of the latest version.
        heads = [each.num for each in self._chain(change.memory_id) if each.is_head] if effect.counts else []
        for head in heads:
            signal = signal_of_outcome(
                self.connection, self.agent, head, self._load(head), change=change, effect=effect
            )
            if signal is not None:
                self._apply_signal(signal)
        return Applied(memory=self._load(num), created=effect.is_new)

    def _reflections(self) -> Rows:
        return self.connection.run("reflections", {"agent": self.agent})

    def _end_reflections(self, reflections: Rows) -> None:
        """End the reflections on what was touched: purge them with a purged member, else supersede them."""
        for raw, metadata in reflections.fetchall():
            members = json.loads(metadata).get(MEMBERS)
            ended = self.touched.keys() & (members if isinstance(members, dict) else ())
            reflection = id_text(raw)
            if not ended or reflection in self.touched:
                continue
            at = max(self.touched[each] for each in ended)
            if ended & (self.purged | self.removed):
                self._purge(Purge(memory_id=reflection, at=at))
            else:
                self._set_status(SetStatus(memory_id=reflection, status=Status.SUPERSEDED, at=at))

    def _store(self, new: Sequence[New]) -> None:
        self.terms += store_new(
            self.connection, self.agent, self.name, new, embedding=self.embedding, language=self.language
        )
        self.memories += len(new)

    def _see(self, num: int, memory: Memory) -> None:
        self.connection.run("see_memory", memory_values(memory, num, self.agent))

    def _by_hash(self, hashes: set[str]) -> dict[str, list[tuple[int, Memory]]]:
        """For each hash that is stored the memories that have it, superseded versions before heads."""
        nums = nums_of(same_texts(self.connection, self.agent, hashes))
        loaded = dict(self._records(nums)) if nums else {}
        found: dict[str, list[tuple[int, Memory]]] = {}
        for num in nums:
            found.setdefault(loaded[num].content_hash, []).append((num, loaded[num]))
        return found

    def _records(self, nums: Iterable[int]) -> list[tuple[int, Memory]]:
        rows = self.connection.run("records", {"agent": self.agent, "nums": json.dumps(list(nums))})
        return [numbered_memory(row, self.name) for row in rows]

    def _load(self, num: int) -> Memory:
        return self._records([num])[0][1]

    def _num(self, memory_id: str) -> int:
        return self._found(memory_id)[0]

    def _found(self, memory_id: str) -> tuple[int, Status]:
        values = named(memory_id)
        found = values["id"] and self.connection.run("num", {"agent": self.agent, **values}).fetchone()
        if not found:
            raise NotFound(memory_id, self.name)
        return int(found[0]), Status(found[1])

    def _chain(self, memory_id: str) -> list[VersionRow]:
        return chain_of(versions(self.connection, self.agent, memory_id), memory_id, self.name)

    def _note(self, num: int, what: str, *, stood: Status | None = None) -> None:
        self.seq += 1
        at = None if self.at is None else microseconds(self.at, name="at")
        self.changes.append((self.agent, self.seq, num, what, at, stood and stood.value))

    def _note_new(self) -> int:
        num = (self.agent << AGENT_SHIFT) + self.seq + 1
        self._note(num, "insert")
        return num

    def _check_owner(self, memory: Memory) -> None:
        if memory.agent != self.name:
            raise InvalidInput(
                f"Memory {memory.id!r} belongs to agent {memory.agent!r}, not to {self.name!r}. "
                "Apply it to its own agent."
            )

    def _check_head(self, memory_id: str, chain: Sequence[VersionRow]) -> None:
        # A memory without a head was merged into another one, which stands for it.
        last = chain[-1]
        _, version = split_id(memory_id)
        if not last.is_head or version not in (0, last.number):
            now = self._load(last.num)
            raise StaleRevision(memory_id, now.superseded_by or now.version_id)
