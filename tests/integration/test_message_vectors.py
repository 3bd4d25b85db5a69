"""Messages of conversations are found by meaning, by stored vectors."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import germane
from germane import Engine
from germane.stores import reembed

_GROUPS = ({"feline", "cat", "kitten"}, {"dog", "hound"}, {"ship", "vessel"})


class Synonyms:
    """An embedder that knows a few synonyms, and counts the texts that it embeds."""

    dimension = 4

    def __init__(self, name: str = "synonyms", *, eager: bool = True, fails: bool = False) -> None:
        self.name, self.eager, self.fails = name, eager, fails
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One direction for each group of synonyms, another for everything else."""
        if self.fails:
            raise ConnectionError("The server is down")
        self.texts += texts
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            words = set(text.lower().replace(".", " ").replace("?", " ").split())
            row[:3] = [len(words & group) for group in _GROUPS]
            row[3] = 0.1
        return rows


@pytest.fixture(params=["file", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of either kind, without any agent."""
    if request.param == "file":
        return str(tmp_path / "agent.db")
    return str(request.getfixturevalue("postgres_store"))


def talk(engine: Engine) -> germane.Conversation:
    conversation = engine.conversation("monday")
    for text in ("My feline is called Felix.", "The vessel leaves at nine.", "It rains."):
        conversation.append("user", text)
        conversation.append("assistant", "I see.")
    return conversation


def found_by_meaning(engine: Engine) -> str:
    """The best message for a question none of whose words stands in it, in another conversation."""
    return engine.recall("Has anybody a kitten?", conversations=True, gate=False)[0].memory.content


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert holds()


def test_messages_are_found_by_meaning_and_embedded_once(location: str) -> None:
    first = Synonyms()
    with germane.open(location, embedder=first) as engine:
        conversation = talk(engine)
        assert found_by_meaning(engine) == "user: My feline is called Felix."
        best = conversation.ranked(2, query="kitten")
        assert "My feline is called Felix." in [each.text for each in best.messages]
    later = Synonyms()
    with germane.open(location, embedder=later) as engine:
        assert found_by_meaning(engine) == "user: My feline is called Felix."
        best = engine.conversation("monday").ranked(2, query="kitten")
        assert "My feline is called Felix." in [each.text for each in best.messages]
        assert later.texts == ["Has anybody a kitten?", "kitten"]


def test_a_slow_embedder_works_in_the_background(location: str) -> None:
    slow = Synonyms(eager=False)
    with germane.open(location, embedder=slow) as engine:
        talk(engine)
        until(lambda: len(slow.texts) >= 6)
        until(lambda: found_by_meaning(engine) == "user: My feline is called Felix.")
        assert engine.embed_pending() == 0


def test_messages_of_a_store_without_an_embedder_are_embedded_later(location: str) -> None:
    with germane.open(location, embedder=None) as engine:
        talk(engine)
    with germane.open(location, embedder=Synonyms()) as engine:
        assert engine.embed_pending(limit=4) == 4
        assert engine.embed_pending() == 2
        assert engine.embed_pending() == 0
        assert found_by_meaning(engine) == "user: My feline is called Felix."


def test_another_model_embeds_all_messages_anew(location: str) -> None:
    with germane.open(location, embedder=Synonyms()) as engine:
        talk(engine)
    other = Synonyms("other synonyms")
    assert reembed(location, embedder=other) == 6
    assert len(other.texts) == 6
    with germane.open(location, embedder=other) as engine:
        assert found_by_meaning(engine) == "user: My feline is called Felix."
        assert engine.embed_pending() == 0


def test_a_message_is_stored_even_if_the_embedder_fails(location: str) -> None:
    embedder = Synonyms(fails=True)
    with germane.open(location, embedder=embedder) as engine:
        conversation = talk(engine)
        assert len(conversation.messages()) == 6
        embedder.fails = False
        assert engine.embed_pending() == 6


def test_a_message_that_is_rewritten_waits_again(location: str) -> None:
    with germane.open(location, embedder=Synonyms()) as engine:
        conversation = engine.conversation("monday")
        conversation.append("user", "Go on.")
        conversation.append("assistant", "Sure.")
        conversation.state = "The kitten sleeps."
        assert engine.embed_pending() == 1
        assert "kitten" in engine.recall("Has anybody a feline?", conversations=True)[0].memory.content


def test_what_is_hidden_or_another_users_is_not_found_by_meaning(location: str) -> None:
    with germane.open(location, embedder=Synonyms()) as engine:
        alice, bob = engine.for_user("alice"), engine.for_user("bob")
        conversation = talk(alice)
        assert "feline" in found_by_meaning(alice)
        assert not bob.recall("Has anybody a kitten?", conversations=True, gate=False)
        assert not engine.recall("Has anybody a kitten?", conversations=True, gate=False)
        conversation.hide(conversation.groups()[0])
        assert "feline" not in found_by_meaning(alice)


def test_a_call_and_its_result_have_one_direction(location: str) -> None:
    with germane.open(location, embedder=Synonyms()) as engine:
        conversation = engine.conversation("tools")
        conversation.append("user", "Look it up.")
        call = {"id": "c1", "name": "look", "arguments": {"for": "hound"}}
        conversation.append("assistant", tool_calls=[call])
        conversation.append("tool", tool_results=[{"call_id": "c1", "content": "A hound barks."}])
        conversation.append("assistant", "Done.")
        (best, *_) = engine.recall("Is there a dog?", conversations=True, gate=False)
        assert "barks" in best.memory.content
