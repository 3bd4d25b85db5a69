"""The anchored view: a window without holes, and what is recalled stands apart."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from inline_snapshot import snapshot

from conversations import answer, call, exchange, numbered, prompt, result, system, word_cost
from germane import Message, Reason
from germane.conversation import DerivedQuery, LeftOut, MessageRole, RecallLimits, TextPart, Tiers
from germane.conversation.formats import write_messages
from germane.conversation.groups import derive_query, groups_of, prompt_of
from germane.conversation.views import anchored, section_of
from germane.errors import BudgetTooSmall, InvalidInput
from germane.model.conversation import GroupScores
from germane.model.text import fenced

MESSAGES = numbered(system("Be brief."), *(exchange(name) for name in "abcdef"))
SCORES = GroupScores(scores={"a": 900, "b": 60, "c": 400, "e": 800, "f": 950}, bound=1000)


def test_the_window_is_whole_and_recall_stands_beside_it() -> None:
    found = anchored(
        MESSAGES, SCORES, groups=2, anchors={"state": "Step 2.", "scratchpad": "", "plan": "a, b"}
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
    found = anchored(MESSAGES, GroupScores(), groups=2)
    assert (found.beside, found.section, found.recalled) == (None, "", ())
    assert found.messages == found.window.messages
    assert anchored(MESSAGES, SCORES, groups=0).recalled == ()
    assert anchored((), GroupScores()).messages == ()
    assert anchored(MESSAGES, SCORES, groups=2, recall=RecallLimits(most=0)).recalled == ()


def test_the_current_group_is_always_shown() -> None:
    found = anchored(MESSAGES, SCORES, groups=-1, recall=RecallLimits(most=1))
    assert (found.window.groups, [group.id for group in found.recalled]) == (("f",), ["a"])
    assert {one.group: one.reason for one in found.left_out} == {
        "b": Reason.NOT_RELEVANT,
        "c": Reason.LIMIT,
        "d": Reason.LIMIT,
        "e": Reason.LIMIT,
    }


def test_window_and_recall_share_a_budget() -> None:
    total = anchored(MESSAGES, SCORES, groups=2, cost=word_cost).tokens
    for budget in range(10, total + 5):
        found = anchored(
            MESSAGES, SCORES, groups=2, budget=budget, cost=word_cost, recall=RecallLimits(share=0.6)
        )
        assert sum(map(word_cost, found.messages)) == found.tokens <= budget
        assert found.window.groups[-1] == "f"
        named = [*found.window.groups, *(group.id for group in found.recalled)]
        assert sorted([*named, *(one.group for one in found.left_out)]) == list("abcdef")
    found = anchored(MESSAGES, SCORES, groups=2, budget=total, cost=word_cost, recall=RecallLimits(share=0.6))
    assert (found.window.groups, [group.id for group in found.recalled]) == (("e", "f"), ["a", "c"])


def test_what_recall_leaves_goes_to_the_window() -> None:
    half = anchored(
        MESSAGES, GroupScores(), groups=0, budget=24, cost=word_cost, recall=RecallLimits(share=0.5)
    )
    assert half.window.groups == ("d", "e", "f")


def test_anchors_are_required_and_named_when_they_do_not_fit() -> None:
    with pytest.raises(BudgetTooSmall) as caught:
        anchored(MESSAGES, SCORES, budget=12, cost=word_cost, anchors={"state": "one two three"})
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
