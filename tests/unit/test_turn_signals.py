"""What the words and the meaning of a turn and of the turns around it count."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from germane import Memory, Ranked, Scope
from germane.protocols import Candidate
from germane.renditions import Rendition, Renditions
from support.found import recalled_of

NOW = datetime(2026, 11, 21, tzinfo=UTC)
_TEXT = Rendition(text="x", tokens=1)


def turn(
    name: str, *, session: str = "one", speaker: str = "Ada", content: str = "x", **signals: float
) -> Candidate:
    memory = Memory(
        id=name,
        agent="newton",
        kind="episode",
        content=content,
        renditions=Renditions(micro=_TEXT, summary=_TEXT, full=_TEXT, counter="bytes"),
        created_at=NOW,
        updated_at=NOW,
        scope=Scope.parse(f"session:{session}"),
        metadata={"speaker": speaker},
    )
    return Candidate(memory=memory, signals=signals)


def ranked(turns: Sequence[Candidate], question: str = "Which port is used?") -> Sequence[Ranked]:
    return recalled_of(turns, question, clock=lambda: NOW, bound=4.0)


def test_a_turn_counts_its_window_like_itself_and_its_meaning_once() -> None:
    best: dict[str, Any] = {"lexical": 4.0, "window_lexical": 4.0, "semantic": 0.8, "window_semantic": 0.8}
    scores = {}
    for name in best:
        without: dict[str, Any] = {key: value for key, value in best.items() if key != name} | {name: 0.0}
        # Sessions of their own, so that a session's best turn lifts none of the others.
        found = ranked([turn("whole", session="a", **best), turn("less", session="b", **without)])
        less = next(one for one in found if one.memory.id == "less")
        scores[name] = less.score - less.parts["session"]
    assert scores == pytest.approx(
        {"lexical": 1.0, "window_lexical": 1.0, "semantic": 1.25, "window_semantic": 1.25}
    )


def window_parts(*speakers: str) -> list[float]:
    signals: dict[str, Any] = {"lexical": 2.0, "window_lexical": 2.0}
    return [one.parts["window"] for one in ranked([turn(each, speaker=each, **signals) for each in speakers])]


def test_the_words_around_count_double_where_more_than_two_speak() -> None:
    (pair, _), (meeting, *_) = window_parts("Ada", "Boris"), window_parts("Ada", "Boris", "Chen")
    assert meeting == 2 * pair
    # Of a session apart, in which one speaks, and of a chat with an assistant and its tools.
    signals: dict[str, Any] = {"lexical": 2.0, "window_lexical": 2.0}
    several = [turn(each, speaker=each, **signals) for each in ("Ada", "Boris", "Chen")]
    found = ranked([*several, turn("alone", session="two", **signals)])
    assert {one.memory.id: one.parts["window"] for one in found}["alone"] == pair
    assert window_parts("user", "assistant", "tool")[0] == pair


@pytest.mark.parametrize(
    ("question", "speaker"),
    [
        ("When does my first sprint end?", "User"),
        ("Have I used Flask-Login?", "User"),
        ("What did you recommend for the retries?", "Assistant"),
        ("Which library have you suggested?", "Assistant"),
        ("What did you say about my essay?", None),  # Both speak of it.
        ("Can you list the libraries?", None),
        ("What did the assistant tell me?", "Assistant"),
        ("Which port is used?", None),
    ],
)
def test_i_is_the_user_and_you_the_assistant(question: str, speaker: str | None) -> None:
    signals: dict[str, Any] = {"lexical": 2.0, "window_lexical": 2.0}
    found = ranked([turn(name, speaker=name, **signals) for name in ("Assistant", "User")], question)
    assert [one.memory.id for one in found if "speaker" in one.parts] == ([speaker] if speaker else [])


def test_who_is_no_user_is_not_meant_by_i() -> None:
    found = ranked([turn("ada", lexical=2.0, window_lexical=2.0)], "What did I say?")
    assert "speaker" not in found[0].parts


def test_the_speaker_that_is_named_counts() -> None:
    signals: dict[str, Any] = {"lexical": 2.0, "window_lexical": 2.0}
    found = ranked([turn("ada", **signals), turn("boris", speaker="Boris", **signals)], "What did Boris say?")
    assert [one.memory.id for one in found] == ["boris", "ada"]
    assert found[0].score - found[1].score == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("User: Always add the version numbers when I ask about libraries.", 0.4),
        ("Thanks. From now on, please answer in metric units.", 0.4),
        ("Never use emoji.", 0.4),
        ("Whenever I ask for a query, format it.", 0.4),
        ("I'd prefer short proofs, can you show one?", 0.2),
        ("I would really prefer to work in the mornings.", 0.2),
        ("The train is always late.", None),
        ("I have never been there.", None),
        ("My preferred stop is the harbour.", None),
    ],
)
def test_a_lasting_instruction_of_the_user_counts_whatever_the_question(
    content: str, part: float | None
) -> None:
    signals: dict[str, Any] = {"lexical": 1.0, "window_lexical": 1.0}
    found = ranked([turn(name, speaker=name, content=content, **signals) for name in ("Ada", "User")])
    parts = {one.memory.id: one.parts.get("instruction") for one in found}
    assert parts == {"Ada": None, "User": part}


@pytest.mark.parametrize(
    ("question", "speakers", "counts"),
    [
        ("How many essays have I finished?", ("User", "Assistant"), False),
        ("In which order did I add the features?", ("User", "Assistant"), False),
        ("Can you summarize how my project went?", ("User", "Assistant"), False),
        ("Which essay have I finished?", ("User", "Assistant"), True),
        ("How many essays has Ada finished?", ("Ada", "Ben"), True),
    ],
)
def test_what_is_spread_over_a_chat_is_not_sought_in_its_best_session(
    question: str, speakers: tuple[str, str], counts: bool
) -> None:
    signals: dict[str, Any] = {"lexical": 2.0, "window_lexical": 2.0}
    found = ranked([turn(name, speaker=name, **signals) for name in speakers], question)
    assert all(("session" in one.parts) is counts for one in found)
