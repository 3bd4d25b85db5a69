"""Renditions: worded by the kind, cut at sentence and word ends, never inside one."""

from __future__ import annotations

import re
from typing import Any

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

import germane
from germane import InvalidInput, Kind, UnknownKind
from germane.kinds import BUILT_IN, TemplatePart
from germane.protocols import Summarizer
from germane.renditions import Renditions
from germane.testing.fakes import FirstSentenceSummarizer
from germane.tokens import get_counter

O200K = get_counter("o200k")
MICRO_SENTENCE_TOKENS, SUMMARY_TOKENS = 30, 100
"""What a micro and a summary have at most."""
LONG = (
    "We moved the queue to Postgres. It removed a service and its on-call page. "
    "The only cost was a nightly vacuum that we had to schedule by hand. " * 8
)


_FIELDS = ("subject", "outcome", "confidence")


def made_of(
    kind: str | Kind, content: str, *, summarizer: Summarizer | None = None, **fields: Any
) -> Renditions:
    """The renditions of a memory that is remembered; what is no field of a memory is its metadata."""
    own = () if isinstance(kind, str) else (kind,)
    with germane.open(":memory:", embedder=None, kinds=own, summarizer=summarizer) as engine:
        of_memory = {name: fields.pop(name) for name in _FIELDS if name in fields}
        named = kind if isinstance(kind, str) else kind.name
        return engine.remember(content, kind=named, metadata=fields, **of_memory).renditions


def test_a_short_fact_is_the_same_at_every_level() -> None:
    made = made_of("fact", "Tim prefers Celsius.")
    assert made.micro == made.summary == made.full
    assert (made.full.text, made.full.tokens, made.counter) == ("Tim prefers Celsius.", 4, "o200k")


@pytest.mark.parametrize(
    ("subject", "content", "shown"),
    [
        ("Redis", "took 40 ms per call", "Redis: took 40 ms per call"),
        ("Redis", "redis took 40 ms", "redis took 40 ms"),
        ("Tim Doe", "Tim prefers Celsius", "Tim prefers Celsius"),
        ("deployments", "Nobody deploys on a Friday", "Nobody deploys on a Friday"),
        ("UserCache", "user_cache.py holds 40 entries", "user_cache.py holds 40 entries"),
        ("Redis cache", "The cache took 40 ms", "Redis cache: The cache took 40 ms"),
        ("日本", "東京が首都です", "日本: 東京が首都です"),
        ("x" * 60, "took 40 ms", "took 40 ms"),
    ],
)
@pytest.mark.parametrize("kind", ["fact", "preference"])
def test_a_fact_names_its_subject_at_every_level(kind: str, subject: str, content: str, shown: str) -> None:
    made = made_of(kind, content, subject=subject)
    assert (made.micro.text, made.summary.text, made.full.text) == (shown, shown, shown)
    long = made_of(kind, f"It is slow. {LONG}", subject="Redis")
    assert {one.text[:18] for one in (long.micro, long.summary, long.full)} == {"Redis: It is slow."}


def test_a_decision_says_how_it_turned_out_and_why() -> None:
    fields: dict[str, Any] = {
        "content": "Chose Postgres over a separate vector database",
        "outcome": "success",
        "confidence": 0.85,
        "reasons": ["one backup", "one connection pool"],
        "result": "search got faster",
    }
    made = made_of("decision", **fields)
    assert made.micro.text == "Chose Postgres over a separate vector database [success, 0.85 confidence]"
    assert made.summary.text == (
        "Chose Postgres over a separate vector database [success, 0.85 confidence]"
        " — one backup; one connection pool → search got faster"
    )


@pytest.mark.parametrize(
    ("action", "label"),
    [
        ("absolute", "Never"),
        ("block", "Never"),
        ("ask", "Ask first"),
        ("confirm", "Ask first"),
        ("warn", "Careful"),
        (None, "Careful"),
    ],
)
def test_a_constraint_says_what_is_forbidden_and_why(action: str | None, label: str) -> None:
    fields: dict[str, Any] = {
        "content": "Pushing to main",
        "reason": "reviews catch mistakes",
        "action": action,
    }
    made = made_of("constraint", **fields)
    assert made.micro.text == made.summary.text == f"**{label}:** Pushing to main — reviews catch mistakes"


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("Never deploy on a Friday.", "**Never** deploy on a Friday."),
        ("Don't push to main", "**Don't** push to main"),
        ("Do not push, ever", "**Do not** push, ever"),
        ("**Never:** push", "**Never:** push"),
        ("Ask first: pushing", "**Ask first:** pushing"),
        ("Neverending loops", "**Never:** Neverending loops"),
    ],
)
def test_a_constraint_that_begins_with_a_label_gets_no_other(content: str, shown: str) -> None:
    made = made_of("constraint", content, action="block")
    assert made.full.text == shown


