"""Reads plain text out of the packages that the embedder is trained on.

Each reader takes the folder that a package was unpacked into and yields paragraphs or sentences.
"""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from collections.abc import Callable, Collection, Iterator
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import yaml

__all__ = ["READERS", "wordnet_of"]

_LEMMAS = 3
_FEWEST_WORDS = 3
_PARAGRAPHS = frozenset({"p", "dt"})
_LEFT_OUT = frozenset({"pre", "script", "style", "nav"})
_INDEXES = ("genindex", "py-modindex", "search", "bookindex", "changes", "print")
_STRING, _STRINGS = 9, 16  # R's codes for a string and a vector of strings.


def wordnet_glosses(folder: Path) -> Iterator[str]:
    """Each synset as its first lemmas, a colon and its definition."""
    for lemmas, definition, _ in _synsets(folder):
        yield f"{', '.join(lemmas[:_LEMMAS])}: {definition}"


def wordnet_examples(folder: Path) -> Iterator[str]:
    """The sentences that WordNet quotes."""
    for _, _, examples in _synsets(folder):
        yield from examples


def wordnet_of(folder: Path, words: Collection[str]) -> tuple[list[str], list[str]]:
    """What WordNet says of `words`: the definitions, and the examples of 3 words or more, each once."""
    definitions: list[str] = []
    quoted: dict[str, None] = {}
    for lemmas, definition, examples in _synsets(folder):
        if any(lemma.lower() in words for lemma in lemmas):
            definitions.append(f"{', '.join(lemmas[:_LEMMAS])}: {definition}")
            quoted |= dict.fromkeys(each for each in examples if len(each.split()) >= _FEWEST_WORDS)
    return definitions, list(quoted)


def pages(folder: Path, pattern: str) -> Iterator[str]:
    """The paragraphs of a manual in HTML, code, indexes and lists of changes left out."""
    for page in sorted(folder.glob(pattern)):
        if page.is_file() and not page.name.startswith(_INDEXES):
            parser = _Paragraphs()
            parser.feed(page.read_text(encoding="utf-8", errors="replace"))
            yield from parser.found


