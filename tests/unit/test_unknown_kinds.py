"""A kind that nobody knows is named, with the one that was probably meant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import germane
from commandline import run
from germane import Engine, Filter, InvalidInput, Kind
from germane.ledger import TraceNote


@pytest.fixture
def engine() -> Iterator[Engine]:
    with germane.open(":memory:", embedder=None, kinds=[Kind(name="ticket")]) as opened:
        opened.remember("The API listens on port 8080.")
        yield opened


def texts(notes: tuple[TraceNote, ...]) -> list[str]:
    return [note.text for note in notes if note.code == "unknown_kind"]


SLIP = "No memory is of kind 'fcat', and no such kind is registered; did you mean 'fact'?"


def test_a_slip_is_named_with_what_was_meant(engine: Engine) -> None:
    assert texts(engine.recall("port", kinds=["fcat"]).notes) == [SLIP]
    assert texts(engine.assemble("port", budget=500, kinds=["fcat"]).trace.notes) == [SLIP]
    assert texts(engine.assemble("port", budget=2000, plan="scoped", kinds=["fcat"]).trace.notes) == [SLIP]
    assert texts(engine.filter_warnings(Filter(kinds=("fcat",)))) == [SLIP]


def test_a_kind_that_is_registered_needs_no_memory(engine: Engine) -> None:
    recalled = engine.recall("port", kinds=["ticket", "person"])
    assert (len(recalled), texts(recalled.notes)) == (0, [])


def test_each_unknown_kind_is_named_once_and_without_a_guess_where_none_is_near(engine: Engine) -> None:
    kinds = ("zebra", "fact", "Tickets", "zebra")
    assert texts(engine.filter_warnings(Filter(kinds=kinds))) == [
        "No memory is of kind 'zebra', and no such kind is registered.",
        "No memory is of kind 'Tickets', and no such kind is registered; did you mean 'ticket'?",
    ]


def test_a_kind_that_is_stored_is_known_whoever_registered_it(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.open(path, embedder=None, kinds=[Kind(name="invoice")]) as engine:
        engine.forget(engine.remember("Paid on Friday.", kind="invoice").id)
    with germane.open(path, embedder=None) as engine:
        assert texts(engine.recall("paid", kinds=["invoice"]).notes) == []
        assert texts(engine.recall("paid", kinds=["invoce"]).notes) == [
            "No memory is of kind 'invoce', and no such kind is registered; did you mean 'invoice'?"
        ]


def test_a_kind_that_only_a_space_holds_is_known_there(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.open(path, agent="ada", embedder=None, kinds=[Kind(name="invoice")]) as engine:
        space = engine.space("shop", create=True)
        space.remember("Paid on Friday.", kind="invoice")
    with germane.open(path, agent="ada", embedder=None) as engine:
        assert texts(engine.recall("paid", kinds=["invoice"], spaces=["shop"]).notes) == []
        assert texts(engine.recall("paid", kinds=["invoice"]).notes) != []


def test_what_is_no_filter_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidInput, match="pass one such as"):
        engine.filter_warnings(["fact"])  # type: ignore[arg-type]  # That is the point.


def test_the_command_line_says_so(tmp_path: Path) -> None:
    db = tmp_path / "agent.db"
    run("remember", "The API listens on port 8080.", db=db)
    for command in (
        ("recall", "port"),
        ("memory", "list"),
        ("assemble", "port", "--budget", "500"),
    ):
        assert f"Note: {SLIP}" in run(*command, "--kind", "fcat", db=db).err
    value = run("memory", "list", "--kind", "fcat", "--json", db=db).json()
    assert value["notes"] == [{"code": "unknown_kind", "text": SLIP}]
    assert run("memory", "list", "--kind", "fact", "--json", db=db).json()["notes"] == []


def test_a_filter_that_says_whose_memories_hears_of_no_kind_of_others(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.open(path, embedder=None, kinds=[Kind(name="invoice")]) as engine:
        engine.remember("Paid on Friday.", kind="invoice", metadata={"user": "bob"})
    with germane.open(path, embedder=None) as engine:
        where = Filter(metadata={"user": "alice"})
        (slip,) = texts(engine.recall("paid", kinds=["invoce"], where=where).notes)
        assert "invoice" not in slip
        (unknown,) = texts(engine.recall("paid", kinds=["invoice"], where=where).notes)
        assert unknown.startswith("No memory is of kind 'invoice', and no such kind is registered")
