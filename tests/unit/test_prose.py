"""Renditions of Markdown are sentences; those of a decision have the decision, its reason and its outcome."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.kinds import BUILT_IN
from germane.renditions import MICRO_SENTENCE_TOKENS, SUMMARY_TOKENS, Renditions, renditions_of
from germane.renditions.prose import as_text, passages_of, sentences_of
from germane.tokens import get_counter

O200K = get_counter("o200k")
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


def made_of(kind: str, content: str, **fields: object) -> Renditions:
    return renditions_of(BUILT_IN.require(kind), {"content": content, **fields}, O200K)


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


def test_sentences_end_where_they_end() -> None:
    assert sentences_of("Ask J. Doe, e.g. by mail. It is 40. Really?! 3.14 is pi.") == [
        "Ask J. Doe, e.g. by mail.",
        "It is 40.",
        "Really?!",
        "3.14 is pi.",
    ]
    wrapped = "This line is long enough that it was wrapped where it ended, and its\nSecond half."
    assert sentences_of(f"{wrapped} You need:\n- a\n- b") == [wrapped, "You need:\n- a", "- b"]


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


@given(st.text(st.sampled_from("ab .\n#-*`>|[]()!<\\:=1"), max_size=200))
def test_any_text_has_passages(text: str) -> None:
    passages = list(passages_of(text))
    assert all(passage.text.strip() for passage in passages)
    assert "\n" not in as_text([one for one in passages if one.form != "code"], one_line=True)
