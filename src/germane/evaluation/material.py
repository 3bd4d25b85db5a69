"""What is measured: conversations, questions about a store, probes, and what has to be found for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

from germane.engine import Engine
from germane.engine import open as open_engine
from germane.errors import InvalidInput, UnreadableSource
from germane.evaluation.result import Needle, holds_phrase
from germane.importers.locomo import (
    ADVERSARIAL,
    EvidenceReport,
    LocomoConversation,
    conversation_drafts,
    evidence_report,
    read_locomo,
)
from germane.importers.records import parse_object
from germane.importers.sources import numbered_lines, unreadable
from germane.importers.transfer import Layout, import_source, layout_of, read
from germane.model.memory import Draft, Memory, Status
from germane.model.query import Filter
from germane.model.text import day_in_words
from germane.operations.inputs import checked_count
from germane.packing.render import fence
from germane.protocols import Embedder, TokenCounter
from germane.stores.location import exists

__all__ = [
    "Corpus",
    "EvaluationQuestion",
    "EvidencePiece",
    "Material",
    "Order",
    "Reader",
    "Records",
    "Retriever",
    "Stored",
    "all_memories",
    "drawn",
    "found_pieces",
    "names_of",
    "numbered",
    "open_records",
    "own_material",
    "read_material",
    "record_key",
]

_LINES = (".jsonl", ".ndjson")


def read_material(
    path: Path,
    *,
    counter: TokenCounter,
    embedder: Embedder | None,
    conversations: Sequence[str] | None = None,
    stored: Stored | None = None,
    records: Records | None = None,
) -> Material:
    """The questions of a file. One of JSON lines holds questions about `records` or `stored`, or probes.

    `conversations` are sample ids, of LoCoMo's layout alone. Raises UnreadableSource or InvalidInput.
    """
    if path.suffix.lower() in _LINES:
        if conversations is not None:
            raise InvalidInput(f"{path.name} holds no conversations to choose from; leave them unsaid.")
        return own_material(path, counter=counter, embedder=embedder, stored=stored, records=records)
    if records is not None:
        raise InvalidInput(
            f"{path.name} brings its own conversations, so records can't be named beside it. Leave one out."
        )
    chosen = _chosen(read_locomo(path), conversations)
    every = [question for conversation in chosen for question in conversation.questions]
    return Material(
        corpora=tuple(_corpus(conversation, counter, embedder) for conversation in chosen),
        questions=_questions_of(chosen),
        names=tuple(each.sample_id for each in chosen),
        adversarial=sum(each.category == ADVERSARIAL for each in every),
        without_evidence=sum(not each.evidence and each.category != ADVERSARIAL for each in every),
        evidence=evidence_report(chosen),
    )


def drawn(material: Material, limit: int | None, seed: int) -> Material:
    """The material with at most `limit` of its questions, drawn over all of them and left in order."""
    asked = material.questions
    if limit is None or len(asked) <= checked_count(limit, name="questions_limit", least=1):
        return material
    places = np.random.default_rng(seed).choice(len(asked), size=limit, replace=False)
    return replace(material, questions=tuple(asked[place] for place in sorted(places.tolist())))


def _chosen(every: Sequence[LocomoConversation], names: Sequence[str] | None) -> list[LocomoConversation]:
    if names is None:
        return list(every)
    known = [each.sample_id for each in every]
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise InvalidInput(
            f"No conversation is named {', '.join(unknown)}. The file holds {', '.join(known)}."
        )
    return [each for each in every if each.sample_id in names]


def _questions_of(conversations: Sequence[LocomoConversation]) -> tuple[EvaluationQuestion, ...]:
    """The questions with evidence, the adversarial ones aside; the first half has the middle conversation."""
    middle = (len(conversations) + 1) // 2
    counting = (
        (place, question)
        for place, conversation in enumerate(conversations)
        for question in conversation.questions
        if question.category != ADVERSARIAL and question.evidence
    )
    return tuple(
        EvaluationQuestion(
            number=number,
            corpus=place,
            question=question.question,
            category=question.category,
            pieces=tuple(EvidencePiece(name=each, ids=(each,)) for each in question.evidence),
            half=int(place >= middle),
        )
        for number, (place, question) in enumerate(counting, 1)
    )


def _corpus(conversation: LocomoConversation, counter: TokenCounter, embedder: Embedder | None) -> Corpus:
    """A conversation as memories, asked about on the day after it ended."""
    last = max((turn.session_at for turn in conversation.turns), default=None)
    if last is None:
        raise InvalidInput(f"Conversation {conversation.sample_id!r} has no turns to ask about.")
    return Corpus(
        ids=tuple(turn.dia_id for turn in conversation.turns),
        turns=tuple(
            Needle(day_in_words(turn.session_at), f"{turn.speaker}: {turn.text}")
            for turn in conversation.turns
        ),
        drafts=tuple(conversation_drafts(conversation)),
        now=last + timedelta(days=1),
        counter=counter,
        embedder=embedder,
    )


# Questions of your own as JSON lines: about a store that is there, or probes with their memories.
#
# A question is `{"question": ..., "evidence": [...], "category": ...}`; evidence is named by memory id or
# by source, and a source that several memories share is found when one of them is. A probe is `{"question":
# ..., "memory": ..., "near": [...], "half": ...}`: the memory answers the question, and what is near to it
# doesn't. A number or a text in `half` parts the data; without it the first half of the lines is the first
# half.
#
# Of records that are imported for the run, evidence may also be a file's path or the end of one, `expect`
# holds the numbers of their lines, and `answer` a phrase or a list of them: phrases that stand in the text
# of a context which answers the question. A question with an answer alone has the memories with that phrase
# as its evidence.

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
    asked = _own_asked(lines, lambda _, fields: (_piece(places[fields["memory"]]),))
    return Material(corpora=(corpus,), questions=asked)


def _piece(memory_id: str) -> EvidencePiece:
    return EvidencePiece(name=memory_id, ids=(memory_id,))


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

    def pieces(number: int, fields: Mapping[str, Any]) -> tuple[EvidencePiece, ...]:
        names = [*_texts(fields, "evidence", path, number), *_line_names(fields, path, number)]
        found = [EvidencePiece(name=name, ids=tuple(by_name.get(name, ()))) for name in dict.fromkeys(names)]
        if not found:
            phrases = _texts(fields, "answer", path, number)
            found = [EvidencePiece(name=phrase, ids=_with_phrase(corpus, phrase)) for phrase in phrases]
        missing.extend(f"{path.name}:{number}: {piece.name}" for piece in found if not piece.ids)
        return tuple(found)

    asked = _own_asked(lines, pieces, lambda number, fields: tuple(_texts(fields, "answer", path, number)))
    return Material(
        corpora=(corpus,),
        questions=asked,
        without_evidence=len(lines) - len(asked),
        evidence=EvidenceReport(read=sum(len(each.pieces) for each in asked), missing=tuple(missing)),
    )


def _with_phrase(corpus: Corpus, phrase: str) -> tuple[str, ...]:
    """The ids of the memories whose content has the phrase."""
    pairs = zip(corpus.ids, corpus.turns, strict=True)
    return tuple(own for own, turn in pairs if holds_phrase("\n".join(fence(turn.texts)), phrase))


def _line_names(fields: Mapping[str, Any], path: Path, number: int) -> list[str]:
    """The numbers of the records' lines that a question expects, as names of evidence."""
    written = fields.get("expect", [])
    numbers = written if isinstance(written, list) else [written]
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in numbers):
        raise unreadable(path, 'a list of line numbers as "expect" was expected', line=number)
    return [f"line {each}" for each in numbers]


