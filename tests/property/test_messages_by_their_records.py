"""Whatever is stored of the terms of messages, a conversation is ranked as by the words themselves."""

from __future__ import annotations

import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import germane
from germane import Message
from germane.conversation import MessageRole
from germane.retrieval.bm25 import UNIT, Postings
from germane.retrieval.tokenizer import LONGEST, Forward, index_terms, query_terms, term_hash
from germane.stores import SqliteStore
from germane.stores.relational.conversation_records import indexed_words
from requests_of import conversations
from support.contracts.conversations import word_scores
from support.examples import examples

QUERIES = ("redis cache", "überlauf in file.cpp", "雨ですか", "a longer text", "go on")
CHANGES = st.sampled_from(["stay", "stay", "hide", "remove"])
RECORDS = st.sampled_from(["all", "none", "odd", "others", "short"])
BREAKING = {
    "all": "SELECT 1",
    "none": "DELETE FROM message_lex",
    "odd": "DELETE FROM message_lex WHERE num & 1",
    "others": "UPDATE message_lex SET rules = 7, hashes = x'', frequencies = x'' WHERE num & 1",
    "short": "UPDATE message_lex SET hashes = x'07' WHERE num & 1",
}


@contextmanager
def _logged(talk: Sequence[Message]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "talks.db"
        with germane.open(path, embedder=None, durability="relaxed") as engine:
            engine.conversation("other").append("user", "redis cache", group="a")
            engine.conversation("chat").extend(each.evolve(id="", hidden=False) for each in talk)
        yield path


def _by_words(messages: Sequence[Message], query: str) -> tuple[dict[int, float], float]:
    """BM25 over the turns as their words have it, counted one by one: a result belongs to its call."""
    turns: list[list[Message]] = []
    for each in messages:
        if each.group is None or each.hidden or each.role is MessageRole.SYSTEM:
            continue
        answered = {result.call_id for result in each.results}
        calling = [
            turn
            for turn in turns
            if turn[0].group == each.group and any(c.id in answered for one in turn for c in one.calls)
        ]
        if calling:
            calling[-1].append(each)
        else:
            turns.append([each])
    postings = Postings()
    for ordinal, turn in enumerate(turns):
        often: Counter[int] = Counter()
        forwards = [index_terms(indexed_words(each)) for each in turn]
        for one in forwards:
            often.update(dict(zip(one.hashes.tolist(), one.frequencies.tolist(), strict=True)))
        forward = Forward(
            hashes=np.array(sorted(often), dtype=np.uint32),
            frequencies=np.array([min(often[key], 255) for key in sorted(often)], dtype=np.uint8),
            length=min(sum(one.length for one in forwards), LONGEST),
        )
        postings.add(ordinal, forward)
    found = postings.score([term_hash(term) for term in query_terms(query)])
    scores = zip(found.ordinals.tolist(), found.scores.tolist(), strict=True)
    return {turns[ordinal][0].seq: score / UNIT for ordinal, score in scores}, found.bound


def _seen(path: Path) -> list[Any]:
    """What a new process finds, to the last bit and in its order."""
    with germane.open(path, embedder=None) as engine:
        log = engine.conversation("chat")
        return [repr(log.ranked(3, query=query)) for query in QUERIES]


@settings(max_examples=examples(60))
@given(conversations(), RECORDS, st.data())
def test_any_records_give_the_same_scores_and_views(
    talk: tuple[Message, ...], records: str, data: st.DataObject
) -> None:
    with _logged(talk) as path, closing(SqliteStore(path)) as open_before:
        word_scores(open_before.conversations, "default", "chat", ("redi",))
        with germane.open(path, embedder=None) as engine:
            log = engine.conversation("chat")
            for group in log.groups():
                change = data.draw(CHANGES)
                if change == "hide":
                    log.hide(group)
                elif change == "remove":
                    log.remove(group)
            log.extend([{"role": "user", "content": "redis"}] * data.draw(st.sampled_from([0, 2, 30])))
            hidden = [each.group for each in log.messages(hidden=True) if each.hidden]
            puts_back = bool(hidden) and data.draw(st.booleans())
            if puts_back:
                word_scores(open_before.conversations, "default", "chat", ("redi",))
                log.unhide(str(hidden[0]))
        before = _seen(path)
        with closing(sqlite3.connect(path, isolation_level=None)) as raw:
            raw.execute(BREAKING[records])
        assert _seen(path) == before
        with closing(SqliteStore(path)) as fresh:
            messages = fresh.conversations.messages("default", "chat")
            for query in QUERIES:
                terms = query_terms(query)
                expected = _by_words(messages, query)
                assert word_scores(fresh.conversations, "default", "chat", terms) == expected
                assert word_scores(open_before.conversations, "default", "chat", terms) == expected
