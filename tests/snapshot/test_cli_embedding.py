"""embed and use as people and programs read them."""

from __future__ import annotations

from pathlib import Path

import pytest
from inline_snapshot import snapshot

import germane
from commandline import fields, printed, run
from germane.testing.fakes import HashEmbedder


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "agent.db"
    texts = (
        "The cache lives in Redis.",
        "The invoices go out on Mondays.",
        "Ada leads the team.",
        "又一条记忆。",
    )
    with germane.open(path, embedder=None) as engine:
        engine.remember_many(texts)
    return path


def test_embed(db: Path) -> None:
    value = printed("db", "embed", "--embedder", "bundled", "--limit", "2", db=db)
    assert list(value) == fields("`germane db embed`")
    assert value == snapshot({"embedded": 2, "pending": 2})
    assert run("db", "embed", "--embedder", "bundled", db=db).out == snapshot(
        "Embedded 2 memories; 0 wait.\n"
    )
    # One of the four is in a script that the model doesn't know: it has no vector, and waits for none.
    assert printed("db", "stats", db=db)["vectors"] == snapshot(3)


def test_use(db: Path) -> None:
    with germane.open(db, embedder=HashEmbedder(8)) as engine:
        engine.embed_pending()
    refused = run("embedder", "use", "bundled", db=db)
    assert refused.code == 2
    assert "hash-8 (8 dimensions)" in refused.err
    assert "Confirm with --yes" in refused.err
    assert run("db", "embed", "--embedder", "bundled", db=db).code == 3
    value = printed("embedder", "use", "bundled", "--yes", db=db)
    assert list(value) == fields("`germane embedder use`")
    assert value == snapshot({"embedded": 4, "model": "germane-static-3"})
    used = run("embedder", "use", "bundled", db=db)
    assert used.out == snapshot("Embedded 0 memories with germane-static-3.\n")
    assert used.err == snapshot(
        "GERMANE_EMBEDDER is 'none' and comes first. Unset it to open this store with 'bundled'.\n"
    )
    assert run("embedder", "use", "bundled", "--again", db=db).out == snapshot(
        "Embedded 4 memories with germane-static-3.\n"
    )


def test_use_minilm(db: Path) -> None:
    assert run("embedder", "use", "minilm", db=db).out == snapshot(
        "Embedded 4 memories with all-MiniLM-L6-v2-int8.\n"
    )
    with germane.open(db) as engine:
        (found, *_) = engine.recall("Who heads the group?")
        assert (found.content, found.parts["semantic"] > 0) == ("Ada leads the team.", True)
    assert run("embedder", "use", "bundled", db=db).code == 0


def test_an_unknown_embedder(db: Path) -> None:
    assert run("db", "embed", "--embedder", "magic", db=db).err == snapshot(
        "germane: The embedder 'magic' is unknown. Use 'bundled' (or 'static'), 'minilm' (or 'onnx', from "
        "pip install 'germane[onnx]'), or 'none' for words alone; in Python also an object of "
        "`germane.embedders`.\n"
    )
    assert "makes no vectors. Use 'bundled'" in run("embedder", "use", "none", db=db).err


def test_without_an_embedder(db: Path) -> None:
    assert run("db", "embed", db=db).err == snapshot(
        "germane: There is no embedder to do it: the store was opened without one. Open it with "
        "embedder=..., on the command line with --embedder or GERMANE_EMBEDDER.\n"
    )


def test_where_there_is_no_store(tmp_path: Path) -> None:
    assert run("db", "embed", db=tmp_path / "none.db").code == 3
    assert run("embedder", "use", "bundled", db=tmp_path / "none.db").code == 3
    assert not (tmp_path / "none.db").exists()
