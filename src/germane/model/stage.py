"""How a memory stands in its life: stages, what moves it from one to another, and what is counted on the way.

Level: model (imports nothing of the package). Which sign moves which stage where, `germane.lifecycle` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

__all__ = ["Cause", "LifeEvent", "Sign", "Stage", "Standing"]


class Stage(StrEnum):
    """Where a memory stands in the lifecycle of its kind; no lifecycle has all of them."""

    NEW = "new"  # A fact that was learned and not met again.
    CONFIRMED = "confirmed"  # A fact that was met again.
    CORE = "core"  # A fact that was confirmed three times or more, or by hand.
    SUPERSEDED = "superseded"  # A fact that a newer one replaces.
    INACTIVE = "inactive"  # A fact that was proven wrong.
    ACTIVE = "active"  # An episode of late, a procedure in use, a censor that was triggered.
    SUMMARIZED = "summarized"  # An episode of which the summary matters.
    ARCHIVED = "archived"  # An episode that is found only on request.
    EFFECTIVE = "effective"  # A procedure that mostly works.
    INEFFECTIVE = "ineffective"  # A procedure that mostly fails, and wants a look.
    CREATED = "created"  # A censor that was never triggered.
    ESCALATED = "escalated"  # A censor that was triggered so often that it blocks.
    RETIRED = "retired"  # A procedure or censor that is out of use.
    RECORDED = "recorded"  # A decision without an outcome.
    PENDING = "pending"  # A decision whose work is done, and whose outcome is awaited.
    REVIEWED = "reviewed"  # A decision with an outcome.


class Sign(StrEnum):
    """What happens to a memory that may move it to another stage."""

    CONFIRM = "confirm"
    PROMOTE = "promote"
    CONTRADICT = "contradict"
    SUPERSEDE = "supersede"
    SUCCEED = "succeed"
    FAIL = "fail"
    TRIGGER = "trigger"
    FALSE_ALARM = "false_alarm"
    AWAIT = "await"
    REVIEW = "review"
    AGE = "age"
    SETTLE = "settle"  # What is counted is looked at once more, as by `maintain`.
    RETIRE = "retire"
    RESTORE = "restore"


class Cause(StrEnum):
    """Why it happened."""

    ASKED = "asked"  # Somebody called for it.
    REPEATED = "repeated"  # It was said again, word for word.
    ALIKE = "alike"  # Something nearly identical was said.
    SUBJECT = "subject"  # Something similar was said of the same subject.
    REVISED = "revised"  # Its next version was stored.
    OUTCOME = "outcome"  # It was told how it turned out.
    DUPLICATE = "duplicate"  # It said the same as another memory.
    UPKEEP = "upkeep"  # Its age or its counts, when they were looked at.


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The stage of a memory, and what is counted of it. None as `stage`: its kind doesn't age.

    `false_alarms` are among the `triggers`. `renewed_at` is when it was last confirmed or restored.
    """

    stage: Stage | None
    confirmations: int = 0
    successes: int = 0
    failures: int = 0
    triggers: int = 0
    false_alarms: int = 0
    renewed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeEvent:
    """One thing that happened in the life of a memory: what, when, by whom and why; no text.

    `version` is that of the memory to which it happened. `other` is the id of the memory that had a part in
    it, None where there is none or it was purged.
    """

    number: int
    memory_id: str
    sign: Sign
    before: Stage
    after: Stage
    cause: Cause
    by: str
    at: datetime
    other: str | None = None
    version: int = 1
