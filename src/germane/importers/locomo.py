"""Conversations and questions in the format of the LoCoMo data set."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from germane.importers.sources import Turn, read_text, turn_draft, unreadable
from germane.model.memory import Draft
from germane.model.text import MONTHS

ADVERSARIAL = 5
"""The category of questions that the conversation doesn't answer."""

_EXPECTED = (
    'a list of conversations was expected, each with "sample_id", "conversation" (session_1, '
    'session_1_date_time, …) and "qa"'
)
_SESSION = re.compile(r"session_(\d+)")
_DATE_TIME = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)\s*(?P<half>[ap])\.?m\.?\s+on\s+"
    r"(?P<day>\d{1,2})\s+(?P<month>[A-Za-z]+),?\s+(?P<year>\d{4})",
    re.IGNORECASE,
)
_ID = re.compile(r"D\s*:?\s*(\d+)\s*:\s*(\d+)")
_TEXTS = ("dia_id", "speaker", "text")
_BETWEEN_IDS = re.compile(r"[\s,;]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueTurn:
    """One turn: `session` is the number of its session from 1, `index` its index in the session from 0.

    `session_at` is the start of the session in UTC. `caption` describes a shared picture.
    """

    dia_id: str
    speaker: str
    text: str
    session: int
    index: int
    session_at: datetime
    caption: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocomoQuestion:
    """A question with the repaired and distinct ids of the existing turns that answer it.

    `answer` is None if the conversation has none (see ADVERSARIAL).
    """

    question: str
    answer: str | None
    evidence: tuple[str, ...]
    category: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceReport:
    """The evidence ids of a file: `read` counts all.

    `repaired` ids were malformed and could be repaired, `unreadable` ids couldn't, and `missing` ids name no
    turn. Each is written as `sample_id: id`.
    """

    read: int = 0
    repaired: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LocomoConversation:
    """A dialogue over many sessions, in order, and the questions about it."""

    sample_id: str
    speakers: tuple[str, ...]
    turns: tuple[DialogueTurn, ...]
    questions: tuple[LocomoQuestion, ...]
    report: EvidenceReport = field(default_factory=EvidenceReport)


def read_locomo(path: Path) -> tuple[LocomoConversation, ...]:
    """Every conversation of a file in the format of `locomo10.json`, each with its evidence report.

    Times are read as UTC. Raises UnreadableSource, naming the conversation, for another format.
    """
    try:
        value = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise unreadable(path, f"it is no JSON ({error})") from error
    if not is_locomo(value):
        raise unreadable(path, _EXPECTED)
    return tuple(_conversation(item, number, path) for number, item in enumerate(value, 1))


def is_locomo(value: object) -> bool:
    """Whether a JSON value has the format of the data set."""
    return (
        isinstance(value, list)
        and bool(value)
        and isinstance(value[0], Mapping)
        and isinstance(value[0].get("conversation"), Mapping)
    )


def evidence_report(conversations: Sequence[LocomoConversation]) -> EvidenceReport:
    """The reports of several conversations as one."""
    return _summed([conversation.report for conversation in conversations])


def conversation_drafts(conversation: LocomoConversation) -> Iterator[Draft]:
    """Each turn as an episode of its session, `source` being `sample_id/dia_id`.

    A turn's time is its session's plus one second per earlier turn, which preserves the order and the day.
    """
    for turn in conversation.turns:
        at = turn.session_at + timedelta(seconds=turn.index)
        yield turn_draft(
            Turn(speaker=turn.speaker, text=turn.text, index=turn.index, at=at),
            session=f"{conversation.sample_id}/{turn.session}",
            source=f"{conversation.sample_id}/{turn.dia_id}",
            metadata={"dia_id": turn.dia_id, **({"caption": turn.caption} if turn.caption else {})},
        )


def _conversation(item: object, number: int, path: Path) -> LocomoConversation:
    if not isinstance(item, Mapping) or not isinstance(item.get("conversation"), Mapping):
        raise unreadable(path, f"in conversation {number}, {_EXPECTED}")
    sample_id = str(item.get("sample_id") or f"conversation-{number}")
    sessions: Mapping[str, Any] = item["conversation"]
    numbers = sorted(int(match[1]) for name in sessions if (match := _SESSION.fullmatch(name)))
    turns = [turn for number in numbers for turn in _turns(sessions, number, sample_id, path)]
    questions, report = _questions(item.get("qa"), turns, sample_id, path)
    named = tuple(str(sessions[name]) for name in ("speaker_a", "speaker_b") if sessions.get(name))
    return LocomoConversation(
        sample_id=sample_id,
        speakers=named or tuple(dict.fromkeys(turn.speaker for turn in turns)),
        turns=tuple(turns),
        questions=questions,
        report=report,
    )


def _turns(sessions: Mapping[str, Any], number: int, sample_id: str, path: Path) -> Iterator[DialogueTurn]:
    """The turns of one session."""
    name = f"session_{number}"
    written = sessions.get(f"{name}_date_time")
    at = _session_time(written)
    if at is None:
        wanted = "a text such as '1:56 pm on 8 May, 2023'"
        raise unreadable(path, f"in {sample_id}, {name}_date_time must be {wanted}, and is {written!r}")
    written_turns = sessions[name]
    if not isinstance(written_turns, list):
        raise unreadable(path, f"in {sample_id}, {name} must be a list of turns")
    for index, turn in enumerate(written_turns):
        if not isinstance(turn, Mapping) or not all(isinstance(turn.get(each), str) for each in _TEXTS):
            wanted = f"an object with the texts {', '.join(_TEXTS)}"
            raise unreadable(path, f"in {sample_id}, turn {index + 1} of {name} must be {wanted}")
        caption = turn.get("blip_caption")
        yield DialogueTurn(
            dia_id=turn["dia_id"],
            speaker=turn["speaker"],
            text=turn["text"],
            session=number,
            index=index,
            session_at=at,
            caption=caption if isinstance(caption, str) else None,
        )


def _session_time(text: object) -> datetime | None:
    match = _DATE_TIME.search(text) if isinstance(text, str) else None
    if match is None or match["month"].capitalize() not in MONTHS:
        return None
    hour = int(match["hour"]) % 12 + (12 if match["half"].lower() == "p" else 0)
    month = MONTHS.index(match["month"].capitalize()) + 1
    with suppress(ValueError):
        return datetime(int(match["year"]), month, int(match["day"]), hour, int(match["minute"]), tzinfo=UTC)
    return None


def _questions(
    items: object, turns: Sequence[DialogueTurn], sample_id: str, path: Path
) -> tuple[tuple[LocomoQuestion, ...], EvidenceReport]:
    if items is not None and not isinstance(items, list):
        raise unreadable(path, f'in {sample_id}, "qa" must be a list of questions')
    known = {turn.dia_id for turn in turns}
    questions, reports = [], []
    for number, item in enumerate(items or (), 1):
        place = f"in {sample_id}, question {number}"
        if not isinstance(item, Mapping) or not isinstance(item.get("question"), str):
            raise unreadable(path, f"{place} must be an object with a 'question'")
        category = item.get("category")
        if isinstance(category, bool) or not isinstance(category, int):
            raise unreadable(path, f"{place} must have a whole number as 'category'")
        evidence, report = _evidence(item.get("evidence") or (), known, sample_id)
        answer = None if item.get("answer") is None else str(item["answer"])
        questions.append(
            LocomoQuestion(question=item["question"], answer=answer, evidence=evidence, category=category)
        )
        reports.append(report)
    return tuple(questions), _summed(reports)


def _evidence(written: object, known: set[str], sample_id: str) -> tuple[tuple[str, ...], EvidenceReport]:
    items = [written] if isinstance(written, str) else written if isinstance(written, list | tuple) else []
    ids: list[str] = []
    reports = []
    for item in items:
        text = item if isinstance(item, str) else repr(item)
        named = [f"D{int(match[1])}:{int(match[2])}" for match in _ID.finditer(text)]
        readable = named and _BETWEEN_IDS.fullmatch(_ID.sub("", text))
        ids += [each for each in named if each in known]
        place = f"{sample_id}: {text}"
        reports.append(
            EvidenceReport(
                read=1,
                repaired=(place,) if readable and named != [text] else (),
                unreadable=() if readable else (place,),
                missing=tuple(f"{sample_id}: {each}" for each in named if each not in known),
            )
        )
    return tuple(dict.fromkeys(ids)), _summed(reports)


def _summed(reports: Sequence[EvidenceReport]) -> EvidenceReport:
    return EvidenceReport(
        read=sum(report.read for report in reports),
        repaired=tuple(each for report in reports for each in report.repaired),
        unreadable=tuple(each for report in reports for each in report.unreadable),
        missing=tuple(each for report in reports for each in report.missing),
    )
