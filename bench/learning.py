"""What learning from use is worth, on made-up memories and made-up users: recall of what they need.

    python bench/learning.py [--memories 400] [--contexts 200] [--seed 7]

Each memory has a topic, a place in a session and words at random. A question asks for a topic in a
session; what a user needs is decided by one part of the score (the user's own), and he uses the
needed memories that were shown, or, to see whether it does harm, any of them by chance. Weights are
learned from the first questions, and recall is counted on others that nobody has answered: the
share of the needed memories among the first three, before and after.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from statistics import mean

import germane
from germane import Draft, Engine, Ranked
from germane.testing.fakes import FixedClock, HashEmbedder

_NOW = datetime(2026, 11, 21, tzinfo=UTC)
_WORDS = [
    f"{start}{end}" for start in ("bar", "cel", "dor", "fin", "gul") for end in ("a", "em", "ik", "o", "us")
]
_SHOWN = 20
_COUNTED = 3
_NEEDED = 2
_REPEATS = 100
_STEPS = (0, 10, 30, 50, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class _User:
    """Who uses memories by one part of their score (None: by chance), and for the rest by their sum."""

    name: str
    part: str | None
    by_chance: bool = False

    def needs(self, shown: Sequence[Ranked], weights: dict[str, float]) -> list[str]:
        """The ids of what he needs of all that was found."""
        raw = {one.memory.id: {n: p / weights.get(n, 1.0) for n, p in one.parts.items()} for one in shown}

        def worth(memory_id: str) -> tuple[float, str]:
            parts = raw[memory_id]
            own = 0.0 if self.part is None else 3.0 * parts.get(self.part, 0.0)
            return own + sum(parts.values()), memory_id

        return sorted(raw, key=worth, reverse=True)[:_NEEDED]


_USERS = (
    _User(name="goes by the window", part="window"),
    _User(name="goes by the words", part="lexical"),
    _User(name="goes by the meaning", part="semantic"),
    _User(name="goes by the sum", part=None),
    _User(name="uses by chance", part="window", by_chance=True),
)


def main() -> None:
    """Print, for each user, the weights and the recall after so many contexts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=400)
    parser.add_argument("--contexts", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    print(f"{'user':<22}" + "".join(f"{step:>8}" for step in _STEPS if step <= given.contexts) + "   weights")
    for user in _USERS:
        with _filled(given.memories, seed=given.seed) as engine:
            print(_row(user, engine, contexts=given.contexts, seed=given.seed))


def _row(user: _User, engine: Engine, *, contexts: int, seed: int) -> str:
    chance = Random(seed)
    engine.set_learning(on=True)
    found = [_recall(user, engine, seed=seed)]
    for number in range(1, contexts + 1):
        recalled = engine.recall(_question(chance), limit=_SHOWN)
        needed = user.needs(recalled, dict(recalled.weights))
        if user.by_chance:
            needed = chance.sample([one.memory.id for one in recalled], min(_NEEDED, len(recalled)))
        engine.feedback(recalled, needed)
        if number in _STEPS:
            found.append(_recall(user, engine, seed=seed))
    weights = engine.set_learning().weights
    named = {} if weights is None else weights.values
    shown = "  ".join(f"{name} {weight:.2f}" for name, weight in sorted(named.items()))
    return f"{user.name:<22}" + "".join(f"{share:8.3f}" for share in found) + f"   {shown}"


def _recall(user: _User, engine: Engine, *, seed: int) -> float:
    """The share of what he needs among the first three, over questions that nothing was learned from."""
    chance = Random(seed + 1)
    shares = []
    for _ in range(_REPEATS):
        recalled = engine.recall(_question(chance), limit=_SHOWN)
        needed = set(user.needs(recalled, dict(recalled.weights)))
        shares.append(len(needed & {one.memory.id for one in recalled[:_COUNTED]}) / len(needed))
    return mean(shares)


def _filled(memories: int, *, seed: int) -> Engine:
    chance = Random(seed)
    engine = germane.open(
        ":memory:", embedder=HashEmbedder(), clock=FixedClock(_NOW, timedelta(microseconds=1))
    )
    engine.remember_many(
        Draft(
            content=" ".join(chance.choices(_WORDS, k=chance.randint(3, 12))) + f" n{number}",
            scope=f"session:s{number // 20}",
            created_at=_NOW - timedelta(minutes=memories - number),
        )
        for number in range(memories)
    )
    return engine


def _question(chance: Random) -> str:
    return " ".join(chance.choices(_WORDS, k=3))


if __name__ == "__main__":
    main()
