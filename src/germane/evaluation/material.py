"""The questions of an evaluation, the memories that they are about, and the evidence for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np

import germane
from germane.errors import InvalidInput
from germane.evaluation.messages import (
    LINES,
    Line,
    MessageLog,
    evidence_names,
    is_message_log,
    message_log,
    misfit,
    read_lines,
    shortened,
)
from germane.evaluation.result import Needle, holds_phrase
from germane.importers import Layout, import_source, layout_of, read
from germane.importers.dialogue import is_message
from germane.importers.locomo import (
    ADVERSARIAL,
    DialogueTurn,
    EvidenceReport,
    LocomoConversation,
    conversation_drafts,
    evidence_report,
    read_locomo,
)
from germane.importers.sources import FieldError
from germane.model.memory import Draft, Memory, Status, Trust
from germane.model.text import day_in_words
from germane.operations.inputs import checked_count
from germane.operations.read import EVERY, pages
from germane.packing.render import fence
from germane.protocols import Embedder, TokenCounter
from germane.stores.location import exists
from germane.tokens import CachedCounter, get_counter

if TYPE_CHECKING:
    from germane.engine import Engine

COUNTER = "o200k"
"""The token counter of every measured context."""


def read_material(
    path: str | Path,
    *,
    counter: TokenCounter | None = None,
    embedder: Embedder | None = None,
    conversations: Sequence[str] | None = None,
    stored: Stored | None = None,
    records: Records | None = None,
) -> Material:
    """Read the questions of a file. JSON lines hold questions about `records` or `stored`, or probes.

    The default `counter` is o200k. `conversations` are sample ids, for the LoCoMo format only.
    Raises UnreadableSource or InvalidInput.
    """
    path = Path(path)
    counter = counter or CachedCounter(get_counter(COUNTER))
    if path.suffix.lower() in LINES:
        if conversations is not None:
            raise InvalidInput(f"{path.name} holds no conversations to choose from; leave them out.")
        return _own_material(path, counter, embedder, records or stored)
    if records is not None:
        raise InvalidInput(
            f"{path.name} brings its own conversations, so records can't be named beside it. Leave one out."
        )
    left_out: list[str] = []
    chosen = [_sound(each, path, left_out) for each in _chosen(read_locomo(path), conversations)]
    turns = [Counter((turn.dia_id, turn.text) for turn in each.turns) for each in chosen]
    every = [question for conversation in chosen for question in conversation.questions]
    return Material(
        corpora=tuple(_corpus(conversation, counter, embedder) for conversation in chosen),
        questions=_questions_of(chosen),
        names=tuple(each.sample_id for each in chosen),
        adversarial=sum(each.category == ADVERSARIAL for each in every),
        without_evidence=sum(not each.evidence and each.category != ADVERSARIAL for each in every),
        evidence=evidence_report(chosen),
        left_out=tuple(left_out),
        repeated=sum(count - 1 for each in turns for count in each.values()),
    )


def _sound(conversation: LocomoConversation, path: Path, left_out: list[str]) -> LocomoConversation:
    """The conversation without turns and questions that contain an unpaired surrogate."""

    def is_sound(text: str, name: str) -> bool:
        sound = text.encode("utf-8", "ignore").decode() == text
        if not sound:
            place = f"{path.name}, {conversation.sample_id}, {name}"
            left_out.append(f"{place}: it holds half of a surrogate pair, which is no character.")
        return sound

    return replace(
        conversation,
        turns=tuple(turn for turn in conversation.turns if is_sound(turn.text, turn.dia_id)),
        questions=tuple(
            each
            for number, each in enumerate(conversation.questions, 1)
            if is_sound(each.question, f"question {number}")
        ),
    )


def drawn(material: Material, limit: int | None, seed: int) -> Material:
    """The material with at most `limit` questions, drawn at random, in their original order."""
    questions = material.questions
    if limit is None or len(questions) <= checked_count(limit, name="questions_limit", least=1):
        return material
    places = np.random.default_rng(seed).choice(len(questions), size=limit, replace=False)
    return replace(material, questions=tuple(questions[place] for place in sorted(places.tolist())))


def _chosen(every: Sequence[LocomoConversation], names: Sequence[str] | None) -> list[LocomoConversation]:
    if names is None:
        return list(every)
    known = [each.sample_id for each in every]
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise InvalidInput(
            f"No conversation is named {' or '.join(map(repr, unknown))}. The file holds {', '.join(known)}."
        )
    return [each for each in every if each.sample_id in names]


def _questions_of(conversations: Sequence[LocomoConversation]) -> tuple[EvaluationQuestion, ...]:
    """The questions with evidence, without adversarial ones; the middle conversation is in the first half."""
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
    """A conversation as memories without repeated turns; its questions are dated one day after its end."""
    once: dict[tuple[str, str], DialogueTurn] = {}
    for turn in conversation.turns:
        once.setdefault((turn.dia_id, turn.text), turn)
    conversation = replace(conversation, turns=tuple(once.values()))
    last = max((turn.session_at for turn in conversation.turns), default=None)
    if last is None:
        raise InvalidInput(f"Conversation {conversation.sample_id!r} has no turns to ask about.")
    return Corpus(
        ids=tuple(turn.dia_id for turn in conversation.turns),
        turns=tuple(
            Needle(day_in_words(turn.session_at), f"{turn.speaker}: {turn.text}", turn.speaker)
            for turn in conversation.turns
        ),
        drafts=tuple(conversation_drafts(conversation)),
        now=last + timedelta(days=1),
        counter=counter,
        embedder=embedder,
    )


# Your own questions as JSON lines: about messages, an existing store or records, or probes.
#
# A question is `{"question": ..., "evidence": [...], "category": ...}`. Evidence is named by the id of a
# message or a memory, by source, or by the end of its path. If several memories have the name, one of them is
# enough. A probe is `{"question": ..., "memory": ..., "near": [...], "half": ...}`: `memory` answers the
# question, and `near` are similar memories that don't. `half` is a number or text that splits the data; by
# default the first half of the lines is the first half.
#
# `expect` lists line numbers of records that are imported for the run. `answer` is a phrase, or a list of
# phrases, that a context with the answer contains. If a question has only an answer, the memories with that
# phrase are its evidence.
#
# Messages are lines of the same file or of the file of records. An answer rarely repeats their words, so it
# is only searched for if the question has no evidence.

_PROBED_AT = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of questions about probes and about messages without times; an arbitrary moment."""
_NO_CATEGORY = "all"
_Read = TypeVar("_Read")


