"""Groups of a conversation: windows and ranked ones by the numbers of their design, and the anchored view."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from inline_snapshot import snapshot

from conversations import answer, call, exchange, numbered, prompt, result, system, word_cost
from germane import Message, Reason
from germane.conversation import DerivedQuery, LeftOut, MessageRole, OpaquePart, RecallLimits, TextPart, Tiers
from germane.conversation.formats import write_messages
from germane.conversation.groups import (
    RECENCY,
    current_of,
    derive_query,
    fused,
    grouped,
    groups_of,
    opens_group,
    prompt_of,
    ranked,
    window,
)
from germane.conversation.views import anchored, section_of
from germane.errors import BudgetTooSmall, InvalidInput
from germane.model.conversation import GroupScores
from germane.model.text import fenced

# Windows and ranked groups by the numbers of the design that they come from.

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
    ("groups", "selected"),
    [(0, "abcde"), (-1, ""), (1, "e"), (2, "de"), (5, "abcde"), (9, "abcde")],
)
def test_the_last_groups_and_what_always_remains(groups: int, selected: str) -> None:
    found = window(MESSAGES, groups=groups)
    assert found.groups == tuple(selected)
    assert found.messages == tuple(
        each for each in MESSAGES if each.group is None or each.group in found.groups
    )
    assert [one.group for one in found.left_out] == [name for name in "abcde" if name not in selected]
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


# The anchored view: a window without holes, and what is recalled stands apart.

EXCHANGES = numbered(system("Be brief."), *(exchange(name) for name in "abcdef"))
SCORES = GroupScores(scores={"a": 900, "b": 60, "c": 400, "e": 800, "f": 950}, bound=1000)


def test_the_window_is_whole_and_recall_stands_beside_it() -> None:
    found = anchored(
        EXCHANGES, SCORES, groups=2, anchors={"state": "Step 2.", "scratchpad": "", "plan": "a, b"}
    )
    assert found.window.groups == ("e", "f")
    assert [group.id for group in found.recalled] == ["a", "c"]
    assert found.left_out == (
        LeftOut(group="b", reason=Reason.NOT_RELEVANT, score=60),
        LeftOut(group="d", reason=Reason.LIMIT),
    )
    assert found.beside is not None
    assert [part.text for part in found.beside.parts if isinstance(part, TextPart)] == snapshot(
        [
            """\
<recalled-from-memory>
State:
Step 2.
</recalled-from-memory>\
""",
            """\
<recalled-from-memory>
Plan:
a, b
</recalled-from-memory>\
""",
            """\
