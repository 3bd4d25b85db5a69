"""Memories named by the last eight digits of their ids, as results show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

import germane
from germane import Draft, Engine, Filter, InvalidInput, Memory, NotFound
from germane.testing.fakes import START, FixedClock


@pytest.fixture
def engine() -> Iterator[Engine]:
    with germane.open(":memory:", embedder=None) as opened:
        yield opened


@pytest.mark.parametrize(
    "verb",
    [
        lambda engine, name: engine.get(name),
        lambda engine, name: engine.revise(name, "Refunds take six days."),
        lambda engine, name: engine.supersede(name, Draft(content="Refunds take six days.", kind="fact")),
        lambda engine, name: engine.confirm(name),
        lambda engine, name: engine.contradict(name),
        lambda engine, name: engine.retire(name),
        lambda engine, name: engine.forget(name),
        lambda engine, name: engine.history(name)[0],
    ],
)
def test_a_short_id_names_a_memory_in_every_verb(
    engine: Engine, verb: Callable[[Engine, str], Memory]
) -> None:
    memory = engine.remember("Refunds take five days.", kind="fact")

    assert verb(engine, memory.id[-8:]).id == memory.id


def test_a_short_id_with_a_version_names_that_version(engine: Engine) -> None:
    memory = engine.remember("Refunds take five days.")
    engine.revise(memory.id, "Refunds take six days.")

    assert engine.get(f"{memory.id[-8:]}@1").content == "Refunds take five days."


def test_states_pins_feedback_working_sets_and_purges_take_short_ids(engine: Engine) -> None:
    memory = engine.remember("Refunds take five days.", kind="fact")
    name = memory.id[-8:]
    context = engine.assemble("Anything else?", budget=200, pins=[name])
    working = engine.working_set()

    assert "five days" in context.text
    assert engine.assemble("How long do refunds take?", budget=200, without=[name]).items == ()
    assert engine.feedback(context, [name]).counted == 1
    assert engine.lifecycle_state(name) == engine.lifecycle_states([name])[0]
    working.add(name)
    working.pin(name)
    assert name in working
    working.remove(name)
    assert engine.purge(name, confirm=True) == 1


def test_a_user_reads_the_agents_own_by_short_id_and_does_not_change_it(engine: Engine) -> None:
    memory = engine.remember("Refunds take five days.")
    bound = engine.for_user("ann")

    assert bound.get(memory.id[-8:]) == memory
    with pytest.raises(InvalidInput, match="reads and doesn't change"):
        bound.forget(memory.id[-8:])


def test_a_short_id_of_a_users_memory_and_of_the_agents_own_names_both(engine: Engine) -> None:
    memory = engine.remember("Refunds take five days.")
    same = f"0190aaaa-0000-7000-8000-0000{memory.id[-8:]}"
    bound = engine.for_user("ann")
    with germane.open(":memory:", embedder=None) as other:
        bound.import_memories([other.remember("Ann prefers e-mail.").evolve(id=same)])

    with pytest.raises(InvalidInput) as refused:
        bound.get(memory.id[-8:])
    assert memory.id in str(refused.value)
    assert same in str(refused.value)
    assert engine.get(memory.id[-8:]) == memory


def test_a_short_id_names_a_memory_as_it_was_and_one_that_was_superseded() -> None:
    clock = FixedClock(START)
    with germane.open(":memory:", embedder=None, clock=clock) as engine:
        memory = engine.remember("Refunds take five days.")
        clock.advance(timedelta(days=1))
        clock.advance(timedelta(days=1))
        engine.supersede(memory.id, Draft(content="Refunds take six days."))
        gone = engine.remember("Ann prefers e-mail.")
        engine.forget(gone.id)

        assert (
            engine.get(memory.id[-8:], as_of=START + timedelta(days=1)).content == "Refunds take five days."
        )
        assert engine.get(f"{memory.id[-8:]}@1").content == "Refunds take five days."
        assert engine.get(gone.id[-8:]).id == gone.id


@pytest.mark.parametrize("text", ["1a2b3c4", "1a2b3c4d5", "1A2B3C4D", "nothing!", "1a2b3c4d@1"])
def test_a_filter_takes_the_last_eight_digits_alone(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"last eight hexadecimal digits"):
        Filter(short_id=text)


def test_a_short_id_of_several_memories_or_of_none_is_refused(engine: Engine) -> None:
    memory = engine.remember("Refunds take five days.")
    same = f"0190aaaa-0000-7000-8000-0000{memory.id[-8:]}"
    with germane.open(":memory:", embedder=None) as other:
        engine.import_memories([other.remember("Ann prefers e-mail.").evolve(id=same)])

    with pytest.raises(InvalidInput, match=r"names 2 memories: .*Give more of it"):
        engine.forget(memory.id[-8:])
    assert engine.count() == 2
    with pytest.raises(NotFound, match="'ffffffff'"):
        engine.get("ffffffff")
