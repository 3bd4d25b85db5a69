"""What holds for every conversation, whichever way it is selected from."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from conversations import conversations, word_cost
from germane import Message
from germane.conversation import MessageRole, Selection, Tiers
from germane.conversation.groups import grouped, groups_of, ranked, window
from germane.conversation.views import anchored, cut_middle, tiered
from germane.errors import BudgetTooSmall
from germane.model.conversation import GroupScores

SCORES = st.dictionaries(st.sampled_from(["a", "b", "c", "m1", "m2", "m3", "m5", "m7"]), st.integers(1, 9))
SIZES = st.integers(-1, 6)
BUDGETS = st.none() | st.integers(0, 120)
Messages = tuple[Message, ...]


def check(messages: Messages, found: Selection, *, budget: int | None, groups: set[str]) -> None:
    """What every selection promises."""
    assert list(found.messages) == sorted(found.messages, key=lambda each: each.seq)
    assert not any(message.hidden for message in found.messages)
    always = [m for m in messages if not m.hidden and (m.group is None or m.role is MessageRole.SYSTEM)]
    assert all(message in found.messages for message in always)
    for group in groups_of(messages):
        inside = [message in found.messages for message in group]
        assert all(inside) if group.id in groups else not any(inside)
    if budget is not None:
        assert sum(map(word_cost, found.messages)) <= budget


def tried(select: Callable[[], Selection], messages: Messages, budget: int | None) -> Selection | None:
    """The selection, or None where what is required is too much."""
    try:
        return select()
    except BudgetTooSmall as error:
        assert budget is not None
        assert error.needed > budget
        assert error.needed <= sum(map(word_cost, messages))
        return None


@given(conversations(), SIZES, BUDGETS)
def test_windows(messages: Messages, size: int, budget: int | None) -> None:
    found = tried(lambda: window(messages, groups=size, budget=budget, cost=word_cost), messages, budget)
    if found is None:
        return
    check(messages, found, budget=budget, groups=set(found.groups))
    opened = [group.id for group in groups_of(messages)]
    # The window is the end of the conversation, and each group stands once.
    assert list(found.groups) == opened[len(opened) - len(found.groups) :]
    assert [*(one.group for one in found.left_out), *found.groups] == opened
    if size > 0:
        assert len(found.groups) <= size
    if budget is None:
        assert len(found.groups) == (len(opened) if size == 0 else min(len(opened), max(size, 0)))


@given(
    conversations(), st.none() | SCORES, SIZES, BUDGETS, st.sampled_from(["all", "matched"]), st.booleans()
)
def test_ranked_groups(
    messages: Messages,
    scores: dict[str, int] | None,
    size: int,
    budget: int | None,
    scope: str,
    counts: bool,
) -> None:
    def select() -> Selection:
        return ranked(
            messages,
            scores,
            groups=size,
            budget=budget,
            cost=word_cost,
            recency_scope=scope,  # type: ignore[arg-type]  # One of two words.
            counts_current=counts,
        )

    found = tried(select, messages, budget)
    if found is None:
        return
    check(messages, found, budget=budget, groups=set(found.groups))
    opened = [group.id for group in groups_of(messages)]
    assert sorted([*found.groups, *(one.group for one in found.left_out)]) == sorted(opened)
    assert opened[-1:] == [name for name in opened[-1:] if name in found.groups]
    if size > 0:
        assert len(found.groups) <= size + (not counts)


@given(conversations(), SCORES, SIZES, BUDGETS)
def test_anchored_views(messages: Messages, scores: dict[str, int], size: int, budget: int | None) -> None:
    def select() -> Selection:
        found = anchored(
            messages,
            GroupScores(scores=scores, bound=5),
            groups=size,
            budget=budget,
            cost=word_cost,
            anchors={"state": "x"},
        )
        shown = [*found.window.groups, *(group.id for group in found.recalled)]
        opened = [group.id for group in groups_of(messages)]
        assert sorted([*shown, *(one.group for one in found.left_out)]) == sorted(opened)
        assert sum(map(word_cost, found.messages)) == found.tokens
        assert [m for m in found.messages if m.seq] == list(found.window.messages)
        if budget is not None:
            assert found.tokens <= budget
        return found.window

    try:
        found = select()
    except BudgetTooSmall:
        return
    check(messages, found, budget=budget, groups=set(found.groups))


@given(conversations())
def test_grouping_again_changes_nothing(messages: Messages) -> None:
    assert grouped(messages) == messages
    assert [m for group in groups_of(messages) for m in group if m.hidden] == []


@given(conversations(), st.sampled_from(["a", "m1", None]), st.integers(0, 40), st.integers(0, 3))
def test_tiers_change_results_alone_and_never_make_them_longer(
    messages: Messages, active: str | None, limit: int, recent: int
) -> None:
    cut = tiered(messages, active=active, tiers=Tiers(recent=recent, older=2 * limit, inactive=limit))
    assert len(cut) == len(messages)
    for before, after in zip(messages, cut, strict=True):
        assert before.evolve(parts=()) == after.evolve(parts=())
        for one, two in zip(before.parts, after.parts, strict=True):
            if one != two:
                assert one in before.results
        for old, new in zip(before.results, after.results, strict=True):
            assert len(new.text) <= len(old.text)


@given(st.text(max_size=200), st.integers(0, 120), st.floats(0, 1))
def test_a_cut_keeps_both_ends(text: str, limit: int, head: float) -> None:
    cut = cut_middle(text, limit, lambda gone: f"[{gone}]", head=head)
    assert len(cut) <= max(min(limit, len(text)), min(1, len(text)))
    if cut != text and "\n[" in cut:
        start, _, rest = cut.rpartition("\n[")
        gone, _, end = rest.partition("]\n")
        if gone.isdecimal() and len(start) + int(gone) + len(end) == len(text):
            assert text.startswith(start)
            assert text.endswith(end)
