"""What is derived from memories and messages has no more trust than the least of its sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

import germane
from germane import Draft, Engine, Memory, Space, Trust
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
        # No other agent speaks in a conversation.
        statement = self.mark(Trust.AGENT if trust is Trust.PEER else trust)
        conversation.append("assistant", f"We decided that {topic} {statement}.")
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


members = st.lists(
    st.tuples(
        st.sampled_from(("remember", "put", "share", "derive", "conclude", "again", "reconcile", "vouch")),
        st.integers(0, 1),
        st.integers(0, 9),
        st.sampled_from(tuple(Trust)),
    ),
    min_size=4,
    max_size=14,
)


class Members:
    """Two agents and their space, and the most trust that a text with each mark may have for its reader."""

    def __init__(self, engines: Sequence[Engine]) -> None:
        self.engines = engines
        self.spaces = [engine.space("team", create=engine is engines[0]) for engine in engines]
        self.spaces[1].join()
        self.origins: dict[str, Trust] = {}

    def take(self, step: str, which: int, number: int, trust: Trust) -> None:
        engine, space = self.engines[which], self.spaces[which]
        own, shared = engine.memories(), space.memories()
        mark = f"mark{len(self.origins)}x"
        self.origins[mark] = trust
        text = f"The shop opens at {number}, {mark}"
        if step == "share" and own:
            space.share(own[number % len(own)].id)
        elif step == "derive" and own:
            self._derive(space, own[number % len(own)], text, trust)
        elif step == "conclude" and shared:
            self._derive(engine, shared[number % len(shared)], text, trust)
        elif step == "again" and shared:
            old = shared[number % len(shared)]
            space.remember_many(
                [Draft(content=old.content, kind=old.kind, subject=old.subject, trust="owner")]
            )
        elif step == "vouch" and shared:
            memory = space.confirm(shared[number % len(shared)].id, vouched_by="user")
            # Whoever vouches for a text does so for all that it says.
            self.origins |= {
                name: min(origin, Trust.PEER, key=tuple(Trust).index)
                for name, origin in self.origins.items()
                if name in memory.content
            }
        elif step == "reconcile":
            space.remember(text, kind="fact", trust=trust, subject="shop", reconcile=True)
        else:
            (space if step == "put" else engine).remember(text, kind="fact", trust=trust)

    def _derive(self, into: Engine | Space, old: Memory, text: str, trust: Trust) -> None:
        named = {"_derived_from": [old.id]}
        into.remember(f"{old.content}, so {text}", kind="fact", trust=trust, metadata=named)


@settings(max_examples=examples(40), deadline=None)
@given(steps=members)
def test_trust_never_rises_through_a_space(steps: Sequence[tuple[str, int, int, Trust]]) -> None:
    rank = tuple(Trust).index
    with germane.connect(":memory:", embedder=None, clock=FixedClock(START)) as store:
        graph = Members([store.agent("ada"), store.agent("ben")])
        for step in steps:
            graph.take(*step)
        every = germane.Filter(statuses=())
        shared = graph.spaces[0].memories(where=every)
        assert all(rank(memory.trust) >= rank(Trust.PEER) for memory in shared)
        for memory in (*shared, *(each for engine in graph.engines for each in engine.memories(where=every))):
            sources = [trust for mark, trust in graph.origins.items() if mark in memory.content]
            least = max(sources, key=rank, default=Trust.OWNER)
            assert rank(memory.trust) >= rank(least), memory
        ids = {memory.id for memory in shared}
        for memory in (each for engine in graph.engines for each in engine.memories(where=every)):
            if ids & set(memory.metadata.get("_derived_from", ())):
                assert rank(memory.trust) >= rank(Trust.PEER), memory
