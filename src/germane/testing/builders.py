"""Memories for tests: sane defaults, ids that depend on the content alone, and no clock.

Level: testing (nothing of the package imports it).
"""

from __future__ import annotations

import hashlib
import random
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np

from germane.model.memory import Memory, Outcome, Rendition, Renditions, Trust
from germane.model.scope import Scope
from germane.model.vector import Vector

__all__ = [
    "START",
    "make_id",
    "make_memories",
    "make_memory",
    "make_renditions",
    "make_revision",
    "make_vector",
]

START = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
"""When the memories that the builders make begin."""

_KINDS = ("fact", "decision", "procedure", "episode", "note", "adr", "pattern", "module", "changelog")
_WORDS = """
    postgres redis cache index query schema migration release rollback deploy timeout retry queue
    worker token budget context memory agent session prompt answer evidence ranking scorer vector
    embedding file folder parser lexer compiler network socket certificate login password customer
    invoice refund order shipment warehouse report dashboard metric alert incident review branch
    commit merge test coverage
""".split()  # noqa: SIM905 - a list of sixty quoted words would take sixty lines.


def make_id(seed: str, *, at: datetime = START) -> str:
    """The UUIDv7 of a moment whose random part comes from `seed`."""
    milliseconds = int(at.timestamp() * 1000)
    rest = int.from_bytes(hashlib.sha256(seed.encode("utf-8", "surrogatepass")).digest()[:10], "big")
    number = (milliseconds << 80) | rest
    number = (number & ~(0xF << 76)) | (7 << 76)
    number = (number & ~(3 << 62)) | (2 << 62)
    return str(UUID(int=number))


def make_renditions(content: str) -> Renditions:
    """Renditions that cut the content by characters; a token is a word here."""

    def rendition(text: str) -> Rendition:
        return Rendition(text=text, tokens=len(text.split()))

    return Renditions(
        micro=rendition(content[:40]),
        summary=rendition(content[:160]),
        full=rendition(content),
        counter="words",
    )


def make_memory(content: str = "The cache lives in Redis.", **overrides: Any) -> Memory:
    """A fact of agent `tester`, told at START, with any field changed.

    Id, content hash and renditions follow from the other fields unless they are given.
    """
    agent = overrides.get("agent", "tester")
    created_at = overrides.get("created_at", START)
    source = overrides.get("source")
    memory_id = overrides.get("id") or make_id(f"{agent}\n{source}\n{content}", at=created_at)
    same = f"{overrides.get('kind', 'fact')}\n{source}\n{content}".encode("utf-8", "surrogatepass")
    values: dict[str, Any] = {
        "id": memory_id,
        "agent": agent,
        "kind": "fact",
        "content": content,
        "renditions": make_renditions(content),
        "created_at": created_at,
        "updated_at": created_at,
        "content_hash": hashlib.sha256(same).hexdigest(),
    }
    return Memory(**(values | overrides))


def make_revision(head: Memory, content: str, **overrides: Any) -> Memory:
    """The next version of the same memory, a minute later, with this content."""
    at = head.updated_at + timedelta(minutes=1)
    values: dict[str, Any] = {
        "agent": head.agent,
        "kind": head.kind,
        "source": head.source,
        "tags": head.tags,
        "subject": head.subject,
        "created_at": at,
        "id": head.id,
        "version": head.version + 1,
    }
    return make_memory(content, **(values | overrides))


def make_memories(count: int, *, seed: int = 0, agent: str = "tester") -> list[Memory]:
    """Different memories of every sort, about 30 words each, minutes apart; the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311 - test data have to repeat, not to be secret.
    made: list[Memory] = []
    at = START
    for number in range(count):
        at += timedelta(seconds=chance.randrange(1, 600))
        words = chance.choices(_WORDS, k=chance.randrange(12, 50))
        content = f"{' '.join(words).capitalize()}, as seen in case {seed}-{number}."
        made.append(
            make_memory(
                content,
                agent=agent,
                created_at=at,
                kind=chance.choice(_KINDS),
                subject=chance.choice((None, "storage", "billing", "Ünïcode ☂")),
                tags=tuple(sorted(set(chance.choices(("db:sqlite", "db:postgres:ha", "ui", "ops"), k=2)))),
                scope=chance.choice((Scope(name="global"), Scope(name="task", value=f"T-{number % 7}"))),
                importance=float(chance.randrange(11)),
                confidence=chance.random(),
                outcome=chance.choice((None, *Outcome)),
                trust=chance.choice(tuple(Trust)),
                pinned=chance.random() < 0.05,  # noqa: PLR2004 - one in twenty.
                metadata={"author": chance.choice(_WORDS), "line": number},
            )
        )
    return made


def make_vector(seed: int, dimension: int = 8) -> Vector:
    """A vector of unit length that depends on the seed alone."""
    raw = np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)
    unit: Vector = raw / np.linalg.norm(raw)
    return unit.astype(np.float32)
