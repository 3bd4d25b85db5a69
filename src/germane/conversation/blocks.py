"""The blocks of a request beside its dialogue, and its window of groups.

A change in a request invalidates the provider's prompt cache from there on. So a block stays in its place as
long as its text is unchanged, and a changed block is placed just before the current group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final

from germane.conversation.layout import AIM, FULL, Arrangement, GroupText, RequestSpec, block_cost
from germane.conversation.views import HEADING, cut_middle
from germane.model.request import ContextBlock, RequestState, ResultLimit

WHOLE: Final = "*"
"""The name of a turn if its whole group is shown."""

MEMORY, RECALLED = "memory", "recalled"
"""The names of blocks; the name of an anchor's block is `anchor` and the anchor's name."""

_PRICE: Final = 0.9
"""The share of a token's price that a prompt cache saves: both providers charge a tenth for cached tokens."""

_SEPARATOR: Final = "\n---\n"
_WANTED: Final = 2 / 3
"""The minimum share of the best score for a turn to change the recalled blocks."""
_SMALLEST: Final = 12
"""The minimum tokens of an excerpt."""


def carried(arranged: Arrangement, state: RequestState | None, spec: RequestSpec) -> tuple[ContextBlock, ...]:
    """The blocks of the previous request whose content wasn't hidden, changed or forgotten.

    A memory block of another filter is excluded.
    """
    anchors = anchor_blocks(spec.anchors)

    def is_current(block: ContextBlock) -> bool:
        if block.before is not None and block.before not in arranged:
            return False
        if block.name == MEMORY:
            return state is not None and state.admits == spec.admits and spec.still_stands(block.shows)
        if block.name == RECALLED:
            shown = (each.rsplit(" ", 2) for each in block.shows)
            return all(
                group in arranged and arranged.group_text(group).digest == digest
                for group, digest, _ in shown
            )
        return replace(block, before=None) in anchors

    return () if state is None else tuple(filter(is_current, state.blocks))


def anchor_blocks(anchors: Mapping[str, str]) -> list[ContextBlock]:
    """Each anchor as a separate block without a place."""
    return [
        ContextBlock(name=f"anchor {name}", text=f"{name.capitalize()}:\n{text}")
        for name, text in anchors.items()
        if text.strip()
    ]


def worth(shown: Mapping[str, float], shown_before: Sequence[str], reread: int, total: int) -> bool:
    """Whether new text is worth the cached prefix that it invalidates.

    It is if the share of the new text's scores that the old text lacks exceeds the share of the request that
    has to be read again, times the saving of the cache.
    """
    mass = sum(shown.values())
    if not shown:
        return False
    known = set(shown_before)
    lacking = [score for name, score in shown.items() if name not in known]
    gain = sum(lacking) / mass if mass > 0 else len(lacking) / len(shown)
    return gain > _PRICE * reread / max(total, 1)


def _matches(
    case: Case, groups: Sequence[str], free_tokens: int, shown: Sequence[ContextBlock] = ()
) -> tuple[ContextBlock, Mapping[str, float]] | None:
    """A block of unshown turns of these groups that match the question, and the score of each turn.

    None if nothing matches or fits into `free_tokens`.
    """
    arranged = case.arranged
    budget = free_tokens - block_cost(ContextBlock(name=RECALLED, text=f"{HEADING}\n"), arranged)
    known = {_turn_of(name) for block in shown for name in block.shows}
    while budget >= _SMALLEST:
        found = case.spec.recall(groups, budget, known)
        if not found.text.strip():
            return None
        scores = {_name_of(arranged, *turn.rsplit(" ", 1)): score for turn, score in found.shows.items()}
        block = ContextBlock(name=RECALLED, text=f"{HEADING}\n{found.text}", shows=tuple(scores))
        over = block_cost(block, arranged) - free_tokens
        if over <= 0:
            return block, scores
        # Token counts of joined texts aren't additive.
        budget -= over
    return None


