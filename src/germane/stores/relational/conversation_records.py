"""What is stored of a message's words and parts: its forward record, and its parts as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import crc32

import regex

from germane.errors import InvalidInput
from germane.ids import id_text
from germane.model.conversation import (
    Message,
    MessageRole,
    OpaquePart,
    Part,
    Provider,
    TextPart,
    ToolCall,
    ToolResult,
    author_in,
)
from germane.model.memory import maker
from germane.model.text import day_in_words
from germane.retrieval.tokenizer import TOKENIZER, index_terms, term_hash
from germane.stores.relational.checksums import REPAIR, checksum_of, wrong_checksum
from germane.stores.relational.tables import UNREADABLE, Connection, damaged, moment

SPEAKER: Final = regex.compile(r"([\p{L}][\p{L}\p{M}\p{N}'’.-]*(?: [\p{L}\p{M}\p{N}'’.-]+){0,2}): ")
"""The name that a transcript of people puts before what each of them says."""

# The forward record of a message: what is stored of its words beside it, and by which rules that was made.


Record: TypeAlias = tuple[int, bytes, bytes]
"""How many terms a message has, the distinct ones' hashes, and how often each occurs; as in `lex`."""


def is_indexed(message: Message) -> bool:
    """Whether a question can find a message. The system speaks in every window: no group is found by it."""
    return message.group is not None and message.role is not MessageRole.SYSTEM


def record_of(message: Message, language: str) -> Record:
    """The record of a message's words in a language."""
    forward = index_terms(indexed_words(message), language=language)
    hashes = forward.hashes.astype("<u4", copy=False).tobytes()
    return forward.length, hashes, forward.frequencies.tobytes()


def row_of(
    num: int, agent: int, language: str, record: Record, vector: bytes | None = None
) -> tuple[int, int, int, int, bytes, bytes, bytes | None, None, int | None]:
    """The row of the record of a message; without a vector, the stored one stays."""
    return (num, agent, rules_of(language), *record, vector, None, _checksum(vector))


def set_vector(connection: Connection, agent: int, num: int, vector: bytes | None) -> None:
    """Store the vector of a message, empty for one without direction; with None it waits for a vector."""
    values = {"agent": agent, "num": num, "vector": vector, "checksum": _checksum(vector)}
    connection.run("set_message_vector", values)


def _checksum(vector: bytes | None) -> int | None:
    return None if vector is None else crc32(vector)


@cache
def rules_of(language: str) -> int:
    """A number for all that a record depends on beside its message; other rules have another one."""
    return term_hash(f"{WORDS_READ} {TOKENIZER} {language}")


WORDS_READ = "words-2"
"""Names what `indexed_words` reads; after a change of that function it needs another name."""

_TEXT, _OPAQUE, _CALL, _RESULT = "t", "o", "c", "r"

# How a call and a result begin in the parts of a message; a quote within a text is escaped there.
CALL_MARK, RESULT_MARK = f'["{_CALL}",', f'["{_RESULT}",'

_TRAFFIC = re.compile(rf'\["([{_CALL}{_RESULT}])",("(?:[^"\\]|\\.)*+")')

_FIRST_TEXT = f'[["{_TEXT}","'

_read = json.JSONDecoder().raw_decode

_text_part = maker(TextPart, "text", "recalled", "form", "extra", checks=True)

_MOST_INDEXED = 8000
"""Characters of one result that the index reads, half from each end: what a result is about shows there."""


def packed_parts(parts: tuple[Part, ...]) -> str:
    """The parts as a JSON list of lists; each begins with what it is."""
    return json.dumps([_packed(part) for part in parts], ensure_ascii=False, separators=(",", ":"))


def unpacked_parts(text: str) -> tuple[Part, ...]:
    """What `packed_parts` packed."""
    # A process that reads a long log does this for each message; json.loads would take twice as long.
    return tuple(map(_unpacked, _read(text)[0]))


def is_named(text: str, extra: str) -> bool:
    """Whether a message has a name, or its text or packed parts begin with one."""
    start = len(_FIRST_TEXT) if text.startswith(_FIRST_TEXT) else 0
    return SPEAKER.match(text, start) is not None or author_in(extra) != ""


