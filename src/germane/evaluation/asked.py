"""The questions of an evaluation and what has to be found for each.

Level: evaluation. Values only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from germane.evaluation.corpus import Corpus
from germane.exchange.locomo import EvidenceReport

__all__ = ["Asked", "Material", "Piece", "found_pieces"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of evidence: a name for people, and the ids of the memories any one of which will do.

    One without ids is stored nowhere, and counts as never found.
    """

    name: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question about the corpus at place `corpus`; `number` counts the questions of the run from 1.

    `half` is 0 or 1: which half of the data it belongs to. `phrases` are words expected in the text.
    """

    number: int
    corpus: int
    question: str
    category: int | str
    pieces: tuple[Piece, ...]
    half: int
    phrases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """All that is asked, and of what. `names` are the conversations; a store and probes have none."""

    corpora: tuple[Corpus, ...]
    asked: tuple[Asked, ...]
    names: tuple[str, ...] = ()
    adversarial: int = 0
    without_evidence: int = 0
    evidence: EvidenceReport = field(default_factory=EvidenceReport)


def found_pieces(ranking: Sequence[str], pieces: Sequence[Piece]) -> list[str]:
    """A ranking with each memory that is a piece of evidence under that piece's name, each once."""
    of = {each: piece.name for piece in pieces for each in piece.ids}
    return list(dict.fromkeys(of.get(each, f"memory {each}") for each in ranking))
