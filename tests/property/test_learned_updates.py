"""Updates from conversations: 100 chains of changes, each with what holds now, what held then, and why.

And undoing: whatever a chat says, undoing a run restores every byte of what is shown.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import germane
from germane import Engine, Filter, Status
from germane.extractors import ProposalOutcome
from germane.testing.fakes import FixedClock, HashEmbedder

START = datetime(2025, 1, 10, 12, tzinfo=UTC)
CITIES = [
    "Nagoya",
    "Osaka",
    "Lisbon",
    "Oslo",
    "Quito",
    "Perth",
    "Turin",
    "Ghent",
    "Bergen",
    "Kyoto",
    "Sapporo",
]
FIRMS = [
    "Globex",
    "Initech",
    "Umbrella",
    "Hooli",
    "Vandelay",
    "Cyberdyne",
    "Acme",
    "Tyrell",
    "Wonka",
    "Soylent",
]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
FORMS = {
    "home": (
        CITIES,
        ["I live in {}.", "We live in {} now.", "I'm based in {}."],
        [
            "I moved to {}.",
            "I just moved to {}!",
            "By the way, I've moved to {}.",
            "We recently relocated to {}.",
        ],
        "Where does the user live?",
        "Where did the user live in {}?",
    ),
    "job": (
        FIRMS,
        ["I work at {}.", "I work for {}, by the way."],
        ["I started a new job at {}.", "I got a new job at {}.", "I work at {} now."],
        "Where does the user work?",
        "Where did the user work in {}?",
    ),
    "choir meeting": (
        DAYS,
        ["My choir meeting is on {}."],
        ["My choir meeting moved to {}.", "Our choir meeting has been rescheduled to {}."],
        "When is the user's choir meeting?",
        "When was the user's choir meeting in {}?",
    ),
}


def current(engine: Engine, question: str) -> str:
    return engine.assemble(question, budget=400, conversations=False, record=False).text


@pytest.mark.parametrize("seed", range(100))
def test_a_chain_of_updates_shows_what_holds(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - The chains are the same each time.
    attribute = random.choice(sorted(FORMS))
    values, begins, changes, now, then = FORMS[attribute]
    chain = random.sample(values, random.randint(2, 4))
    clock = FixedClock(START)
    with germane.open(":memory:", clock=clock) as engine:
        chat = engine.conversation("chat")
        memory = ""
        for place, value in enumerate(chain):
            chat.append("user", random.choice(changes if place else begins).format(value))
            chat.append("assistant", "Noted.")
            (decision,) = engine.learn_from(chat).decisions
            assert decision.outcome is (ProposalOutcome.REVISED if place else ProposalOutcome.NEW)
            memory = decision.memory or ""
            clock.advance(timedelta(days=70))
        versions = engine.history(memory)
        assert [each.content.rstrip(".").split()[-1] for each in versions if attribute == "job"] == [
            value for value in chain if attribute == "job"
        ]
        # What holds now is shown, and nothing that doesn't any more.
        shown = current(engine, now)
        assert chain[-1] in shown
        assert not any(value in shown for value in chain[:-1])
        # What held then is found by a question about then: of each value, the middle of its time.
        for place, value in enumerate(chain[:-1]):
            month = START + timedelta(days=70 * place + 35)
            found = engine.recall(then.format(f"{month:%B %Y}"))[0].memory
            assert value in found.content
            assert found.valid_until == START + timedelta(days=70 * (place + 1))
        # And the change is explained, with the words that say so.
        run = engine.learning_runs(memory_id=memory, limit=1)[0]
        assert "new one was stated" in run.decisions[0].reason
        assert chain[-1] in run.decisions[0].proposal.quotes[0].text


STATEMENTS = st.sampled_from(
    [
        *(f"I live in {city}." for city in CITIES[:3]),
        *(f"I moved to {city}." for city in CITIES[:4]),
        "I'm allergic to peanuts.",
        "I like hiking.",
        "I don't like hiking.",
        "I love hiking!",
        "I only eat fish.",
        "I no longer only eat fish.",
        "My dentist appointment is on Tuesday.",
        "No, it's Thursday.",
        "My dentist appointment is on Friday at 5pm.",
        "My name is Anna.",
        "From now on, answer in French.",
        "We decided to use Postgres.",
        "If I lived in Rome, I'd sing.",
        "Thanks!",
    ]
)


def shown(engine: Engine, clock: FixedClock) -> list[object]:
    """What a user can see a year later, whenever it is called: scores depend on the time."""
    away = START + timedelta(days=365) - clock()
    clock.advance(away)
    try:
        return _shown(engine)
    finally:
        clock.advance(-away)


def _shown(engine: Engine) -> list[object]:
    memories = engine.memories(Filter(statuses=tuple(Status)))
    return [
        [(memory, memory.renditions) for memory in memories],
        engine.lifecycle_states([memory.ref for memory in memories]),
        engine.recall("What does the user like, and where does she live?"),
        engine.assemble("Where does the user live?", budget=500, conversations=False, record=False).text,
        engine.stats().by_status,
    ]


@given(st.lists(st.lists(STATEMENTS, min_size=1, max_size=6), min_size=1, max_size=4), st.booleans())
def test_undoing_restores_every_byte_of_what_is_shown(chats: list[list[str]], embeds: bool) -> None:
    clock = FixedClock(START)
    with germane.open(":memory:", clock=clock, embedder=HashEmbedder() if embeds else None) as engine:
        chat = engine.conversation("chat")
        engine.remember("The user lives in Lisbon.", kind="fact", subject="user")
        states, runs = [shown(engine, clock)], []
        for texts in chats:
            chat.append("user", " ".join(texts))
            runs.append(engine.learn_from(chat))
            states.append(shown(engine, clock))
            clock.advance(timedelta(days=20))
        for run in reversed(runs):
            assert shown(engine, clock) == states.pop()
            undone = engine.unlearn(run.id)
            assert all(each.undone or not each.effects for each in undone.decisions)
        assert shown(engine, clock) == states.pop()
        assert engine.doctor() == ()
