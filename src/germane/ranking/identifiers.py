"""Ranks first what holds an identifier of the question verbatim: a path, a ticket, the name of an error.

Level: ranking (imports model only). Pure.

The index knows identifiers whole and in parts. A short text that shares the parts may score more than a long
one with the whole, so that neither words nor meaning tell `adr-015` from `adr-016`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from germane.model.memory import Memory

__all__ = ["FEW_HOLDERS", "identifiers_in", "shares_of_identifiers"]

FEW_HOLDERS = 5
"""An identifier that stands in more memories than this names none of them."""

_MOST, _SHORTEST, _READ = 8, 4, 4_000
_TOKEN = re.compile(r"[^\s\"'`<>()\[\]{},;|]+")
_IDENTIFIER = re.compile(
    r"(?=.*[^\W\d_])(?:"
    r"[\w.@~+-]*(?:/[\w.@~+-]+)+\.\w+|(?:[\w.@~+-]*/){2,}[\w.@~+-]+"  # A path.
    r"|[\w-]+(?:\.[\w-]+)*(?:_|::|#)[\w.:#-]*\w"  # refund_worker, ERR_4312, Engine::open, api#12
    r"|\w+(?:[.-]\w+)*[.-]\w*\d\w*(?:[.-]\w+)*"  # adr-015, PAY-1042, v2.10.3
    r"|[\w-]+(?:\.[\w-]+)*\.[a-z]{2,5}\d?"  # config.yaml
    r"|[^\W\d_]+\d\w{3,}|[a-z]+(?:[A-Z][a-z0-9]+)+|(?=[0-9a-f]*\d)[0-9a-f]{7,40}"  # ERR4312, loadAll, a hash
    r")"
)


def identifiers_in(question: str) -> tuple[str, ...]:
    """The identifiers that a question names, in the order of the first `_MOST` of them."""
    tokens = (match[0].strip(".:!?*…") for match in _TOKEN.finditer(question[:_READ]))
    found = dict.fromkeys(
        token for token in tokens if len(token) >= _SHORTEST and _IDENTIFIER.fullmatch(token)
    )
    return tuple(found)[:_MOST]


def shares_of_identifiers(memories: Sequence[Memory], question: str) -> dict[int, float]:
    """By the place of a memory the share of the question's identifiers that it holds verbatim.

    Only those identifiers count that stand in at most `FEW_HOLDERS` of the memories.
    """
    named = identifiers_in(question)
    held: dict[int, int] = {}
    for identifier in named:
        whole = re.compile(rf"(?<![\w/])(?<!\w[.-]){re.escape(identifier)}(?!\w|[/.-]\w)", re.IGNORECASE)
        holders = [
            place
            for place, memory in enumerate(memories)
            if whole.search(memory.content) or (memory.subject and whole.search(memory.subject))
        ]
        if len(holders) <= FEW_HOLDERS:
            for place in holders:
                held[place] = held.get(place, 0) + 1
    return {place: count / len(named) for place, count in held.items()}
