"""Gathers the training text: one sentence a line, cleaned, each once, in a seeded order.

    python tools/distil/gather.py --packages FOLDER --work FOLDER

`FOLDER/NAME` holds what package NAME unpacks to. Writes `text.tsv`: the source, a tab, the sentence.
"""

# ruff: noqa: S311 - a script that prints, and a seeded order that guards no secret.

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from sources import READERS

_SEED = 13
_UNCAPPED = 200_000
_CAPS = {
    "wordnet-glosses": _UNCAPPED,
    "wordnet-examples": _UNCAPPED,
    "pydoc": 30_000,
    "austen": 25_000,
    "jargon": _UNCAPPED,
    "chatter": _UNCAPPED,
}
_CAP = 6_000  # Of each other manual, so that none sets the tone.
_FEWEST_WORDS, _MOST_WORDS = 3, 120
_LETTERS = 0.75
_LAST_CHARACTER = "\u024f"
_WHOLE = ("wordnet-glosses", "wordnet-examples")  # One sentence each as they come.
_TYPOGRAPHY = str.maketrans(
    {
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u2013": "-",
        "\u2014": "-",
        "\u2026": "...",
    }
)


def main() -> None:
    """Read every source, keep what is a sentence of English, mix and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    given = parser.parse_args()
    chance = random.Random(_SEED)
    seen: set[str] = set()
    lines: list[tuple[str, str]] = []
    for name, (package, read) in READERS.items():
        found = list(_fresh(_sentences(name, read(given.packages / package)), seen))
        chance.shuffle(found)
        lines += [(name, sentence) for sentence in found[: _CAPS.get(name, _CAP)]]
    chance.shuffle(lines)
    given.work.mkdir(parents=True, exist_ok=True)
    with (given.work / "text.tsv").open("w", encoding="utf-8") as file:
        file.writelines(f"{name}\t{sentence}\n" for name, sentence in lines)
    print(len(lines), dict(Counter(name for name, _ in lines)))


def _sentences(name: str, paragraphs: Iterator[str]) -> Iterator[str]:
    for paragraph in paragraphs:
        text = " ".join(paragraph.translate(_TYPOGRAPHY).split())
        parts = [text] if name in _WHOLE else re.split(r"(?<=[.!?])[\"')]*\s+(?=[\"'(]?[A-Z])", text)
        yield from filter(_is_usable, parts)


def _is_usable(sentence: str) -> bool:
    if not _FEWEST_WORDS <= sentence.count(" ") + 1 <= _MOST_WORDS or max(sentence) > _LAST_CHARACTER:
        return False
    letters = sum(character.isalpha() or character == " " for character in sentence)
    return letters > _LETTERS * len(sentence)


def _fresh(sentences: Iterator[str], seen: set[str]) -> Iterator[str]:
    for sentence in sentences:
        if (key := sentence.lower()) not in seen:
            seen.add(key)
            yield sentence


if __name__ == "__main__":
    main()
