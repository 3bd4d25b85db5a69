"""The documentation does what it says: its code runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import ast
import importlib
import re
from itertools import chain
from pathlib import Path

import pytest

from commandline import COMMANDS, GROUPS, run
from docs.pages import ILLUSTRATION, ROOT, blocks_of, commands_of, masked, needs_server, pages, run_page
from support.postgres_server import missing

_NAMES = [page.relative_to(ROOT).as_posix() for page in pages()]
_EVERY_PAGE = [*pages(), *sorted((ROOT / "docs" / "decisions").glob("*.md")), ROOT / "CHANGELOG.md"]
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6}\s+(.*)$", re.MULTILINE)


@pytest.mark.parametrize("name", _NAMES)
def test_the_examples_of_a_page_run_and_print_what_it_shows(name: str, tmp_path: Path) -> None:
    if needs_server(ROOT / name) and missing():
        pytest.skip(missing())
    for shown in run_page(ROOT / name, tmp_path):
        where = f"{name}, line {shown.block.line}"
        assert (where, masked(shown.actual)) == (where, masked(shown.block.text))


@pytest.mark.parametrize("name", _NAMES)
def test_the_commands_of_a_page_exist_with_their_options(name: str) -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    blocks = blocks_of((ROOT / name).read_text(encoding="utf-8"))
    for words in chain.from_iterable(commands_of(block) for block in blocks if block.language == "console"):
        if words[0] == "make":
            assert set(words[1:]) <= set(targets), words
        if words[0] == "germane":
            command = words[1:3] if words[1] in GROUPS else words[1:2]
            assert " ".join(command) in COMMANDS, words
            known = set(re.findall(r"--[a-z-]+", run(*command, "--help").out))
            used = {word.partition("=")[0] for word in words[2:] if word.startswith("--")}
            assert used <= known, words


def test_what_is_only_shown_imports_names_that_exist() -> None:
    missing = [
        f"{page.name}, line {block.line}: {node.module}.{alias.name}"
        for page in pages()
        for block in blocks_of(page.read_text(encoding="utf-8"))
        if block.language == "python" and ILLUSTRATION in block.words
        for node in ast.walk(ast.parse(block.text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("germane")
        for alias in node.names
        if not hasattr(importlib.import_module(str(node.module)), alias.name)
    ]
    assert missing == []


@pytest.mark.parametrize("page", _EVERY_PAGE, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    for link in _LINK.findall(text):
        if not re.match(r"[a-z]+:", link):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), f"{page.name} links to {link}"
            if anchor:
                assert anchor in _anchors(target), f"{page.name} links to {link}"


def test_every_page_is_reached_from_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {
        (index.parent / link.partition("#")[0]).resolve()
        for link in _LINK.findall(index.read_text(encoding="utf-8"))
    }
    docs = {page for page in pages() if page.is_relative_to(ROOT / "docs")} - {index}
    assert docs - linked == set()


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, made as GitHub and most site builders make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = _HEADING.findall(text)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