def traffic_of(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The ids of the calls in packed parts, and those of the calls that results among them answer."""
    # Only the ids are read: a process does this for each message of a long log.
    found = _TRAFFIC.findall(text)
    if "\\" in text:
        found = [(kind, json.loads(name)) for kind, name in found]
    else:
        found = [(kind, name[1:-1]) for kind, name in found]
    return (
        tuple([name for kind, name in found if kind == _CALL]),
        tuple([name for kind, name in found if kind == _RESULT]),
    )


def indexed_words(message: Message) -> str:
    """The text of a message that is indexed: its words, calls and results, without recalled memories."""
    texts = [message.own_text]
    for part in message.parts:
        if isinstance(part, ToolCall):
            texts += [part.name, _ends(part.arguments)]
        elif isinstance(part, ToolResult):
            own = (each for each in part.content if isinstance(each, TextPart) and not each.recalled)
            texts += [_ends(each.text) for each in own]
    if message.created_at is not None:
        texts.append(day_in_words(message.created_at))
    return "\n".join(text for text in texts if text)


def _packed(part: Part) -> list[Any]:
    if isinstance(part, TextPart):
        packed: list[Any] = [_TEXT, part.text]
        if part.recalled or part.form or part.extra:
            packed += [int(part.recalled), part.form, part.extra]
        return packed
    if isinstance(part, OpaquePart):
        return [_OPAQUE, part.json, part.form]
    if isinstance(part, ToolCall):
        return [_CALL, part.id, part.name, part.arguments, part.form, part.extra]
    if isinstance(part, ToolResult):
        content = [_packed(each) for each in part.content]
        return [_RESULT, part.call_id, content, part.is_error, part.form, part.extra]
    raise InvalidInput(f"{part!r} is no part of a message: use TextPart, ToolCall, ToolResult or OpaquePart.")


def _unpacked(packed: list[Any]) -> Any:
    kind, *fields = packed
    if kind == _TEXT:
        if len(fields) == 1 and type(fields[0]) is str:
            return _text_part((fields[0], False, "", ""))
        text, recalled, form, extra = fields
        return TextPart(text=text, recalled=bool(recalled), form=form, extra=extra)
    if kind == _OPAQUE:
        return OpaquePart(json=fields[0], form=fields[1])
    if kind == _CALL:
        call_id, name, arguments, form, extra = fields
        return ToolCall(id=call_id, name=name, arguments=arguments, form=form, extra=extra)
    call_id, content, is_error, form, extra = fields
    parts = tuple(map(_unpacked, content))
    return ToolResult(call_id=call_id, content=parts, is_error=is_error, form=form, extra=extra)


def _ends(text: str) -> str:
    half = _MOST_INDEXED // 2
    return text if len(text) <= _MOST_INDEXED else f"{text[:half]}\n{text[-half:]}"


# The rows of conversations and of their messages.

SHIFT: Final = 32
MOST_MESSAGES: Final = (1 << SHIFT) - 1
"""The most messages of one conversation."""

_ROLES: Final = {each.value: each for each in MessageRole}
_PROVIDERS: Final = {each.value: each for each in Provider}


class MessageRow(NamedTuple):
    """A row of `messages`."""

    num: int
    agent: int
    conversation: int
    id: bytes
    group_name: str | None
    role: str
    provider: str
    form: str
    created_at: int | None
    hidden: int
    parts: str
    extra: str
    checksum: int | None = None

    def sealed(self) -> MessageRow:
        """The row with its checksum."""
        return self._replace(checksum=self._crc32())

    def _crc32(self) -> int:
        """Of the columns that stay: a copy has other numbers, and hiding a group changes one."""
        return checksum_of((self.id, self.group_name, self.role, self.provider, *self[7:9], *self[10:12]))

    @property
    def is_intact(self) -> bool:
        """Whether the row has its checksum, if it was stored with one."""
        return self.checksum is None or self.checksum == self._crc32()


class ConversationRow(NamedTuple):
    """A conversation's row; numbers of 0 where it hasn't begun."""

    agent: int = 0
    conversation: int = 0
    messages: int = 0
    revision: int = 0
    opened: str | None = None
    language: str = "english"


def conversation_row(connection: Connection, agent: str, session: str) -> ConversationRow:
    """What is stored of a conversation itself."""
    values = {"agent": agent, "session": session}
    row = connection.run("conversation", values).fetchone()
    return ConversationRow._make(row) if row else ConversationRow()


def spread(known: ConversationRow, *, above: int = 0) -> dict[str, int]:
    """The placeholders for the messages of a conversation after the number `above`."""
    first = known.conversation << SHIFT
    return {"agent": known.agent, "above": first + above, "below": first + (1 << SHIFT)}


def number_of(num: int) -> int:
    """The number within its conversation of the message that a num stands for."""
    return num & MOST_MESSAGES


def conversation_of(num: int) -> tuple[int, int]:
    """The number of the conversation of a message, and its own within that."""
    return num >> SHIFT, num & MOST_MESSAGES


def num_of(known: ConversationRow, number: int) -> int:
    """The num of the message that has this number within its conversation."""
    return (known.conversation << SHIFT) + number


def message_of(row: Sequence[Any], agent: str, session: str) -> Message:
    """The message of a row; the names of its agent and session aren't in it."""
    stored = MessageRow._make(row)
    try:
        if not stored.is_intact:
            raise wrong_checksum()
        parts = unpacked_parts(stored.parts)
    except UNREADABLE as error:
        raise damaged(
            f"Message {number_of(stored.num)} of conversation {session!r}", error, REPAIR
        ) from error
    at = None if stored.created_at is None else moment(stored.created_at)
    return _message(
        (
            _ROLES[stored.role],
            parts,
            id_text(stored.id),
            agent,
            session,
            number_of(stored.num),
            stored.group_name,
            _PROVIDERS[stored.provider],
            at,
            bool(stored.hidden),
            stored.form,
            stored.extra,
        )
    )


_message = maker(
    Message,
    *("role", "parts", "id", "agent", "session", "seq", "group", "provider", "created_at", "hidden", "form"),
    "extra",
    checks=True,
)
