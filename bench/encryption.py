"""What a key costs: the same writes and questions to a plain and an encrypted file, by turns in one process.

    python bench/encryption.py [--memories 1000] [--rounds 9]

Each question is new. Prints medians of processor time in milliseconds, which other processes disturb less
than the clock's, and the sizes of the files.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from corpus import NOW, drafts, questions
from rich.console import Console
from rich.table import Table

import germane

KEYS: dict[str, bytes | str] = {"without a key": "", "with a key": bytes(range(32))}
EACH = 8
"""Questions and writes of a round, after the first question."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--memories", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        figures = measured(Path(folder), given.memories, given.rounds)
    table = Table("", *KEYS)
    for name, of_keys in figures.items():
        table.add_row(name, *(f"{statistics.median(of_keys[key]):.2f}" for key in KEYS))
    Console().print(table)


def measured(folder: Path, memories: int, rounds: int) -> dict[str, dict[str, list[float]]]:
    """By what was measured and by key, the milliseconds of each time; the sizes in MB."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    texts, news = list(drafts(memories, seed=1)), drafts(2 * EACH * rounds, seed=2)
    for key, value in [("", ""), *KEYS.items()]:  # What is loaded once in a process is loaded by the first.
        with germane.open(folder / f"{key}.db", key=value, clock=lambda: NOW) as engine:
            spent = _milliseconds(partial(engine.remember_many, texts))
        found["remember_many, a memory"][key].append(spent / memories)
        found["size of the file, MB"][key].append((folder / f"{key}.db").stat().st_size / 1e6)
    each_once = iter(questions((2 * EACH + 1) * rounds, seed=3))
    for _ in range(rounds):
        first, *own = islice(each_once, 2 * EACH + 1)
        for key, value in KEYS.items():
            with germane.open(folder / f"{key}.db", key=value, clock=lambda: NOW) as engine:
                acts: dict[str, list[Callable[[], object]]] = {
                    "the first question of an agent": [partial(engine.recall, first)],
                    "recall, warm": [partial(engine.recall, each) for each in own[::2]],
                    "assemble to 2,000 tokens, warm": [
                        partial(engine.assemble, each, budget=2000) for each in own[1::2]
                    ],
                    "remember": [partial(engine.remember, next(news).content) for _ in range(EACH)],
                }
                for name, each in acts.items():
                    found[name][key] += map(_milliseconds, each)
    return found


def _milliseconds(act: Callable[[], object]) -> float:
    start = time.process_time()
    act()
    return (time.process_time() - start) * 1e3


if __name__ == "__main__":
    main()
