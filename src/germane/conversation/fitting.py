"""Which groups a request shows, and in which form: as far back as there is room, tool output cut first.

Level: ranking (imports model and conversation). Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from germane.conversation.arranging import Arrangement
from germane.conversation.tiers import Tiers
from germane.model.request import Form

__all__ = ["Window", "forms_of_current", "inactive_form", "loosened", "room_under", "window_of"]

_TRIES: Final = 14
_NEAR: Final = 0.98


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The groups from number `start` on, and the pinned ones before it; `forms` of those that are cut."""

    start: int = 0
    forms: Mapping[str, Form] = field(default_factory=dict)
    pins: tuple[str, ...] = ()

    def groups(self, arranged: Arrangement) -> list[str]:
        """The groups that it shows, in order."""
        before = [group for group in self.pins if arranged.number(group) < self.start]
        return [*before, *arranged.order[self.start :]]

    def tokens(self, arranged: Arrangement) -> int:
        """What it costs."""
        return sum(arranged.shown(group, self.forms.get(group)).tokens for group in self.groups(arranged))


def forms_of_current(arranged: Arrangement, group: str) -> Iterator[Form | None]:
    """The forms of the group that is being formed, from whole to shortest, each shorter than the last."""
    tiers, results = arranged.tiers, arranged.shown(group).results
    yield None
    if not results:
        return
    for count, limit in (
        (max(0, results - tiers.recent), tiers.older),
        (results, tiers.older),
        (results, tiers.inactive),
        (results, 0),
    ):
        if count and limit is not None:
            yield Form(count=count, limit=limit)


def inactive_form(arranged: Arrangement, group: str, tiers: Tiers) -> Form | None:
    """The form of a group that is over, where all is cut; whole where it has no results or nothing is cut."""
    whole = arranged.shown(group)
    if not whole.results or tiers.inactive is None:
        return None
    form = Form(count=whole.results, limit=tiers.inactive)
    return form if arranged.shown(group, form).tokens < whole.tokens else None


def window_of(
    arranged: Arrangement, room: int, *, current: Form | None, pins: Sequence[str] = ()
) -> tuple[Window, bool]:
    """The window that goes back furthest within `room` tokens, and whether it holds the whole conversation.

    `current` is the form that the current group has at least. What fits whole is whole; else tool
    results are cut before groups are left out, the oldest first.
    """
    order, tiers = arranged.order, arranged.tiers
    if not order:
        return Window(), True
    last = order[-1]
    if current is None and _all_whole(arranged, room):
        return Window(pins=tuple(pins)), True
    forms = {last: current or _shorter(arranged, last)}
    pinned = set(pins) - {last}
    for group in pinned:
        forms[group] = inactive_form(arranged, group, tiers)
    used = sum(arranged.shown(group, form).tokens for group, form in forms.items())
    start = len(order) - 1
    for number in range(len(order) - 2, -1, -1):
        group = order[number]
        if group not in pinned:
            form = inactive_form(arranged, group, tiers)
            price = arranged.shown(group, form).tokens
            if used + price > room:
                break
            used += price
            forms[group] = form
        start = number
    cut = {group: form for group, form in forms.items() if form is not None}
    window = Window(start=start, forms=cut, pins=tuple(pins))
    if start == 0:
        window = loosened(arranged, window, room, used)
    return window, start == 0


def room_under(
    arranged: Arrangement, ceiling: int | None, *, current: Form | None, pins: Sequence[str] = ()
) -> int | None:
    """What a window may cost at most for its history to stay under a ceiling; None without one."""
    if ceiling is None or not arranged.order:
        return None
    last = arranged.order[-1]
    forms = {group: inactive_form(arranged, group, arranged.tiers) for group in pins}
    forms[last] = current or _shorter(arranged, last)
    return ceiling + sum(arranged.shown(group, form).tokens for group, form in forms.items())


def loosened(arranged: Arrangement, window: Window, room: int, used: int) -> Window:
    """The window with its results less cut, the latest first, as far as `room` tokens go.

    `used` is what it costs as it is. One that can't be whole is cut to what is left.
    """
    forms = dict(window.forms)
    for group in reversed(window.groups(arranged)):
        form = forms.get(group)
        if form is None:
            continue
        left = room - used
        price = arranged.shown(group, form).tokens
        whole = arranged.shown(group).tokens
        if whole - price <= left:
            del forms[group]
            used += whole - price
            continue
        looser = _cut_to(arranged, group, form, left + price)
        if looser is not None:
            forms[group] = looser
            used += arranged.shown(group, looser).tokens - price
    return Window(start=window.start, forms=forms, pins=window.pins)


def _shorter(arranged: Arrangement, group: str) -> Form | None:
    """The first form of the current group that costs less than the whole; None where none does."""
    whole = arranged.shown(group).tokens
    forms = (form for form in forms_of_current(arranged, group) if form is not None)
    return next((form for form in forms if arranged.shown(group, form).tokens < whole), None)


def _all_whole(arranged: Arrangement, room: int) -> bool:
    used = 0
    for group in reversed(arranged.order):
        used += arranged.shown(group).tokens
        if used > room:
            return False
    return True


def _cut_to(arranged: Arrangement, group: str, form: Form, room: int) -> Form | None:
    """The loosest form of a group within `room` tokens that a few tries find; None if none is looser."""
    shown = arranged.shown(group)
    low, high = form.limit, arranged.longest_result(group)
    low_cost, high_cost = arranged.shown(group, form).tokens, shown.tokens
    best: Form | None = None
    for attempt in range(_TRIES):
        if high - low <= 1 or high_cost <= low_cost:
            break
        # Where costs grow evenly with the limit the first guess is right; halving keeps it from creeping.
        guess = low + int((high - low) * (room - low_cost) / (high_cost - low_cost))
        limit = min(max(guess, low + 1), high - 1) if attempt % 2 == 0 else (low + high) // 2
        tried = Form(count=shown.results, limit=limit)
        cost = arranged.cost_in(group, tried)
        if cost <= room:
            best, low, low_cost = tried, limit, cost
            if cost >= _NEAR * room:
                break
        else:
            high, high_cost = limit, cost
    return best
