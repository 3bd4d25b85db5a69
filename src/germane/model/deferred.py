"""A sequence whose elements are made when they are asked for.

Level: model (imports nothing of the package). Pure: the same element is made each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

__all__ = ["Deferred"]

T = TypeVar("T")


class Deferred(Sequence[T]):
    """As long as `count`, with `make(place)` at each place; equal to any sequence of the same elements.

    An account of ten thousand candidates is mostly never read, and costs more to write than the
    context that it accounts for. Copied or pickled, it becomes a tuple.
    """

    __slots__ = ("_count", "_make")

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        places = range(self._count)[index]
        return self._make(places) if isinstance(places, int) else tuple(map(self._make, places))

    def __iter__(self) -> Iterator[T]:
        return map(self._make, range(self._count))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | Deferred):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type[tuple[T, ...]], tuple[tuple[T, ...]]]:
        return tuple, (tuple(self),)