def test_a_constraint_in_full_has_its_condition_and_its_reason() -> None:
    content = f"Deleting data of customers, unless its owner has agreed in writing. {LONG}"
    made = made_of("constraint", content, action="block", reason=LONG)
    assert made.full.text == f"**Never:** {content.strip()} — {LONG.strip()}"
    assert made.summary.text.startswith("**Never:** Deleting data of customers, unless its owner has agreed")


def test_what_has_to_be_shortened_keeps_its_fixed_pieces() -> None:
    fields: dict[str, Any] = {"content": LONG, "outcome": "failure", "confidence": 0.4}
    made = made_of("decision", **fields)
    assert made.micro.text.endswith("[failure, 0.40 confidence]")
    assert made.micro.tokens <= MICRO_SENTENCE_TOKENS
    assert made.summary.tokens <= SUMMARY_TOKENS
    assert "[failure, 0.40 confidence]" in made.summary.text


def test_a_decision_record_is_summarised_by_its_decision() -> None:
    content = (
        "# Use one database\n\n## Context\n\n"
        + LONG
        + "\n\n## Decision\n\nKeep Postgres.\n\n## Consequences\n\nFewer."
    )
    made = made_of("adr", content, status="accepted")
    assert made.micro.text == "Use one database [accepted]: Keep Postgres."
    assert made.summary.text == (
        "Use one database [accepted]: Keep Postgres. — We moved the queue to Postgres. → Fewer."
    )
    assert made.full.text == content


@pytest.mark.parametrize("kind", [kind.name for kind in BUILT_IN])
def test_a_heading_of_a_decision_may_have_nothing_below_it(kind: str) -> None:
    for content in ("## Decision\n# #", "## Decision\n### Chosen\nRedis.", "Decision:\n\n", "# Decision"):
        with germane.open(":memory:", embedder=None) as engine:
            memory = engine.remember(content, kind=kind)
            assert memory.renditions.full.text


@pytest.mark.parametrize("kind", [kind.name for kind in BUILT_IN])
@pytest.mark.parametrize("content", ["===", "...", "*", "```", "![]()", "<b>", "# #"])
def test_what_is_no_prose_is_shown_at_every_level_too(kind: str, content: str) -> None:
    made = made_of(kind, content)
    assert made.micro.text
    assert made.summary.text


def test_a_procedure_lists_its_steps() -> None:
    fields: dict[str, Any] = {
        "content": "How to deploy",
        "name": "Deploy",
        "steps": ["branch", "review", "merge"],
    }
    made = made_of("procedure", **fields)
    assert made.summary.text == "How to deploy\nbranch\nreview\nmerge"
    assert made.micro.text == "How to deploy (branch; review; merge)"
    with germane.open(":memory:", embedder=None) as engine:
        metadata = {"name": fields["name"], "steps": fields["steps"]}
        engine.remember(fields["content"], kind="procedure", metadata=metadata)
        assert "## Procedure: Deploy\n" in engine.assemble("How to deploy?", budget=500).text


def test_a_kind_of_ones_own_takes_a_line() -> None:
    ticket = Kind(name="ticket", section="facts", micro=(TemplatePart("{key}: "), TemplatePart("{content}")))
    made = made_of(ticket, "Login is slow", key="NW-7")
    assert made.micro.text == "NW-7: Login is slow"
    assert BUILT_IN.with_kinds([ticket]).in_section("facts")[-1] == "ticket"


def test_unknown_and_badly_named_kinds_are_refused() -> None:
    with pytest.raises(UnknownKind, match=r"'ticket'.*Known kinds: .*fact"):
        BUILT_IN.require("ticket")
    with pytest.raises(InvalidInput, match="letters, digits"):
        Kind(name="no spaces")


def test_a_summarizer_gets_long_texts_only_and_is_limited_in_length() -> None:
    plain = made_of("note", LONG)
    summed = made_of("note", LONG, summarizer=FirstSentenceSummarizer())
    assert summed.summary.text == "We moved the queue to Postgres."
    assert plain.summary.text != summed.summary.text

    class Talkative:
        def summarize(self, text: str, tokens: int) -> str:  # noqa: ARG002 - The caller passes both.
            return text * 3

    made = made_of("note", LONG, summarizer=Talkative())
    assert made.summary.tokens <= SUMMARY_TOKENS


