"""Questions of your own as JSON lines: about a store that is there, or probes with their memories.

Level: evaluation.

A question is `{"question": ..., "evidence": [...], "category": ...}`; evidence is named by memory
id or by source, and a source that several memories share is found when one of them is. A probe is
`{"question": ..., "memory": ..., "near": [...], "half": ...}`: the memory answers the question,
and what is near to it doesn't. A number or a text in `half` parts the data; without it the first
half of the lines is the first half.

Of records that are imported for the run, evidence may also be a file's path or the end of one, `expect`
holds the numbers of their lines, and `answer` a phrase or a list of them: phrases that stand in the text
of a context which answers the question. A question with an answer alone has the memories with that phrase
as its evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from germane.engine import open_engine
from germane.errors import InvalidInput, UnreadableSource
from germane.evaluation.asked import Asked, Material, Piece
from germane.evaluation.corpus import Corpus, Stored
from germane.evaluation.metrics import Needle, holds_phrase
from germane.evaluation.records import Records, all_memories, names_of, numbered, open_records, record_key
from germane.exchange.jsonl import parse_object
from germane.exchange.locomo import EvidenceReport
from germane.exchange.sources import numbered_lines, unreadable
from germane.model.draft import Draft
from germane.model.memory import Status
from germane.packing.render import fence
from germane.protocols import Embedder, TokenCounter
from germane.stores.opening import exists

__all__ = ["own_material"]

_PROBED_AT = datetime(2026, 1, 1, tzinfo=UTC)
"""When probes are asked. Any moment would do: their memories have no time of their own."""
_NO_CATEGORY = "all"


def own_material(
    path: Path,
    *,
    counter: TokenCounter,
    embedder: Embedder | None,
    stored: Stored | None,
    records: Records | None = None,
) -> Material:
    """The questions of a file of JSON lines. Raises UnreadableSource or InvalidInput."""
    lines = [(number, parse_object(line, path, number)) for number, line in numbered_lines(path)]
    for number, fields in lines:
        if not isinstance(fields.get("question"), str) or not fields["question"].strip():
            raise unreadable(path, 'a text as "question" was expected', line=number)
    if any("memory" in fields for _, fields in lines):
        return _probes(lines, path, counter, embedder)
    if records is not None:
        return _about_records(lines, path, counter, embedder, records)
    if stored is None:
        raise InvalidInput(
            f"{path.name} asks about a store and none is named. Name its file (--db) and its agent "
            "(--agent), or records to import (--records)."
        )
    return _about_store(lines, path, counter, embedder, stored)


def _probes(
    lines: Sequence[tuple[int, Mapping[str, Any]]],
    path: Path,
    counter: TokenCounter,
    embedder: Embedder | None,
) -> Material:
    places: dict[str, str] = {}
    for number, fields in lines:
        for text in (fields.get("memory"), *_texts(fields, "near", path, number)):
            if not isinstance(text, str) or not text.strip():
                raise unreadable(path, 'a text as "memory" was expected', line=number)
            places.setdefault(text, f"M{len(places) + 1}")
    corpus = Corpus(
        ids=tuple(places.values()),
        turns=tuple(Needle("", text) for text in places),
        drafts=tuple(Draft(content=text, kind="fact", created_at=_PROBED_AT) for text in places),
        now=_PROBED_AT,
        counter=counter,
        embedder=embedder,
    )
    asked = _asked(lines, lambda _, fields: (_piece(places[fields["memory"]]),))
    return Material(corpora=(corpus,), asked=asked)


def _piece(memory_id: str) -> Piece:
    return Piece(name=memory_id, ids=(memory_id,))


def _about_store(
    lines: Sequence[tuple[int, Mapping[str, Any]]],
    path: Path,
    counter: TokenCounter,
    embedder: Embedder | None,
    stored: Stored,
) -> Material:
    if not exists(stored.database):
        raise InvalidInput(f"There is no store at {stored.database}. Name one that is there (--db).")
    with open_engine(stored.database, agent=stored.agent, read_only=True) as engine:
        memories = list(all_memories(engine))
    by_name: dict[str, list[str]] = {}
    for memory in memories:
        by_name.setdefault(memory.id, []).append(memory.id)
        if memory.source is not None:
            by_name.setdefault(memory.source, []).append(memory.id)
    active = [memory for memory in memories if memory.status is Status.ACTIVE]
    corpus = Corpus(
        ids=tuple(memory.id for memory in active),
        turns=tuple(Needle("", memory.content) for memory in active),
        drafts=(),
        now=datetime.now(UTC),
        counter=counter,
        embedder=embedder,
        stored=stored,
    )
    return _material(lines, path, corpus, by_name)


def _about_records(
    lines: Sequence[tuple[int, Mapping[str, Any]]],
    path: Path,
    counter: TokenCounter,
    embedder: Embedder | None,
    records: Records,
) -> Material:
    now = records.now or datetime.now(UTC)
    with open_records(records, now=now, embedder=None, counter=counter) as engine:
        memories = list(all_memories(engine))
    by_name: dict[str, list[str]] = {}
    for memory in memories:
        for name in dict.fromkeys(names_of(memory)):
            by_name.setdefault(name, []).append(memory.id)
    for number, ids in numbered(records, memories).items():
        by_name[f"line {number}"] = list(ids)
    active = [memory for memory in memories if memory.status is Status.ACTIVE]
    corpus = Corpus(
        ids=tuple(memory.id for memory in active),
        turns=tuple(Needle("", memory.content) for memory in active),
        drafts=(),
        now=now,
        counter=counter,
        embedder=embedder,
        records=records,
        keys=tuple(record_key(memory) for memory in active),
    )
    return _material(lines, path, corpus, by_name)


def _material(
    lines: Sequence[tuple[int, Mapping[str, Any]]],
    path: Path,
    corpus: Corpus,
    by_name: Mapping[str, Sequence[str]],
) -> Material:
    missing: list[str] = []

    def pieces(number: int, fields: Mapping[str, Any]) -> tuple[Piece, ...]:
        names = [*_texts(fields, "evidence", path, number), *_line_names(fields, path, number)]
        found = [Piece(name=name, ids=tuple(by_name.get(name, ()))) for name in dict.fromkeys(names)]
        if not found:
            phrases = _texts(fields, "answer", path, number)
            found = [Piece(name=phrase, ids=_with_phrase(corpus, phrase)) for phrase in phrases]
        missing.extend(f"{path.name}:{number}: {piece.name}" for piece in found if not piece.ids)
        return tuple(found)

    asked = _asked(lines, pieces, lambda number, fields: tuple(_texts(fields, "answer", path, number)))
    return Material(
        corpora=(corpus,),
        asked=asked,
        without_evidence=len(lines) - len(asked),
        evidence=EvidenceReport(read=sum(len(each.pieces) for each in asked), missing=tuple(missing)),
    )


def _with_phrase(corpus: Corpus, phrase: str) -> tuple[str, ...]:
    """The ids of the memories whose content has the phrase."""
    pairs = zip(corpus.ids, corpus.turns, strict=True)
    return tuple(own for own, turn in pairs if holds_phrase("\n".join(fence(turn.said)), phrase))


def _line_names(fields: Mapping[str, Any], path: Path, number: int) -> list[str]:
    """The numbers of the records' lines that a question expects, as names of evidence."""
    written = fields.get("expect", [])
    numbers = written if isinstance(written, list) else [written]
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in numbers):
        raise unreadable(path, 'a list of line numbers as "expect" was expected', line=number)
    return [f"line {each}" for each in numbers]


