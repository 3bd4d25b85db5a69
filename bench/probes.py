"""How often a memory is recalled by a question in other words, which shares no stem with it.

    python bench/probes.py [--half dev|final|open|held|both]

`dev` (the default) and `final` are the halves of `data/paraphrases.jsonl`: 156 memories of six areas in which
agents meet them (preferences, decisions, incidents, people, procedures, code), each with a question. All
memories go into one store, and each question is recalled from it: by words alone, by default, which is the
bundled embedder, and by MiniLM where it is installed. It prints recall@5, with the bootstrap's 95 % interval
for all areas. Nothing may be fitted to the final half.

`open`, `held` and `both` are halves of `data/probes.jsonl`, as decision record 15 used them. Every memory
of that file, answers and near-topic distractors alike, goes into one store;
each question is recalled from it by words alone, by the bundled embedder and, where installed, by
MiniLM. "vectors" ranks by cosine only; "recall" is what the engine returns. "meaning" passes over
distractors that share a stem with the question, as no answer does; "and decoys" counts them too:
many use the question's words in another sense. The answers are longer than the rest, as the first line
says: what favours long memories gains here without understanding more. The questions marked `held`
are for a last look: nothing may be fitted to them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import germane
from germane.embedders.static import OnnxEmbedder, StaticEmbedder
from germane.errors import MissingExtra
from germane.evaluation.result import bootstrap_interval
from germane.protocols import Embedder
from germane.retrieval.tokenizer import index_terms, query_terms, term_hash

_PROBES = Path(__file__).parent / "data" / "probes.jsonl"
_PARAPHRASES = _PROBES.with_name("paraphrases.jsonl")
_FIRST = 5
_DEPTHS = (1, 5, 10)
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    """Ask every question of every way to find answers, and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=["dev", "final", "open", "held", "both"], default="dev")
    given = parser.parse_args()
    if given.half in ("dev", "final"):
        embedders: dict[str, Embedder | None] = {"words alone": None, **_embedders()}
        print(paraphrases(given.half, embedders))
    else:
        _print_probes(given.half)


def paraphrases(half: str, embedders: Mapping[str, Embedder | None]) -> str:
    """A table of the recall of one half of the paraphrases, by area and embedder."""
    every = [json.loads(line) for line in _PARAPHRASES.read_text(encoding="utf-8").splitlines()]
    for probe in every:
        _check(probe)
    selected = [probe for probe in every if probe["half"] == half]
    areas = list(dict.fromkeys(probe["area"] for probe in selected))
    lines = [
        f"{len(selected)} questions of the {half} half, {len(every)} memories; recall@{_FIRST} in per cent",
        f"{'':14}{'all':>8}{'95 %':>16}" + "".join(f"{area:>12}" for area in areas),
    ]
    for name, embedder in embedders.items():
        find = _recalling([probe["memory"] for probe in every], embedder)
        found = [float(probe["memory"] in find(probe["question"])[:_FIRST]) for probe in selected]
        low, high = bootstrap_interval(found, seed=7)
        of = {
            area: [hit for hit, each in zip(found, selected, strict=True) if each["area"] == area]
            for area in areas
        }
        interval = f"{100 * low:.1f}–{100 * high:.1f}"
        row = "".join(f"{100 * float(np.mean(hits)):12.1f}" for hits in of.values())
        lines.append(f"{name:14}{100 * float(np.mean(found)):8.1f}{interval:>16}{row}")
    return "\n".join(lines)


def _print_probes(half: str) -> None:
    every = [json.loads(line) for line in _PROBES.read_text(encoding="utf-8").splitlines()]
    for probe in every:
        _check(probe)
    texts = [text for probe in every for text in (probe["memory"], *probe["near"])]
    selected = [probe for probe in every if half in ("both", probe["half"])]
    decoys = [{text for text in texts if _shares_a_stem(probe["question"], text)} for probe in selected]
    long = [np.median([len(text) for text in some]) for some in _answers_and_rest(every)]
    print(
        f"{len(selected)} questions, {len(texts)} memories; "
        f"characters in the median: answers {long[0]:.0f}, others {long[1]:.0f}"
    )
    heading = [f"{f'recall@{depth}':>11}" for depth in _DEPTHS]
    print(f"{'':20}{'':10}{'meaning':>23}{'':10}{'and decoys':>23}\n{'':20}" + "".join(heading + heading))
    ways: dict[str, Callable[[str], list[str]]] = {"words alone": _recalling(texts, None)}
    for name, embedder in _embedders().items():
        ways[f"{name}, vectors"] = _by_cosine(texts, embedder)
        ways[f"{name}, recall"] = _recalling(texts, embedder)
    for name, find in ways.items():
        found = [find(probe["question"]) for probe in selected]
        answers = [probe["memory"] for probe in selected]
        plain = [
            [text for text in each if text not in aside] for each, aside in zip(found, decoys, strict=True)
        ]
        print(f"{name:20}" + _shares(plain, answers) + _shares(found, answers))


def _answers_and_rest(probes: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    return [probe["memory"] for probe in probes], [text for probe in probes for text in probe["near"]]


def _check(probe: Mapping[str, Any]) -> None:
    """A probe that shares a stem with its answer would be found by its words."""
    assert not _shares_a_stem(probe["question"], probe["memory"]), probe


def _shares_a_stem(question: str, text: str) -> bool:
    terms = {term_hash(term) for term in query_terms(question)}
    return bool(terms & set(index_terms(text).hashes.tolist()))


def _embedders() -> dict[str, Embedder]:
    found: dict[str, Embedder] = {"bundled": StaticEmbedder()}
    try:
        found["minilm"] = OnnxEmbedder()
        found["minilm"].embed(["here?"])
    except MissingExtra as missing:
        del found["minilm"]
        print(missing)
    return found


def _by_cosine(texts: Sequence[str], embedder: Embedder) -> Callable[[str], list[str]]:
    memories = _unit(embedder.embed(texts))

    def find(question: str) -> list[str]:
        cosines = memories @ _unit(embedder.embed([question]))[0]
        return [texts[place] for place in np.argsort(-cosines, kind="stable")]

    return find


def _recalling(texts: Sequence[str], embedder: Embedder | None) -> Callable[[str], list[str]]:
    engine = germane.open(":memory:", agent="probes", embedder=embedder, clock=lambda: _NOW)
    engine.remember_many([{"content": text, "kind": "fact"} for text in texts])
    if engine.stats().pending:
        engine.embed_pending()

    def find(question: str) -> list[str]:
        # More than the deepest look, for the decoys that are passed over.
        return [each.content for each in engine.recall(question, limit=4 * max(_DEPTHS))]

    return find


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    unit: NDArray[np.float32] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return unit


def _shares(found: Sequence[Sequence[str]], answers: Sequence[str]) -> str:
    shares = (
        np.mean([answer in each[:depth] for each, answer in zip(found, answers, strict=True)])
        for depth in _DEPTHS
    )
    return "".join(f"{100 * float(share):10.0f}%" for share in shares)


if __name__ == "__main__":
    main()
