"""What is counted in the life of a memory: by the signs of it, and by the outcomes that speak of it.

Level: model (imports stages). Pure: `germane.lifecycle` says what follows from the counts.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from germane.model.stage import Sign, Standing

__all__ = ["counted", "sign_of_outcome", "uncounted"]


def counted(standing: Standing, sign: Sign, *, at: datetime) -> Standing:
    """The counts after a sign."""
    if sign is Sign.CONFIRM:
        return replace(standing, confirmations=standing.confirmations + 1, renewed_at=at)
    if sign is Sign.SUCCEED:
        return replace(standing, successes=standing.successes + 1)
    if sign is Sign.FAIL:
        return replace(standing, failures=standing.failures + 1)
    if sign in (Sign.TRIGGER, Sign.FALSE_ALARM):
        false = int(sign is Sign.FALSE_ALARM)
        return replace(standing, triggers=standing.triggers + 1, false_alarms=standing.false_alarms + false)
    if sign is Sign.RESTORE:
        # What was counted against a censor was answered by restoring it.
        return replace(standing, triggers=0, false_alarms=0, renewed_at=at)
    return standing


def uncounted(standing: Standing, sign: Sign | None) -> Standing:
    """The counts without an outcome that was counted before, never below 0."""
    if sign is Sign.SUCCEED:
        return replace(standing, successes=max(0, standing.successes - 1))
    if sign is Sign.FAIL:
        return replace(standing, failures=max(0, standing.failures - 1))
    return standing


def sign_of_outcome(lifecycle: str, *, worth: float, weight: float) -> Sign | None:
    """What an attested outcome counts in the life of the memory that it speaks of; None for nothing.

    A procedure counts a whole success or failure (worth 1 or 0) that it was named with (weight 1). One
    that was merely shown may not have been followed.
    """
    if lifecycle != "procedure" or weight < 1.0:
        return None
    return {1.0: Sign.SUCCEED, 0.0: Sign.FAIL}.get(worth)