@example("\n0", "constraint")
@given(
    st.text(min_size=1, max_size=2000).filter(lambda text: regex.search(r"[\p{L}\p{N}\p{P}\p{S}]", text)),
    st.sampled_from([kind.name for kind in BUILT_IN]),
)
def test_levels_keep_their_bounds_whatever_the_text(text: str, kind: str) -> None:
    made = made_of(kind, text, subject="s", outcome="success")
    assert made.micro.tokens <= MICRO_SENTENCE_TOKENS
    assert made.summary.tokens <= SUMMARY_TOKENS
    for rendition in (made.micro, made.summary, made.full):
        assert O200K.count(rendition.text) == rendition.tokens
    assert "\n" not in made.micro.text


def test_a_percent_sign_in_a_template_is_shown_as_it_is() -> None:
    kind = Kind(name="ticket", full=(TemplatePart("100 %s done: {content} %% {share}%"),))
    made = made_of(kind, "all %d", share=7)
    assert made.full.text == "100 %s done: all %d %% 7%"


# Renditions of Markdown are sentences; those of a decision have the decision, its reason and its outcome.

FILLER = "The service reads the file once and holds the index in memory until it is stopped again. " * 8

README = f"""---
title: Queue
---
# Queue [![CI](https://ci.example/b.svg)](https://ci.example) ![PyPI](https://img.example/p.svg)

[![License](https://img.example/l.svg)](LICENSE)
<p align="center"><img src="logo.png" width="200"></p>
<!-- toc -->
- [Install](#install)
- [Use](#use)

[Docs](https://d.example) · [Chat](https://c.example)

## Install

```bash
pip install queue
```

Then run `queue init`. See [the guide](https://g.example/x_(y) "Guide") for more.

| option | default |
|--------|---------|
| size   | 10      |

***

## Empty

## Use

> [!NOTE]
> It needs Python 3.11, e.g. from your
> package manager.

{FILLER}
"""


def test_a_page_is_summarised_by_its_sentences() -> None:
    made = made_of("note", README)
    assert made.summary.text.startswith(
        "Queue — Install: Then run `queue init`. See the guide for more.\n"
        "Use: It needs Python 3.11, e.g. from your package manager.\nThe service reads"
    )
    assert made.summary.text.endswith("stopped again. …")
    assert made.micro.text == "Queue — Install: Then run `queue init`. See the guide for more. …"
    assert made.full.text == README.strip()


def test_a_short_text_keeps_its_code_and_the_cells_of_its_tables() -> None:
    made = made_of(
        "note", "Run this:\n\n```sh\nmake x\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n## Then\n\nWait."
    )
    assert made.summary.text == "Run this:\nmake x\na, b\n1, 2\nThen: Wait."
    assert made.micro.text == "Run this: make x a, b 1, 2 Then: Wait."


def test_a_cut_that_leaves_code_out_is_marked() -> None:
    made = made_of("note", "Run this first.\n\n```sh\n" + "make x\n" * 60 + "```\n\nThen wait.")
    assert made.summary.text == "Run this first.\nThen wait. …"


@pytest.mark.parametrize(
    "text",
    [
        "if a < b and c > d: List<int> -> x[0](y)  # done",
        "> 40 ms is slow",
        "[worker] 2 of 3 jobs failed: [a][b]",
        "Use `<div>` and `[x](y)` as they are.",
        "C:\\_new | grep #1",
    ],
)
def test_what_only_looks_like_markdown_stays(text: str) -> None:
    assert made_of("note", text).summary.text == text


@pytest.mark.parametrize(
    "text", ["# Only a heading", "Only a heading\n===", "[Only a heading](https://x.example)"]
)
def test_a_text_without_a_sentence_shows_what_it_has(text: str) -> None:
    assert made_of("note", text).summary.text == "Only a heading"


def test_an_image_alone_is_named() -> None:
    assert (
        made_of("note", "[![Build status](https://x.example/b.svg)](https://x.example)").micro.text
        == "Build status"
    )
    assert made_of("note", "---").micro.text == "---"


def test_a_heading_never_stands_alone_in_a_cut_text() -> None:
    made = made_of("note", "# Deploying\n\n" + "word " * 300)
    assert made.summary.text.startswith("Deploying: word word")
    assert made.summary.text.endswith("word…")


