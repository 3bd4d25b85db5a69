"""Tables of any form end where the parser of Markdown ends them, although their cells aren't read."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from germane.importers import read_markdown

LINES = (
    "| a | b |",
    "|---|---|",
    ":-- | --",
    "| 1 | 2 | 3 |",
    "| 1 |",
    "a | b \\| c",
    "  | a | b |",
    "",
    " ",
    "> | a | b |",
    "> |---|---|",
    "> | 1 | 2 |",
    "```",
    "words",
    "    code",
    "\t| a |",
    "<b>",
    "***",
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=12))
def test_blocks_with_tables_are_those_of_the_whole_parser(lines: list[str]) -> None:
    text = "\n".join(["words", "", *lines])
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    starts = [token.map[0] for token in tokens if token.level == 0 and token.map and token.nesting >= 0]
    ends = [*starts[1:], len(lines) + 2]
    whole = ["\n".join(text.split("\n")[start:end]) for start, end in zip(starts, ends, strict=True)]
    assert all(one < other for one, other in pairwise(starts))
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.md")
        path.write_text(text)
        read = [draft.content for draft in read_markdown(path, long=1)]
    assert read == [block.strip("\n").rstrip() for block in whole]
