"""Windows and ranked groups by the numbers of the design that they come from."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest

from conversations import answer, call, exchange, numbered, prompt, result, system, word_cost
from germane import Message, Reason
from germane.conversation import LeftOut, MessageRole, OpaquePart, TextPart
from germane.conversation.groups import (
    RECENCY,
    current_of,
    fused,
    grouped,
    groups_of,
    opens_group,
    ranked,
    window,
)
from germane.errors import BudgetTooSmall, InvalidInput
from germane.model.text import fenced

MESSAGES = numbered(system("Be brief."), answer("Hello."), *(exchange(name) for name in "abcde"))


def names(messages: tuple[Message, ...]) -> list[str | None]:
    return list(dict.fromkeys(message.group for message in messages))


def test_a_prompt_opens_a_group_and_the_rest_joins_it() -> None:
    messages = numbered(
        system("s"),
        answer("hello"),
        prompt("one"),
        call("c1", "c2"),
        result("c1"),
        prompt("two"),
        result("c2"),
        answer("done"),
        system("late"),
    )
    assert [each.group for each in messages] == [None, None, "m3", "m3", "m3", "m6", "m3", "m6", None]
    assert current_of(messages) == "m6"
    assert [[each.seq for each in group] for group in groups_of(messages)] == [[3, 4, 5, 7], [6, 8]]


def test_a_group_that_is_given_stays() -> None:
    messages = numbered(
        prompt("one", group="x"), answer("yes"), prompt("two"), answer("no", group="x"), answer("?")
    )
    assert [each.group for each in messages] == ["x", "x", "m3", "x", "x"]
    assert [each.group for each in grouped([prompt("a", seq=7), answer("b", seq=8)])] == ["#7", "#7"]


def test_what_came_from_memory_is_no_prompt() -> None:
    recalled = TextPart(text=fenced("The cache is Redis."), recalled=True)
    assert not opens_group(Message(role=MessageRole.USER, parts=(recalled,)))
    assert opens_group(Message(role=MessageRole.USER, parts=(recalled, TextPart(text="And now?"))))
    assert opens_group(Message(role=MessageRole.USER, parts=(OpaquePart(json="{}", form="image"),)))
    assert opens_group(prompt(""))
    assert not opens_group(answer("x"))


@pytest.mark.parametrize(
    ("groups", "kept"),
    [(0, "abcde"), (-1, ""), (1, "e"), (2, "de"), (5, "abcde"), (9, "abcde")],
)
def test_the_last_groups_and_what_is_always_kept(groups: int, kept: str) -> None:
    found = window(MESSAGES, groups=groups)
    assert found.groups == tuple(kept)
    assert found.messages == tuple(
        each for each in MESSAGES if each.group is None or each.group in found.groups
    )
    assert [one.group for one in found.left_out] == [name for name in "abcde" if name not in kept]
    assert {one.reason for one in found.left_out} <= {Reason.LIMIT}


def test_a_budget_ends_the_window_where_a_group_does_not_fit() -> None:
    messages = numbered(system("s"), exchange("a"), exchange("b", "long " * 50), exchange("c"), exchange("d"))
    # 2 for the system, 6 for each group but the long one, which has 54.
    assert window(messages, cost=word_cost).tokens == 2 + 3 * 6 + 54
    found = window(messages, budget=20, cost=word_cost)
    assert (found.groups, found.tokens) == (("c", "d"), 14)
    assert found.left_out == (
        LeftOut(group="a", reason=Reason.STOPPED),
        LeftOut(group="b", reason=Reason.OVER_BUDGET, tokens=54, short_by=48),
    )
    assert window(messages, groups=1, budget=20, cost=word_cost).groups == ("d",)
    assert window(messages, budget=8, cost=word_cost).groups == ("d",)


def test_what_must_be_in_and_does_not_fit_is_refused() -> None:
    assert window(MESSAGES, budget=11, cost=word_cost).tokens == 11
    assert ranked(MESSAGES, {"a": 1.0}, budget=11, cost=word_cost).tokens == 11
    for select in (partial(window, MESSAGES), partial(ranked, MESSAGES, {"a": 1.0})):
        with pytest.raises(BudgetTooSmall) as caught:
            select(budget=10, cost=word_cost)
        assert (caught.value.needed, caught.value.shortfall) == (11, 1)
        assert caught.value.required == ("system and ungrouped messages", "group e")


@pytest.mark.parametrize(
    "options",
    [{"groups": -2}, {"groups": True}, {"budget": -1, "cost": word_cost}, {"budget": 5}],
)
def test_sizes_that_cannot_be_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        window(MESSAGES, **options)  # type: ignore[arg-type]  # Wrong on purpose.
    with pytest.raises(InvalidInput):
        ranked(MESSAGES, {}, **options)  # type: ignore[arg-type]  # Wrong on purpose.


def test_a_hidden_group_is_in_no_selection() -> None:
    messages = tuple(each.evolve(hidden=each.group in ("c", "e")) for each in MESSAGES)
    assert window(messages).groups == ("a", "b", "d")
    assert current_of(messages) == "d"
    assert ranked(messages, {"c": 9.0, "e": 9.0, "a": 1.0}, groups=2).groups == ("a", "d")


def test_fusion_by_the_numbers() -> None:
    # The lists A, B, C and C, B, A.
    scores = fused(["A", "B", "C"], {"A": 3.0, "B": 2.0, "C": 1.0})
    assert scores == pytest.approx(
        {"A": 1.5 / 61 + 1 / 63, "B": 2.5 / 62, "C": 1.5 / 63 + 1 / 61}, rel=0, abs=1e-12
    )
    assert [scores[name] for name in "ABC"] == pytest.approx([0.040463, 0.040323, 0.040203], abs=1e-6)


def test_a_group_counts_once_in_each_ranking() -> None:
    # Counted twice among the matches, it would have 1.5/61 + 1.5/62 + 1/62 = 0.064913.
    scores = fused(["g1", "g2", "g1"], {"g1": 2.0})
    assert scores["g1"] == pytest.approx(1.5 / 61 + 1 / 61, abs=1e-12)
    assert scores["g2"] == pytest.approx(1 / 62, abs=1e-12)
    assert scores["g1"] < 0.0649


def test_recency_of_what_matches_alone_leaves_places_free() -> None:
    exact = ranked(MESSAGES, {"a": 1.0}, groups=3, recency_scope="matched", counts_current=False)
    assert exact.groups == ("a", "e")
    assert exact.scores == pytest.approx({"a": 2.5 / 61}, abs=1e-12)
    assert {one.group: one.reason for one in exact.left_out} == dict.fromkeys("bcd", Reason.NOT_RELEVANT)
    better = ranked(MESSAGES, {"a": 1.0}, groups=3, counts_current=False)
    assert better.groups == ("a", "c", "d", "e")
    assert ranked(MESSAGES, {"a": 1.0}, groups=3).groups == ("a", "d", "e")


def test_weights_and_depth_are_the_callers() -> None:
    by_words = ranked(MESSAGES, {"a": 9.0, "b": 1.0}, groups=2, weights=(1.0, 0.0))
    assert by_words.groups == ("a", "e")
    assert ranked(MESSAGES, {"a": 9.0, "b": 1.0}, groups=2, weights=(0.0, 1.0)).groups == ("d", "e")
    assert fused(["a", "b", "c"], {"a": 2.0, "b": 1.0}, depth=1) == {"a": 1.5 / 61, "c": 1 / 61}
    wrong: dict[str, Any]
    for wrong in ({"depth": 0}, {"weights": (1.0,)}, {"weights": (-1.0, 1.0)}, {"weights": (math.nan, 1.0)}):
        with pytest.raises(InvalidInput):
            ranked(MESSAGES, {}, **wrong)


@pytest.mark.parametrize("recency_scope", ["all", "matched"])
def test_without_a_match_recency_ranks_alone(recency_scope: str) -> None:
    found = ranked(MESSAGES, {}, groups=3, recency_scope=recency_scope)  # type: ignore[arg-type]  # One of two words.
    assert found.groups == ("c", "d", "e")
    assert found.scores == pytest.approx({"d": 1 / 61, "c": 1 / 62, "b": 1 / 63, "a": 1 / 64}, abs=1e-12)
    assert found.notes == ()


def test_without_a_match_std_slop_ranks_the_current_group_as_well() -> None:
    std_slop: dict[str, Any] = {"recency_scope": "matched", "counts_current": False, "depth": 20}
    found = ranked(MESSAGES, {}, groups=2, **std_slop)
    assert found.groups == ("d", "e")
    assert found.scores == pytest.approx(
        {"e": 1 / 61, "d": 1 / 62, "c": 1 / 63, "b": 1 / 64, "a": 1 / 65}, abs=1e-12
    )
    # The prompt's own words in its own group are no match.
    assert ranked(MESSAGES, {"e": 9.0}, groups=2, **std_slop).groups == ("d", "e")
    assert ranked(MESSAGES, {"a": 9.0}, groups=2, **std_slop).groups == ("a", "e")
    assert (
        ranked(MESSAGES, {}, groups=1, **std_slop).groups
        == ranked(MESSAGES, {}, groups=-1, **std_slop).groups
        == ("e",)
    )
    assert ranked(MESSAGES, {}, **std_slop).groups == tuple("abcde")


def test_a_prompt_that_says_nothing_falls_to_recency() -> None:
    found = ranked(MESSAGES, None, groups=2)
    assert (found.groups, found.notes, dict(found.scores)) == (("d", "e"), (RECENCY,), {})
    assert ranked(MESSAGES, None, groups=2, counts_current=False).groups == ("d", "e")
    assert ranked(MESSAGES, None).groups == tuple("abcde")
    assert ranked(MESSAGES, None, groups=-1).groups == ("e",)


def test_the_current_group_is_no_candidate_and_always_in() -> None:
    found = ranked(MESSAGES, {"e": 99.0, "a": 1.0}, groups=2)
    assert found.groups == ("a", "e")
    assert "e" not in found.scores
    assert ranked(MESSAGES, {"a": 1.0}, groups=-1).groups == ("e",)
    assert ranked(MESSAGES, {"a": 1.0}, groups=1).groups == ("e",)
    assert ranked(MESSAGES, {"a": 1.0}).groups == tuple("abcde")


def test_of_equal_matches_the_later_ranks_first() -> None:
    found = ranked(MESSAGES, {"a": 1.0, "c": 1.0}, groups=2, recency_scope="matched")
    assert found.groups == ("c", "e")
    assert found.left_out[0] == LeftOut(group="a", reason=Reason.LIMIT, score=found.scores["a"])


def test_a_ranked_group_that_does_not_fit_is_passed_over() -> None:
    messages = numbered(exchange("a", "long " * 50), exchange("b"), exchange("c"))
    found = ranked(messages, {"a": 9.0, "b": 1.0}, budget=12, cost=word_cost)
    assert (found.groups, found.tokens) == (("b", "c"), 12)
    # The best match is judged first, when only the current group is in.
    assert found.left_out == (
        LeftOut(
            group="a", reason=Reason.OVER_BUDGET, tokens=54, short_by=6 + 54 - 12, score=found.scores["a"]
        ),
    )


def test_only_the_system_messages_of_another_group_stay() -> None:
    messages = numbered(
        prompt("one", group="a"), system("mind this", group="a"), answer("ok", group="a"), exchange("b")
    )
    for found in (window(messages, groups=1), ranked(messages, {}, groups=1)):
        assert [each.text for each in found.messages] == ["mind this", "ask b", "say b"]
        assert names(found.messages) == ["a", "b"]
        assert found.groups == ("b",)


def test_an_unknown_scope_of_recency_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'all' or 'matched'"):
        ranked(MESSAGES, {}, recency_scope="some")  # type: ignore[arg-type]  # Wrong on purpose.
