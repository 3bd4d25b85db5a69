"""The demo memory is what it promises to be: complete, valid, of one world, and safe to ship."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import pytest

from germane import Outcome, Scope, Trust

# The least number of records of each kind; together they are below the total, so no kind crowds out another.
LEAST = {
    "fact": 80,
    "decision": 50,
    "procedure": 20,
    "episode": 40,
    "constraint": 8,
    "identity": 1,
    "focus": 3,
    "adr": 8,
    "pattern": 8,
    "iplan": 6,
    "module": 12,
    "dependency": 10,
    "changelog": 12,
    "note": 7,
    "calibration": 2,
}
FIELDS = {
    "content",
    "kind",
    "subject",
    "tags",
    "scope",
    "importance",
    "confidence",
    "outcome",
    "trust",
    "source",
    "created_at",
    "pinned",
    "metadata",
}
NOW = datetime(2026, 11, 21, tzinfo=UTC)
SECRET = re.compile(
    r"AKIA[0-9A-Z]{16}|\bsk-\w{8,}|\bgh[pousr]_\w{8,}|\bxox[abp]-\w+|-----BEGIN|\beyJ\w{10,}\.|[0-9a-fA-F]{32,}"
)
HOST = re.compile(r"(?:https?://|[\w.+-]+@)([\w-]+(?:\.[\w-]+)+)")
OURS = re.compile(r"(?:^|\.)example\.(?:com|org)$")
ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")


def lines_of(name: str) -> list[str]:
    text = (files("germane") / "demo" / name).read_text(encoding="utf-8")
    assert text.endswith("\n")
    return text[:-1].split("\n")


@pytest.fixture(scope="module")
def memories() -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines_of("memory.jsonl")]


@pytest.fixture(scope="module")
def questions() -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines_of("questions.jsonl")]


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def test_it_has_about_three_hundred_records_of_every_built_in_kind(memories: list[dict[str, Any]]) -> None:
    counts = Counter(memory["kind"] for memory in memories)
    assert 300 <= len(memories) <= 330
    assert counts.keys() == LEAST.keys()
    assert {kind: n for kind, n in counts.items() if n < LEAST[kind]} == {}
    assert counts["identity"] <= 2


def test_each_record_has_known_fields_with_values_in_range(memories: list[dict[str, Any]]) -> None:
    for number, memory in enumerate(memories, 1):
        assert memory.keys() <= FIELDS, number
        assert memory["content"].strip() == memory["content"] != "", number
        for field, highest in (("importance", 10), ("confidence", 1)):
            value = memory.get(field, 0)
            assert isinstance(value, int | float), number
            assert not isinstance(value, bool), number
            assert math.isfinite(value), number
            assert 0 <= value <= highest, number
        assert memory.get("pinned", False) in (True, False), number
        assert all(isinstance(memory.get(field, ""), str) for field in ("subject", "source")), number


def test_outcomes_trusts_and_scopes_are_those_of_the_model(memories: list[dict[str, Any]]) -> None:
    outcomes = {Outcome(memory["outcome"]) for memory in memories if "outcome" in memory}
    trusts = {Trust(memory["trust"]) for memory in memories if "trust" in memory}
    scopes = {Scope.parse(memory["scope"]).name for memory in memories if "scope" in memory}
    assert outcomes == set(Outcome) - {Outcome.ONGOING}
    assert {Trust.OWNER, Trust.EXTERNAL} <= trusts
    assert scopes == {"global", "task", "path", "session"}


def test_times_are_aware_of_2026_and_in_order(memories: list[dict[str, Any]]) -> None:
    times = [datetime.fromisoformat(memory["created_at"]) for memory in memories]
    assert None not in {time.utcoffset() for time in times}
    times = [time.astimezone(UTC) for time in times]
    assert times == sorted(times)
    assert {time.year for time in times} == {2026}
    assert {time.month for time in times} == set(range(1, 12))
    assert times[-1] < NOW


def test_tags_are_lower_case_paths(memories: list[dict[str, Any]]) -> None:
    tags = [tag for memory in memories for tag in memory.get("tags", [])]
    assert [tag for tag in tags if not re.fullmatch(r"[a-z]+(?::[a-z0-9]+)*", tag)] == []
    assert sum(":" in tag for tag in tags) > len(tags) / 2
    assert all(len(set(memory.get("tags", []))) == len(memory.get("tags", [])) for memory in memories)


def test_no_content_occurs_twice(memories: list[dict[str, Any]]) -> None:
    plain = Counter(" ".join(memory["content"].casefold().split()) for memory in memories)
    assert [content for content, n in plain.items() if n > 1] == []


def test_each_kind_carries_the_metadata_that_its_renditions_read(memories: list[dict[str, Any]]) -> None:
    for number, memory in enumerate(memories, 1):
        metadata = memory.get("metadata", {})
        match memory["kind"]:
            case "decision":
                assert all(isinstance(reason, str) and reason for reason in metadata["reasons"]), number
                assert (memory["outcome"] == "pending") == ("result" not in metadata), number
            case "constraint":
                assert metadata["action"] in {"absolute", "block", "warn"}, number
                assert metadata["reason"], number
            case "procedure":
                assert metadata["name"], number
                assert len(metadata["steps"]) >= 3, number
            case "episode":
                assert metadata["title"], number
                assert metadata["duration"], number
            case "adr":
                assert all(word in memory["content"] for word in ("Context", "onsequences")), number
            case "dependency":
                assert metadata["package"], number
                assert metadata["version"], number
            case "changelog":
                assert memory["content"].startswith(metadata["version"]), number
            case _:
                pass


def test_an_agent_knows_how_well_its_confidence_was_calibrated(memories: list[dict[str, Any]]) -> None:
    notes = [m for m in memories if m["kind"] == "calibration"]
    assert 1 <= len(notes) <= 2
    judged = [
        (m["confidence"], {"success": 1.0, "partial": 0.5}.get(m["outcome"], 0.0))
        for m in memories
        if m["kind"] == "decision" and m["outcome"] != "pending" and m["created_at"] < "2026-11-02"
    ]
    brier = sum((sure - true) ** 2 for sure, true in judged) / len(judged)
    newest = notes[-1]["content"]
    assert f"{len(judged)} decisions have an outcome" in newest
    assert f"{brier:.3f}" in newest
    assert f"{sum(sure for sure, _ in judged) / len(judged):.2f}" in newest


def test_lengths_scripts_and_markup_are_as_varied_as_in_life(memories: list[dict[str, Any]]) -> None:
    contents = [memory["content"] for memory in memories]
    words = [len(content.split()) for content in contents]
    assert min(words) <= 10
    assert max(words) >= 200
    assert any(re.search(r"^```", content, re.MULTILINE) for content in contents)
    assert any(re.search(r"^## ", content, re.MULTILINE) for content in contents)
    assert any("</section>" in content for content in contents)
    assert any(re.search(r"[\u3040-\u30ff\u4e00-\u9fff]", content) for content in contents)
    assert any("„" in content for content in contents)


def test_nothing_in_it_looks_like_a_secret_or_a_foreign_address(
    memories: list[dict[str, Any]], questions: list[dict[str, Any]]
) -> None:
    for text in texts([memories, questions]):
        assert SECRET.search(text) is None, text
        assert [host for host in HOST.findall(text) if not OURS.search(host)] == [], text
        # 192.0.2.0/24 is reserved for documentation (RFC 5737).
        assert [ip for ip in ADDRESS.findall(text) if not ip.startswith("192.0.2.")] == [], text


def test_questions_expect_existing_records(
    memories: list[dict[str, Any]], questions: list[dict[str, Any]]
) -> None:
    assert len(questions) == 12
    assert questions[0]["question"] == "Should we use Redis for caching in Newton?"
    assert len({question["question"] for question in questions}) == len(questions)
    for question in questions:
        assert question.keys() == {"question", "about", "expect"}
        expected = question["expect"]
        assert expected == sorted(set(expected))
        assert expected
        assert all(1 <= number <= len(memories) for number in expected)


def test_the_redis_question_is_answered_by_several_kinds(
    memories: list[dict[str, Any]], questions: list[dict[str, Any]]
) -> None:
    expected = [memories[number - 1] for number in questions[0]["expect"]]
    assert {"decision", "fact", "constraint"} <= {memory["kind"] for memory in expected}
    text = " ".join(memory["content"] for memory in expected)
    assert [
        word for word in ("ChromaDB", "Qdrant", "pgvector", "UNLOGGED", "Redis") if word not in text
    ] == []
