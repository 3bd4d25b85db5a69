"""What the pure part of a working set costs: order it, make a text of it, group it, and say who leaves.

    python bench/arranging.py [--items 200,1000,10000] [--budget 8000] [--runs 31]

Milliseconds, p50 and p95 of the runs after a warm-up, without a store. "cold" makes each paragraph anew,
as after opening; "whole" gives the budget all of the set (at most 128,000 tokens), so that the text's
own count takes most of the time. Memories are made up from a seed, about 40 tokens each by o200k; each has
a random vector of 256 dimensions near one of 200 directions.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from statistics import quantiles
from time import perf_counter
from typing import get_args

import numpy as np

from germane.kinds import BUILT_IN
from germane.model.memory import Memory, Vector
from germane.packing.layout import assemble_list
from germane.packing.lines import RememberedLines
from germane.plans.layered import working
from germane.ranking.eviction import EvictionPolicy, evict
from germane.ranking.strategies import ItemFeatures, Strategy, arrange, choose_strategy
from germane.testing.fakes import START, make_memories
from germane.tokens import CachedCounter, get_counter
from germane.working_sets import WorkingSetItem

_NOW = START + timedelta(days=365)
_COUNTER = CachedCounter(get_counter("o200k"))
_MOST = 128_000
_PLAN = working()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", default="200,1000,10000")
    parser.add_argument("--budget", type=int, default=8000)
    parser.add_argument("--runs", type=int, default=31)
    given = parser.parse_args()
    sizes = [int(size) for size in given.items.split(",")]
    memories = [_counted(memory) for memory in make_memories(max(sizes))]
    vectors = _vectors(memories)
    print(f"{'':44}{'items':>8}{'p50':>10}{'p95':>10}")
    for size in sizes:
        items = [
            WorkingSetItem(
                memory=one, entered_at=one.created_at, touched_at=one.created_at, order=place, tokens=tokens
            )
            for place, one in enumerate(memories[:size])
            for tokens in (one.renditions.full.tokens,)
        ]
        for name, run in _cases(items, vectors, given.budget):
            _print(name, size, run, given.runs)


def _cases(
    items: Sequence[WorkingSetItem], vectors: dict[str, Vector], budget: int
) -> Sequence[tuple[str, Callable[[], object]]]:
    known, cached = ItemFeatures(vectors=vectors), RememberedLines()

    def assembled(strategy: Strategy, tokens: int, lines: RememberedLines | None = None) -> object:
        found = arrange(items, strategy, now=_NOW, known=known)
        return assemble_list(
            _PLAN,
            found.ranked,
            memories=found.memories,
            counter=_COUNTER,
            kinds=BUILT_IN,
            lines=lines or RememberedLines(),
            budget=tokens,
            now=_NOW,
        )

    plain = ("balanced", "recent", "important", "frequent", "clustered")
    needed = sum(one.tokens for one in items) // 10
    return [
        *(
            (f"order, {name}", partial(arrange, items, Strategy(name=name), now=_NOW, known=known))
            for name in plain
        ),
        (f"assemble {budget:,} tokens", partial(assembled, Strategy(), budget, cached)),
        (f"assemble {budget:,} tokens, cold", partial(assembled, Strategy(), budget)),
        ("assemble the whole", partial(assembled, Strategy(), _MOST, cached)),
        (
            f"assemble {budget:,} tokens, clustered",
            partial(assembled, Strategy(name="clustered"), budget, cached),
        ),
        *(
            (f"evict a tenth, {name}", partial(evict, items, needed, now=_NOW, policy=name))
            for name in get_args(EvictionPolicy)
        ),
        (
            "choose a strategy by a question",
            partial(choose_strategy, "Should we move the cache, or fix it again?"),
        ),
    ]


def _counted(memory: Memory) -> Memory:
    full = replace(memory.renditions.full, tokens=_COUNTER.count(memory.renditions.full.text))
    return memory.evolve(renditions=replace(memory.renditions, full=full, counter=_COUNTER.name))


def _vectors(memories: Sequence[Memory]) -> dict[str, Vector]:
    chance = np.random.default_rng(7)
    topics = chance.standard_normal((200, 256))
    raw = topics[chance.integers(0, 200, len(memories))] + 0.9 * chance.standard_normal((len(memories), 256))
    unit = (raw / np.linalg.norm(raw, axis=1, keepdims=True)).astype(np.float32)
    return {memory.id: row for memory, row in zip(memories, unit, strict=True)}


def _print(name: str, size: int, run: Callable[[], object], runs: int) -> None:
    run()
    times = []
    for _ in range(runs):
        start = perf_counter()
        run()
        times.append(1000 * (perf_counter() - start))
    parts = quantiles(times, n=20)
    print(f"{name:44}{size:>8,}{parts[9]:>10.2f}{parts[18]:>10.2f}", flush=True)


if __name__ == "__main__":
    main()
