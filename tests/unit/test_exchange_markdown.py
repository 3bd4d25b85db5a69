"""Markdown as drafts: records, changelogs, sections, front matter, and folders with bad files in them."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, cast

import pytest

from germane import Draft
from germane.errors import MissingExtra, UnreadableSource
from germane.importers import Skipped, read_markdown

NYGARD = """# 7. Use a queue for mail

Date: 2019-03-04

## Status

Superseded by [9. Send mail directly](0009-send-mail-directly.md)

## Context

Mail is slow.

## Decision

We will queue it:

```sh
# Status: this line is shell
rq worker mail
```

## Consequences

One more process.
"""
MADR_2 = """# Cache sessions in Redis

* Status: accepted
* Deciders: Ann, Bo
* Date: 2021-11-30 <!-- when it was settled -->

## Context and Problem Statement

Sessions are read on each request.

## Considered Options

* Redis
* Memcached

## Decision Outcome

Chosen option: "Redis".
"""
MADR_4 = """---
status: "proposed"
date: 2024-02-29
decision-makers: [Ann, Bo]
---
# Pin every dependency

## Context and Problem Statement

Builds differ.

## Decision Outcome

Chosen option: "a lock file".
"""
NUMBERED = """# ADR 012: Split the API

**Date:** 2026-02-08
**Status:** Accepted
**Author:** Ann

## Context

It has grown.

## Decision

Split it.
"""
GUIDE = """# Guide

What this program does for you, in a paragraph long enough to be worth a memory of its own. {filler}

## Install

### Linux

{filler}

```sh
# Update first
apt-get update

## and then
apt-get install it
```

### macOS

Use brew.

## Settings

| Name | Meaning |
|------|---------|
| `a`  | # one   |
| `b`  | two     |