def _own_material(
    path: Path, counter: TokenCounter, embedder: Embedder | None, about: Stored | Records | None
) -> Material:
    left_out: list[str] = []
    every = read_lines(path, left_out)
    lines = [line for line in every if not is_message(line[1])]
    log = _log(path, every, about, left_out)
    corpus, by_name, lines = _about(
        path, lines, log, about, counter=counter, embedder=embedder, left_out=left_out
    )
    cases = _each(
        lines, path, lambda fields: _case(fields, corpus, by_name, of_log=log is not None), left_out
    )
    usable = [(fields, case) for (_, fields), case in cases if any(piece.ids for piece in case.pieces)]
    if log is None:  # Evidence that a store or records lack counts as missed.
        usable = [(fields, case) for (_, fields), case in cases if case.pieces]
    halves = list(dict.fromkeys(str(fields["half"]) for _, fields in lines if "half" in fields))
    middle = (len(usable) + 1) // 2
    questions = tuple(
        replace(
            case,
            number=place + 1,
            half=int(str(fields.get("half")) != halves[0] if halves else place >= middle),
        )
        for place, (fields, case) in enumerate(usable)
    )
    missing = [
        f"{path.name}:{number}: {piece.name}"
        for (number, _), case in cases
        for piece in case.pieces
        if not piece.ids
    ]
    return Material(
        corpora=(corpus,),
        questions=questions,
        names=() if log is None else (path.stem,),
        without_evidence=len(cases) - len(questions),
        evidence=EvidenceReport(read=sum(len(case.pieces) for _, case in cases), missing=tuple(missing)),
        left_out=tuple(left_out),
        repeated=0 if log is None else log.repeated,
    )