NYGARD = f"""# 12. Keep the queue in Postgres

Date: 2024-03-01

## Status

Accepted

## Context

{FILLER}

## Decision

We will keep the queue in Postgres. {FILLER}

## Consequences

{FILLER} In the end one backup covers everything, which is the decisive reason.
"""
MADR = """# Record decisions in Markdown

* Status: accepted
* Deciders: Ana, Tim

## Context and Problem Statement

Which format should these records follow?

## Considered Options

* [MADR](https://adr.example) 2.1.2, because it is there
* Formless

## Decision Outcome

Chosen option: "MADR", because implicit assumptions become explicit.

### Positive Consequences

* Records look alike.
"""


def test_a_record_of_nygards_form_shows_decision_reason_and_outcome() -> None:
    made = made_of("adr", NYGARD, status="accepted")
    assert (
        made.micro.text == "12. Keep the queue in Postgres [accepted]: We will keep the queue in Postgres. …"
    )
    assert made.summary.text.startswith(
        "12. Keep the queue in Postgres [accepted]: We will keep the queue in Postgres."
    )
    assert "— In the end one backup covers everything, which is the decisive reason." in made.summary.text
    assert made.summary.tokens <= SUMMARY_TOKENS


def test_a_record_of_madrs_form_gives_its_reason_once_and_its_own_status() -> None:
    made = made_of("adr", MADR)
    assert made.summary.text == (
        'Record decisions in Markdown [accepted]: "MADR", because implicit assumptions become explicit.'
        " → Records look alike."
    )


def test_a_record_led_by_words_is_read_like_one_with_headings() -> None:
    made = made_of(
        "adr",
        f"Use one database\n\n**Context:** {FILLER}\n\n**Decision:** Keep Postgres.\n\n"
        "**Rationale:** Nobody wants two backups.\n\n**Consequences:** One service less.",
        status="accepted",
    )
    assert made.summary.text == (
        "Use one database [accepted]: Keep Postgres. — Nobody wants two backups. → One service less."
    )


def test_a_record_without_a_form_is_headed_by_its_subject_or_its_decision() -> None:
    text = f"We will use Redis for sessions. {FILLER} We took Redis because it survives restarts."
    assert made_of("adr", text, status="accepted", subject="Session store").summary.text == (
        "Session store [accepted]: We will use Redis for sessions."
        " — We took Redis because it survives restarts."
    )
    assert made_of("adr", text, status="accepted").summary.text == (
        "We will use Redis for sessions. [accepted] — We took Redis because it survives restarts."
    )


def test_a_decision_shows_a_reason_that_stands_in_its_last_sentence() -> None:
    last = "We chose Postgres. The decisive reason was that one backup covers all."
    text = f"We compared three stores. {FILLER} {last}"
    made = made_of("decision", text, outcome="success")
    assert made.summary.text.endswith(f" … {last} [success]")
    assert made.summary.text.startswith("We compared three stores. The service")
    assert made.summary.tokens <= SUMMARY_TOKENS


def test_a_long_decision_leaves_its_reasons_and_its_result_some_space() -> None:
    made = made_of("decision", FILLER, outcome="failure", reasons=["one backup"], result="slower")
    assert made.summary.text.endswith(" … [failure] — one backup → slower")


BLOCKS = st.sampled_from(
    [
        "# Title",
        "## Part",
        "Some **bold** words, and `code`. A second sentence [links](https://x.example) to a page.",
        "- an item\n- [ ] another item\n- [a link](https://x.example)",
        "1. first\n2. second",
        "```py\nx = [1](2)\n```",
        "~~~\nx = 1\n~~~",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "a | b\n--|--\n1 | 2",
        "![img](x.png)",
        "[![badge](https://x.example/b.svg)](https://x.example)",
        "<div><img src='x'></div>",
        "<!-- hidden -->",
        "---",
        "> quoted text.",
        "[ref]: https://x.example",
        r"\# escaped",
        FILLER,
    ]
)


@given(st.lists(BLOCKS, min_size=1, max_size=8), st.sampled_from(["note", "decision", "adr", "fact"]))
def test_no_rendition_shows_what_only_a_page_needs(blocks: list[str], kind: str) -> None:
    made = made_of(kind, "\n\n".join(["It says something.", *blocks]), status="accepted")
    assert made.micro.tokens <= MICRO_SENTENCE_TOKENS
    assert made.summary.tokens <= SUMMARY_TOKENS
    for shown in (made.micro.text, made.summary.text):
        assert shown
        assert not re.search(
            r"!\[|\]\(http|^\s*\||```|~~~|^\s*\\?#|<!--|<img|^---$", shown, flags=re.MULTILINE
        )
