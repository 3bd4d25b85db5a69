"""The LoCoMo layout: turns with times, questions with repaired evidence, and an account of the rest."""

from __future__ import annotations

import json
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from germane import Draft
from germane.errors import UnreadableSource
from germane.importers import DialogueTurn, EvidenceReport, conversation_drafts, evidence_report, read_locomo

SAMPLE: dict[str, Any] = {
    "sample_id": "talk-1",
    "conversation": {
        "speaker_a": "Ida",
        "speaker_b": "Max",
        "session_10_date_time": "12:05 am on 1 March, 2024",
        "session_10": [
            {"speaker": "Max", "day": "29 February 2024", "dia_id": "D10:1", "text": "Happy spring!"}
        ],
        "session_2_date_time": "1:56 pm on 29 February, 2024",
        "session_2": [
            {"speaker": "Ida", "dia_id": "D2:1", "text": "I planted tulips.", "blip_caption": "a red tulip"},
            {"speaker": "Max", "dia_id": "D2:2", "text": "Lovely."},
        ],
        "session_11_date_time": "9:00 am on 2 March, 2024",
    },
    "qa": [
        {"question": "What did Ida plant?", "answer": "tulips", "evidence": ["D2:1"], "category": 1},
        {"question": "How many?", "answer": 3, "evidence": ["D2:1; D10:1", "D:2:2"], "category": 3},
        {"question": "When?", "answer": "x", "evidence": ["D10:01", "D10:01", "D", "D9:9"], "category": 2},
        {"question": "Why?", "adversarial_answer": "y", "evidence": [], "category": 5},
    ],
}


def write(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_turns_come_in_order_of_their_sessions(tmp_path: Path) -> None:
    (conversation,) = read_locomo(write(tmp_path / "x.json", [SAMPLE]))
    assert conversation.speakers == ("Ida", "Max")
    assert [turn.dia_id for turn in conversation.turns] == ["D2:1", "D2:2", "D10:1"]
    assert conversation.turns[0] == DialogueTurn(
        dia_id="D2:1",
        speaker="Ida",
        text="I planted tulips.",
        session=2,
        index=0,
        session_at=datetime(2024, 2, 29, 13, 56, tzinfo=UTC),
        caption="a red tulip",
    )
    assert conversation.turns[2].session_at == datetime(2024, 3, 1, 0, 5, tzinfo=UTC)


def test_evidence_is_repaired_or_reported(tmp_path: Path) -> None:
    (conversation,) = read_locomo(write(tmp_path / "x.json", [SAMPLE]))
    assert [question.evidence for question in conversation.questions] == [
        ("D2:1",),
        ("D2:1", "D10:1", "D2:2"),
        ("D10:1",),
        (),
    ]
    assert [question.answer for question in conversation.questions] == ["tulips", "3", "x", None]
    report = EvidenceReport(
        read=7,
        repaired=("talk-1: D2:1; D10:1", "talk-1: D:2:2", "talk-1: D10:01", "talk-1: D10:01"),
        unreadable=("talk-1: D",),
        missing=("talk-1: D9:9",),
    )
    assert conversation.report == report
    assert evidence_report([conversation, conversation]).missing == report.missing * 2
    assert evidence_report([]) == EvidenceReport()


def test_turns_become_drafts_of_their_session(tmp_path: Path) -> None:
    (conversation,) = read_locomo(write(tmp_path / "x.json", [SAMPLE]))
    drafts = list(conversation_drafts(conversation))
    assert [d.content for d in drafts] == [
        "Ida: I planted tulips.",
        "Max: Lovely.",
        "Max: Happy spring!",
    ]
    assert drafts[0].metadata["caption"] == "a red tulip"
    assert drafts[1] == Draft(
        content="Max: Lovely.",
        kind="episode",
        tags=("turn",),
        scope="session:talk-1/2",
        trust="external",
        source="talk-1/D2:2",
        created_at=datetime(2024, 2, 29, 13, 56, 1, tzinfo=UTC),
        metadata={
            "session": "talk-1/2",
            "index": 1,
            "speaker": "Max",
            "day": "29 February 2024",
            "dia_id": "D2:2",
        },
    )


def broken(**changes: object) -> list[dict[str, Any]]:
    sample = deepcopy(SAMPLE)
    for name, value in changes.items():
        (sample if name == "qa" else sample["conversation"])[name] = value
    return [sample]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"messages": []}, "a list of conversations was expected"),
        ([], "a list of conversations was expected"),
        ([SAMPLE, 5], "in conversation 2, a list of conversations was expected"),
        (broken(session_2_date_time="yesterday"), "in talk-1, session_2_date_time must be a text such as"),
        (broken(session_2_date_time="1:00 pm on 30 February, 2024"), "session_2_date_time must be"),
        (broken(session_2={"a": 1}), "in talk-1, session_2 must be a list of turns"),
        (
            broken(session_2=[{"speaker": "Ida"}]),
            "turn 1 of session_2 must be an object with the texts dia_id",
        ),
        (broken(qa="none"), '"qa" must be a list of questions'),
        (broken(qa=[{"question": 1}]), "question 1 must be an object with a 'question'"),
        (
            broken(qa=[{"question": "a", "category": "x"}]),
            "question 1 must have a whole number as 'category'",
        ),
    ],
)
def test_another_layout_says_what_was_expected(tmp_path: Path, value: object, message: str) -> None:
    with pytest.raises(UnreadableSource) as caught:
        read_locomo(write(tmp_path / "x.json", value))
    assert message in str(caught.value)


def test_what_is_no_json_says_so(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("[", encoding="utf-8")
    with pytest.raises(UnreadableSource, match="it is no JSON"):
        read_locomo(path)