def _latest(arranged: Arrangement, groups: Sequence[str], least: int, most: int) -> ContextBlock | None:
    """A block of the latest of these groups, with `least` to `most` tokens; None without any."""
    chosen = _Chosen(arranged, used=block_cost(ContextBlock(name=RECALLED, text=HEADING), arranged))
    if least > 0:
        chosen.fill(groups, least, most)
    while chosen:
        block = chosen.block()
        over = block_cost(block, arranged) - most
        if over <= 0:
            return block
        # Token counts of joined texts aren't additive, so the last group is shortened.
        chosen.shorten(over)
    return None


def _name_of(arranged: Arrangement, group: str, turn: str = WHOLE) -> str:
    """The name of a turn or a whole group in a block, which changes with the text of the group."""
    return f"{group} {arranged.group_text(group).digest} {turn}"


def _turn_of(name: str) -> str:
    """The group and the turn of a name."""
    group, _, turn = name.rsplit(" ", 2)
    return f"{group} {turn}"


class _Chosen:
    """The groups of a block as text, some of them cut, and their approximate cost."""

    def __init__(self, arranged: Arrangement, *, used: int) -> None:
        self._arranged, self.used = arranged, used
        self._sources: dict[str, GroupText] = {}
        self._cut: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._sources)

    def take(self, group: str, text: GroupText, tokens: int | None = None) -> None:
        """Add a group, or show more of it; at most `tokens` if given."""
        before = self._cut.pop(group, self._sources[group].tokens) + 2 if group in self._sources else 0
        self._sources[group] = text
        if tokens is not None:
            self._cut[group] = tokens
        self.used += (text.tokens if tokens is None else tokens) + 2 - before

    def fill(self, candidates: Sequence[str], least: int, most: int) -> None:
        """Add the latest missing groups, then their full tool results."""
        for whole in (False, True):
            for group in reversed(candidates):
                # The cost of joined groups is slightly less than the sum.
                if self and self.used - 2 * len(self._sources) >= least:
                    return
                text = self._arranged.group_text(group, whole=whole)
                shown = self._sources.get(group)
                if not text.text or (shown is not None and text.tokens <= shown.tokens):
                    continue
                left = most - self.used + (0 if shown is None else shown.tokens + 2)
                if text.tokens + 2 <= left:
                    self.take(group, text)
                elif left - 2 >= max(_SMALLEST, 0 if shown is None else shown.tokens + 1):
                    self.take(group, text, left - 2)

    def shorten(self, over: int) -> None:
        """Shorten the last group by `over` tokens, or remove it."""
        last = next(reversed(self._sources))
        left = self._cut.get(last, self._sources[last].tokens) - over
        if left >= _SMALLEST:
            self._cut[last] = left
        else:
            del self._sources[last]
            self._cut.pop(last, None)

    def block(self) -> ContextBlock:
        """The block of the groups in the order of the conversation."""
        arranged, texts, shows = self._arranged, [], []
        for group in sorted(self._sources, key=arranged.number):
            text = self._sources[group].text
            if group in self._cut:
                first = arranged.members(group)[0].id
                whole = f'; expand("{first}") returns the whole' if first else ""
                text = cut_middle(
                    text,
                    self._cut[group],
                    lambda gone, whole=whole: f"[{gone:,} characters left out{whole}]",  # type: ignore[misc]  # The default binds it.
                    head=0.5,
                    measure=arranged.counter.count,
                )
            texts.append(text)
            shows.append(_name_of(arranged, group))
        return ContextBlock(name=RECALLED, text=f"{HEADING}\n{_SEPARATOR.join(texts)}", shows=tuple(shows))


# The groups of a request: as far back as they fit, after cutting tool output.