{filler}
"""
BOMB = """---
a: &a [x, x, x, x, x, x, x, x, x, x]
b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]
c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]
d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]
e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]
f: [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]
---
x
"""
FILLER = "The quick brown fox jumps over the lazy dog and runs on. " * 16


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def one(path: Path) -> Draft:
    (draft,) = read_markdown(path)
    return draft


@pytest.mark.parametrize(
    ("name", "text", "subject", "expected"),
    [
        (
            "0007-mail.md",
            NYGARD,
            "Use a queue for mail",
            (7, "Superseded by 9. Send mail directly", "2019-03-04"),
        ),
        ("0003-cache.md", MADR_2, "Cache sessions in Redis", (3, "accepted", "2021-11-30")),
        ("pin.md", MADR_4, "Pin every dependency", (None, "proposed", "2024-02-29")),
        ("split.md", NUMBERED, "Split the API", (12, "Accepted", "2026-02-08")),
        ("crlf.md", NUMBERED.replace("\n", "\r\n"), "Split the API", (12, "Accepted", "2026-02-08")),
        ("bom.md", "\ufeff" + MADR_4, "Pin every dependency", (None, "proposed", "2024-02-29")),
    ],
)
def test_decision_records_of_every_style_are_recognised_and_left_whole(
    tmp_path: Path, name: str, text: str, subject: str, expected: tuple[int | None, str, str]
) -> None:
    draft = one(write(tmp_path / "docs" / name, text))
    assert (draft.kind, draft.subject) == ("adr", subject)
    assert tuple(draft.metadata.get(field) for field in ("number", "status", "date")) == expected
    assert draft.created_at == datetime.fromisoformat(expected[2]).replace(tzinfo=UTC)
    body = text.removeprefix("\ufeff").replace("\r\n", "\n").split("---\n")[-1]
    assert draft.content == body.strip()
    assert draft.source == f"docs/{name}"


def test_a_record_longer_than_a_passage_is_still_one_draft(tmp_path: Path) -> None:
    text = NYGARD + "\n" + "\n\n".join([FILLER] * 20)
    assert len(text) > 16_000
    assert one(write(tmp_path / "0007-mail.md", text)).content == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        "# Architecture decision records\n\n## Status\n\nWe keep them here.\n",
        "# Meeting\n\n## Context\n\nx\n\n## Decision\n\ny\n\n# Next meeting\n\n## Decision\n\nz\n",
        "# 3 ways to fail\n\n## Decision drivers\n\n## Context\n\nnone\n",
        "# Style\n\n```\n# ADR 1: x\n## Context\n## Decision\n```\n",
    ],
)
def test_what_only_looks_like_a_record_is_a_note(tmp_path: Path, text: str) -> None:
    assert one(write(tmp_path / "x.md", text)).kind == "note"


def test_a_record_that_its_front_matter_declares_needs_no_headings(tmp_path: Path) -> None:
    draft = one(
        write(tmp_path / "0042-tabs.md", "---\nkind: adr\nstatus: rejected\n---\nWe stay with spaces.\n")
    )
    assert (draft.kind, draft.metadata) == ("adr", {"status": "rejected", "number": 42})


def test_a_date_that_no_calendar_has_is_no_time(tmp_path: Path) -> None:
    draft = one(write(tmp_path / "x.md", NUMBERED.replace("2026-02-08", "2026-02-31")))
    assert draft.created_at is None


def test_a_changelog_is_one_draft_per_version(tmp_path: Path) -> None:
    text = (
        "# Changelog\n\nAll notable changes.\n\n## [Unreleased]\n\n- more\n\n"
        "## [1.1.0] - 2024-05-01\n\n### Added\n\n- a thing\n\n```\n## 9.9.9\n```\n\n"
        "# v1.0.0 (2024-01-02) [YANKED]\n\nFirst.\n\n"
        "[unreleased]: https://example.org/compare\n[1.1.0]: https://example.org/1.1.0\n"
    )
    drafts = list(read_markdown(write(tmp_path / "lib" / "CHANGELOG.md", text)))
    assert [(d.kind, d.subject, d.source) for d in drafts] == [
        ("changelog", "Unreleased", "lib/CHANGELOG.md#Unreleased"),
        ("changelog", "1.1.0", "lib/CHANGELOG.md#1.1.0"),
        ("changelog", "1.0.0", "lib/CHANGELOG.md#1.0.0"),
    ]
    assert [d.created_at for d in drafts] == [
        None,
        datetime(2024, 5, 1, tzinfo=UTC),
        datetime(2024, 1, 2, tzinfo=UTC),
    ]
    assert "## 9.9.9" in drafts[1].content
    assert drafts[2].content == "# v1.0.0 (2024-01-02) [YANKED]\n\nFirst."
    assert drafts[2].metadata == {"version": "1.0.0", "line": 19, "date": "2024-01-02", "yanked": True}


def test_a_changelog_by_name_without_versions_is_a_note(tmp_path: Path) -> None:
    assert one(write(tmp_path / "HISTORY.md", "# History\n\nFounded in 1901.\n")).kind == "note"


def test_a_long_document_is_split_at_its_headings_only(tmp_path: Path) -> None:
    text = GUIDE.format(filler=FILLER)
    drafts = list(read_markdown(write(tmp_path / "docs" / "guide.md", text)))
    assert [(d.subject, d.source, d.metadata) for d in drafts] == [
        ("Guide", "docs/guide.md#guide", {"line": 1}),
        ("Guide > Install", "docs/guide.md#install", {"line": 5}),
        ("Guide > Settings", "docs/guide.md#settings", {"line": 23}),
    ]
    assert "## and then" in drafts[1].content
    assert "Use brew." in drafts[1].content
    assert "| `b`  | two     |" in drafts[2].content
    assert all(d.kind == "note" and d.trust == "external" and d.scope == "global" for d in drafts)


def test_the_path_of_headings_goes_as_deep_as_the_parting(tmp_path: Path) -> None:
    text = GUIDE.format(filler=FILLER)
    drafts = list(read_markdown(write(tmp_path / "guide.md", text), long=1010))
    subjects = [d.subject for d in drafts]
    assert subjects == ["Guide", "Guide > Install", "Guide > Install > Linux", "Guide > Settings"]
    # The tiny subsection stands with its parent, its heading included.
    assert drafts[1].content == "## Install\n\n### macOS\n\nUse brew."


def test_a_huge_code_block_a_table_and_a_list_item_are_never_split(tmp_path: Path) -> None:
    code = "```python\n" + "\n\n".join(f"# step {n}\nrun({n})" for n in range(400)) + "\n```"
    table = "| a | b |\n|---|---|\n" + "\n".join(f"| {n} | {n * n} |" for n in range(300))
    nested = "  - nested {n}\n\n    ```\n    # code {n}\n    ```"
    items = "\n".join(f"- item {'x' * 90}\n{nested.format(n=n)}" for n in range(30))
    text = f"# Big\n\nIntro:\n\n{code}\n\n{table}\n\n{items}\n"
    drafts = list(read_markdown(write(tmp_path / "big.md", text)))
    assert sum(code in d.content for d in drafts) == 1
    assert sum(table in d.content for d in drafts) == 1
    assert next(d for d in drafts if code in d.content).content.startswith("# Big\n\nIntro:\n\n```python")
    for n in range(30):
        assert sum(nested.format(n=n) in d.content for d in drafts) == 1
    parts = [(d.metadata["part"], d.metadata["parts"]) for d in drafts]
    assert parts == [(n, len(drafts)) for n in range(1, len(drafts) + 1)]
    assert len({d.source for d in drafts}) == len(drafts)
    assert {d.subject for d in drafts} == {"Big"}


def test_sections_of_one_name_have_different_sources(tmp_path: Path) -> None:
    text = "".join(f"# {name}\n\n## Example\n\n{FILLER}\n\n" for name in ("One", "Two"))
    drafts = list(read_markdown(write(tmp_path / "d" / "x.md", text)))
    assert [d.source for d in drafts] == ["d/x.md#one", "d/x.md#two"]
    text = f"# Top\n\n## Example\n\n{FILLER}\n\n## Example\n\n{FILLER}\n"
    drafts = list(read_markdown(write(tmp_path / "d" / "y.md", text)))
    assert [d.source for d in drafts] == ["d/y.md#example", "d/y.md#example-1"]
    assert all("part" not in d.metadata for d in drafts)


def test_front_matter_becomes_fields_and_the_rest_metadata(tmp_path: Path) -> None:
    text = (
        "---\nid: P-1\nkind: pattern\ntitle: Retry with jitter\ntags: '#net, http:client'\nimportance: 7\n"
        "confidence: 0.5\noutcome: success\npinned: true\nscope: path:src/net\n"
        "date: 2024-05-01T10:00:00+02:00\n"
        "reviewed: 2024-06-01\nowners: [ann, {name: bo}]\ntrust: owner\n---\n\nWait, then try again.\n"
    )
    assert one(write(tmp_path / "n" / "retry.md", text)) == Draft(
        content="Wait, then try again.",
        kind="pattern",
        subject="Retry with jitter",
        tags=("net", "http:client"),
        scope="path:src/net",
        importance=7.0,
        confidence=0.5,
        outcome="success",
        trust="external",
        source="n/retry.md",
        created_at=datetime(2024, 5, 1, 10, tzinfo=timezone(timedelta(hours=2))),
        pinned=True,
        metadata={
            "id": "P-1",
            "date": "2024-05-01T10:00:00+02:00",
            "reviewed": "2024-06-01",
            "owners": ["ann", {"name": "bo"}],
            "trust": "owner",
        },
    )


def test_a_type_that_is_no_kind_stays_metadata(tmp_path: Path) -> None:
    draft = one(write(tmp_path / "a.md", "---\ntype: page\n---\nx"))
    assert (draft.kind, draft.metadata) == ("note", {"type": "page"})
    assert one(write(tmp_path / "b.md", "---\ntype: Module\n---\nx")).kind == "module"


@pytest.mark.parametrize("text", ["---\n\nProse between rules.\n\n---\nMore.\n", "---\nnever closed\n"])
def test_a_rule_across_the_page_is_no_front_matter(tmp_path: Path, text: str) -> None:
    assert one(write(tmp_path / "x.md", text)).content == text.strip()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("---\ntitle: a\nkey: [1, 2\n---\nx", "x.md, line 3: its front matter is no YAML"),
        ("---\n- a\n---\nx", "line 2: its front matter must be `name: value` lines"),
        ("---\ndate: 2024-13-45\n---\nx", "front matter is no YAML (month must be in 1..12"),
        ("---\ndate: soon\n---\nx", "'date' must be a date or time such as 2024-05-01, and is 'soon'"),
        ("---\nimportance: high\n---\nx", "'importance' must be a number, and is 'high'"),
        ("---\npinned: maybe\n---\nx", "'pinned' must be true or false, and is 'maybe'"),
        ("---\ntags: {a: b}\n---\nx", "'tags' must be a list of texts"),
        ("---\ntitle: a\n---\n\n", "it has front matter and no text"),
        (BOMB, "the fields hold more than 10,000 values"),
        ("", "it is empty"),
        ("  \n\t\n", "it is empty"),
        (b"\x89PNG\0\0", "it is binary, and text in UTF-8 was expected"),
        (b"one\ntwo \xff\n", "line 2: byte 0xff is not UTF-8"),
        ("two words".encode("utf-16"), "it is UTF-16"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = write(tmp_path / "x.md", text)
    with pytest.raises(UnreadableSource) as caught:
        list(read_markdown(path))
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_a_folder_is_read_in_order_and_bad_files_are_reported(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    write(root / "b.md", "Second.")
    write(root / "a" / "one.markdown", "First.")
    write(root / "a" / "latin.md", b"caf\xe9")
    write(root / "a" / "empty.md", "")
    write(root / "a" / "picture.png", b"\x89PNG")
    for hidden in (".obsidian", ".venv", "node_modules/x", "vendor", "a/__pycache__"):
        write(root / hidden / "no.md", "Never read.")
    write(root / "own-env" / "pyvenv.cfg", "home = /usr")
    write(root / "own-env" / "lib" / "no.md", "Never read.")
    write(root / ".hidden.md", "Never read.")

    skipped: list[Skipped] = []
    drafts = list(read_markdown(root, on_skip=skipped.append))
    assert [(d.content, d.source) for d in drafts] == [
        ("Second.", "notes/b.md"),
        ("First.", "a/one.markdown"),
    ]
    assert [Path(each.source).name for each in skipped] == ["latin.md", "notes"]
    assert "notes without a text (1)" in skipped[1].reason
    with pytest.raises(UnreadableSource, match=r"latin\.md"):
        list(read_markdown(root))


def test_a_file_has_one_name_in_its_repository_however_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    path = write(tmp_path / "repo" / "docs" / "guide.md", "Text.")
    monkeypatch.chdir(path.parent)
    sources = [tmp_path / "repo", tmp_path / "repo" / "docs", path, Path("guide.md"), Path("../docs")]
    assert {draft.source for source in sources for draft in read_markdown(source)} == {"docs/guide.md"}


@pytest.mark.parametrize(("module", "text"), [("markdown_it", "x"), ("yaml", "---\na: b\n---\nx")])
def test_a_missing_parser_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, text: str
) -> None:
    monkeypatch.setitem(cast("dict[str, Any]", sys.modules), module, None)
    with pytest.raises(MissingExtra, match=r"pip install 'germane\[cli\]'"):
        list(read_markdown(write(tmp_path / "x.md", text)))


def test_a_folder_without_markdown_says_so(tmp_path: Path) -> None:
    write(tmp_path / "x.png", b"x")
    with pytest.raises(UnreadableSource, match="holds no Markdown file"):
        list(read_markdown(tmp_path, on_skip=lambda _: None))
