"""Revoking a source: nothing that comes from it remains anywhere, and everything else stays as it was."""

from __future__ import annotations

import io
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import germane
from germane import Engine, Filter, Memory, NotFound, Status
from germane.importers import export_jsonl
from germane.testing.fakes import START, FixedClock, seeded_ids
from support.examples import examples
from support.postgres_server import Server

SOURCE = "https://wiki.example/page"
SOURCES = (SOURCE, f"{SOURCE}#part", f"{SOURCE}s", "docs/guide.md", None)
REVOKED = {SOURCE, f"{SOURCE}#part"}
EVERY = Filter(statuses=tuple(Status))
WORDS = (
    "harbour",
    "violin",
    "basalt",
    "lantern",
    "meadow",
    "cobalt",
    "thimble",
    "quarry",
    "saffron",
    "walrus",
)


@dataclass(frozen=True)
class Step:
    """One write: a new memory, or the next version of one; `of` chooses its sources or what it follows."""

    verb: str
    source: str | None
    of: tuple[int, ...]


STEPS = st.builds(
    Step,
    verb=st.sampled_from(("remember", "remember", "supersede", "revise", "forget", "merge")),
    source=st.sampled_from(SOURCES),
    of=st.lists(st.integers(0, 9), max_size=2, unique=True).map(tuple),
)


def mark(number: int) -> str:
    return f"{WORDS[number % len(WORDS)]}{number:03d}mark"


class Model:
    """What was written, and what of it comes from the source, by rules of its own."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.ids: list[str] = []
        self.marks: dict[str, str] = {}
        self.sources: dict[str, str | None] = {}
        self.parents: dict[str, tuple[str, ...]] = {}

    def write(self, number: int, step: Step) -> None:
        known = [self.ids[place % len(self.ids)] for place in step.of] if self.ids else []
        text = f"The {mark(number)} of item {number} is documented."
        if step.verb == "remember" or not known:
            derived = {"_derived_from": known} if known else {}
            self._note(
                self.engine.remember(text, kind="fact", source=step.source, metadata=derived), number, known
            )
            return
        memory = self.engine.get(known[0])
        if memory.status is not Status.ACTIVE:
            return
        if step.verb == "supersede":
            draft = {"content": text, "kind": "fact", "source": step.source}
            self._note(self.engine.supersede(memory.id, draft), number, ())
        elif step.verb == "revise":
            # The source and the derivation of the version before stay.
            self._note(self.engine.revise(memory.id, text), number, self.parents[memory.version_id])
        elif step.verb == "forget":
            self.engine.forget(memory.id)
        else:
            same = self.engine.remember(memory.content, kind="fact", source=f"{step.source}?copy")
            self._note(same, number, (), memory=memory)
            self.engine.maintain()

    def _note(
        self, stored: Memory, number: int, parents: Sequence[str], *, memory: Memory | None = None
    ) -> None:
        if stored.id not in self.ids:
            self.ids.append(stored.id)
        self.marks[stored.version_id] = mark(number) if memory is None else self.marks[memory.version_id]
        self.sources[stored.version_id] = stored.source
        self.parents[stored.version_id] = tuple(parents)

    def revoked(self) -> set[str]:
        gone = {
            name
            for name, source in self.sources.items()
            if source is not None and (source in REVOKED or source.startswith((f"{SOURCE}#", f"{SOURCE}?")))
        }
        before: set[str] = set()
        while gone != before:
            before = set(gone)
            ids = {name.partition("@")[0] for name in gone}
            gone |= {name for name, parents in self.parents.items() if ids & set(parents)}
        return gone


def everything(engine: Engine) -> str:
    out = io.StringIO()
    export_jsonl(engine.memories(EVERY), out)
    return out.getvalue()


def shape(memory: Memory) -> tuple[object, ...]:
    return (
        memory.content,
        memory.kind,
        memory.source,
        memory.created_at,
        memory.trust,
        memory.seen_count,
        dict(memory.metadata),
    )


@contextmanager
def in_file() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        yield str(Path(folder, "agent.db"))


def check(location: str, steps: Sequence[Step]) -> None:
    with germane.open(location, agent="a", clock=FixedClock(START), ids=seeded_ids(), record=True) as engine:
        model = Model(engine)
        for number, step in enumerate(steps):
            model.write(number, step)
        before = {each.version_id: each for each in engine.memories(EVERY)}
        gone = model.revoked() & before.keys()
        context = engine.assemble("Which items are documented?")
        if not gone:
            with pytest.raises(NotFound):
                engine.revoke(SOURCE, confirm=True)
            return
        assert set(engine.revoke(SOURCE, dry_run=True).versions) == gone
        assert {each.version_id for each in engine.memories(EVERY)} == before.keys()

        made = engine.revoke(SOURCE, confirm=True)

        assert set(made.versions) == gone
        shown = {item.memory.version_id for item in context.items}
        assert made.contexts == ((context.ref,) if shown & gone else ())
        after = {each.version_id: each for each in engine.memories(EVERY)}
        assert after.keys() == before.keys() - gone
        for name, memory in after.items():
            assert shape(memory) == shape(before[name])
            if memory.superseded_by != before[name].superseded_by:
                assert memory.id in made.restored or memory.superseded_by in after
        assert engine.doctor() == ()
        texts = [model.marks[name] for name in gone]
        left = {model.marks[name] for name in after}
        secret = [text for text in texts if text not in left]
        for name in gone:
            with pytest.raises(NotFound):
                engine.get(name)
        written = everything(engine) + engine.assemble("Which items are documented?").text
        for text in secret:
            assert text not in written
            assert text not in str([each.memory.content for each in engine.recall(text).ranked])
            assert text not in str(engine.ledger().list())
    if not location.startswith("postgresql"):
        content = Path(location).read_bytes()
        assert [text for text in secret if text.encode() in content] == []


@given(st.lists(STEPS, min_size=1, max_size=12))
def test_nothing_of_a_revoked_source_remains_and_all_else_stands(steps: list[Step]) -> None:
    with in_file() as location:
        check(location, steps)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_server_does_the_same(postgres_server: Server) -> None:
    chance = random.Random(7)  # noqa: S311 - Which graphs are tried is no secret.
    verbs = ("remember", "remember", "supersede", "revise", "forget", "merge")
    for _ in range(examples(40)):
        steps = [
            Step(
                verb=chance.choice(verbs),
                source=chance.choice(SOURCES),
                of=tuple(chance.sample(range(10), chance.randrange(3))),
            )
            for _ in range(chance.randrange(1, 12))
        ]
        check(postgres_server.url(postgres_server.fresh()), steps)