def _asked(
    lines: Sequence[tuple[int, Mapping[str, Any]]],
    pieces_of: Callable[[int, Mapping[str, Any]], tuple[Piece, ...]],
    phrases_of: Callable[[int, Mapping[str, Any]], tuple[str, ...]] = lambda _number, _fields: (),
) -> tuple[Asked, ...]:
    """The questions that have evidence."""
    halves = list(dict.fromkeys(str(fields["half"]) for _, fields in lines if "half" in fields))
    kept = [(number, fields, pieces) for number, fields in lines if (pieces := pieces_of(number, fields))]
    middle = (len(kept) + 1) // 2

    def half(place: int, fields: Mapping[str, Any]) -> int:
        return int(place >= middle) if not halves else int(str(fields.get("half")) != halves[0])

    return tuple(
        Asked(
            number=place + 1,
            corpus=0,
            question=fields["question"],
            category=_category(fields.get("category")),
            pieces=pieces,
            half=half(place, fields),
            phrases=phrases_of(number, fields),
        )
        for place, (number, fields, pieces) in enumerate(kept)
    )


def _category(written: object) -> int | str:
    if written is None:
        return _NO_CATEGORY
    return written if isinstance(written, int) and not isinstance(written, bool) else str(written)


def _texts(fields: Mapping[str, Any], name: str, path: Path, number: int) -> list[str]:
    """The texts of a field; one text stands for a list of one."""
    written = fields.get(name, [])
    texts = [written] if isinstance(written, str) else written
    if not isinstance(texts, list) or not all(isinstance(each, str) and each.strip() for each in texts):
        raise _no_texts(path, name, number)
    return texts


def _no_texts(path: Path, name: str, number: int) -> UnreadableSource:
    return unreadable(path, f'a list of texts as "{name}" was expected', line=number)