def _log(
    path: Path, lines: Sequence[Line], about: Stored | Records | None, left_out: list[str]
) -> MessageLog | None:
    """The messages of the file, and of records that are messages; None if there are none."""
    own = [line for line in lines if is_message(line[1])]
    files = [(path, own)] if own else []
    source = Path(about.source).expanduser() if isinstance(about, Records) else None
    if source is not None and is_message_log(source):
        files.append((source, read_lines(source, left_out)))
    return message_log(files, left_out) if files else None


def _about(
    path: Path,
    lines: list[Line],
    log: MessageLog | None,
    about: Stored | Records | None,
    *,
    counter: TokenCounter,
    embedder: Embedder | None,
    left_out: list[str],
) -> tuple[Corpus, Mapping[str, Sequence[str]], list[Line]]:
    """The corpus of the questions, the ids of its memories by name, and the remaining lines."""
    if log is not None:
        corpus = Corpus(
            ids=log.ids,
            turns=log.turns,
            drafts=log.drafts,
            now=_PROBED_AT if log.until is None else log.until + timedelta(days=1),
            counter=counter,
            embedder=embedder,
        )
        return corpus, log.by_name, lines
    if any("memory" in fields for _, fields in lines):
        probed = _each(lines, path, _probed, left_out)
        memories = dict.fromkeys(chain.from_iterable(texts for _, texts in probed))
        return *_probe_corpus(tuple(memories), counter, embedder), [line for line, _ in probed]
    if about is not None:
        return *_corpus_of(about, counter, embedder), lines
    raise InvalidInput(
        f"{path.name} asks about a store and none is named. Name its file (--db) and its agent "
        "(--agent), or records or messages to import (--records)."
    )


def _each(
    lines: Sequence[Line], path: Path, read: Callable[[Mapping[str, Any]], _Read], left_out: list[str]
) -> list[tuple[Line, _Read]]:
    """Each line with its parsed value; invalid lines are reported in `left_out`."""
    found = []
    for line in lines:
        try:
            found.append((line, read(line[1])))
        except FieldError as error:
            left_out.append(misfit(path, line[0], str(error)))
    return found


def _probe_corpus(
    texts: Sequence[str], counter: TokenCounter, embedder: Embedder | None
) -> tuple[Corpus, Mapping[str, Sequence[str]]]:
    """The memories of probes as a corpus, and the id of each by its text."""
    ids = tuple(f"M{number}" for number in range(1, len(texts) + 1))
    corpus = Corpus(
        ids=ids,
        turns=tuple(Needle("", text) for text in texts),
        drafts=tuple(Draft(content=text, kind="fact", created_at=_PROBED_AT) for text in texts),
        now=_PROBED_AT,
        counter=counter,
        embedder=embedder,
    )
    return corpus, {text: [own] for text, own in zip(texts, ids, strict=True)}


def _corpus_of(
    about: Stored | Records, counter: TokenCounter, embedder: Embedder | None
) -> tuple[Corpus, Mapping[str, Sequence[str]]]:
    """The active memories as a corpus, and the ids of all memories by the names of evidence."""
    now = datetime.now(UTC)
    if isinstance(about, Records):
        now = about.now or now
        opened = open_records(about, now=now, embedder=None, counter=counter)
    elif exists(about.database):
        opened = germane.open(about.database, agent=about.agent, read_only=True)
    else:
        raise InvalidInput(f"There is no store at {about.database}. Name one that is there (--db).")
    with opened as engine:
        memories = list(all_memories(engine))
    by_name: dict[str, list[str]] = {}
    for memory in memories:
        for name in dict.fromkeys([memory.id, *_names_of(memory)]):
            by_name.setdefault(name, []).append(memory.id)
    if isinstance(about, Records) and layout_of(str(about.source)) is Layout.MEMORIES:
        same: dict[tuple[str, str], list[str]] = {}
        for memory in memories:
            same.setdefault((memory.kind, memory.content.strip()), []).append(memory.id)
        for number, draft in enumerate(read(str(about.source)), 1):
            by_name[f"line {number}"] = same.get((draft.kind, draft.content.strip()), [])
    active = [memory for memory in memories if memory.status is Status.ACTIVE]
    corpus = Corpus(
        ids=tuple(memory.id for memory in active),
        turns=tuple(Needle("", memory.content) for memory in active),
        drafts=(),
        now=now,
        counter=counter,
        embedder=embedder,
        about=about,
        keys=tuple(record_key(memory) for memory in active),
    )
    return corpus, by_name


