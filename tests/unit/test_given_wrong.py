"""What is given wrong is refused where it is given, with its value and what would be right."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, cast

import pytest

import germane
from germane import Filter, InvalidInput, NotFound, Order, Outcome, Scope, Status, UnknownKind
from germane.errors import PurgeNotConfirmed
from germane.stores import remove_agent


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"location": None}, r"location=None is NoneType; pass a text or a path or germane\.Store"),
        ({"location": 5}, r"location=5 is int; pass a text or a path or germane\.Store"),
        ({"embedder": "openai"}, "The embedder 'openai' is unknown"),
        ({"summarizer": "gpt"}, "summarizer='gpt' is no summarizer"),
        ({"kinds": "ticket"}, "kinds='ticket' is one value"),
        ({"kinds": ["ticket"]}, "'ticket' is no kind"),
        ({"clock": datetime(2026, 1, 1, tzinfo=UTC)}, "is datetime; pass a function"),
        ({"ids": 7}, r"ids=7 is int; pass a germane\.ids\.IdSequence, such as .*seeded_ids"),
    ],
)
def test_what_an_engine_cannot_be_opened_with(given: dict[str, Any], message: str) -> None:
    arguments = {"location": ":memory:", **given}

    with pytest.raises(InvalidInput, match=message):
        germane.open(arguments.pop("location"), **arguments)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kinds": "note"}, "kinds='note' is one value"),
        ({"kinds": (5,)}, "kinds=5 is int"),
        ({"tags": "storage"}, "tags='storage' is one value"),
        ({"scopes": ("somewhere else",)}, "scope='somewhere else' is no scope"),
        (
            {"statuses": ("gone",)},
            "statuses='gone' is unknown: take one of active, superseded, archived",
        ),
        (
            {"metadata": {"reasons": ["a", "b"]}},
            r"metadata\['reasons'\]=.* is list; pass a text or a number",
        ),
        ({"metadata": {5: "a"}}, "a key of metadata=5 is int"),
        ({"metadata": {"seats": float("nan")}}, "metadata 'seats': nan is no number"),
        ({"metadata": "ticket=T-1"}, "metadata='ticket=T-1' is str; pass a mapping"),
        ({"metadata": 5}, "metadata=5 is int; pass a mapping"),
        ({"metadata": (("ticket", "T-1"),)}, "is no mapping of names to values"),
        ({"subject": 5}, r"subject=5 is int; a text \(str\) is needed"),
        ({"source": ["notes.md"]}, r"source=\['notes.md'\] is list; a text \(str\) is needed"),
        ({"when": "in May"}, r"when='in May' is str; pass germane\.TimeRange"),
        ({"min_importance": "5"}, "min_importance='5' is str; pass a number"),
        ({"min_importance": True}, "min_importance=True is bool; pass a number"),
        ({"pinned": "yes"}, "pinned='yes' is str; pass True or False"),
        ({"embedded": 1}, "embedded=1 is int; pass True or False"),
        (
            {"without": ("great",)},
            "without='great' is unknown: take one of success, partial, ongoing, pending",
        ),
    ],
)
def test_what_a_filter_cannot_ask_for(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Filter(**given)


def test_a_filter_reads_texts_and_any_sequence() -> None:
    given: dict[str, Any] = {
        "kinds": ["fact"],
        "scopes": ["task:T-42"],
        "statuses": ["forgotten"],
        "without": ["failure"],
    }

    assert Filter(**given) == Filter(
        kinds=("fact",),
        scopes=(Scope(name="task", value="T-42"),),
        statuses=(Status.FORGOTTEN,),
        without=(Outcome.FAILURE,),
    )
    nothing: Any = None
    assert Filter(metadata=nothing) == Filter(metadata={}) == Filter()
    fields = Filter(metadata={"seats": 20, "paid": True})
    assert Filter(metadata=fields.metadata) == fields


def test_memories_are_listed_by_a_filter_an_order_and_a_limit() -> None:
    with germane.open(":memory:") as engine:
        engine.remember_many(["The pump hums.", "The valve is shut."])
        arguments: Any = engine.memories

        assert arguments(order="oldest") == engine.memories(order=Order.OLDEST)
        with pytest.raises(InvalidInput, match="order='latest' is unknown: take one of newest, oldest"):
            arguments(order="latest")
        with pytest.raises(InvalidInput, match=r"pass one such as germane\.Filter"):
            arguments(["note"])
        with pytest.raises(InvalidInput, match=r"kinds = \['note'\] can't be compared"):
            arguments({"kinds": ["note"]})
        with pytest.raises(InvalidInput, match="limit=-1"):
            arguments(limit=-1)


def test_a_memory_in_the_place_of_its_id_is_reported() -> None:
    with germane.open(":memory:") as engine:
        memory: Any = engine.remember("The pump hums.")

        for verb in (engine.get, engine.forget, engine.restore, engine.history):
            with pytest.raises(InvalidInput, match="memory_id is a Memory; pass its id"):
                verb(memory)
        with pytest.raises(InvalidInput, match="pass its id"):
            engine.purge(memory, confirm=True)
        assert engine.get(memory.id) == memory


def test_an_error_names_the_draft_that_is_wrong_and_nothing_is_stored() -> None:
    drafts: list[Any] = ["The pump hums.", {"content": "The valve is shut.", "importance": 12}]
    with germane.open(":memory:") as engine:
        with pytest.raises(InvalidInput, match=r"^drafts\[1\]: importance=12"):
            engine.remember_many(drafts)
        with pytest.raises(UnknownKind, match=r"^drafts\[1\]: Unknown kind 'pump'") as error:
            engine.remember_many(["The pump hums.", {"content": "So it does.", "kind": "pump"}])
        with pytest.raises(InvalidInput, match=r"^importance=12"):
            engine.remember_many(drafts[1:])

        assert error.value.kind == "pump"
        assert engine.count() == 0


def test_what_goes_in_batches_goes_whole_or_not_at_all() -> None:
    with germane.open(":memory:") as engine:
        one, other = (each.memory for each in engine.remember_many(["The pump hums.", "The valve is shut."]))
        newer = engine.revise(one.id, "The pump howls.")

        for verb in (engine.forget_many, lambda ids: engine.purge_many(ids, confirm=True)):
            with pytest.raises(NotFound):
                verb([other.id, "nobody"])
            with pytest.raises(InvalidInput, match=r"memory_ids=.* is one value"):
                verb(other.id)
            with pytest.raises(InvalidInput, match="memory_ids=None is one value"):
                verb(cast("Any", None))
        with pytest.raises(PurgeNotConfirmed):
            engine.purge_many([other.id])
        assert engine.count() == 2

        assert [each.status for each in engine.forget_many([other.id, other.id])] == [Status.FORGOTTEN]
        assert engine.count(Filter(statuses=(Status.FORGOTTEN,))) == 1
        assert engine.purge_many([newer.id, one.id, other.id], confirm=True) == 3
        assert engine.count(Filter(statuses=tuple(Status))) == 0
        assert (engine.forget_many([]), engine.purge_many([], confirm=True)) == ((), 0)


@pytest.mark.parametrize("confirm", [False, "no", 1])
def test_what_cannot_be_undone_is_confirmed_by_true_alone(confirm: Any, tmp_path: Path) -> None:
    store = tmp_path / "agent.db"
    with germane.open(store, agent="ada") as engine:
        memory = engine.remember("The pump hums.")
        talk = engine.conversation("standup")
        talk.append("user", "Does it?")
        space = engine.space("team", create=True)
        verbs: list[Callable[..., object]] = [
            lambda **given: engine.purge(memory.id, **given),
            talk.purge,
            space.disband,
            lambda **given: remove_agent(store, "ada", **given),
        ]
        for verb in verbs:
            with pytest.raises(PurgeNotConfirmed):
                verb(confirm=confirm)
        assert (engine.count(), len(talk.messages()), len(space.members())) == (1, 1, 1)


def test_a_pin_is_set_and_taken_away_by_a_revision() -> None:
    with germane.open(":memory:") as engine:
        memory = engine.remember("Deploys are frozen.", kind="fact")

        pinned = engine.revise(memory.id, pinned=True)
        assert engine.count(Filter(pinned=True)) == 1
        assert pinned.id in {item.memory.id for item in engine.assemble("rivers", budget=200).items}

        assert engine.revise(pinned.id, pinned=False).pinned is False
        assert engine.count(Filter(pinned=True)) == 0


def test_at_a_prompt_results_are_short() -> None:
    with germane.open(":memory:") as engine:
        message = "So it does. " * 500
        engine.remember_many([f"The pump of hall {number} hums. {message}" for number in range(20)])
        found = engine.recall("Which pump hums?", limit=2)
        context = engine.assemble("Which pump hums?", budget=500)

        assert repr(found).startswith("<germane.RecallResult 'Which pump hums?': 2 found\n  ")
        assert len(repr(found).splitlines()) == 3
        assert f"{context.tokens} of 500 tokens" in repr(context)
        request = engine.request("Hum.")
        for value in (found, context, context.trace, found[0], context.items[0].memory, request):
            assert len(repr(value)) < 600
        assert repr(engine.recall("x", kinds=["fact"])) == "<germane.RecallResult 'x': none, filtered>"


def test_a_question_as_long_as_a_file_is_read_word_by_word_once() -> None:
    """It finds what its words find, each searched once."""
    with germane.open(":memory:", embedder=None) as engine:
        engine.remember_many(["The pumps hum.", "Valves and pumps leak.", "The valves are new.", "A cat."])
        message, short = engine.recall("pumps valves " * 1000), engine.recall("pumps valves")
        assert [one.parts for one in message] == [one.parts for one in short]
        assert len(message) == 3


def test_a_question_is_put_to_what_a_filter_admits() -> None:
    with germane.open(":memory:") as engine:
        for ticket in ("T-1", "T-2"):
            engine.remember(f"The pump of {ticket} hums.", source=f"{ticket}.md", metadata={"ticket": ticket})
        where = Filter(metadata={"ticket": "T-2"})

        (found,) = engine.recall("Which pump hums?", where=where)
        (item,) = engine.assemble("Which pump hums?", where=where, budget=500).items
        assert found.memory.id == item.memory.id == engine.memories(Filter(source="T-2.md"))[0].id
        assert engine.recall("Which pump hums?", where=where, kinds=["fact"]).empty_reason == "filtered"
        assert Filter(metadata={"paid": True}) != Filter(metadata={"paid": 1})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda e: e.assemble("x", frame=object()),
            r"frame=<object.* is object; pass a text or germane",
        ),
        (
            lambda e: e.assemble("x", plan=5),
            r"plan=5 is int; pass a text or germane\.Plan or",
        ),
        (lambda e: e.recall("x", kinds=[5]), "kinds=5 is int; a text"),
        (lambda e: e.recall("x", limit=2**63), r"limit=9223372036854775808 is out of range: .* 64 bits"),
        (lambda e: e.recall("x", limit="10"), "limit='10' is str; pass a whole number"),
        (lambda e: e.recall("x", since="no such time"), "since='no such time' names no time"),
        (lambda e: e.recall("x", since=2026), "since=2026 is int; pass an aware datetime"),
        (
            lambda e: e.recall("x", since=datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))),
            r"since='0001-01-01T00:00:00\+01:00' lies outside the years 1 to 9999",
        ),
        (lambda e: e.remember("x", importance=10**400), "importance=1000.* is out of range"),
        (lambda e: e.remember("x", metadata={"a": _nested(200)}), "metadata.* deeper than 100 levels"),
        (lambda e: e.remember("x", pinned="yes"), "pinned='yes' is str; pass True or False"),
        (lambda e: e.working_set().changes(limit=2**63), "limit=9223372036854775808 is out of range"),
        (lambda e: e.request([{"role": "user", "content": "\udcff"}]), "a text in messages.* surrogate"),
        (lambda e: e.request("x", tools=[{"name": "\udcff"}]), "a text in tools.* surrogate"),
        (
            lambda e: e.conversation("x").append("user", "y", group=7),
            r"group=7 is int; pass a text or germane",
        ),
        (lambda e: e.ledger().list(limit=1.5), "limit=1.5 is float; pass a whole number or None"),
    ],
)
def test_the_argument_its_value_and_what_would_be_right_are_named(
    call: Callable[[Any], object], message: str
) -> None:
    with germane.open(":memory:", embedder=None) as engine, pytest.raises(InvalidInput, match=message):
        call(engine)


def _nested(levels: int) -> list[Any]:
    return [_nested(levels - 1)] if levels else []


def test_missing_and_unknown_arguments_stay_type_errors() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        arguments: Any = engine.recall
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'query'"):
            arguments()
        with pytest.raises(TypeError, match="unexpected keyword argument 'top_k'"):
            arguments("x", top_k=5)


def test_an_iterator_is_read_once() -> None:
    with germane.open(":memory:", embedder=None) as engine:
        stored = engine.remember_many(text for text in ("The pump hums.", "The valve is shut."))
        assert engine.count() == len(stored) == 2
        assert len(engine.forget_many(one.memory.id for one in stored)) == 2


def test_a_verb_keeps_its_signature_and_its_help() -> None:
    assert inspect.signature(germane.Engine.recall).parameters["limit"].default == 10
    assert "best first" in str(germane.Engine.recall.__doc__)
    assert inspect.signature(germane.open).parameters["agent"].default == "default"
