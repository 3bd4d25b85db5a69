"""Memories as JSON lines that import back to the same store.

Level: exchange (imports model).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TextIO

from germane.errors import InvalidInput
from germane.exchange.records import memory_to_json
from germane.model.memory import Memory
from germane.model.stage import Standing

__all__ = ["export_jsonl"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def export_jsonl(
    memories: Iterable[Memory], out: TextIO, *, standings: Mapping[str, Standing] | None = None
) -> int:
    """Write one line per memory, in the order given, and return how many were written.

    `standings` says by id what is counted of their lives; without it a line has no counts.
    Fields are sorted and nothing depends on when or where it is written, so the same memories are the
    same bytes; `out` has to be UTF-8 with line feeds as line ends. To restore them into an empty store they
    come oldest first, each version after the one it supersedes. Raises InvalidInput for metadata that
    JSON can't hold.
    """
    written = 0
    for memory in memories:
        out.write(_line(memory, (standings or {}).get(memory.id)))
        written += 1
    return written


def _line(memory: Memory, standing: Standing | None) -> str:
    fields = memory_to_json(memory, standing)
    try:
        text = json.dumps(fields, ensure_ascii=False, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"Memory {memory.id!r} can't be exported: its fields hold what JSON can't ({error}). "
            "Revise it with metadata of texts, numbers, lists and objects alone."
        ) from error
    # Half a surrogate pair has no UTF-8, and as an escape it is read back as it was.
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"
