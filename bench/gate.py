"""What the relevance gate drops of the answers and lets through of the rest, in stores of all sizes.

    python bench/gate.py [--half open|held|both] [--sizes 5,16,20,300,10000]

A store of the probes (`data/probes.jsonl`) holds one answer, the texts that are nearest to it in
topic, then other probes' texts, then memories made up from a seed. "dropped" counts answers that
the gate left out, "kept" the share of everything else that it let through, "empty" stores that
hold an answer and gave nothing, and "silent" stores without the answer that gave nothing (their
near-topic texts stay). By words alone these probes can't be found at all; what the gate does there
is measured on the demo's memory and its questions. The questions marked `held` are for a last look.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

from corpus import NOW, drafts

import germane
from germane import Engine
from germane.demo import DEMO_NOW, demo_questions, load_demo
from germane.embedders.static import StaticEmbedder
from germane.protocols import Embedder

_PROBES = Path(__file__).parent / "data" / "probes.jsonl"
_EVERY = 100_000
_REPEATED_BELOW = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What one question came to: shares, all from 0 to 1."""

    dropped: float
    kept: float
    empty: float
    silent: float


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=["open", "held", "both"], default="open")
    parser.add_argument("--sizes", default="5,16,20,300,10000")
    given = parser.parse_args()
    every = [json.loads(line) for line in _PROBES.read_text(encoding="utf-8").splitlines()]
    asked = [probe for probe in every if given.half in ("both", probe["half"])]
    print(f"{len(asked)} probes\n{'':36}{'dropped':>9}{'kept':>9}{'empty':>9}{'silent':>9}")
    for size in map(int, given.sizes.split(",")):
        _print(f"bundled embedder, {size:,} memories", _probed(asked, every, size))
    for name, embedder in (("bundled embedder", StaticEmbedder()), ("words alone", None)):
        _print(f"{name}, demo memory", _demonstrated(embedder))


def _print(name: str, outcomes: Sequence[_Outcome]) -> None:
    shares = [
        mean(getattr(outcome, field) for outcome in outcomes)
        for field in ("dropped", "kept", "empty", "silent")
    ]
    print(f"{name:36}" + "".join(f"{share:9.1%}" for share in shares))


def _probed(
    asked: Sequence[Mapping[str, Any]], every: Sequence[Mapping[str, Any]], size: int
) -> list[_Outcome]:
    texts = [text for probe in every for text in (probe["memory"], *probe["near"])]
    made_up = [draft.content for draft in drafts(max(0, size - len(texts)))]
    if size >= len(texts):
        # All probes fit, so one store serves every question.
        with _opened([*texts, *made_up]) as engine:
            return [_outcome(engine, probe) for probe in asked]
    random = Random(7)
    outcomes = []
    for probe in asked:
        near = [*probe["near"]]
        others = [text for text in texts if text not in near and text != probe["memory"]]
        for _ in range(1 if size >= _REPEATED_BELOW else 5):
            beside = [*near, *random.sample(others, len(others))][: size - 1]
            with _opened([probe["memory"], *beside]) as engine:
                outcomes.append(_outcome(engine, probe))
    return outcomes


def _opened(texts: Sequence[str]) -> Engine:
    engine = germane.open(":memory:", agent="gate", embedder=StaticEmbedder(), clock=lambda: NOW)
    engine.remember_many([{"content": text, "kind": "fact"} for text in texts])
    return engine


def _outcome(engine: Engine, probe: Mapping[str, Any]) -> _Outcome:
    """The whole answer to one probe, and what is left of it once the memory it asks for is forgotten."""
    stored = engine.stats().memories
    found = engine.recall(probe["question"], limit=_EVERY)
    kept = {one.memory.content: one.memory.id for one in found}
    answered = probe["memory"] in kept
    answer = next(memory.id for memory in engine.memories() if memory.content == probe["memory"])
    engine.forget(answer)
    silent = not engine.recall(probe["question"], limit=_EVERY)
    engine.restore(answer)
    return _Outcome(
        dropped=float(not answered),
        kept=(len(kept) - answered) / (stored - 1),
        empty=float(not kept),
        silent=float(silent),
    )


def _demonstrated(embedder: Embedder | None) -> list[_Outcome]:
    """The demo's questions, which have several answers each; "silent" says nothing here."""
    outcomes = []
    with germane.open(":memory:", agent="newton", embedder=embedder, clock=lambda: DEMO_NOW) as engine:
        load_demo(engine)
        if engine.stats().pending:
            engine.embed_pending()
        stored = engine.memories(order=germane.Order.OLDEST)
        for asked in demo_questions():
            answers = {stored[line - 1].id for line in asked.expect}
            kept = {one.memory.id for one in engine.recall(asked.question, limit=_EVERY)}
            outcomes.append(
                _Outcome(
                    dropped=len(answers - kept) / len(answers),
                    kept=len(kept - answers) / (len(stored) - len(answers)),
                    empty=float(not kept),
                    silent=0.0,
                )
            )
    return outcomes


if __name__ == "__main__":
    main()
