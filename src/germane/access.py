"""Keys of a store: who may use an agent's memory through a server, and for what; requests sent again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

__all__ = ["AccessKey", "AccessRight", "Answered", "Attempt", "NewKey"]


class AccessRight(StrEnum):
    """What a key may do. None includes another: who writes and reads needs both."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
    """Purge, maintain the store, and see figures of the whole store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessKey:
    """A key as the store has it; its text is stored nowhere.

    With a `user` it is for that user of the agent alone. `expires_at` and `revoked_at` are None for never.
    """

    id: str
    agent: str
    user: str | None
    may: tuple[AccessRight, ...]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired at that time."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key that was just made, with its `text`, which can't be shown again."""

    text: str
    key: AccessKey


class Answered(StrEnum):
    """When a request was answered that may be sent more than once."""

    NOW = "now"
    """By this very call."""
    BEFORE = "before"
    """By an earlier one, as it is answered again."""
    NOT_YET = "not yet"
    """Another call is at it, in this process or another one."""
    OTHERWISE = "otherwise"
    """An earlier request of the same key had another content."""
    GONE = "gone"
    """By an earlier one, whose answer was too long to store, or may have contained what was purged since."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of a request that may be sent more than once: see `StoreHandle.once`.

    `answer` is None unless it was answered now or before, and where it wasn't to be stored.
    """

    answered: Answered
    answer: bytes | None = None
