"""Trains the packed vectors on questions in other words than their answers, in four bits per number.

    python tools/distil/contrast.py --packages FOLDER --first FOLDER/static-2.bin --work FOLDER --out FILE
        [--without AUTHOR,AUTHOR]

`questions.tsv` has a line for each memory: its author, the memory, two questions that it answers, and a near
miss, a memory on the same matter that doesn't. Each question is moved towards its memory and away from the
other memories and near misses of its batch (InfoNCE: van den Oord et al. 2018), while the sums over texts
still point where the teacher points. Lines near one of the probes in `bench/data` are left out. `--without`
leaves out authors as well, and prints how well their questions find their memories.

Writes the teacher's vectors of all texts (`questions.npy`, not made again where it is there) and the file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from fit import counted, embedded, turn, unit
from numpy.typing import NDArray
from sources import wordnet_of

from germane.embedders.static import PackedVectors
from germane.retrieval.tokenizer import index_terms

_NAME = "germane-static-3"
_RECIPE = "distil-3"
_QUESTIONS = Path(__file__).with_name("questions.tsv")
_PROBES = Path(__file__).parents[2] / "bench" / "data"
_EPOCHS, _BATCH, _TEXTS = 6, 256, 512
_RATE, _WARM_UP, _LEAST = 3e-3, 30, 0.02
_BETAS = (0.9, 0.99)
_TEMPERATURE = 0.2
_TEACHER = 12.0
_LEVELS = 7  # As `PackedVectors` rounds.
_STATEMENTS, _SEED = 5_000, 7
_FIRST = 5
_SHARED, _PARTLY, _LIKE = 0.5, 0.3, 0.5
"""A line is near a probe from these shares of common stems: of the memories, or of memories and questions."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of `questions.tsv`."""

    author: str
    memory: str
    questions: tuple[str, str]
    near_miss: str

    @property
    def texts(self) -> tuple[str, ...]:
        """The memory, its near miss, and the questions."""
        return self.memory, self.near_miss, *self.questions


def main() -> None:
    """Ask the teacher, train, pack, and tell the least cosine and the checksum."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("packages", "first", "work", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--without", default="")
    given = parser.parse_args()
    torch.manual_seed(_SEED)
    torch.set_num_threads(1)
    first = PackedVectors.from_bytes(given.first.read_bytes())
    _, examples = wordnet_of(given.packages / "wordnet-base", set(first.words))
    before = first.rows(np.arange(len(first.words)))
    every = _lines()
    texts = [*examples, *(text for line in every for text in line.texts)]
    teacher = embedded(given.work / "questions.npy", texts)
    turned = turn(teacher[: len(examples)], unit(counted(examples, first.words) @ before))
    left_out = set(given.without.split(","))
    lines = [line for line in every if line.author not in left_out and not _is_near(line, _probes())]
    known = dict(zip(texts, unit(teacher @ turned), strict=True))
    texts = [*examples, *(text for line in lines for text in line.texts)]
    after = _trained(before, first.words, lines, texts, np.array([known[text] for text in texts]))
    packed = PackedVectors.pack(after, words=first.words, name=_NAME, recipe=_RECIPE)
    rounded = packed.rows(np.arange(len(packed.words)))
    least = _least_cosine(examples, unit(counted(examples, first.words) @ rounded))
    data = replace(packed, least_cosine=least).to_bytes()
    given.out.write_bytes(data)
    for name, vectors in (("before", before), ("after", rounded)):
        for author in sorted(left_out - {""}):
            print(
                f"{author} {name}: {_recall([x for x in every if x.author == author], vectors, first.words)}"
            )
    print(f"{len(lines)} of {len(every)} lines, least cosine {least}, {len(data):,} bytes")
    print(f"sha256 {hashlib.sha256(data).hexdigest()}")


def _lines() -> list[Line]:
    found: list[Line] = []
    for line in _QUESTIONS.read_text(encoding="utf-8").splitlines():
        author, memory, one, other, near_miss = line.split("\t")
        found.append(Line(author, memory, (one, other), near_miss))
    return found


@cache
def _probes() -> list[tuple[set[int], set[int]]]:
    """The stems of each probe's memory and question."""
    return [
        (_stems(probe["memory"]), _stems(probe["question"]))
        for name in ("probes.jsonl", "paraphrases.jsonl")
        for probe in map(json.loads, (_PROBES / name).read_text(encoding="utf-8").splitlines())
    ]


def _is_near(line: Line, probes: Sequence[tuple[set[int], set[int]]]) -> bool:
    memory = _stems(line.memory)
    questions = [_stems(each) for each in line.questions]
    for known, question in probes:
        shared = _share(memory, known)
        like = max(_share(each, question) for each in questions)
        if shared >= _SHARED or (shared >= _PARTLY and like >= _LIKE):
            return True
    return False


def _stems(text: str) -> set[int]:
    return set(index_terms(text).hashes.tolist())


def _share(one: set[int], other: set[int]) -> float:
    return len(one & other) / max(min(len(one), len(other)), 1)