def _case(
    fields: Mapping[str, Any], corpus: Corpus, by_name: Mapping[str, Sequence[str]], *, of_log: bool
) -> EvaluationQuestion:
    """The question of a line with its evidence; the number and the half are set later."""
    question, category = fields.get("question"), fields.get("category")
    if not isinstance(question, str) or not question.strip():
        raise FieldError(f'a text as "question" was expected, and it is {shortened(question)}')
    expected = fields.get("expect", [])
    numbers = expected if isinstance(expected, list) else [expected]
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in numbers):
        raise FieldError(f'a list of line numbers as "expect" was expected, and it is {shortened(expected)}')
    names = [*evidence_names(fields.get("evidence"), by_name), *(f"line {each}" for each in numbers)]
    if "memory" in fields:
        names = [fields["memory"]]
    phrases = [] if of_log and names else _texts(fields, "answer")
    pieces = _pieces(names, by_name)
    if not pieces:
        pieces = [EvidencePiece(name=phrase, ids=_with_phrase(corpus, phrase)) for phrase in phrases]
    return EvaluationQuestion(
        number=0,
        corpus=0,
        question=question,
        category=category if type(category) is int else str(category or _NO_CATEGORY),
        pieces=tuple(pieces),
        half=0,
        phrases=tuple(phrases),
    )


def _pieces(names: Sequence[str], by_name: Mapping[str, Sequence[str]]) -> list[EvidencePiece]:
    """A piece of evidence per name. Names of the same memories are one piece: repeated turns count once."""
    pieces: dict[object, EvidencePiece] = {}
    for name in names:
        ids = tuple(by_name.get(name, ()))
        pieces.setdefault(ids or name, EvidencePiece(name=name, ids=ids))
    return list(pieces.values())


def _with_phrase(corpus: Corpus, phrase: str) -> tuple[str, ...]:
    """The ids of the memories whose content has the phrase."""
    pairs = zip(corpus.ids, corpus.turns, strict=True)
    return tuple(own for own, turn in pairs if holds_phrase("\n".join(fence(turn.texts)), phrase))


def _probed(fields: Mapping[str, Any]) -> list[str]:
    """The memories of a probe: the answer, then the similar ones."""
    memory = fields.get("memory")
    if not isinstance(memory, str) or not memory.strip():
        raise FieldError(f'a text as "memory" was expected, and it is {shortened(memory)}')
    return [memory, *_texts(fields, "near")]


def _texts(fields: Mapping[str, Any], name: str) -> list[str]:
    """The texts of a field; a single text is a list of one."""
    written = fields.get(name, [])
    texts = [written] if isinstance(written, str) else written
    if not isinstance(texts, list) or not all(isinstance(each, str) and each.strip() for each in texts):
        raise FieldError(f'a list of texts as "{name}" was expected, and it is {shortened(written)}')
    return texts