_TRIES: Final = 14
_NEAR: Final = 0.98


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The groups from number `start` on and earlier pinned groups; `forms` has the limits of cut groups."""

    start: int = 0
    forms: Mapping[str, ResultLimit] = field(default_factory=dict)
    pins: tuple[str, ...] = ()

    def groups(self, arranged: Arrangement) -> list[str]:
        """The shown groups in order."""
        before = [group for group in self.pins if arranged.number(group) < self.start]
        return [*before, *arranged.order[self.start :]]

    def tokens(self, arranged: Arrangement) -> int:
        """The cost of the window in tokens."""
        return sum(arranged.rendered(group, self.forms.get(group)).tokens for group in self.groups(arranged))


def forms_of_current(arranged: Arrangement, group: str) -> Iterator[ResultLimit | None]:
    """The forms of the current group from whole to shortest."""
    tiers, results = arranged.tiers, arranged.rendered(group).results
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
            yield ResultLimit(count=count, limit=limit)


def inactive_form(arranged: Arrangement, group: str) -> ResultLimit | None:
    """The form of a past group, with all results cut; None if nothing has to be cut."""
    whole, limit = arranged.rendered(group), arranged.tiers.inactive
    if not whole.results or limit is None:
        return None
    form = ResultLimit(count=whole.results, limit=limit)
    return form if arranged.rendered(group, form).tokens < whole.tokens else None


def window_of(
    arranged: Arrangement, free_tokens: int, *, current: ResultLimit | None, pins: Sequence[str] = ()
) -> tuple[Window, bool]:
    """The longest window within `free_tokens`, and whether it has the whole conversation.

    `current` is the longest allowed form of the current group. If the whole conversation doesn't fit, tool
    results are cut before groups are excluded, the oldest first.
    """
    order = arranged.order
    if not order:
        return Window(), True
    if current is None:
        # Summed from the latest group on, since a long conversation soon exceeds the limit.
        costs = accumulate(arranged.rendered(group).tokens for group in reversed(order))
        if all(cost <= free_tokens for cost in costs):
            return Window(pins=tuple(pins)), True
    forms = _least_forms(arranged, current, pins)
    used = sum(arranged.rendered(group, form).tokens for group, form in forms.items())
    start = len(order) - 1
    for number in range(len(order) - 2, -1, -1):
        group = order[number]
        if group not in forms:
            form = inactive_form(arranged, group)
            price = arranged.rendered(group, form).tokens
            if used + price > free_tokens:
                break
            used += price
            forms[group] = form
        start = number
    cut = {group: form for group, form in forms.items() if form is not None}
    window = Window(start=start, forms=cut, pins=tuple(pins))
    if start == 0:
        window = loosened(arranged, window, free_tokens, used)
    return window, start == 0


def window_ceiling(
    arranged: Arrangement, ceiling: int | None, *, current: ResultLimit | None, pins: Sequence[str] = ()
) -> int | None:
    """The maximum tokens of a window whose history stays under a ceiling; None without a ceiling."""
    if ceiling is None or not arranged.order:
        return None
    forms = _least_forms(arranged, current, pins)
    return ceiling + sum(arranged.rendered(group, form).tokens for group, form in forms.items())


def loosened(arranged: Arrangement, window: Window, free_tokens: int, used: int) -> Window:
    """The window with longer results, the latest first, within `free_tokens`.

    `used` is its present cost. A result that doesn't fit whole is cut to the remaining tokens.
    """
    forms = dict(window.forms)
    for group in reversed(window.groups(arranged)):
        form = forms.get(group)
        if form is None:
            continue
        left = free_tokens - used
        price = arranged.rendered(group, form).tokens
        whole = arranged.rendered(group).tokens
        if whole - price <= left:
            del forms[group]
            used += whole - price
            continue
        looser = _cut_to(arranged, group, form, left + price)
        if looser is not None:
            forms[group] = looser
            used += arranged.rendered(group, looser).tokens - price
    return Window(start=window.start, forms=forms, pins=window.pins)


def _least_forms(
    arranged: Arrangement, current: ResultLimit | None, pins: Sequence[str]
) -> dict[str, ResultLimit | None]:
    """The forms of the current group and of pinned ones in a window that isn't whole.

    The current group has the given form, or the first that costs less than the whole, if any. Its results
    aren't cut below `Tiers.older` for older groups, since the model needs them now.
    """
    last = arranged.order[-1]
    whole = arranged.rendered(last).tokens
    forms = [form for form in forms_of_current(arranged, last) if form and form.limit == arranged.tiers.older]
    shorter = (form for form in forms if arranged.rendered(last, form).tokens < whole)
    pinned = {group: inactive_form(arranged, group) for group in pins if group != last}
    return {last: current or next(shorter, None), **pinned}


def _cut_to(arranged: Arrangement, group: str, form: ResultLimit, free_tokens: int) -> ResultLimit | None:
    """The longest form of a group within `free_tokens` that a few tries find; None if none is longer."""
    shown = arranged.rendered(group)
    low, high = form.limit, arranged.longest_result(group)
    low_cost, high_cost = arranged.rendered(group, form).tokens, shown.tokens
    best: ResultLimit | None = None
    for attempt in range(_TRIES):
        if high - low <= 1 or high_cost <= low_cost:
            break
        # If the cost is linear in the limit the first guess is right; halving bounds the number of tries.
        guess = low + int((high - low) * (free_tokens - low_cost) / (high_cost - low_cost))
        limit = min(max(guess, low + 1), high - 1) if attempt % 2 == 0 else (low + high) // 2
        tried = ResultLimit(count=shown.results, limit=limit)
        cost = arranged.cost_in(group, tried)
        if cost <= free_tokens:
            best, low, low_cost = tried, limit, cost
            if cost >= _NEAR * free_tokens:
                break
        else:
            high, high_cost = limit, cost
    return best


# The recalled blocks beside a window, of a first request and of a following one.


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The constraints of a request: `fixed` are the tokens of its head and of all blocks but recalled ones.

    `share` is the maximum of tokens recalled by relevance, `bound` the maximum cost of the window.
    """

    arranged: Arrangement
    spec: RequestSpec
    fixed: int = 0
    share: int = 0
    bound: int | None = None

    @property
    def full(self) -> int:
        """The tokens of a sufficiently full request."""
        return math.ceil(FULL * self.spec.limit)

    @property
    def is_same_question(self) -> bool:
        """Whether the previous request was for the same group and query."""
        before, now = self.spec.previous, (self.arranged.current, self.spec.query)
        return before is not None and (before.current, before.query) == now

    def free_tokens(self, taken: int) -> int:
        """The maximum cost of the window beside `taken` tokens of other parts."""
        left = self.spec.limit - self.fixed - taken
        return left if self.bound is None else min(left, self.bound)

    def to_fill(self, used: int, recalled_tokens: int) -> tuple[int, int]:
        """The minimum and maximum of tokens that fill a request of `used` tokens, of which `recalled_tokens`
        are recalled.

        The ceiling of recalled tokens is exceeded only for a sufficiently full request.
        """
        limit, ceiling = self.spec.limit, self.spec.shares.recalled.ceiling
        bound = limit if ceiling is None else max(ceiling - recalled_tokens, math.ceil(AIM * limit) - used)
        return min(self.full - used, bound), min(limit - used, bound)

    def tokens(self, window: Window, blocks: Sequence[ContextBlock]) -> int:
        """The cost of the whole request with this window and these blocks."""
        return self.fixed + window.tokens(self.arranged) + cost_of(self.arranged, blocks)


