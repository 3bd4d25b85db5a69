"""What a person reads of an assembly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from inline_snapshot import snapshot
from rich.cells import cell_len

from germane import Context, InvalidInput, Level, Reason, TimeRange, Trace
from germane.ledger import EmptyReason, Entry, Question, SectionUsage, TraceNote

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def entry(number: int, section: str = "facts", **fields: Any) -> Entry:
    parts: Mapping[str, float] = fields.pop("parts", {"lexical": 0.5, "semantic": 0.25})
    return Entry(
        memory_id=f"01a1f8d3-ea00-7016-ad69-9bb7205{number:05x}",
        kind="fact",
        section=section,
        score=fields.pop("score", sum(parts.values())),
        parts=parts,
        **fields,
    )


def section(name: str, **fields: Any) -> SectionUsage:
    values = {"share": 100, "used": 0, "flowed": 0, "included": 0, "excluded": 0, **fields}
    return SectionUsage(name=name, heading=f"## {name}", **values)


def trace(**fields: Any) -> Trace:
    values: dict[str, Any] = {
        "plan": "layered",
        "question": Question(),
        "budget": 1000,
        "counter": "o200k",
        "now": NOW,
        "entries": (),
        "sections": (),
        **fields,
    }
    return Trace(**values)


def explain(account: Trace, *, tokens: int, columns: int = 110) -> str:
    return Context(text="", tokens=tokens, items=(), trace=account).explain(columns=columns)


def why_of(parts: Mapping[str, float], score: float) -> str:
    """The column `why` of a memory with these parts of its score."""
    shown = explain(trace(entries=(entry(1, level=Level.FULL, parts=parts, score=score),)), tokens=0)
    header, *rows = shown.partition("\nIN ")[2].splitlines()
    start, end = (f"IN {header}".index(name) for name in ("why", "memory"))
    return " ".join(row[start:end].strip() for row in rows).strip()


WHOLE = trace(
    question=Question(
        text="What did we\ndecide about Redis in May?",
        cleaned="What did we decide about Redis?",
        terms=("decid", "redi"),
        when=TimeRange(since=datetime(2026, 5, 1, tzinfo=UTC), until=datetime(2026, 6, 1, tzinfo=UTC)),
    ),
    entries=(
        entry(
            1,
            "identity",
            level=Level.FULL,
            tokens=42,
            parts={},
            label="I am newton, 日本語も読みます。",
        ),
        entry(2, level=Level.SUMMARY, tokens=61, label="Redis was measured against an UNLOGGED table."),
        entry(3, level=Level.MICRO, tokens=9, parts={"lexical": 0.4}, label="No Redis \x1b[31mfor now"),
        entry(4, reason=Reason.OVER_BUDGET, tokens=30, short_by=12, label="A fourth container."),
        entry(5, reason=Reason.DUPLICATE, label="Redis was measured against an UNLOGGED table."),
    ),
    sections=(
        section("identity", share=50, used=50, included=1),
        section("facts", share=100, used=120, flowed=20, included=2, excluded=2),
        section("episodes", share=80, flowed=-20),
    ),
    notes=(TraceNote(code="lent", text="Required memories needed 20 tokens beyond their shares."),),
)


def test_a_whole_explanation() -> None:
    shown = explain(WHOLE, tokens=170)

    assert shown == snapshot("""\
Context     170 of 1,000 tokens (17%), counted by o200k
Plan        layered, as of 2026-11-20 12:00 UTC
Question    What did we decide about Redis in May?
Time        from 2026-05-01 00:00 and before 2026-06-01 00:00 UTC
Looked for  decid, redi

Note  Required memories needed 20 tokens beyond their shares.

SECTION   share  flowed  used  in  out
identity     50            50   1    0  ██████████
facts       100     +20   120   2    2  ████████████████████████
episodes     80     -20     0   0    0  ░░░░░░░░░░░░

