"""Messages and questions that a person brings as JSON lines, with all that can be wrong in them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from germane.errors import UnreadableSource
from germane.evaluation import LossStage, Records, Report, evaluate, losses, ranked_by


def message(content: object, own: object = None, /, **more: Any) -> dict[str, Any]:
    named = {} if own is None else {"id": own}
    return {"role": "user", "content": content, **named, **more}


MESSAGES: list[dict[str, Any]] = [
    message("I can't eat peanuts.", "m1", time="2026-03-01T10:00:00Z", session="a"),
    message("Noted: no peanuts.", "m2", role="assistant", time="2026-03-01", session="a"),
    message("We fly to Oslo on Friday.", 3, time="2026-03-05", conversation=7),
    message("The hotel is called Fjell.", "m4", timestamp=1772791200),
    message([{"type": "text", "text": "The cat stays with Tom."}], "m,5", name="Ana"),
    message("And what about the plants?"),
]
OLDEST = {"oldest": ranked_by(lambda corpus: lambda _: range(len(corpus.ids)))}


def written(folder: Path, name: str, lines: Sequence[object]) -> Path:
    path = folder / name
    texts = [each if isinstance(each, str | bytes) else json.dumps(each) for each in lines]
    encoded = [each.encode() if isinstance(each, str) else each for each in texts]
    path.write_bytes(b"\n".join(encoded) + b"\n")
    return path


def measured(folder: Path, questions: Sequence[object], **more: Any) -> Report:
    path = written(folder, "questions.jsonl", questions)
    log = written(folder, "log.jsonl", more.pop("messages", MESSAGES))
    return evaluate(path, records=Records(source=log), budgets=[400], retrievers=OLDEST, **more)


@pytest.mark.parametrize(
    ("evidence", "names"),
    [
        ("m1", ["m1"]),
        (["m1", "m2"], ["m1", "m2"]),
        ("m1; m2", ["m1", "m2"]),
        ("m1, m2", ["m1", "m2"]),
        ("m1 m2", ["m1", "m2"]),
        ("['m1', 'm2']", ["m1", "m2"]),
        (["m1;m2", ["m4"]], ["m1", "m2", "m4"]),
        (3, ["3"]),
        (3.0, ["3"]),
        ([3, "3"], ["3"]),
        ({"id": "m4"}, ["m4"]),
        ("m,5", ["m,5"]),
        ("line 6", ["line 6"]),
        ("log.jsonl#0", ["log.jsonl#0"]),
        ("m1; m1 ", ["m1"]),
    ],
)
def test_evidence_is_named_in_any_form(tmp_path: Path, evidence: object, names: list[str]) -> None:
    report = measured(tmp_path, [{"question": "What?", "evidence": evidence}])
    (row,) = report.as_dict()["per_question"]
    assert row["evidence"] == names
    assert row["outcomes"][0]["contained"] == names
    assert report.evidence.missing == ()


def test_evidence_is_a_whole_file_or_a_place_in_it(tmp_path: Path) -> None:
    for name, ids in (("log.jsonl", 6), (f"{tmp_path.name}/log.jsonl#2", 1)):
        report = measured(tmp_path, [{"question": "What?", "evidence": name}])
        assert [len(piece.ids) for piece in report.cases[0].pieces] == [ids]


def test_messages_may_be_in_the_file_of_the_questions(tmp_path: Path) -> None:
    path = written(tmp_path, "all.jsonl", [*MESSAGES, {"question": "Where do we fly?", "evidence": 3}])
    report = evaluate(path, budgets=[300], retrievers=["germane", "bm25"])
    assert (report.conversations, report.turns, report.questions) == (("all",), 6, 1)
    assert [each.overall.evidence_recall for each in report.results] == [1.0, 1.0]


def test_every_question_has_a_row_for_each_budget(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "all.jsonl",
        [*MESSAGES, {"question": "Who stays with whom?", "evidence": ["m,5", "m1"], "category": "pets"}],
    )
    report = evaluate(path, budgets=[15, 400], retrievers=OLDEST)
    (row,) = report.as_dict()["per_question"]
    outcomes = row.pop("outcomes")
    assert row == {
        "number": 1,
        "question": "Who stays with whom?",
        "category": "pets",
        "conversation": "all",
        "evidence": ["m,5", "m1"],
    }
    assert [(each["budget"], each["share"], each["contained"]) for each in outcomes] == [
        (15, 0.5, ["m1"]),
        (400, 1.0, ["m,5", "m1"]),
    ]
    assert all(0 < each["tokens"] <= each["budget"] for each in outcomes)
    assert all(each["shown"] == each["contained"] for each in outcomes)
    assert outcomes[1]["word_share"] == 1.0


def test_a_line_that_does_not_fit_is_named_and_stops_nothing(tmp_path: Path) -> None:
    messages = [
        *MESSAGES,
        '{"role": "user", "content": "half \\ud83d"}',
        {"role": "user", "content": "Late.", "time": "yesterday"},
        {"role": "user", "content": ""},
        b'{"role": "user", "content": "\xff"}',
        "no json",
        [1, 2],
        {"role": "user", "content": "Fine.", "id": ["x"]},
        {"speaker": "Ana"},
    ]
    questions: list[object] = [
        {"question": "Where do we fly?", "evidence": 3},
        {"question": "Where?", "evidence": True},
        {"question": 7, "evidence": 3},
        {"question": "Which?", "evidence": "m99"},
        {"question": "Half \ud83d?", "evidence": 3},
        {"question": "Nothing?"},
    ]
    report = measured(tmp_path, questions, messages=messages)
    assert (report.turns, report.questions, report.without_evidence) == (6, 1, 2)
    assert report.evidence.missing == ("questions.jsonl:4: m99",)
    places = {each.partition(": ")[0]: each for each in report.left_out}
    assert set(places) == {f"log.jsonl, line {number}" for number in range(7, 15)} | {
        f"questions.jsonl, line {number}" for number in (2, 3, 5)
    }
    assert (
        "'time' must be a date or time such as 2024-05-01, and is 'yesterday'" in places["log.jsonl, line 8"]
    )
    assert "0xff" in places["log.jsonl, line 10"]
    assert "'no json'" in places["log.jsonl, line 11"]
    assert '"role"' in places["log.jsonl, line 14"]
    assert "True" in places["questions.jsonl, line 2"]
    text = report.to_text()
    assert "Left out because they don't fit: 11" in text
    assert all(each in text for each in report.left_out[:10])


@pytest.mark.parametrize(
    ("question", "error"),
    [
        ({"question": "Where?", "evidence": "k7"}, "jsonl:1: k7 names none; there are such as m1, m2, 3"),
        ({"question": "Where?", "evidence": {"a": 1}}, r"questions.jsonl, line 1: ids .* \{'a': 1\}"),
        ({"asked": "Where?"}, 'line 1: a text as "question" was expected, and it is nothing'),
    ],
)
def test_without_any_question_left_the_error_says_what_did_not_fit(
    tmp_path: Path, question: dict[str, Any], error: str
) -> None:
    with pytest.raises(UnreadableSource, match=error):
        measured(tmp_path, [question])


def test_a_repeated_turn_counts_once(tmp_path: Path) -> None:
    again = [MESSAGES[0], MESSAGES[0] | {"id": "m1b"}, MESSAGES[0] | {"session": "b", "id": "other"}]
    question = {"question": "Which food?", "evidence": ["m1", "m1b", "other"]}
    report = measured(tmp_path, [question], messages=[*MESSAGES, *again])
    assert (report.turns, report.repeated) == (7, 2)
    # m1b is m1 again, and the same words in another session are another turn.
    assert report.results[0].answers[0].evidence == 2
    assert "count once: 2" in report.to_text()


def test_two_messages_of_one_id_are_found_when_either_is(tmp_path: Path) -> None:
    other = {"role": "user", "content": "Something else entirely.", "id": "m1"}
    report = measured(tmp_path, [{"question": "Which food?", "evidence": "m1"}], messages=[*MESSAGES, other])
    assert (report.turns, report.results[0].answers[0].evidence) == (7, 1)


def test_the_lengths_of_turns_are_those_of_each_speaker(tmp_path: Path) -> None:
    report = measured(tmp_path, [{"question": "Where do we fly?", "evidence": 3}])
    assert [(each.speaker, each.turns) for each in report.lengths] == [
        (None, 6),
        ("user", 4),
        ("assistant", 1),
        ("Ana", 1),
    ]
    assert all(0 < each.median <= each.p90 for each in report.lengths)
    assert "Tokens of a turn (median / p90): all " in report.to_text()


def test_an_answer_is_looked_for_only_where_no_evidence_is_named(tmp_path: Path) -> None:
    question = [
        {"question": "Which hotel?", "evidence": "m4", "answer": 7},
        {"question": "Where to?", "answer": "fly to Oslo"},
    ]
    answers = measured(tmp_path, question).results[0].answers
    assert [(each.phrases, each.contained) for each in answers] == [(0, 1), (1, 1)]


def test_recall_that_falls_as_the_budget_grows_is_warned_of(tmp_path: Path) -> None:
    long = {"role": "user", "content": "A long story. " * 30, "id": "long"}
    path = written(tmp_path, "all.jsonl", [long, *MESSAGES, {"question": "Peanuts?", "evidence": "m1"}])
    report = evaluate(path, budgets=[20, 125, 400], retrievers=OLDEST)
    assert [each.overall.evidence_recall for each in report.results] == [1.0, 0.0, 1.0]
    warning = (
        "Evidence recall of oldest falls by 100.0 points from 20 to 125 tokens: 1 questions lose evidence"
    )
    assert warning in report.as_dict()["notes"]
    assert warning in report.to_text()


def test_losses_name_messages(tmp_path: Path) -> None:
    path = written(
        tmp_path, "all.jsonl", [*MESSAGES, {"question": "Where do we fly?", "evidence": [3, "m1"]}]
    )
    (found,) = losses(path, budget=1).questions
    assert [each.evidence for each in found.lost] == ["3", "m1"]
    assert {each.stage for each in found.lost} <= {LossStage.OUTRANKED, LossStage.GATED}


def test_a_broken_text_in_a_data_set_is_left_out_too(tmp_path: Path) -> None:
    turns = [
        {"dia_id": "D1:1", "speaker": "Ana", "text": "The boiler is in the cellar."},
        {"dia_id": "D1:1", "speaker": "Ana", "text": "The boiler is in the cellar."},
        {"dia_id": "D1:2", "speaker": "Tom", "text": "half \ud83d"},
    ]
    question = [
        {"question": "Where is the boiler?", "evidence": ["D1:1"], "category": 1},
        {"question": "half \ud83d", "evidence": ["D1:1"], "category": 1},
    ]
    conversation = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
    path = tmp_path / "data.json"
    path.write_text(json.dumps([{"sample_id": "one", "conversation": conversation, "qa": question}]))
    report = evaluate(path, budgets=[200], retrievers=["germane", "bm25"])
    assert (report.turns, report.questions, report.repeated) == (1, 1, 1)
    assert [each.partition(": ")[0] for each in report.left_out] == [
        "data.json, one, D1:2",
        "data.json, one, question 2",
    ]
    assert [each.overall.evidence_recall for each in report.results] == [1.0, 1.0]
