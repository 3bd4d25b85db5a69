"""Whatever happens to memories, with crashes within and between: only declared stages, and a whole log."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import germane
from germane import Memory, Status
from germane.errors import InvalidInput, NotFound, StaleRevision
from germane.importers import export_jsonl, import_source
from germane.lifecycle import LifecycleState
from germane.ranking import Impressions
from germane.stores import SqliteStore
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
REFUSED = (InvalidInput, NotFound, StaleRevision)


class Lives(RuleBasedStateMachine):
    """One engine on a file; every rule may be refused, and no rule may break anything."""

    crashes = False

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.ids: list[str] = []
        self.crash = 0
        self.open()

    def open(self) -> None:
        self.store = SqliteStore(Path(self.folder.name) / "a.db", durability="relaxed")
        self.engine = germane.open(self.store, agent="a", embedder=HashEmbedder(16), clock=lambda: self.now)

    def teardown(self) -> None:
        self.engine.close()
        self.folder.cleanup()

    def attempt(self, verb: str, *args: object, **named: object) -> None:
        """Call a verb; where a crash is due, the transaction never commits and the file is opened anew."""
        if self.crash:
            self.crash_in(verb, *args, **named)
            return
        try:
            result = getattr(self.engine, verb)(*args, **named)
        except REFUSED:
            return
        if isinstance(result, Memory) and result.id not in self.ids:
            self.ids.append(result.id)

    def crash_in(self, verb: str, *args: object, **named: object) -> None:
        """Let the database stop after some steps of its machine, in the middle of a transaction as a rule."""
        before = self.snapshot()
        writer = self.store._file._the_writer()
        writer.set_progress_handler(lambda: 1, self.crash)
        self.crash = 0
        try:
            getattr(self.engine, verb)(*args, **named)
        except REFUSED:
            pass
        except germane.StoreError:
            # Whoever maintains does each step by itself; all else happens whole or not at all.
            writer.set_progress_handler(None, 0)
            assert verb == "maintain" or self.snapshot() == before
        finally:
            writer.set_progress_handler(None, 0)
            self.engine.close()
            self.open()

    def snapshot(self) -> object:
        memories = self.everything()
        return memories, self.standings(memories), self.engine.events()

    def everything(self) -> tuple[Memory, ...]:
        return self.engine.memories(germane.Filter(statuses=tuple(Status)), order=germane.Order.OLDEST)

    def standings(self, memories: Sequence[Memory]) -> dict[str, LifecycleState]:
        ids = [memory.id for memory in memories]
        return dict(zip(ids, self.engine.lifecycle_states(ids), strict=True))

    @rule(
        text=st.sampled_from(TEXTS),
        kind=st.sampled_from(KINDS),
        subject=st.sampled_from([None, "cache"]),
        reconcile=st.booleans(),
    )
    def remember(self, text: str, kind: str, subject: str | None, *, reconcile: bool) -> None:
        self.attempt("remember", text, kind=kind, subject=subject, reconcile=reconcile)

    @precondition(lambda self: self.ids)
    @rule(
        data=st.data(),
        verb=st.sampled_from(["confirm", "contradict", "record_trigger", "retire", "forget", "restore"]),
    )
    def move(self, data: st.DataObject, verb: str) -> None:
        self.attempt(verb, data.draw(st.sampled_from(self.ids)))

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def promote(self, data: st.DataObject) -> None:
        self.attempt("confirm", data.draw(st.sampled_from(self.ids)), core=True)

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), outcomes=st.lists(st.sampled_from(["success", "partial", "failure"]), max_size=6))
    def attest(self, data: st.DataObject, outcomes: list[str]) -> None:
        """Work turned out some way with a memory: told of one context, only the last word counts."""
        memory = data.draw(st.sampled_from(self.ids))
        shown = Impressions(key=f"{data.draw(st.integers(0, 9)):032x}", parts={memory: {}})
        for outcome in outcomes:
            self.attempt("outcome", shown, outcome, memories=[memory])

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), false=st.booleans(), times=st.integers(1, 4))
    def trigger(self, data: st.DataObject, *, false: bool, times: int) -> None:
        constraint = data.draw(st.sampled_from(self.ids))
        for _ in range(times):
            self.attempt("record_trigger", constraint, false_positive=false)

    @precondition(lambda self: self.ids)
    @rule(
        data=st.data(),
        outcome=st.sampled_from(["success", "failure", "pending", "abandoned"]),
        times=st.integers(1, 4),
    )
    def review(self, data: st.DataObject, outcome: str, times: int) -> None:
        memory = data.draw(st.sampled_from(self.ids))
        for _ in range(times):
            self.attempt("review", memory, outcome)

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), text=st.sampled_from(TEXTS))
    def revise(self, data: st.DataObject, text: str) -> None:
        self.attempt("revise", data.draw(st.sampled_from(self.ids)), text)

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def purge(self, data: st.DataObject) -> None:
        self.attempt("purge", data.draw(st.sampled_from(self.ids)), confirm=True)

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
        """Between two events: whoever comes next finds the file as a process left it that never closed it."""
        before, left = self.snapshot(), self.engine
        self.open()
        assert self.snapshot() == before
        left.close()

    @rule()
    def move_house(self) -> None:
        """What is exported and imported elsewhere lives on there as it did here."""
        memories = self.everything()
        if not memories:  # An empty file is no export.
            return
        standings, lines = self.standings(memories), io.StringIO()
        export_jsonl(memories, lines, lifecycle_states=standings)
        file = Path(self.folder.name) / "export.jsonl"
        file.write_text(lines.getvalue(), encoding="utf-8")
        with germane.open(":memory:", agent="a", embedder=None) as elsewhere:
            import_source(elsewhere, str(file))
            found = elsewhere.memories(germane.Filter(statuses=tuple(Status)), order=germane.Order.OLDEST)
            assert found == memories
            ids = [memory.id for memory in memories]
            assert dict(zip(ids, elsewhere.lifecycle_states(ids), strict=True)) == standings

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
    def the_log_tells_of_each_step_as_the_tables_have_it(self) -> None:
        events = self.engine.events()
        assert [each.number for each in events] == sorted({each.number for each in events})
        for event in events:
            moves = MOVES[self.engine.get(event.memory_id).kind]
            assert f"{event.before}>{event.after}" in moves[event.sign].split()

    @invariant()
    def the_store_is_whole(self) -> None:
        assert self.engine.doctor() == ()


class CrashingLives(Lives):
    """The same, with transactions that end before they commit."""

    crashes = True


QUIET = settings(
    max_examples=examples(25),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestLives = Lives.TestCase
TestLives.settings = QUIET
TestCrashingLives = CrashingLives.TestCase
TestCrashingLives.settings = QUIET