# The questions and their evidence, as values.


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidencePiece:
    """A piece of evidence: its name, and the ids of memories of which one is enough.

    A piece without ids isn't stored, and counts as missed.
    """

    name: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationQuestion:
    """A question about the corpus with index `corpus`; `number` is its number in the run, from 1.

    `half` is the half of the data that it belongs to, 0 or 1. `phrases` are expected in the text.
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
    """All questions and their corpora. `names` are the names of conversations.

    `left_out` has the place and the reason of each invalid line or turn. `repeated` counts the turns that
    repeat an earlier one and aren't stored again.
    """

    corpora: tuple[Corpus, ...]
    questions: tuple[EvaluationQuestion, ...]
    names: tuple[str, ...] = ()
    adversarial: int = 0
    without_evidence: int = 0
    evidence: EvidenceReport = field(default_factory=EvidenceReport)
    left_out: tuple[str, ...] = ()
    repeated: int = 0


def found_pieces(ranking: Sequence[str], pieces: Sequence[EvidencePiece]) -> list[str]:
    """The ranking with evidence memories replaced by the names of their pieces, without duplicates."""
    of = {each: piece.name for piece in pieces for each in piece.ids}
    return list(dict.fromkeys(of.get(each, f"memory {each}") for each in ranking))


# The input of a retriever, and the protocol of the reader that it returns.


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An existing store that the questions are about. It is opened read-only."""

    database: str | Path
    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """One conversation, oldest turn first; `ids`, `turns` and `drafts` are parallel.

    `drafts` are the turns as germane imports them, `texts` the turns with their days for all other
    retrievers. `now` is the time of the questions, after the last turn. A corpus `about` a store or records
    has no drafts: the memories of a store have the same ids, and each reader imports the records, whose
    memories `keys` identify (see `record_key`).
    """

    ids: tuple[str, ...]
    turns: tuple[Needle, ...]
    drafts: tuple[Draft, ...]
    now: datetime
    counter: TokenCounter
    embedder: Embedder | None = None
    about: Stored | Records | None = None
    keys: tuple[tuple[str, str | None, str], ...] = ()

    @property
    def texts(self) -> list[str]:
        """Each turn as "day speaker: words"."""
        return [f"{turn.day} {turn.texts}".lstrip() for turn in self.turns]


class Reader(Protocol):
    """Answers questions about one corpus."""

    def recall(self, question: str, limit: int) -> Sequence[str]:
        """The ids of at most `limit` memories, best first."""
        ...

    def assemble(self, question: str, budget: int) -> str:
        """The context for a question, a text of at most `budget` tokens."""
        ...

    def close(self) -> None:
        """Release the resources of the reader."""
        ...


Retriever: TypeAlias = Callable[[Corpus], Reader]
Order: TypeAlias = Callable[[str], Sequence[int]]
"""For a question, the indexes of memories in the corpus, best first."""


# Records that are imported for a run: a folder, a file or a repository, as `germane import` reads it. The
# clock is read only if no time is given.


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """A source to import into a store in memory; questions are about its memories.

    `source` is a source of `germane import`, and `trust` that of its texts, as in `import_source`. `now` is
    the time of the import and of the questions, by default the time of the run.
    """

    source: str | Path
    now: datetime | None = None
    trust: Trust | None = None


def open_records(
    records: Records, *, now: datetime, embedder: Embedder | None, counter: TokenCounter
) -> Engine:
    """An engine in memory with the records imported. Raises UnreadableSource."""
    engine = germane.open(
        ":memory:", agent="evaluation", embedder=embedder, counter=counter, clock=lambda: now
    )
    try:
        import_source(engine, str(records.source), trust=records.trust)
    except BaseException:
        engine.close()
        raise
    return engine


def record_key(memory: Memory) -> tuple[str, str | None, str]:
    """A key of a memory that is equal in every import of the same source, unlike its id."""
    return memory.kind, memory.source, memory.content


def _names_of(memory: Memory) -> Iterator[str]:
    """The names of a memory that evidence can use: its source, the file of its source, and both without
    leading folders.
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


def all_memories(engine: Engine) -> Iterator[Memory]:
    """Every memory of any status, so that forgotten and superseded evidence is reported as such."""
    return chain.from_iterable(pages(engine.memories, EVERY))
