"""What holds of import and export whatever the text: nothing is lost and nothing is split wrongly."""

from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from germane import GLOBAL, Memory, Outcome, Scope, Status, Trust
from germane.errors import UnreadableSource
from germane.importers import export_jsonl, read, read_memories
from germane.importers.documents import outline, passages
from germane.importers.records import read_lines
from germane.lifecycle import Cause, LifecycleEvent, LifecycleSignal, LifecycleState, Stage
from germane.ranking import Example, OutcomeRecord, UsageHistory
from germane.renditions import Rendition, Renditions
from germane.testing.fakes import make_memory
from support.examples import examples

texts = st.text(max_size=30)
names = st.text(min_size=1, max_size=12)
zones = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-11))])
moments = st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1), timezones=zones)  # noqa: DTZ001 - The strategy adds the zone.
counts = st.integers(min_value=0, max_value=2**40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
renditions = st.builds(
    Renditions,
    micro=st.builds(Rendition, text=texts, tokens=counts),
    summary=st.builds(Rendition, text=texts, tokens=counts),
    full=st.builds(Rendition, text=texts, tokens=counts),
    counter=names,
)
scopes = st.just(GLOBAL) | st.builds(
    Scope, name=st.text("abcdefgh", min_size=1, max_size=6).map("x{}".format), value=names
)
memories = st.builds(
    Memory,
    id=names,
    agent=st.just("ann"),
    kind=names,
    content=texts,
    renditions=renditions,
    created_at=moments,
    updated_at=moments,
    version=counts,
    status=st.sampled_from(Status),
    stage=st.none() | st.sampled_from(Stage),
    scope=scopes,
    subject=st.none() | texts,
    tags=st.lists(texts, max_size=3).map(tuple),
    importance=st.floats(0, 10),
    confidence=st.floats(0, 1),
    outcome=st.none() | st.sampled_from(Outcome),
    trust=st.sampled_from(Trust),
    source=st.none() | texts,
    pinned=st.booleans(),
    metadata=st.dictionaries(texts, json_values, max_size=3),
    content_hash=texts,
    seen_count=counts,
    access_count=counts,
    accessed_at=st.none() | moments,
    superseded_by=st.none() | names,
)

standings = st.builds(
    lambda false_alarms, others, **counted: LifecycleState(
        triggers=false_alarms + others, false_alarms=false_alarms, **counted
    ),
    stage=st.none(),
    confirmations=counts,
    successes=counts,
    failures=counts,
    false_alarms=counts,
    others=counts,
    renewed_at=st.none() | moments,
)

fillers = st.sampled_from(
    ["word " * 30, "- a\n- b\n  - c\n", "> # quoted\n> text", "[l]: https://example.org", "plain"]
)
fences = st.sampled_from(["```\n# no heading\n\ntext\n```", "~~~md\n## neither\n~~~", "| a |\n|---|\n| # |"])
headings = st.builds("{} {}".format, st.sampled_from(["#", "##", "###"]), st.sampled_from("ABC"))
blocks = (
    headings
    | fillers
    | fences
    | st.just("Title\n=====")
    | st.text(max_size=40).map(lambda t: t.replace("\r", ""))
)
documents = st.lists(blocks, max_size=25).map("\n\n".join)


@given(st.lists(memories, max_size=4))
@settings(max_examples=examples(60))
def test_an_export_read_back_is_the_same_memories_and_the_same_bytes(stored: list[Memory]) -> None:
    first, second = io.StringIO(), io.StringIO()
    export_jsonl(stored, first)
    with TemporaryDirectory() as folder:
        path = Path(folder, "export.jsonl")
        path.write_bytes(first.getvalue().encode("utf-8"))
        back = list(read_memories(path, agent="ann"))
    assert back == stored
    export_jsonl(back, second)
    assert second.getvalue() == first.getvalue()
    assert len(first.getvalue().split("\n")) == len(stored) + 1


@given(memories, standings)
@settings(max_examples=examples(60))
def test_what_is_counted_of_a_life_comes_back(memory: Memory, counted: LifecycleState) -> None:
    state = replace(counted, stage=memory.stage)
    out = io.StringIO()
    export_jsonl([memory], out, lifecycle_states={memory.ref: state})
    with TemporaryDirectory() as folder:
        path = Path(folder, "export.jsonl")
        path.write_bytes(out.getvalue().encode("utf-8"))
        (line,) = read_lines(path, agent="ann")
    assert line == (memory, None if state == LifecycleState(stage=memory.stage) else state)


keys = st.text("0123456789abcdef", min_size=32, max_size=32)
floats = st.floats(allow_nan=False, allow_infinity=False)
owners = st.sampled_from(["m1", "m2"])
experiences = st.builds(
    UsageHistory,
    learns=st.booleans(),
    showings=st.lists(
        st.builds(
            Example,
            context=keys,
            memory_id=owners,
            used=st.booleans(),
            parts=st.dictionaries(names, floats, max_size=3),
            given=st.integers(1, 3),
        ),
        max_size=4,
    ).map(lambda each: tuple(replace(one, given=3 * place + one.given) for place, one in enumerate(each))),
    outcomes=st.lists(
        st.builds(OutcomeRecord, context=keys, memory_id=owners, worth=floats, weight=floats, at=moments),
        max_size=4,
    ).map(tuple),
    events=st.lists(
        st.builds(
            LifecycleEvent,
            number=st.just(0),
            memory_id=owners,
            sign=st.sampled_from(LifecycleSignal),
            before=st.sampled_from(Stage),
            after=st.sampled_from(Stage),
            cause=st.sampled_from(Cause),
            by=st.sampled_from(["ann", "bo"]),
            at=moments,
            other=st.none() | owners,
        ),
        max_size=4,
    ).map(tuple),
)


@given(experiences)
@settings(max_examples=examples(40))
def test_what_was_gone_through_comes_back_as_it_was(experience: UsageHistory) -> None:
    stored = [make_memory("One of them.", agent="ann", id=name) for name in ("m1", "m2")]
    out = io.StringIO()
    assert export_jsonl(stored, out, usage_history=experience, agent="ann") == len(stored)
    with TemporaryDirectory() as folder:
        path = Path(folder, "export.jsonl")
        path.write_bytes(out.getvalue().encode("utf-8"))
        back = list(read_lines(path, agent="ann"))
    learned, recorded = (
        back[len(stored) : len(stored) + experience.learns],
        back[len(stored) + experience.learns :],
    )
    assert learned == [True] * experience.learns
    # Its number in a store isn't written, and is no part of what makes two showings equal.
    assert recorded == [*experience.showings, *experience.outcomes, *experience.events]
    later = [one.given for one in recorded if isinstance(one, Example)]
    numbers = [one.given for one in experience.showings]
    assert later[1:] == [after - before for before, after in pairwise(numbers)]
    # A text may hold what ends a line elsewhere.
    lines = out.getvalue().split("\n")[len(stored) : -1]
    assert len(lines) == len(back) - len(stored)
    assert all(list(json.loads(line)) == sorted(json.loads(line)) for line in lines)


@given(memories)
@settings(max_examples=examples(20))
def test_an_exported_line_names_every_field(memory: Memory) -> None:
    out = io.StringIO()
    export_jsonl([memory], out)
    line: dict[str, Any] = json.loads(out.getvalue())
    assert set(line) == {name for name in Memory.__slots__ if name != "agent"} | {"germane", "life"}
    assert list(line) == sorted(line)


@given(documents, st.integers(10, 400), st.integers(0, 200))
@settings(max_examples=examples(150))
def test_passages_hold_every_line_once_save_bare_headings(text: str, long: int, tiny: int) -> None:
    document = outline(text)
    found = passages(document, long=long, tiny=tiny)
    stored = Counter(line.rstrip() for passage in found for line in passage.text.split("\n") if line.strip())
    written = Counter(line.rstrip() for line in document.lines if line.strip())
    missing = set(written - stored)
    bare = {line.rstrip() for h in document.headings for line in document.lines[h.line : h.end]}
    assert missing <= bare
    assert stored <= written
    assert all(passage.text.strip() for passage in found)


@given(documents, st.integers(10, 400))
@settings(max_examples=examples(100))
def test_no_passage_begins_or_ends_inside_a_code_block_or_a_table(text: str, long: int) -> None:
    document = outline(text)
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    whole = [
        t.map for t in tokens if t.level == 0 and t.map and t.type in ("fence", "code_block", "table_open")
    ]
    for start, end in whole:
        block = document.text(start, end)
        assert any(block in passage.text for passage in passages(document, long=long))


@given(st.binary(max_size=200), st.sampled_from(["x.md", "x.jsonl", "x.json", "x.txt", "x"]))
@settings(max_examples=examples(150))
def test_any_bytes_are_read_or_refused_with_a_reason(data: bytes, name: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        try:
            drafts = list(read(str(path)))
        except UnreadableSource as error:
            assert str(path) in str(error)
        else:
            assert all(draft.content.strip() for draft in drafts)
