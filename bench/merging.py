"""Which names are merged into one entity, and which texts count as the same, by labelled pairs.

    python bench/merging.py [--wrong] [--json] [--lexical]

`data/merging-pairs.jsonl` has an object per line. A pair of `names` has the `memories` that mention them; it
is merged if `Engine.about` gives both to one entity. A pair of `texts` is merged if `learn_from` confirms the
first where the second is stated. Both were written for this benchmark and labelled by what a careful reader
says; half of them are the `same`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

import germane
from germane import Memory, Message
from germane.extractors import Proposal, ProposalOutcome, Quote

PAIRS = Path(__file__).parent / "data" / "merging-pairs.jsonl"
_Embedder = Literal["bundled"] | None
_MERGED = (ProposalOutcome.CONFIRMED, ProposalOutcome.NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merging:
    """How many pairs of one kind are the `same`, were `merged`, and were merged `rightly`."""

    pairs: int
    same: int
    merged: int
    rightly: int
    wrong: Sequence[str] = ()

    @property
    def precision(self) -> float:
        """The share of the merged pairs that are the same; 1 if none was merged."""
        return self.rightly / self.merged if self.merged else 1.0

    @property
    def recall(self) -> float:
        """The share of the same pairs that were merged."""
        return self.rightly / self.same


def main() -> None:
    """Print precision and recall of both kinds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--wrong", action="store_true", help="list the pairs that are judged otherwise")
    parser.add_argument("--lexical", action="store_true", help="without an embedder")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    results = {kind: judged(kind, None if given.lexical else "bundled") for kind in ("names", "texts")}
    console = Console(width=140, highlight=False)
    for kind, each in results.items():
        counts = {"pairs": each.pairs, "same": each.same, "merged": each.merged, "rightly": each.rightly}
        if given.json:
            shares = {"precision": each.precision, "recall": each.recall}
            console.print(json.dumps({"kind": kind, **counts, **shares}), markup=False, soft_wrap=True)
            continue
        console.print(
            f"{kind}: {each.pairs} pairs, precision {each.precision:.1%} ({each.rightly} of {each.merged} "
            f"merged), recall {each.recall:.1%} ({each.rightly} of {each.same} that are the same)"
        )
        console.print("\n".join(each.wrong if given.wrong else ()), markup=False, soft_wrap=True, end="")


def judged(kind: str, embedder: _Embedder = "bundled") -> Merging:
    """What becomes of the labelled pairs of a kind, "names" or "texts"."""
    merges = _names_merge if kind == "names" else _texts_merge
    results = [(each, merges(each, embedder)) for each in pairs() if each["kind"] == kind]
    return Merging(
        pairs=len(results),
        same=sum(each["same"] for each, _ in results),
        merged=sum(merged for _, merged in results),
        rightly=sum(merged and each["same"] for each, merged in results),
        wrong=tuple(
            f"{'merged' if merged else 'apart'}  {each['one']} | {each['other']}\n"
            for each, merged in results
            if merged != each["same"]
        ),
    )


def pairs() -> Iterator[Mapping[str, Any]]:
    """The labelled pairs."""
    return map(json.loads, PAIRS.read_text(encoding="utf-8").splitlines())


def _names_merge(pair: Mapping[str, Any], embedder: _Embedder) -> bool:
    with germane.open(":memory:", embedder=embedder) as engine:
        engine.remember_many([{"content": each, "kind": "fact"} for each in pair["memories"]])
        one, other = (engine.about(pair[name]).entities for name in ("one", "other"))
    return len(one) == len(other) == 1 and set(one[0].names) == set(other[0].names)


def _texts_merge(pair: Mapping[str, Any], embedder: _Embedder) -> bool:
    with germane.open(":memory:", embedder=embedder) as engine:
        engine.remember(pair["one"], kind=_kind(pair["one"]))
        message = {"role": "user", "content": pair["other"]}
        run = engine.learn_from([message], extractor=_Verbatim())
    return any(each.outcome in _MERGED for each in run.decisions)


class _Verbatim:
    """Proposes what a message states, word for word."""

    name = "verbatim"

    def extract(self, messages: Sequence[Message], known: Sequence[Memory] = ()) -> Sequence[Proposal]:
        del known
        return [
            Proposal(
                content=each.own_text,
                kind=_kind(each.own_text),
                quotes=(Quote(message=each.id or str(each.seq), text=each.own_text),),
            )
            for each in messages
        ]


def _kind(text: str) -> str:
    liking = ("like", "love", "enjoy", "hate", "stand", "prefer")
    return "preference" if any(word in text for word in liking) else "fact"


if __name__ == "__main__":
    main()
