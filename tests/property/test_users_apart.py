"""What one user of an agent does shows for no other user, and not for the agent itself."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import germane
from germane.stores import migrate_store
from germane.testing.fakes import seeded_ids
from support.everything import ACTS, Person, TickingClock
from support.examples import examples
from support.postgres_server import Server

Script = Sequence[tuple[str, str, int]]
"""Who acts, the act, and the number that varies it."""

NAMES = ("agent", "alice", "bob")


def world(location: str, script: Script, *, without: str | None = None) -> dict[str, list[str]]:
    """The result of every act of a script by who acted; nothing is done of whom it is `without`."""
    handles = [
        germane.connect(location, clock=TickingClock(), ids=seeded_ids(number))
        for number in range(len(NAMES))
    ]
    try:
        people = {}
        for name, handle in zip(NAMES, handles, strict=True):
            engine = handle.agent("newton")
            people[name] = Person(engine if name == "agent" else engine.for_user(name), name)
        for who, act, number in script:
            if who != without:
                people[who].does(act, number)
        return {name: each.results for name, each in people.items() if name != without}
    finally:
        for each in handles:
            each.close()


def assert_apart(script: Script, first: str, second: str) -> None:
    """Alice and the agent have the same results, byte by byte, with and without what Bob does."""
    with_bob, without_bob = world(first, script), world(second, script, without="bob")
    for name, results in without_bob.items():
        assert with_bob[name] == results, name


def _migrated(url: str) -> None:
    migrate_store(url)


def every_verb(seed: int, *, rounds: int) -> Script:
    """All verbs of all three, several times, in a random order; the agent has something first."""
    chance = Random(seed)  # noqa: S311 - It only varies the order.
    acts = [(who, act) for who in NAMES for act in ACTS for _ in range(rounds)]
    chance.shuffle(acts)
    begin = [("bob", "remember", 1), *(("agent", "remember", number) for number in range(6))]
    begin += [(who, "remember_many", 3) for who in NAMES]
    return [*begin, *((who, act, chance.randrange(100)) for who, act in acts)]


@pytest.mark.parametrize("seed", range(3))
def test_every_verb_in_a_file(tmp_path: Path, seed: int) -> None:
    script = every_verb(seed, rounds=3)
    assert_apart(script, str(tmp_path / "with.db"), str(tmp_path / "without.db"))


@pytest.mark.parametrize("seed", range(2))
def test_every_verb_on_a_server(postgres_server: Server, seed: int) -> None:
    names = [postgres_server.fresh("germane_users", prepared=_migrated) for _ in range(2)]
    try:
        assert_apart(every_verb(seed, rounds=2), *map(postgres_server.url, names))
    finally:
        for each in names:
            postgres_server.drop(each)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.tuples(st.sampled_from(NAMES), st.sampled_from(sorted(ACTS)), st.integers(0, 30)),
        min_size=5,
        max_size=40,
    )
)
def test_any_order(script: Script) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert_apart(script, str(Path(folder) / "with.db"), str(Path(folder) / "without.db"))