3 of 5 candidates are in.
IN        level    tokens  score  why                           memory
identity  full         42         always shown                  20500001  I am newton, 日本語も読みます。
facts     summary      61   0.75  lexical 0.50 + semantic 0.25  20500002  Redis was measured against an UNLOG…
          micro         9   0.40  lexical                       20500003  No Redis [31mfor now

2 left out.
OUT: over_budget (1), no level of it fitted what its section had left
  facts  short by 12 tokens  0.75  20500004  A fourth container.
OUT: duplicate (1), the same text already stands in the context
  facts    0.75  20500005  Redis was measured against an UNLOGGED table.
""")


def test_long_lists_are_cut_and_say_so() -> None:
    included = tuple(entry(i, level=Level.MICRO, tokens=10, label=f"in {i}") for i in range(14))
    excluded = tuple(
        entry(100 + i, reason=Reason.OVER_BUDGET, short_by=i, parts={"lexical": i / 100}, label=f"out {i}")
        for i in range(95)
    )
    shown = explain(trace(entries=(*included, *excluded)), tokens=140).splitlines()

    assert [line for line in shown if "more" in line] == snapshot(
        [
            "                                                           … and 2 more (facts)",
            "                                   … and 87 more (over_budget)",
        ]
    )
    assert [line for line in shown if "out 94" in line or "out 86" in line] == snapshot(
        ["  facts  short by 94 tokens  0.94  205000c2  out 94"]
    )


def test_an_empty_context_says_why() -> None:
    assert explain(trace(empty_reason=EmptyReason.NOTHING_STORED), tokens=0) == snapshot("""\
Context   0 of 1,000 tokens (0%), counted by o200k
Plan      layered, as of 2026-11-20 12:00 UTC
Question  none

Note  Nothing is shown: this agent has no memories yet.

No candidates were found.
""")
    empty = [explain(trace(empty_reason=each), tokens=0) for each in EmptyReason]
    assert [re.findall("^Note  (.*)", each, re.MULTILINE) for each in empty] == snapshot(
        [
            ["Nothing is shown: this agent has no memories yet."],
            ["Nothing is shown: the working set holds nothing."],
            ["Nothing is shown: this agent has memories, but none passes the filters."],
            ["Nothing is shown: no memory that passes the filters has to do with the question."],
            ["Nothing is shown: some memories have to do with the question, but none fits the budget."],
        ]
    )


def test_every_reason_is_explained() -> None:
    entries = tuple(entry(i, reason=reason) for i, reason in enumerate(Reason))
    lines = explain(trace(entries=entries), tokens=0).splitlines()

    assert [line for line in lines if line.startswith("OUT")] == snapshot(
        [
            "OUT: over_budget (1), no level of it fitted what its section had left",
            "OUT: stopped (1), ranked below the first that didn't fit",
            "OUT: duplicate (1), the same text already stands in the context",
            "OUT: limit (1), its section holds as many memories as the plan allows",
            "OUT: not_relevant (1), too little to do with the question",
            "OUT: said (1), it stands in the conversation already",
            "OUT: alike (1), its section shows as many of its subject as the plan allows",
            "OUT: evicted (1), it left the context under pressure",
            "OUT: outdated (1), the fact that it states was superseded since",
        ]
    )


def test_no_line_is_wider_than_110_columns() -> None:
    wide = "日本語" * 60
    shown = explain(
        trace(
            question=Question(text=wide, terms=(wide,)),
            entries=(entry(1, level=Level.FULL, label=wide), entry(2, reason=Reason.LIMIT, label=wide)),
            sections=(section(wide, used=3),),
            notes=(TraceNote(code="x", text="many words " * 40 + wide),),
        ),
        tokens=5,
    )

    assert max(map(cell_len, shown.splitlines())) <= 110


@pytest.mark.parametrize("columns", [40, 60, 80, 99, 100, 110, 200])
def test_a_terminal_of_any_width_is_filled_and_never_exceeded(columns: int) -> None:
    shown = explain(WHOLE, tokens=900, columns=columns)
    assert max(map(cell_len, shown.splitlines())) <= columns
    for word in ("identity", "A fourth container"[: columns - 20], "lexical 0.50 + semantic 0.25"):
        assert word in shown


def test_in_a_narrow_terminal_a_memory_stands_below_its_figures() -> None:
    assert explain(WHOLE, tokens=900, columns=60) == snapshot("""\
Context     900 of 1,000 tokens (90%), counted by o200k
Plan        layered, as of 2026-11-20 12:00 UTC
Question    What did we decide about Redis in May?
Time        from 2026-05-01 00:00 and before 2026-06-01 00:…
Looked for  decid, redi

Note  Required memories needed 20 tokens beyond their
      shares.

SECTION   share  flowed  used  in  out
identity     50            50   1    0  ████████
facts       100     +20   120   2    2  ████████████████████
episodes     80     -20     0   0    0  ░░░░░░░░░░

3 of 5 candidates are in.
IN        level    tokens  score
identity  full         42
  20500001  I am newton, 日本語も読みます。
  always shown
facts     summary      61   0.75
  20500002  Redis was measured against an UNLOGGED table.
  lexical 0.50 + semantic 0.25
facts     micro         9   0.40
  20500003  No Redis [31mfor now
  lexical

2 left out.
OUT: over_budget (1), no level of it fitted what its sectio…
  facts  short by 12 tokens  0.75
    20500004  A fourth container.
OUT: duplicate (1), the same text already stands in the con…
  facts    0.75
    20500005  Redis was measured against an UNLOGGED table.
""")


def test_fewer_than_40_columns_are_refused() -> None:
    with pytest.raises(InvalidInput, match="columns=39 is too narrow for a table: use 40 or more"):
        explain(WHOLE, tokens=900, columns=39)


def test_a_budget_of_nothing_is_explained_too() -> None:
    assert "0 of 0 tokens, counted by o200k" in explain(trace(budget=0), tokens=0)


def test_what_state_adds_is_one_number() -> None:
    parts = {"lexical": 0.5, "semantic": 1.0, "frame": 0.2, "outcome": -0.05, "recency": -0.01}
    assert why_of(parts, sum(parts.values())) == "lexical 0.50 + semantic 1.00 + state 0.14"
    assert (
        why_of({"semantic": 1.0, "lexical": 0.0, "recency": -0.001}, 0.999) == "lexical 0.00 + semantic 1.00"
    )
    assert why_of({"importance": 2.0, "recency": 0.5}, 1.0) == "importance 2.00, recency 0.50"


def test_many_parts_of_a_score_leave_a_name_its_columns() -> None:
    parts = {"kind": 50.0, "lexical": 0.25, "outcome": -0.5, "path": 1.0, "semantic": 0.75}
    label = "src/germane/verbs/recall.py recalls"
    many = explain(trace(entries=(entry(1, level=Level.FULL, parts=parts, label=label),)), tokens=0)

    lines = many.splitlines()
    row = next(number for number, line in enumerate(lines) if line.startswith("facts"))
    assert [" ".join(line.split()) for line in lines[row : row + 2]] == [
        "facts full 0 51.50 kind 50.00 + lexical 0.25 + path 1.00 20500001 src/germane/verbs/recall.py rec…",
        "+ semantic 0.75 + state -0.50",
    ]
    assert max(map(cell_len, lines)) <= 110
