"""The forward record of a message: what is stored of its words beside it, and by which rules that was made.

Level: stores (imports retrieval and what is above it). A record names its rules, so none has to be renewed
when the tokenizer or an agent's language changes: one of other rules counts as missing, as do those of what
an older version stored, and whoever needs one that is missing makes it.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from germane.model.message import Message, Role
from germane.retrieval.terms import TOKENIZER, index_terms, term_hash
from germane.stores.parts import WORDS_READ, indexed_words

__all__ = ["Record", "is_indexed", "record_of", "row_of", "rules_of"]


class Record(NamedTuple):
    """How many terms a message has, the distinct ones' hashes, and how often each occurs; as in `lex`."""

    length: int
    hashes: bytes
    frequencies: bytes


def is_indexed(message: Message) -> bool:
    """Whether a question can find a message. The system speaks in every window: no group is found by it."""
    return message.group is not None and message.role is not Role.SYSTEM


def record_of(message: Message, language: str) -> Record:
    """The record of a message's words in a language."""
    forward = index_terms(indexed_words(message), language=language)
    hashes = forward.hashes.astype("<u4", copy=False).tobytes()
    return Record(forward.length, hashes, forward.frequencies.tobytes())


def row_of(num: int, agent: int, language: str, record: Record) -> tuple[int, int, int, int, bytes, bytes]:
    """The row of the record of a message."""
    return (num, agent, rules_of(language), *record)


@cache
def rules_of(language: str) -> int:
    """A number for all that a record depends on beside its message; other rules have another one."""
    return term_hash(f"{WORDS_READ} {TOKENIZER} {language}")