def recalled_anew(case: Case, window: Window, slack: int) -> list[ContextBlock]:
    """The recalled blocks beside a new window, within their share."""
    free = min(case.share, case.spec.limit - case.tokens(window, ()) - slack)
    found = _matches(case, _before(case, window), free)
    return [] if found is None else _with_more(case, [], found[0])


def recalled_on(
    case: Case, window: Window, recalled: list[ContextBlock]
) -> tuple[Window, list[ContextBlock]]:
    """The recalled blocks beside a window that only grew: the old blocks, additional ones, or new ones.

    They are replaced if the unshown matches are worth the cached prefix that this invalidates.
    """
    before = _before(case, window)
    if before and not case.is_same_question:
        recalled = _for_question(case, window, recalled, before)
    total = case.tokens(window, recalled)
    if total < case.full and window.forms:
        free = case.free_tokens(cost_of(case.arranged, recalled))
        window = loosened(case.arranged, window, free, window.tokens(case.arranged))
        total = case.tokens(window, recalled)
    if total < case.full and before:
        least, most = case.to_fill(total, cost_of(case.arranged, recalled))
        unshown = _unshown(before, recalled)
        more = _latest(case.arranged, unshown, least, most)
        recalled = _with_more(case, recalled, more)
    return window, recalled


def spare(case: Case, window: Window, recalled: Sequence[ContextBlock]) -> list[ContextBlock]:
    """A block of the latest unshown groups that fills the request until later turns need the tokens."""
    used = case.tokens(window, recalled)
    wanting = math.ceil(AIM * case.spec.limit) - used
    if wanting <= 0:
        return []
    _, most = case.to_fill(used, cost_of(case.arranged, recalled))
    unshown = _unshown(_before(case, window), recalled)
    block = _latest(case.arranged, unshown, min(wanting, most), most)
    return [] if block is None else [replace(block, before=case.arranged.current, spare=True)]