class _Bags:
    """The pieces of texts, by the number of a text."""

    def __init__(self, texts: Sequence[str], words: tuple[str, ...]) -> None:
        self._counts = counted(list(texts), words)

    def sums(self, places: NDArray[np.intp], table: _Table) -> torch.Tensor:
        """The vectors of these texts, at unit length."""
        chosen = self._counts[places]
        pieces, columns = np.unique(chosen.indices, return_inverse=True)
        bags = torch.nn.functional.embedding_bag(
            torch.from_numpy(columns),
            table.rows(torch.from_numpy(pieces.astype(np.int64))),
            torch.from_numpy(chosen.indptr[:-1].astype(np.int64)),
            per_sample_weights=torch.from_numpy(chosen.data),
            mode="sum",
        )
        return torch.nn.functional.normalize(bags, dim=1)


class _Table:
    """The vectors before, and how far each has moved. Sums see them rounded, the training doesn't."""

    def __init__(self, before: NDArray[np.float32]) -> None:
        self._before = torch.from_numpy(before)
        self.moved = torch.nn.Parameter(torch.zeros_like(self._before))

    def rows(self, pieces: torch.Tensor) -> torch.Tensor:
        exact = self._before[pieces] + self.moved[pieces]
        with torch.no_grad():
            steps = (exact.abs().amax(1, keepdim=True) / _LEVELS).clamp_min(1e-9)
            lost = (exact / steps).round() * steps - exact
        return exact + lost

    def exact(self) -> NDArray[np.float32]:
        return (self._before + self.moved).detach().numpy()


def _trained(
    before: NDArray[np.float32],
    words: tuple[str, ...],
    lines: Sequence[Line],
    texts: Sequence[str],
    targets: NDArray[np.float32],
) -> NDArray[np.float32]:
    """The vectors after all epochs."""
    chance = np.random.default_rng(_SEED)
    table = _Table(before)
    bags = _Bags(texts, words)
    known = torch.from_numpy(targets)
    start_of_lines = len(texts) - 4 * len(lines)
    steps = len(lines) // _BATCH
    optimiser = torch.optim.Adam([table.moved], lr=_RATE, betas=_BETAS)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser,
        lambda step: min(1, (step + 1) / _WARM_UP) * (1 - (1 - _LEAST) * step / (steps * _EPOCHS)),
    )
    began = perf_counter()
    for epoch in range(_EPOCHS):
        order = chance.permutation(len(lines))
        total = 0.0
        for step in range(steps):
            batch = start_of_lines + 4 * order[step * _BATCH : (step + 1) * _BATCH]
            found = bags.sums(np.concatenate([batch + part for part in range(4)]), table)
            other = chance.choice(len(texts), _TEXTS, replace=False)
            apart = 1 - (bags.sums(other, table) * known[other]).sum(1).mean()
            loss = _contrast(found) + _TEACHER * apart
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / steps:.4f}, {perf_counter() - began:.0f} s", flush=True)
    return table.exact()


def _contrast(found: torch.Tensor) -> torch.Tensor:
    """How badly questions find their memory among all memories and near misses, and memories their questions.

    `found` has memories, near misses, first and second questions, one after another.
    """
    count = len(found) // 4
    memories, questions = found[: 2 * count], found[2 * count :]
    likeness = questions @ memories.T / _TEMPERATURE
    own = torch.arange(count)
    loss = torch.nn.functional.cross_entropy(likeness, own.repeat(2))
    for part in (likeness[:count, :count], likeness[count:, :count]):
        loss = loss + torch.nn.functional.cross_entropy(part.T, own) / 2
    return loss


def _recall(lines: Sequence[Line], vectors: NDArray[np.float32], words: tuple[str, ...]) -> str:
    """How many of the questions find their memory among the first 5 of memories and near misses."""
    memories = [line.memory for line in lines] + [line.near_miss for line in lines]
    among = unit(counted(memories, words) @ vectors)
    found: list[float] = []
    for part in range(2):
        likeness = unit(counted([line.questions[part] for line in lines], words) @ vectors) @ among.T
        own = np.diagonal(likeness)[:, None]
        found.append(100 * float(((likeness > own).sum(axis=1) < _FIRST).mean()))
    return f"recall@{_FIRST} {found[0]:.1f} and {found[1]:.1f} % of {len(lines)} first and second questions"


def _least_cosine(texts: list[str], vectors: NDArray[np.float32]) -> float:
    """One standard deviation above the mean cosine of a question and a statement that don't belong together.

    The questions are those of the examples that end in a question mark, the statements 5,000 of the others.
    """
    asks = np.array([text.rstrip().endswith("?") for text in texts])
    chosen = np.random.default_rng(_SEED).choice(np.flatnonzero(~asks), _STATEMENTS, replace=False)
    cosines = vectors[asks] @ vectors[chosen].T
    return round(float(cosines.mean() + cosines.std()), 3)


if __name__ == "__main__":
    main()