<recalled-from-memory>
Recalled from earlier in this conversation:
--- from message m2
user: ask a
assistant: say a
--- from message m6
user: ask c
assistant: say c
</recalled-from-memory>\
""",
        ]
    )
    assert found.beside.own_text == ""
    assert [each.text[:6] for each in found.messages] == [
        "Be bri",
        "ask e",
        "say e",
        "<recal",
        "ask f",
        "say f",
    ]
    assert write_messages(found.messages, "anthropic").system == "Be brief."


def test_nothing_to_recall_adds_nothing() -> None:
    found = anchored(EXCHANGES, GroupScores(), groups=2)
    assert (found.beside, found.section, found.recalled) == (None, "", ())
    assert found.messages == found.window.messages
    assert anchored(EXCHANGES, SCORES, groups=0).recalled == ()
    assert anchored((), GroupScores()).messages == ()
    assert anchored(EXCHANGES, SCORES, groups=2, recall=RecallLimits(most=0)).recalled == ()


def test_the_current_group_is_always_shown() -> None:
    found = anchored(EXCHANGES, SCORES, groups=-1, recall=RecallLimits(most=1))
    assert (found.window.groups, [group.id for group in found.recalled]) == (("f",), ["a"])
    assert {one.group: one.reason for one in found.left_out} == {
        "b": Reason.NOT_RELEVANT,
        "c": Reason.LIMIT,
        "d": Reason.LIMIT,
        "e": Reason.LIMIT,
    }


def test_window_and_recall_share_a_budget() -> None:
    total = anchored(EXCHANGES, SCORES, groups=2, cost=word_cost).tokens
    for budget in range(10, total + 5):
        found = anchored(
            EXCHANGES, SCORES, groups=2, budget=budget, cost=word_cost, recall=RecallLimits(share=0.6)
        )
        assert sum(map(word_cost, found.messages)) == found.tokens <= budget
        assert found.window.groups[-1] == "f"
        named = [*found.window.groups, *(group.id for group in found.recalled)]
        assert sorted([*named, *(one.group for one in found.left_out)]) == list("abcdef")
    found = anchored(
        EXCHANGES, SCORES, groups=2, budget=total, cost=word_cost, recall=RecallLimits(share=0.6)
    )
    assert (found.window.groups, [group.id for group in found.recalled]) == (("e", "f"), ["a", "c"])


def test_what_recall_leaves_goes_to_the_window() -> None:
    half = anchored(
        EXCHANGES, GroupScores(), groups=0, budget=24, cost=word_cost, recall=RecallLimits(share=0.5)
    )
    assert half.window.groups == ("d", "e", "f")


def test_anchors_are_required_and_named_when_they_do_not_fit() -> None:
    with pytest.raises(BudgetTooSmall) as caught:
        anchored(EXCHANGES, SCORES, budget=12, cost=word_cost, anchors={"state": "one two three"})
    assert caught.value.required == ("system and ungrouped messages", "group f", "anchor state")
    assert (caught.value.budget, caught.value.needed) == (12, 3 + 6 + 1 + 6)
    with pytest.raises(InvalidInput):
        RecallLimits(least=2.0)


def test_a_recalled_group_reads_as_a_past_one() -> None:
    messages = numbered(
        prompt("Read a.txt\n# twice", group="a"),
        call("c1", group="a"),
        result("c1", "x" * 1000, group="a"),
        answer("", group="a"),
    )
    assert section_of(groups_of(messages), tiers=Tiers(inactive=100)) == (
        "Recalled from earlier in this conversation:\n"
        "--- from message m1\n"
        "user: Read a.txt\n"
        "  # twice\n"
        "assistant: [called look]\n"
        f"tool: [look returned] {'x' * 7}\n"
        '  [961 characters left out; expand("m3") returns the whole]\n'
        f"  {'x' * 32}"
    )
    assert section_of(()) == ""


COMMON = {"what", "the", "about", "did", "we", "go", "on", "is", "it", "and", "for", "to", "why", "who"}
RARITY = {"redis": 9.0, "latency": 8.0, "price": 6.0, "lisbon": 9.5, "meeting": 4.0, "good": 2.0, "kiwi": 9.0}


def terms_of(text: str) -> tuple[str, ...]:
    words = [word.strip("?!.,:\"'").lower() for word in text.split()]
    return tuple(dict.fromkeys(word for word in words if word and word not in COMMON))


def rarity(terms: Sequence[str]) -> list[float]:
    return [RARITY.get(term, 6.5) for term in terms]


def derived(*messages: Message | list[Message]) -> DerivedQuery:
    return derive_query(numbered(*messages), terms_of=terms_of, rarity=rarity)


def test_a_prompt_that_says_enough_stands_alone() -> None:
    found = derived(exchange("a", "Redis latency"), prompt("price of kiwi in lisbon"))
    assert found == DerivedQuery(
        prompt="price of kiwi in lisbon", own=("price", "of", "kiwi", "in", "lisbon"), carried=()
    )
    assert derive_query((), terms_of=terms_of, rarity=rarity) == DerivedQuery()


def test_a_vague_prompt_carries_the_topic() -> None:
    found = derived(
        prompt("Redis latency, meeting good"), answer("Redis is slow in Lisbon."), prompt("And the price?")
    )
    assert found.own == ("price",)
    assert found.carried == ("redis", "lisbon", "latency", "in", "slow")
    assert found.terms[0] == "price"


def test_the_topic_is_carried_across_follow_ups() -> None:
    found = derived(
        prompt("kiwi"),
        prompt("redis latency price lisbon"),
        answer("good"),
        prompt("go on"),
        answer("meeting"),
        prompt("why?"),
    )
    assert found.own == ()
    # Nothing from before the prompt that stood on its own.
    assert found.carried == ("lisbon", "redis", "latency", "price")


def test_names_weigh_more_and_memory_nothing() -> None:
    recalled = Message(
        role=MessageRole.USER, parts=(TextPart(text=fenced("kiwi"), recalled=True),), group="m1"
    )
    found = derived(prompt("we met Meeting people, see src/app.py"), recalled, answer("good"), prompt("who?"))
    assert found.carried[0] == "src/app.py"
    assert "meeting" in found.carried
    assert "kiwi" not in found.carried
    assert prompt_of(numbered(recalled, prompt("x"))) == "x"
