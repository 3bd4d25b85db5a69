"""What a caller hands in to be remembered, before it becomes a memory.

Level: model (imports errors only).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any

from germane.model.memory import Memory, Outcome, Trust
from germane.model.scope import GLOBAL, Scope

__all__ = ["Draft", "Remembered"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The arguments of `remember` as one value. None means: as the kind or the engine has it.

    `source` says where the text came from; it is part of what makes two memories the same one,
    so a re-import changes nothing and the same sentence in two places is two memories.
    """

    content: str
    kind: str = "note"
    subject: str | None = None
    tags: Sequence[str] = ()
    scope: Scope | str = GLOBAL
    importance: float | None = None
    confidence: float | None = None
    outcome: Outcome | str | None = None
    trust: Trust | str | None = None
    source: str | None = None
    pinned: bool = False
    created_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What became of a draft: the memory as it is stored, and whether it is a new one."""

    memory: Memory
    created: bool
