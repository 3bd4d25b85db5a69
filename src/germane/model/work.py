"""What an agent works on, as far as it says what it should know.

Level: model (imports errors only).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from germane.model.forms import checked_fields

__all__ = ["KindsFirst", "Work"]


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class KindsFirst:
    """How memories are ranked where their kind comes before all else.

    `priorities` are those of the kinds, 1 before 2, and `others` that of any other kind. Within a
    kind come those nearest to the paths of the work, then with `relevance` those that have most to do
    with it, then those updated last. With `stale_after` set, what wasn't updated for so long ranks lower.
    With `obsolete_last`, what is superseded, rejected or deprecated comes after all others of its kind.
    """

    priorities: Mapping[str, int]
    others: int
    relevance: bool = True
    stale_after: timedelta | None = None
    obsolete_last: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields(leanings=(-1, 1))
class Work:
    """The paths that are worked on, what is known of changes, and how work turned out.

    `paths` are from the project's root. `changed` says when a file was changed last. `leanings` are those of
    memories by their ids, from -1, work failed with them, to 1, it succeeded.
    """

    paths: tuple[str, ...] = ()
    changed: Mapping[str, datetime] = field(default_factory=dict)
    leanings: Mapping[str, float] = field(default_factory=dict)