def cost_of(arranged: Arrangement, blocks: Sequence[ContextBlock]) -> int:
    """The total cost of blocks."""
    return sum(block_cost(block, arranged) for block in blocks)


def _for_question(
    case: Case, window: Window, recalled: list[ContextBlock], before: Sequence[str]
) -> list[ContextBlock]:
    """The recalled blocks for another question than that of the previous request."""
    arranged, used = case.arranged, case.tokens(window, ())
    free, recalled_tokens = min(case.share, case.spec.limit - used), cost_of(arranged, recalled)
    best = _matches(case, before, free)
    if best is None:
        return recalled
    block, scores = best
    least = _WANTED * max(scores.values(), default=0.0)
    wants = {name: score - least for name, score in scores.items() if score > least}
    if not _lacking(wants, recalled):
        return recalled
    more = _matches(case, before, free - recalled_tokens, recalled)
    wider = recalled if more is None else _with_more(case, recalled, more[0])
    lacking = _lacking(wants, wider)
    known = tuple(wants.keys() - lacking.keys())
    if recalled and lacking and worth(wants, known, _after(case, recalled), used + recalled_tokens):
        return [replace(block, before=arranged.current)]
    return wider


def _lacking(wants: Mapping[str, float], blocks: Sequence[ContextBlock]) -> Mapping[str, float]:
    """The wanted turns that no block shows, alone or with their group."""
    shown = groups_in(blocks)
    whole = {group for name, group in shown.items() if name.endswith(f" {WHOLE}")}
    return {
        name: score
        for name, score in wants.items()
        if name not in shown and name.rsplit(" ", 2)[0] not in whole
    }


def _with_more(case: Case, recalled: list[ContextBlock], more: ContextBlock | None) -> list[ContextBlock]:
    return recalled if more is None else [*recalled, replace(more, before=case.arranged.current)]


def _unshown(groups: Sequence[str], blocks: Sequence[ContextBlock]) -> list[str]:
    """The groups that no block shows whole; groups that no block shows at all come last."""
    shown = groups_in(blocks)
    whole = {group for name, group in shown.items() if name.endswith(f" {WHOLE}")}
    partly = set(shown.values())
    return sorted((group for group in groups if group not in whole), key=lambda group: group not in partly)


def groups_in(blocks: Sequence[ContextBlock]) -> dict[str, str]:
    """The recalled groups by the names of their turns in the blocks."""
    return {name: name.rsplit(" ", 2)[0] for block in blocks for name in block.shows}


def _before(case: Case, window: Window) -> list[str]:
    """The groups before the window, without pinned ones."""
    pins = set(window.pins)
    return [group for group in case.arranged.order[: window.start] if group not in pins]


def _after(case: Case, blocks: Sequence[ContextBlock]) -> int:
    """The tokens of the request from the first of the blocks on."""
    arranged = case.arranged
    places = (arranged.number(block.before) for block in blocks if block.before is not None)
    groups = arranged.order[min(places, default=0) :]
    return cost_of(arranged, blocks) + sum(arranged.rendered(group).tokens for group in groups)
