"""The rankers that a recall can be asked for by name.

Level: verbs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from itertools import accumulate
from typing import Literal, TypeAlias, get_args

from germane.errors import InvalidInput
from germane.model.names import DEFAULT_RANKER
from germane.model.query import Found, Query
from germane.model.trace import Note, Ranked
from germane.protocols import Scorer
from germane.ranking.hybrid import HYBRID_WEIGHTS, hybrid
from germane.retrieval.terms import query_terms
from germane.verbs.question import Asked

__all__ = ["DEFAULT_RANKER", "RANKERS", "Ranker", "asked_tags", "by_hybrid", "check_ranker"]

Ranker: TypeAlias = Literal["relevance", "hybrid"]

RANKERS: tuple[str, ...] = get_args(Ranker)
"""The rankers by name."""

_WIDER = 3
"""How many times as many as are wanted stay to be scored, as in the design that it comes from."""
_BETWEEN = re.compile(r"[\W_]+")


def check_ranker(ranker: str, scorer: Scorer | None) -> None:
    """Raise InvalidInput for an unknown ranker, or for one beside a scorer, which ranks alone."""
    if ranker not in RANKERS:
        raise InvalidInput(f"Unknown ranker {ranker!r}. Known rankers: {', '.join(RANKERS)}.")
    if scorer is not None and ranker != DEFAULT_RANKER:
        raise InvalidInput(f"ranker={ranker!r} and a scorer can't both rank. Give one of them.")


def by_hybrid(
    asked: Asked, found: Found, sought: Query, *, now: datetime, limit: int
) -> tuple[tuple[Ranked, ...], Note]:
    """What a search found by `germane.ranking.hybrid`, three times the limit at most, and a note of it."""
    (candidates,) = found.slices
    named = asked_tags(asked, (tag for one in candidates for tag in one.memory.tags))
    wanted = sorted({*asked.where.tags, *named})
    ranked = hybrid(
        candidates,
        query=sought,
        now=now,
        tags=wanted,
        keep=_WIDER * limit,
        lexical_bound=found.lexical_bound,
    )
    weighed = ", ".join(f"{name} {weight:g}" for name, weight in HYBRID_WEIGHTS.items())
    text = f"Ranked by the ranker hybrid, from 0 to 10: {weighed}. "
    text += f"Tags asked for: {', '.join(wanted)}." if wanted else "No tag was asked for."
    if asked.prefers is not None:
        text += " The time that the question names doesn't count."
    return ranked, Note(code="ranker", text=text)


def asked_tags(asked: Asked, tags: Iterable[str]) -> frozenset[str]:
    """Those of the tags, and of what is above them, that the question names by all words of the last part.

    "Which database is it, Postgres?" names `tech:database` of the tag `tech:database:redis`, and so do the
    words of another form, by their stems. A part without any word of its own is named by nothing.
    """
    said = set(asked.question.terms)
    levels = {level for tag in set(tags) for level in accumulate(tag.split(":"), lambda a, b: f"{a}:{b}")}
    return frozenset(level for level in levels if _is_named(level, said, language=asked.language))


def _is_named(level: str, said: set[str], *, language: str | None) -> bool:
    # Without its punctuation a word of several parts is its parts, and none of them is the whole.
    words = _BETWEEN.sub(" ", level.rpartition(":")[2])
    terms = query_terms(words, language=language or "english")
    return bool(terms) and said.issuperset(terms)
