"""recall by a ranker's name: what it weighs, which tags a question has, and what stays the same."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest

import germane
from germane import Engine, InvalidInput
from germane.protocols import Candidate
from germane.testing.fakes import HashEmbedder

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def opened(**options: object) -> Engine:
    given = {"agent": "tester", "embedder": None, "counter": "estimate", "clock": lambda: NOW, **options}
    return germane.open(":memory:", **given)  # type: ignore[arg-type] # The options are any of open's.


def put(engine: Engine, content: str, *, hours: float = 0, tags: tuple[str, ...] = ()) -> str:
    return engine.remember(content, tags=tags, created_at=NOW - timedelta(hours=hours)).id


def test_the_score_is_that_of_the_formula() -> None:
    with opened() as engine:
        new = put(engine, "Redis caches the sessions.", tags=("tech:redis",))
        old = put(engine, "Redis runs on port 6379 in the cellar.", hours=168, tags=("tech:database",))
        older = put(engine, "Nobody has restarted Redis for a long time.", hours=336)
        used = engine.recall("Redis", limit=3)
        engine.feedback(used, used=[old])
        found = engine.recall("Redis", ranker="hybrid", gate=False)
        parts = {one.memory.id: one.parts for one in found}

    assert found[0].memory.id == new
    # The tag "tech:redis" is requested: of the tags with those above them, all, a third and none are shared.
    assert {name: each["tags"] for name, each in parts.items()} == pytest.approx(
        {new: 3.0, old: 1.0, older: 0.0}, abs=1e-6
    )
    # 1, 1/2 and 1/4 are left of them after no, one and two weeks; the least is 0 and the greatest 1.
    assert {name: each["recency"] for name, each in parts.items()} == pytest.approx(
        {new: 1.0, old: 1 / 3, older: 0.0}, abs=1e-6
    )
    assert {name: each["access"] for name, each in parts.items()} == {new: 0.0, old: 1.0, older: 0.0}
    assert all(math.isclose(one.score, math.fsum(one.parts.values()), abs_tol=1e-6) for one in found)
    assert found[0].fused is not None
    assert set(found[0].fused.sources) == {"lexical", "tags"}
    assert found.weights == {}
    (note,) = found.notes
    assert note.text == (
        "Ranked by the ranker hybrid, from 0 to 10: meaning 0.5, tags 0.3, recency 0.1, access 0.1. "
        "Tags requested: tech:redis."
    )


def test_meaning_alone_is_found_and_weighs_half() -> None:
    with opened(embedder=HashEmbedder()) as engine:
        near = put(engine, "Redis is the cache.")
        put(engine, "The lunch was late.")
        found = engine.recall("Redis is the cache.", ranker="hybrid", gate=False)
    assert found[0].memory.id == near
    assert found[0].parts["meaning"] == pytest.approx(5.0, abs=1e-6)
    assert found[1].parts["meaning"] == pytest.approx(0.0, abs=1e-6)
    assert "No tag was requested." in found.notes[0].text


@pytest.mark.parametrize(
    ("question", "tags", "tag"),
    [
        ("Which databases do we run?", ("tech:database:redis",), "tech:database"),
        ("Is redis a database?", ("tech:database:redis",), "tech:database, tech:database:redis"),
        ("Who deploys the web front end?", ("team:web-front-end", "team:web-back-end"), "team:web-front-end"),
        ("What is it?", ("it", "the"), None),
        ("Where is the cellar?", ("tech:database",), None),
    ],
)
def test_a_tag_is_requested_where_its_words_stand_in_the_question(
    question: str, tags: tuple[str, ...], tag: str | None
) -> None:
    with opened() as engine:
        put(
            engine,
            "The database of the front end stands in the cellar, run with Redis, who deploys it.",
            tags=tags,
        )
        notes = [note.text for note in engine.recall(question, ranker="hybrid", gate=False).notes]
    if tag is not None:
        assert notes[0].endswith(f" Tags requested: {tag}.")
    else:
        assert not any("Tags requested" in text for text in notes)


def test_the_tags_of_the_filter_are_requested_too() -> None:
    with opened() as engine:
        exact = put(engine, "The cache is warm.", tags=("ops",))
        deeper = put(engine, "The cache is cold.", tags=("ops:night:late",))
        put(engine, "The cache is new.", tags=("team",))
        found = engine.recall("cache", tags=["ops"], ranker="hybrid")
    assert {one.memory.id: one.parts["tags"] for one in found} == pytest.approx({exact: 3.0, deeper: 0.0})
    assert "Tags requested: ops." in found.notes[0].text


def test_the_gate_stands_before_any_ranker() -> None:
    with opened() as engine:
        for number in range(8):
            put(engine, f"Redis caches the sessions of host {number}.")
        lunch = put(engine, "The lunch was late, as hosts of parties know.")
        tag = "Which Redis caches sessions of the host?"
        gated = {one.id for one in engine.recall(tag, ranker="hybrid")}
        whole = {one.id for one in engine.recall(tag, ranker="hybrid", gate=False)}
        plain = {one.id for one in engine.recall(tag)}
    assert gated == plain
    assert whole - gated == {lunch}


def test_a_question_that_names_nothing_is_answered_by_the_newest() -> None:
    with opened() as engine:
        for number in range(3):
            put(engine, f"Number {number}.", hours=number)
        plain, hybrid = engine.recall("and?"), engine.recall("and?", ranker="hybrid")
    assert list(hybrid) == list(plain)
    assert [note.code for note in hybrid.notes] == ["recency"]


def test_a_time_in_the_question_is_reported_not_to_count() -> None:
    with opened() as engine:
        put(engine, "The cache was moved.")
        notes = engine.recall("What about the cache in May 2026?", ranker="hybrid").notes
    (note,) = [one for one in notes if one.code == "ranker"]
    assert note.text.endswith("The time that the question names doesn't count.")


def test_what_is_learned_says_nothing_of_it_and_learns_nothing_from_it() -> None:
    with opened() as engine:
        engine.set_learning(True)
        for number in range(4):
            put(engine, f"The cache number {number} is warm.")
        found = engine.recall("cache", ranker="hybrid")
        result = engine.feedback(found, used=[found[0]])
        assert (result.counted, result.examples) == (1, 0)
        assert engine.recall("cache", ranker="hybrid").weights == {}


def test_it_ranks_what_spaces_give_as_well() -> None:
    with opened() as engine:
        team = engine.space("team", create=True)
        theirs = team.remember("The cache is warm.", tags=["ops:cache"])
        own = engine.remember("The cache is cold, and nobody of all who know it has said why.")
        found = engine.recall("cache", spaces=["team"], ranker="hybrid")
    assert [one.memory.id for one in found] == [theirs.id, own.id]


def test_mistakes_are_named() -> None:
    def first(candidate: Candidate, *_: object) -> float:
        return float(len(candidate.memory.content))

    with opened() as engine:
        with pytest.raises(InvalidInput, match=r"Unknown ranker 'best'\. Known rankers: relevance, hybrid\."):
            engine.recall("cache", ranker="best")
        with pytest.raises(InvalidInput, match="ranker='hybrid' and a scorer can't both rank"):
            engine.recall("cache", ranker="hybrid", scorer=first)
        assert len(engine.recall("cache", ranker="relevance", scorer=first)) == 0
        with pytest.raises(InvalidInput, match=r"into=.* is Engine; pass germane\.WorkingSet or None"):
            engine.recall("cache", into=engine)  # type: ignore[arg-type] # That is the mistake.
