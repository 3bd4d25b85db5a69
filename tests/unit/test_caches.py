"""The caches of many agents stay within a limit, and the one that is used stays."""

from __future__ import annotations

from germane.stores.relational.cache import Caches
from germane.stores.relational.resident_cache import ResidentCache


class Sized(ResidentCache):
    """A cache that takes as many bytes as it is set to."""

    size = 10

    @property
    def nbytes(self) -> int:
        return self.size


def used(caches: Caches[str, Sized], *agents: str) -> list[Sized]:
    found = []
    for agent in agents:
        found.append(caches.of(agent))
        caches.settle(agent)
    return found


def test_the_longest_unused_is_let_go_first() -> None:
    caches = Caches(Sized, most=30)
    one, two, three = used(caches, "one", "two", "three")
    assert used(caches, "one") == [one]
    used(caches, "four")
    assert used(caches, "one", "three") == [one, three]
    assert used(caches, "two") != [two]


def test_what_has_grown_is_noted_when_it_is_used() -> None:
    caches = Caches(Sized, most=30)
    one, two = used(caches, "one", "two")
    two.size = 25
    assert used(caches, "two") == [two]
    assert used(caches, "one") != [one]


def test_one_that_is_too_large_alone_stays_while_it_is_used() -> None:
    caches = Caches(Sized, most=5)
    [one] = used(caches, "one")
    assert used(caches, "one") == [one]
    [two] = used(caches, "two")
    assert used(caches, "two") == [two]
    assert used(caches, "one") != [one]


def test_another_takes_the_place_and_the_size_of_one() -> None:
    caches = Caches(Sized, most=30)
    used(caches, "one", "two")
    other = Sized("one")
    other.size = 20
    caches.replace("one", other)
    assert used(caches, "one") == [other]
    assert caches.of("two") in used(caches, "two")
    caches.clear()
    assert used(caches, "one") != [other]
