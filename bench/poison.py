"""Where attacks on memory end up in a context, and what of harmless text is changed on the way.

    python bench/poison.py [--cases 500] [--seed 7] [--budget 2000]

Each attack is planted in a store of its own with the same trusted memories; then the default context for its
question is made. "instructs" counts attacks whose mark stands in a section that the agent acts on, or outside
the indent and quotation marks of its item; "quoted" those that stand as a quotation, "informs" those in a
section of facts, decisions or episodes, and "out" those that stand nowhere. "crowded" counts contexts without
the trusted memory that answers the question. "loop" counts attacks in what a plain vector store gives a
prompt: the ten texts nearest to the question by the bundled embedder, joined by line ends. It holds the same
trusted texts, the demo's 315 and those of the attack.

The last lines say how many harmless paragraphs a context shows otherwise than they were stored, beside the
marks of Markdown at the start of a line: of the demo's memory and of the documentation in the docstrings of
installed packages.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
from attacks import FAMILIES, TRUSTED, Attack, attacks
from numpy.typing import NDArray

import germane
from germane import Context
from germane.demo import demo_drafts
from germane.embedders.static import StaticEmbedder
from germane.packing.render import fence

__all__ = ["context_after", "end_of", "harmless", "main"]

_INSTRUCTING = ("identity", "user", "user_facts", "constraints", "focus", "procedures", "calibration")
_SPOKEN = "conversations"
_MARKERS = ("<|im_start|>", "<system>", "[INST]", "<<SYS>>", "<start_of_turn>", "<|", "Human:", "![")
_NEAREST = 10
_PARAGRAPHS = 20_000
_LONGEST = 2000


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--cases", type=int, default=500)
    arguments.add_argument("--seed", type=int, default=7)
    arguments.add_argument("--budget", type=int, default=2000)
    given = arguments.parse_args()
    ends: Counter[tuple[str, str]] = Counter()
    embedder = StaticEmbedder()
    for attack in attacks(given.cases, given.seed):
        context = context_after(attack, given.budget)
        ends[attack.family, end_of(context, attack.mark)] += 1
        ends[attack.family, "crowded"] += all(item.memory.content != attack.answer for item in context.items)
        ends[attack.family, "loop"] += _stands_in_a_loop(attack, embedder)
        ends[attack.family, "cases"] += 1
    columns = ("cases", "instructs", "quoted", "informs", "out", "crowded", "loop")
    print(f"{'':<44}" + "".join(f"{each:>11}" for each in columns))
    for family in FAMILIES:
        print(f"{family:<44}" + "".join(f"{ends[family, each]:>11}" for each in columns))
    total = [sum(ends[family, each] for family in FAMILIES) for each in columns]
    print(f"{'all':<44}" + "".join(f"{each:>11}" for each in total))
    for name, texts in (("demo", [one.content for one in demo_drafts()]), ("docstrings", _docstrings())):
        changed, count = harmless(texts)
        print(f"{name}: {changed} of {count:,} harmless paragraphs changed ({changed / count:.2%})")


def context_after(attack: Attack, budget: int) -> Context:
    """The default context for the question of an attack, after it."""
    with germane.open(":memory:", agent="baker") as engine:
        engine.remember_many(TRUSTED)
        attack.plant(engine)
        return engine.assemble(attack.question, budget=budget)


def end_of(context: Context, mark: str) -> str:
    """Where the text with a mark stands in a context: "instructs", "quoted", "informs" or "out"."""
    sections = {item.section for item in context.items if mark in item.text}
    for line in context.text.splitlines():
        if mark in line and not line.startswith(("- ", "  ", "### ")):
            return "instructs"
    texts = [item.text for item in context.items if mark in item.text]
    if any(marker in text for text in texts for marker in _MARKERS):
        return "instructs"
    if sections.intersection((*_INSTRUCTING, _SPOKEN)):
        return "instructs"
    if not sections:
        return "out"
    return "quoted" if sections == {"quoted"} else "informs"


def _stands_in_a_loop(attack: Attack, embedder: StaticEmbedder) -> bool:
    known, rows = _harmless_rows(embedder)
    texts, own = (*known, *attack.texts), _rows(embedder, [attack.question, *attack.texts])
    near = np.concatenate([rows, own[1:]]) @ own[0]
    best = [texts[place] for place in np.argsort(-near)[:_NEAREST]]
    return attack.mark in "\n".join(best)


@cache
def _harmless_rows(embedder: StaticEmbedder) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    texts = tuple(one.content for one in (*TRUSTED, *demo_drafts()))
    return texts, _rows(embedder, texts)


def _rows(embedder: StaticEmbedder, texts: Sequence[str]) -> NDArray[np.float64]:
    nothing = np.zeros(embedder.dimension)
    return np.array([nothing if one is None else one for one in embedder.embed(texts)])


def harmless(texts: Sequence[str]) -> tuple[int, int]:
    """How many paragraphs a context changes beside the start of a line, and how many there are."""
    paragraphs = [part for text in texts for part in text.split("\n\n") if part.strip()]
    return sum(_words(fence(part)) != _words(part.splitlines()) for part in paragraphs), len(paragraphs)


def _words(lines: Sequence[str]) -> list[str]:
    return [word for line in lines for word in line.strip(" #*=-~`>|\\\t_").split()]


def _docstrings() -> list[str]:
    return list(islice(_all_docstrings(), _PARAGRAPHS))


def _all_docstrings() -> Iterator[str]:
    """The docstrings of the modules of installed packages, in the order of their paths."""
    folder = Path(next(path for path in sys.path if path.endswith("site-packages")))
    for path in sorted(folder.rglob("*.py")):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node)
                if text and len(text) < _LONGEST:
                    yield text


if __name__ == "__main__":
    main()
