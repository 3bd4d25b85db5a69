"""Whatever happens to memories, with crashes within and between: only declared stages, and a whole log."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import germane
from germane import Memory, Status
from germane.errors import InvalidInput, StaleRevision
from germane.importers import export_jsonl, import_source
from germane.lifecycle import LifecycleState
from germane.ranking import Impressions
from germane.stores import EmbeddingIdentity, SqliteStore
from germane.testing.fakes import HashEmbedder
from support.examples import examples

TEXTS = [
    "The cache lives in Redis.",
    "the cache lives in redis",
    "The cache lives in memory.",
    "Ana leads billing.",
]
KINDS = ["fact", "episode", "procedure", "constraint", "decision", "note"]
MOVES = {
    "fact": {
        "confirm": "new>confirmed new>core confirmed>confirmed confirmed>core core>core",
        "promote": "new>core confirmed>core core>core",
        "contradict": "new>new confirmed>confirmed core>core",
        "supersede": "new>superseded confirmed>superseded core>superseded inactive>superseded",
        "settle": "new>core confirmed>core",
        "retire": "new>inactive confirmed>inactive core>inactive superseded>inactive",
        "restore": "inactive>new inactive>confirmed inactive>core inactive>superseded",
    },
    "episode": {
        "age": "active>summarized active>archived summarized>archived",
        "retire": "active>archived summarized>archived",
        "restore": "archived>active",
    },
    "procedure": {
        **dict.fromkeys(
            ("succeed", "fail", "settle"),
            "active>active active>effective active>ineffective effective>active effective>effective "
            "effective>ineffective ineffective>active ineffective>effective ineffective>ineffective",
        ),
        "retire": "active>retired effective>retired ineffective>retired",
        "restore": "retired>active retired>effective retired>ineffective",
    },
    "constraint": {
        "trigger": "created>active created>escalated created>retired active>active active>escalated "
        "active>retired escalated>escalated escalated>retired",
        "false_alarm": "created>active created>retired active>active active>retired escalated>escalated "
        "escalated>retired",
        "settle": "created>escalated created>retired active>escalated active>retired escalated>retired",
        "retire": "created>retired active>retired escalated>retired",
        "restore": "retired>created",
    },
    "decision": {
        "await": "recorded>pending pending>pending reviewed>pending",
        "review": "recorded>reviewed pending>reviewed reviewed>reviewed",
    },
}
"""The stages before and after each sign, by the kind of memory; a note has none."""
STAGES = {
    kind: {stage for moves in signs.values() for move in moves.split() for stage in move.split(">")}
    for kind, signs in MOVES.items()
}
OUT_OF_USE = {"superseded", "inactive", "archived", "retired"}
MOVING = {"confirm": {"fact"}, "contradict": {"fact"}, "record_trigger": {"constraint"}}
"""The kinds that each verb moves."""
RETIRING = {"fact", "episode", "procedure", "constraint"}
EVERY = germane.Filter(statuses=tuple(Status))


class Lives(RuleBasedStateMachine):
    """One engine on a file. Each rule says when its call is refused; otherwise the call has to succeed."""

    crashes = False

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.ids: list[str] = []
        self.crash = 0
        self.open()

    def open(self) -> None:
        embedder = HashEmbedder(16)
        identity = EmbeddingIdentity(name=embedder.name, dimension=embedder.dimension)
        self.store = SqliteStore(Path(self.folder.name) / "a.db", embedding=identity, durability="relaxed")
        self.engine = germane.open(self.store, agent="a", embedder=embedder, clock=lambda: self.now)

    def teardown(self) -> None:
        self.engine.close()
        self.folder.cleanup()

    def attempt(
        self, verb: str, *args: object, refused: str = "", certain: bool = True, **named: object
    ) -> None:
        """Call a verb. It is refused with the words `refused`, if there are any, and else succeeds.

        If a crash is due, the database stops after some steps of its machine, as a rule in the middle of the
        transaction, and the file is opened anew.
        """
        before = self.snapshot() if self.crash or refused else None
        writer = self.store._file._the_writer()
        if self.crash:
            writer.set_progress_handler(lambda: 1, self.crash)
        try:
            getattr(self.engine, verb)(*args, **named)
            assert not (refused and certain), f"{verb} isn't refused with {refused!r}"
        except (InvalidInput, StaleRevision) as error:
            writer.set_progress_handler(None, 0)
            if not refused or refused not in str(error):
                raise
            assert self.snapshot() == before
        except germane.StoreError as error:
            writer.set_progress_handler(None, 0)
            assert self.crash
            # Each step of upkeep is a transaction, and a purge erases what is left after its transaction.
            done = verb == "maintain" or (verb == "purge" and str(error).startswith("The purge is done"))
            assert done or self.snapshot() == before
        finally:
            writer.set_progress_handler(None, 0)
        if self.crash:
            self.crash = 0
            self.engine.close()
            self.open()
        self.ids = sorted({memory.id for memory in self.everything()})

    def snapshot(self) -> object:
        memories = self.everything()
        return memories, self.states(memories), self.engine.events()

    def everything(self) -> tuple[Memory, ...]:
        return self.engine.memories(EVERY, order=germane.Order.OLDEST)

    def states(self, memories: Sequence[Memory]) -> dict[str, LifecycleState]:
        names = [memory.ref for memory in memories]
        return dict(zip(names, self.engine.lifecycle_states(names), strict=True))

    def head(self, memory_id: str) -> Memory:
        """The current version of a memory, or of the one that it was merged into."""
        memory = self.engine.get(memory_id)
        while memory.superseded_by is not None:
            memory = self.engine.get(memory.superseded_by.partition("@")[0])
        return memory

    def why_not(self, memory: Memory, kinds: Collection[str], why: str = "") -> str:
        """Why what moves memories of these kinds is refused for a memory; empty where it isn't."""
        if memory.status is Status.FORGOTTEN:
            return "out of use"
        if memory.kind in kinds:
            return ""
        return why or ("has no stages" if memory.kind == "note" else "has no move")

    def store_version(self, memory: Memory, text: str, verb: str, given: object) -> None:
        """Store a text as the next version: refused if another memory has it, or this one isn't current."""
        alike = [
            other
            for other in self.everything()
            if other.id != memory.id
            and (other.kind, other.content, other.subject) == (memory.kind, text, memory.subject)
        ]
        if memory.status is Status.FORGOTTEN:
            self.attempt(verb, memory.id, given, refused="is forgotten")
        elif memory.superseded_by is not None:  # It was merged into another memory.
            self.attempt(verb, memory.id, given, refused="is what memory" if alike else "current one")
        elif alike and memory.kind == "episode":
            # Episodes of two days may have the same text.
            self.attempt(verb, memory.id, given, refused="is what memory", certain=False)
        else:
            self.attempt(verb, memory.id, given, refused="is what memory" if alike else "")

    @rule(
        text=st.sampled_from(TEXTS),
        kind=st.sampled_from(KINDS),
        subject=st.sampled_from([None, "cache"]),
        reconcile=st.booleans(),
    )
    def remember(self, text: str, kind: str, subject: str | None, *, reconcile: bool) -> None:
        self.attempt("remember", text, kind=kind, subject=subject, reconcile=reconcile)

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), verb=st.sampled_from(sorted(MOVING)))
    def move(self, data: st.DataObject, verb: str) -> None:
        memory_id = data.draw(st.sampled_from(self.ids))
        self.attempt(verb, memory_id, refused=self.why_not(self.head(memory_id), MOVING[verb]))

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def retire(self, data: st.DataObject) -> None:
        memory_id = data.draw(st.sampled_from(self.ids))
        head = self.head(memory_id)
        refused = "has no move" if head.status is Status.ARCHIVED else self.why_not(head, RETIRING)
        self.attempt("retire", memory_id, refused=refused)

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        memory_id = data.draw(st.sampled_from(self.ids))
        self.attempt("forget", memory_id)

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        memory = self.engine.get(data.draw(st.sampled_from(self.ids)))
        out = memory.status in (Status.FORGOTTEN, Status.ARCHIVED)
        self.attempt("restore", memory.id, refused="" if out else "can be restored")

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def promote(self, data: st.DataObject) -> None:
        memory_id = data.draw(st.sampled_from(self.ids))
        self.attempt("confirm", memory_id, core=True, refused=self.why_not(self.head(memory_id), {"fact"}))

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), outcomes=st.lists(st.sampled_from(["success", "partial", "failure"]), max_size=6))
    def attest(self, data: st.DataObject, outcomes: list[str]) -> None:
        """Report how work turned out with a memory; of one context, only the last report counts."""
        memory = data.draw(st.sampled_from(self.ids))
        shown = Impressions(key=f"{data.draw(st.integers(0, 9)):032x}", parts={memory: {}})
        for outcome in outcomes:
            self.attempt("outcome", shown, outcome, memories=[memory])

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), false=st.booleans(), times=st.integers(1, 4))
    def trigger(self, data: st.DataObject, *, false: bool, times: int) -> None:
        constraint = data.draw(st.sampled_from(self.ids))
        for _ in range(times):
            refused = self.why_not(self.head(constraint), {"constraint"})
            self.attempt("record_trigger", constraint, false_positive=false, refused=refused)

    @precondition(lambda self: self.ids)
    @rule(
        data=st.data(),
        outcome=st.sampled_from(["success", "failure", "pending", "abandoned"]),
        times=st.integers(1, 4),
    )
    def review(self, data: st.DataObject, outcome: str, times: int) -> None:
        memory_id = data.draw(st.sampled_from(self.ids))
        for _ in range(times):
            head = self.head(memory_id)
            refused = self.why_not(head, {"decision", "procedure"}, "has no outcomes")
            if not refused and head.kind == "procedure" and outcome not in ("success", "failure"):
                refused = "can't keep outcome"
            self.attempt("review", memory_id, outcome, refused=refused)

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), text=st.sampled_from(TEXTS))
    def revise(self, data: st.DataObject, text: str) -> None:
        memory = self.engine.get(data.draw(st.sampled_from(self.ids)))
        self.store_version(memory, text, "revise", text)

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), text=st.sampled_from(TEXTS))
    def supersede(self, data: st.DataObject, text: str) -> None:
        memory = self.engine.get(data.draw(st.sampled_from(self.ids)))
        draft = germane.Draft(content=text, kind=memory.kind, subject=memory.subject)
        self.store_version(memory, text, "supersede", draft)

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def purge(self, data: st.DataObject) -> None:
        memory_id = data.draw(st.sampled_from(self.ids))
        crashed = self.crash
        self.attempt("purge", memory_id, confirm=True)
        assert crashed or memory_id not in self.ids

    @rule(days=st.sampled_from([1, 29, 31, 100]))
    def wait(self, days: int) -> None:
        self.now += timedelta(days=days)

    @rule(dry=st.booleans())
    def maintain(self, *, dry: bool) -> None:
        before = self.snapshot() if dry else None
        self.attempt("maintain", dry_run=dry)
        assert not dry or self.snapshot() == before

    @precondition(lambda self: self.crashes)
    @rule(steps=st.integers(20, 1500))
    def crash_next(self, steps: int) -> None:
        self.crash = steps

    @precondition(lambda self: self.crashes)
    @rule()
    def crash_now(self) -> None:
        """Between two calls: the next process finds the file as one left it that never closed it."""
        before, left = self.snapshot(), self.engine
        self.open()
        assert self.snapshot() == before
        left.close()

    @precondition(lambda self: self.ids)
    @rule()
    def export_and_import(self) -> None:
        """What is imported into an empty store is as it was exported; imported here, it changes nothing."""
        memories = self.everything()
        before, states, lines = self.snapshot(), self.states(memories), io.StringIO()
        export_jsonl(memories, lines, lifecycle_states=states)
        file = Path(self.folder.name) / "export.jsonl"
        file.write_text(lines.getvalue(), encoding="utf-8")
        with germane.open(":memory:", agent="a", embedder=None) as elsewhere:
            import_source(elsewhere, str(file))
            assert elsewhere.memories(EVERY, order=germane.Order.OLDEST) == memories
            names = [memory.ref for memory in memories]
            assert dict(zip(names, elsewhere.lifecycle_states(names), strict=True)) == states
        import_source(self.engine, str(file))
        assert self.snapshot() == before

    @invariant()
    def every_stage_is_declared_and_agrees_with_its_status(self) -> None:
        for memory in self.everything():
            if memory.kind == "note":
                assert memory.stage is None
                continue
            assert memory.stage in STAGES[memory.kind]
            assert memory.status is not Status.ACTIVE or memory.stage not in OUT_OF_USE
            assert 0 <= memory.confidence <= 1

    @invariant()
    def every_logged_step_is_declared(self) -> None:
        events = self.engine.events()
        assert [each.number for each in events] == sorted({each.number for each in events})
        for event in events:
            moves = MOVES[self.engine.get(event.memory_id).kind]
            assert f"{event.before}>{event.after}" in moves[event.sign].split()

    @invariant()
    def the_store_is_whole(self) -> None:
        assert self.engine.doctor() == ()


class CrashingLives(Lives):
    """The same with transactions that end before they commit."""

    crashes = True


QUIET = settings(
    max_examples=examples(100),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestLives = Lives.TestCase
TestLives.settings = QUIET
TestCrashingLives = CrashingLives.TestCase
TestCrashingLives.settings = QUIET