def markdown(folder: Path) -> Iterator[str]:
    """The paragraphs of a manual in Markdown, without its code."""
    for page in sorted(folder.rglob("*.md")):
        text = re.sub(r"(?s)```.*?```|<!--.*?-->|^---.*?\n---", "\n", page.read_text(encoding="utf-8"))
        text = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", text).replace("`", "")
        yield from _joined("" if line.startswith(("#", "|", "    ")) else line for line in text.splitlines())


def austen(folder: Path) -> Iterator[str]:
    """The paragraphs of the six novels, which R keeps as vectors of printed lines."""
    data = next(folder.rglob("janeaustenr/data/Rdata.rdb")).read_bytes()
    start = 0
    while start < len(data):
        # Each record is its length unpacked, and a zlib stream.
        stream = zlib.decompressobj()
        novel = stream.decompress(data[start + 4 :])
        start = len(data) - len(stream.unused_data)
        yield from _joined(_r_strings(novel))


def jargon(folder: Path) -> Iterator[str]:
    """The paragraphs of the Jargon File's entries, without head words and pronunciations."""
    text = gzip.decompress(next(folder.rglob("jargon.dict.dz")).read_bytes()).decode()
    for paragraph in _joined(line if line.startswith("    ") else "" for line in text.splitlines()):
        yield re.sub(r"\{\s*([^}]*?)\s*\}", r"\1", paragraph)


def chatter(folder: Path) -> Iterator[str]:
    """The English turns of the dialogue corpus."""
    for file in sorted(folder.rglob("data/english/*.yml")):
        for turns in yaml.safe_load(file.read_text(encoding="utf-8"))["conversations"]:
            yield from (str(turn) for turn in turns)


READERS: dict[str, tuple[str, Callable[[Path], Iterator[str]]]] = {
    "wordnet-glosses": ("wordnet-base", wordnet_glosses),
    "wordnet-examples": ("wordnet-base", wordnet_examples),
    "pydoc": ("python3.11-doc", partial(pages, pattern="usr/share/doc/python3.11/html/**/*.html")),
    "austen": ("r-cran-janeaustenr", austen),
    "jargon": ("dict-jargon", jargon),
    "chatter": ("chatterbot_corpus", chatter),
    "postgresql": ("postgresql-doc-15", partial(pages, pattern="usr/share/doc/*/html/**/*.html")),
    "apache": ("apache2-doc", partial(pages, pattern="usr/share/doc/apache2-doc/manual/en/**/*.html")),
    "sqlite": ("sqlite3-doc", partial(pages, pattern="usr/share/doc/sqlite3/*.html")),
    "django": ("python-django-doc", partial(pages, pattern="usr/share/doc/*/html/**/*.html")),
    "nodejs": ("nodejs-doc", partial(pages, pattern="usr/share/doc/nodejs/api/*.html")),
    "rust-book": ("rust-doc", partial(pages, pattern="usr/share/doc/rust-doc/html/book/*.html")),
    "keystone": ("keystone-doc", partial(pages, pattern="usr/share/doc/**/*.html")),
    "nova": ("nova-doc", partial(pages, pattern="usr/share/doc/**/*.html")),
    "flask": ("python-flask-doc", partial(pages, pattern="usr/share/doc/**/*.html")),
    "aiohttp": ("python-aiohttp-doc", partial(pages, pattern="usr/share/doc/**/*.html")),
    "docker": ("docker-doc", markdown),
}
"""The readers by name, each with the folder that its package is unpacked into."""


def _synsets(folder: Path) -> Iterator[tuple[list[str], str, list[str]]]:
    for part in ("noun", "verb", "adj", "adv"):
        file = next(folder.rglob(f"data.{part}"))
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith(" "):
                continue  # The licence, which opens each file.
            data, _, gloss = line.partition(" | ")
            fields = data.split()
            words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
            lemmas = [re.sub(r"\([a-z]+\)$", "", word).replace("_", " ") for word in words]
            examples = re.findall(r'"([^"]+)"', gloss)
            definition = re.sub(r'[;,]?\s*"[^"]*"?', "", gloss).strip(" ;")
            yield lemmas, definition, examples


class _Paragraphs(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._text: list[str] | None = None
        self._skipped = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _LEFT_OUT or ("class", "headerlink") in attrs:
            self._skipped += tag in _LEFT_OUT
        elif tag in _PARAGRAPHS:
            self._text = []

    def handle_endtag(self, tag: str) -> None:
        if tag in _LEFT_OUT:
            self._skipped = max(self._skipped - 1, 0)
        elif tag in _PARAGRAPHS and self._text is not None:
            self.found.append("".join(self._text))
            self._text = None

    def handle_data(self, data: str) -> None:
        if self._text is not None and not self._skipped and data != "¶":
            self._text.append(data)


def _r_strings(data: bytes) -> Iterator[str]:
    """The strings of the first string vector in a serialised R object (XDR, format 3)."""
    start = data.index(struct.pack(">I", _STRINGS), 23)
    (count,) = struct.unpack_from(">I", data, start + 4)
    start += 8
    for _ in range(count):
        kind, length = struct.unpack_from(">Ii", data, start)
        if kind & 0xFF != _STRING:
            raise ValueError(f"No string at byte {start} of an R object, but kind {kind & 0xFF}.")
        start += 8
        yield data[start : start + max(length, 0)].decode("utf-8", "replace")
        start += max(length, 0)


def _joined(lines: Iterator[str]) -> Iterator[str]:
    """Paragraphs of lines that empty lines part."""
    paragraph: list[str] = []
    for line in lines:
        if line.strip():
            paragraph.append(line.strip())
        elif paragraph:
            yield " ".join(paragraph)
            paragraph = []
    if paragraph:
        yield " ".join(paragraph)
