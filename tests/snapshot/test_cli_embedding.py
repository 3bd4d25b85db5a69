"""embed and reembed as people and programs read them."""

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
    value = printed("db", "embed", "--limit", "2", db=db)
    assert list(value) == fields("`germane db embed`")
    assert value == snapshot({"embedded": 2, "pending": 2})
    assert run("db", "embed", db=db).out == snapshot("Embedded 2 memories; 0 wait.\n")
    # One of the four is in a script that the model doesn't know: it has no vector, and waits for none.
    assert printed("db", "stats", db=db)["vectors"] == snapshot(3)


def test_reembed(db: Path) -> None:
    with germane.open(db, embedder=HashEmbedder(8)) as engine:
        engine.embed_pending()
    refused = run("db", "reembed", db=db)
    assert refused.code == 2
    assert "Confirm with --yes" in refused.err
    assert run("db", "embed", db=db).code == 3
    value = printed("db", "reembed", "--yes", db=db)
    assert list(value) == fields("`germane db reembed`")
    assert value == snapshot({"embedded": 4, "model": "germane-static-2"})
    assert run("db", "reembed", "--yes", db=db).out == snapshot(
        "Embedded 0 memories with germane-static-2.\n"
    )
    assert run("db", "reembed", "--yes", "--again", db=db).out == snapshot(
        "Embedded 4 memories with germane-static-2.\n"
    )


def test_an_unknown_embedder(db: Path) -> None:
    assert run("db", "embed", "--embedder", "magic", db=db).err == snapshot(
        "germane: The embedder 'magic' is unknown. Take static, onnx, or none for words alone.\n"
    )


def test_where_there_is_no_store(tmp_path: Path) -> None:
    assert run("db", "embed", db=tmp_path / "none.db").code == 3
    assert run("db", "reembed", "--yes", db=tmp_path / "none.db").code == 3
    assert not (tmp_path / "none.db").exists()
