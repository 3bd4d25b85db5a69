"""Memories, and what was gone through with them, as JSON lines that import back to the same store.

Level: exchange (imports model).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TextIO

from germane.errors import InvalidInput
from germane.exchange.experiences import experience_to_json
from germane.exchange.records import memory_to_json
from germane.model.experience import Experience, version_of
from germane.model.memory import Memory
from germane.model.stage import Standing

__all__ = ["export_jsonl"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def export_jsonl(
    memories: Iterable[Memory],
    out: TextIO,
    *,
    standings: Mapping[str, Standing] | None = None,
    experience: Experience | None = None,
    agent: str | None = None,
) -> int:
    """Write one line per memory, in the order given, and return how many were written.

    `standings` says by `Memory.ref` what is counted of their lives; without it a line has no counts. What of
    an `experience` speaks of these memories follows, a line for each part of it; what the `agent` did by
    itself doesn't name it there.

    Fields are sorted and nothing depends on when or where it is written, so the same memories are the
    same bytes; `out` has to be UTF-8 with line feeds as line ends. To restore them into an empty store they
    come oldest first, each version after the one it supersedes. Raises InvalidInput for metadata that
    JSON can't hold.
    """
    written: dict[str, str] = {}
    for memory in memories:
        out.write(_line(memory, (standings or {}).get(memory.ref)))
        written[memory.version_id] = memory.ref
    if experience is not None:
        events = tuple(
            replace(one, memory_id=written[name])
            for one in experience.events
            if (name := version_of(one)) in written
        )
        told = replace(experience, events=events)
        kept = experience_to_json(told, agent=agent, ids=frozenset(written.values()))
        out.writelines(map(_as_line, kept))
    return len(written)


def _line(memory: Memory, standing: Standing | None) -> str:
    try:
        return _as_line(memory_to_json(memory, standing))
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"Memory {memory.id!r} can't be exported: its fields hold what JSON can't ({error}). "
            "Revise it with metadata of texts, numbers, lists and objects alone."
        ) from error


def _as_line(fields: Mapping[str, Any]) -> str:
    text = json.dumps(fields, ensure_ascii=False, sort_keys=True, allow_nan=False)
    # Half a surrogate pair has no UTF-8, and as an escape it is read back as it was.
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"
