"""What is derived from memories and messages has no more trust than the least of its sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

import germane
from germane import Draft, Engine, Memory, Trust
from germane.errors import InvalidInput
from germane.testing.fakes import FixedClock, HashEmbedder
from support.examples import examples

START = datetime(2026, 11, 21, 12, tzinfo=UTC)
TOPICS = ("the oven is blue", "the shop opens at nine", "payments go to the gateway")
CALL = {"id": "c", "type": "function", "function": {"name": "fetch", "arguments": "{}"}}

ABOUT_ANOTHER = ("repeat", "revise", "supersede", "derive", "name a source")
"""What makes a memory of one that is known."""

steps = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("remember", "key", "reconcile", "learn", "compact", "summarize", "reflect", "maintain"),
                *ABOUT_ANOTHER,
            ]
        ),
        st.integers(0, 5),
        st.sampled_from(tuple(Trust)),
        st.sampled_from(TOPICS),
    ),
    min_size=4,
    max_size=14,
)


class Echo:
    """Summarizes a text as all of its marks."""

    def summarize(self, text: str, tokens: int) -> str:  # noqa: ARG002 - It is long enough for any.
        return f"Summary of {' '.join(dict.fromkeys(each for each in text.split() if 'mark' in each))}"


class Graph:
    """An engine, and the trust of each mark: that of the text in which it was first written."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.origins: dict[str, Trust] = {}

    def mark(self, trust: Trust) -> str:
        name = f"mark{len(self.origins)}x"
        self.origins[name] = trust
        return name

    def take(self, step: str, number: int, trust: Trust, topic: str) -> None:
        known = self.engine.memories()
        old = known[number % len(known)] if known else None
        text = f"The user says {topic}, {self.mark(trust)}"
        kind = ("fact", "preference", "note")[number % 3]
        if step in ABOUT_ANOTHER and old is not None:
            self._about(step, old, known[-1], Draft(content=text, kind=kind, trust=trust))
        elif step == "key":
            self.engine.remember(text, kind=kind, key=f"key{number}", trust=trust, source=f"page{number % 2}")
        elif step == "reconcile":
            self.engine.remember(text, kind="fact", trust=trust, subject="user", reconcile=True)
        elif step in ("learn", "compact", "summarize"):
            self._converse(step, number, trust, topic)
        elif step == "reflect":
            self.engine.consolidate(reflect=True)
        elif step == "maintain":
            self.engine.maintain()
        else:
            self.engine.remember(text, kind=kind, trust=trust, source=f"page{number}")

    def _about(self, step: str, old: Memory, latest: Memory, draft: Draft) -> None:
        """Store what is made of a known memory, and says of itself that it has more trust."""
        if step == "repeat":
            again = Draft(content=old.content, kind=old.kind, subject=old.subject, trust="owner")
            self.engine.remember_many([replace(again, source=old.source, key=old.key)])
        elif step == "revise":
            self.engine.revise(old.id, f"{old.content}, {self.mark(Trust.OWNER)}")
        elif step == "supersede":
            again = Draft(content=f"{old.content}, again", kind=old.kind, trust="owner")
            self.engine.supersede(old.id, again)
        elif step == "derive":
            named = {"_derived_from": [old.id]}
            self.engine.remember_many(
                [replace(draft, content=f"{old.content}, so {draft.content}", metadata=named)]
            )
        else:
            named = {"_derived_from": [latest.id]}
            self.engine.revise(old.id, f"{old.content}, {latest.content}", metadata=named)

    def _converse(self, step: str, number: int, trust: Trust, topic: str) -> None:
        conversation = self.engine.conversation(f"talk{number}")
        conversation.append("user", f"I like {topic.split()[1]} {self.mark(Trust.OWNER)}.")
        if trust is Trust.EXTERNAL:
            call = CALL | {"id": f"c{len(self.origins)}"}
            conversation.append({"role": "assistant", "content": None, "tool_calls": [call]})
            read = f"I prefer {topic} {self.mark(Trust.EXTERNAL)}. I live in {self.mark(Trust.EXTERNAL)}."
            conversation.append({"role": "tool", "tool_call_id": call["id"], "content": read})
        conversation.append("assistant", f"We decided that {topic} {self.mark(trust)}.")
        if step == "learn":
            self.engine.learn_from(conversation)
        elif step == "summarize":
            conversation.summary()
        else:
            conversation.append("user", "And then?")
            compaction = self.engine.compaction(conversation, budget=12, keep=1)
            self.engine.remember_many(compaction.drafts)


@settings(max_examples=examples(60), deadline=None)
@given(steps=steps)
def test_trust_never_rises_in_a_derivation(steps: Sequence[tuple[str, int, Trust, str]]) -> None:
    with germane.open(
        ":memory:", agent="ada", clock=FixedClock(START), embedder=HashEmbedder(), summarizer=Echo()
    ) as engine:
        graph = Graph(engine)
        for step in steps:
            try:
                graph.take(*step)
            except InvalidInput as error:
                assert "raises trust" in str(error)
        every = engine.memories(where=germane.Filter(statuses=()))
        for memory in every:
            sources = [trust for mark, trust in graph.origins.items() if mark in memory.content]
            least = max(sources, key=tuple(Trust).index, default=Trust.OWNER)
            assert tuple(Trust).index(memory.trust) >= tuple(Trust).index(least), memory
