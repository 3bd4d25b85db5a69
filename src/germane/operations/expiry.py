"""What has expired by the clock: a store that doesn't show it, and the times that callers give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from germane.errors import InvalidInput, shown
from germane.model.memory import Memory
from germane.model.query import Filter, Order, Query, SearchResult
from germane.operations.inputs import checked_time
from germane.protocols import Clock, Store

if TYPE_CHECKING:
    from germane.ledger import StoreStats
    from germane.model.change import Applied, Change

TIMES: Final = ("valid_from", "valid_until", "expires_at")
"""The fields of a memory that say until when it holds or is stored."""


class UnexpiredStore:
    """A store of which nothing is read that has expired by the clock.

    The clock is read only where the store has memories that expire and the query names no time. Sub-stores,
    `stats` and all else are the inner store's.
    """

    def __init__(self, inner: Store, clock: Clock) -> None:
        self.inner: Store = inner.inner if isinstance(inner, UnexpiredStore) else inner
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def apply(self, agent: str, changes: Sequence[Change]) -> tuple[Applied, ...]:
        """Apply all changes in one transaction, in order, or none of them."""
        return self.inner.apply(agent, changes)

    def get(self, agent: str, ids: Sequence[str]) -> tuple[Memory | None, ...]:
        """The memories of these ids in the order of `ids`; None where there is none, or it has expired."""
        found = self.inner.get(agent, ids)
        if not any(each is not None and each.expires_at for each in found):
            return found
        now = self._clock()
        return tuple(None if each is None or each.has_expired(now) else each for each in found)

    def find(
        self,
        agent: str,
        where: Filter,
        *,
        order: Order = Order.NEWEST,
        limit: int | None = None,
        after: str | None = None,
        now: datetime | None = None,
    ) -> tuple[Memory, ...]:
        """The memories that pass the filter and haven't expired, in order."""
        if now is None:
            found = self.inner.find(agent, where, order=order, limit=limit, after=after)
            if not any(memory.expires_at for memory in found):
                return found
        return self.inner.find(agent, where, order=order, limit=limit, after=after, now=now or self._clock())

    def search(self, agent: str, query: Query) -> SearchResult:
        """The candidates for a query that haven't expired."""
        found = self.inner.search(agent, query)
        if query.now is not None or not found.expiring:
            return found
        return self.inner.search(agent, replace(query, now=self._clock()))

    def stats(self, agent: str) -> StoreStats:
        """Figures of the store itself, what has expired included until it is removed."""
        return self.inner.stats(agent)

    def close(self) -> None:
        """Close the inner store."""
        self.inner.close()


def whole(store: Store) -> Store:
    """The store with what has expired."""
    return store.inner if isinstance(store, UnexpiredStore) else store


def times_of(given: Mapping[str, Any], *, now: datetime) -> dict[str, datetime]:
    """The `TIMES` among the fields given, where they aren't None; `ttl` gives `expires_at`.

    Raises InvalidInput for what is no time, a memory that expires by `now`, and a validity that ends before
    it begins.
    """
    ttl = given.get("ttl")
    found = {
        name: checked_time(given[name], name=name, clock=lambda: now)
        for name in TIMES
        if given.get(name) is not None
    }
    if ttl is not None:
        if "expires_at" in found:
            raise InvalidInput(
                f"ttl={shown(ttl)} and expires_at={found['expires_at'].isoformat()} both say when it "
                "expires. Give one of them."
            )
        found["expires_at"] = _after(now, ttl)
    if "expires_at" in found and found["expires_at"] <= now:
        raise InvalidInput(
            f"expires_at={found['expires_at'].isoformat()} isn't after now, {now.isoformat()}: nothing would "
            "ever find the memory. Give a later time, or don't remember it."
        )
    check_validity(found.get("valid_from"), found.get("valid_until"))
    return found


def check_validity(valid_from: datetime | None, valid_until: datetime | None) -> None:
    """Raise InvalidInput for a validity that ends before it begins, or at once."""
    if valid_from is not None and valid_until is not None and valid_until <= valid_from:
        raise InvalidInput(
            f"valid_until={valid_until.isoformat()} isn't after valid_from={valid_from.isoformat()}: it "
            "would never hold. Swap them, or leave one out."
        )


def _after(now: datetime, ttl: object) -> datetime:
    seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise InvalidInput(f"ttl={shown(ttl)} is no time to live: take a timedelta or seconds, above 0.")
    try:
        return now + timedelta(seconds=seconds)
    except OverflowError:
        raise InvalidInput(
            f"ttl={shown(ttl)} ends after the year 9999. Leave it out for a memory that doesn't expire."
        ) from None