def _own_asked(
    lines: Sequence[tuple[int, Mapping[str, Any]]],
    pieces_of: Callable[[int, Mapping[str, Any]], tuple[EvidencePiece, ...]],
    phrases_of: Callable[[int, Mapping[str, Any]], tuple[str, ...]] = lambda _number, _fields: (),
) -> tuple[EvaluationQuestion, ...]:
    """The questions that have evidence."""
    halves = list(dict.fromkeys(str(fields["half"]) for _, fields in lines if "half" in fields))
    kept = [(number, fields, pieces) for number, fields in lines if (pieces := pieces_of(number, fields))]
    middle = (len(kept) + 1) // 2

    def half(place: int, fields: Mapping[str, Any]) -> int:
        return int(place >= middle) if not halves else int(str(fields.get("half")) != halves[0])

    return tuple(
        EvaluationQuestion(
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


# The questions of an evaluation and what has to be found for each.
#
# Values only.


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePiece:
    """A piece of evidence: a name for people, and the ids of the memories any one of which will do.

    One without ids is stored nowhere, and counts as never found.
    """

    name: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationQuestion:
    """A question about the corpus at place `corpus`; `number` counts the questions of the run from 1.

    `half` is 0 or 1: which half of the data it belongs to. `phrases` are words expected in the text.
    """

    number: int
    corpus: int
    question: str
    category: int | str
    pieces: tuple[EvidencePiece, ...]
    half: int
    phrases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """All that is asked, and of what. `names` are the conversations; a store and probes have none."""

    corpora: tuple[Corpus, ...]
    questions: tuple[EvaluationQuestion, ...]
    names: tuple[str, ...] = ()
    adversarial: int = 0
    without_evidence: int = 0
    evidence: EvidenceReport = field(default_factory=EvidenceReport)


def found_pieces(ranking: Sequence[str], pieces: Sequence[EvidencePiece]) -> list[str]:
    """A ranking with each memory that is a piece of evidence under that piece's name, each once."""
    of = {each: piece.name for piece in pieces for each in piece.ids}
    return list(dict.fromkeys(of.get(each, f"memory {each}") for each in ranking))


# What a retriever is given, and what is expected of it.
#
# Values and protocols only.


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A store that is there already, and whose memories are asked about. It is only read."""

    database: str | Path
    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """One conversation, oldest turn first; `ids`, `turns` and `drafts` stand side by side.

    A draft is the turn as germane imports it, a text of `texts` the turn with its day, as every
    other retriever is given it. `now` is a moment after the last turn: when the questions are asked.
    With `stored` the memories are in that store already: their own ids are `ids`, and there are no
    drafts. With `records` each reader imports these, and `keys` tells its memories apart (see `record_key`).
    """

    ids: tuple[str, ...]
    turns: tuple[Needle, ...]
    drafts: tuple[Draft, ...]
    now: datetime
    counter: TokenCounter
    embedder: Embedder | None = None
    stored: Stored | None = None
    records: Records | None = None
    keys: tuple[tuple[str, str | None, str], ...] = ()

    @property
    def texts(self) -> list[str]:
        """Each turn as "day speaker: what was said"."""
        return [f"{turn.day} {turn.texts}".lstrip() for turn in self.turns]


class Reader(Protocol):
    """Answers questions about one corpus."""

    def recall(self, question: str, limit: int) -> Sequence[str]:
        """The ids of the `limit` best memories, best first; fewer where it finds fewer."""
        ...

    def assemble(self, question: str, budget: int) -> str:
        """The context for a question: text that should keep within `budget` tokens."""
        ...

    def close(self) -> None:
        """Release what the reader holds."""
        ...


Retriever: TypeAlias = Callable[[Corpus], Reader]
Order: TypeAlias = Callable[[str], Sequence[int]]
"""For a question, the places of memories in the corpus, best first."""


# Records that are imported for a run: a folder, a file or a repository, as `germane import` reads it.
#
# Reads files; the clock only where no moment is given.

_PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """What is imported into a store in memory and then asked about.

    `source` is what `germane import` takes. `now` is the moment of the import and of the questions; the
    time of the run unless given.
    """

    source: str | Path
    now: datetime | None = None


def open_records(
    records: Records, *, now: datetime, embedder: Embedder | None, counter: TokenCounter
) -> Engine:
    """An engine in memory with the records imported. Raises UnreadableSource."""
    engine = open_engine(
        ":memory:", agent="evaluation", embedder=embedder, counter=counter, clock=lambda: now
    )
    try:
        import_source(engine, str(records.source))
    except BaseException:
        engine.close()
        raise
    return engine


def record_key(memory: Memory) -> tuple[str, str | None, str]:
    """What names a memory alike in every import of the same source, where its id differs."""
    return memory.kind, memory.source, memory.content


def names_of(memory: Memory) -> Iterator[str]:
    """The names by which evidence may call a memory of a file.

    Its source, the file of its source, and both without leading folders.
    """
    if memory.source is None:
        return
    path, mark, section = memory.source.partition("#")
    parts = path.split("/")
    for place in range(len(parts)):
        tail = "/".join(parts[place:])
        yield tail
        if mark:
            yield f"{tail}#{section}"


def numbered(records: Records, memories: Sequence[Memory]) -> Mapping[int, tuple[str, ...]]:
    """The ids of the memories of each line of JSON lines, counted from 1; empty for other layouts."""
    if layout_of(str(records.source)) is not Layout.MEMORIES:
        return {}
    of: dict[tuple[str, str], list[str]] = {}
    for memory in memories:
        of.setdefault((memory.kind, memory.content.strip()), []).append(memory.id)
    drafts = enumerate(read(str(records.source)), 1)
    return {number: tuple(of.get((draft.kind, draft.content.strip()), ())) for number, draft in drafts}


def all_memories(engine: Engine) -> Iterator[Memory]:
    """Every memory of any status: evidence that was forgotten or superseded is reported as such."""
    after: str | None = None
    everything = Filter(statuses=tuple(Status))
    while page := engine.memories(everything, limit=_PAGE, after=after):
        yield from page
        after = page[-1].ref
