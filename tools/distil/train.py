"""Trains the vectors of the pieces so that their sum over a sentence points where the teacher points.

    python tools/distil/train.py --work FOLDER [--seed 7]

Needs the parts that `teacher.py` wrote for the text and for the words (of the text the first parts
suffice). Writes `student.npy`: float32, a row for each line of `words.txt`.
"""

from __future__ import annotations

import argparse
from itertools import count
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray

from germane.embedders.static import WordPieces, plain_words

_DIMENSION = 256
_LONGEST = 128
_TEST = 2_000
_BATCH = 512
_EPOCHS = 2
_RATE, _WARM_UP, _LEAST = 2e-3, 100, 0.02
_DROPOUT = 0.1
_SMOOTHING = 1e-3  # Of the inverse frequency that a piece's first vector is weighed by.


def main() -> None:
    """Prepare, train, report how near the student comes to the teacher on test sentences, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    torch.set_num_threads(1)
    teacher = _parts(given.work, "text")
    axes, energy = _principal_axes(teacher)
    targets = torch.from_numpy(_unit(teacher @ axes))
    words = (given.work / "words.txt").read_text(encoding="utf-8").splitlines()
    sentences = _Sentences(given.work, words, len(targets))
    first = _first_vectors(_parts(given.work, "words"), axes, np.load(given.work / "counts.npy"))
    print(f"{len(targets)} sentences, {len(words)} pieces, {100 * energy:.1f} % of the energy", flush=True)
    student = torch.nn.EmbeddingBag.from_pretrained(torch.from_numpy(first), freeze=False, mode="sum")
    _train(student, sentences, targets)
    print(f"test set: cosine {_test_cosine(student, sentences, targets):.4f}")
    np.save(given.work / "student.npy", student.weight.detach().numpy())


class _Sentences:
    """The pieces of all sentences end to end."""

    def __init__(self, work: Path, words: list[str], number: int) -> None:
        cut = WordPieces({word: number for number, word in enumerate(words)})
        with (work / "text.tsv").open(encoding="utf-8") as file:
            rows = [
                cut.ids(plain_words(line.partition("\t")[2]), _LONGEST)
                for line, _ in zip(file, range(number), strict=False)
            ]
        self.starts = np.cumsum([0, *map(len, rows)])
        self.pieces = np.array([piece for row in rows for piece in row], dtype=np.int64)
        self.number = number

    def bags(self, chosen: NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor]:
        """The pieces of the chosen sentences and where each sentence's begin."""
        rows = [self.pieces[self.starts[each] : self.starts[each + 1]] for each in chosen]
        begin = np.cumsum([0, *map(len, rows)])[:-1]
        return torch.from_numpy(np.concatenate(rows)), torch.from_numpy(begin)


def _parts(work: Path, name: str) -> NDArray[np.float32]:
    files = [work / f"{name}-{number:03}.npy" for number in _numbers(work, name)]
    return np.concatenate([np.load(file) for file in files]).astype(np.float32)


def _numbers(work: Path, name: str) -> range:
    """The numbers of the parts that are there without a gap."""
    return range(next(number for number in count() if not (work / f"{name}-{number:03}.npy").exists()))


def _principal_axes(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float32], float]:
    """The axes that keep most of the vectors' energy, uncentred, and the share that they keep."""
    axes, energy, _ = np.linalg.svd(vectors.T.astype(np.float64) @ vectors / len(vectors))
    return axes[:, :_DIMENSION].astype(np.float32), float(energy[:_DIMENSION].sum() / energy.sum())


def _first_vectors(
    words: NDArray[np.float32], axes: NDArray[np.float32], often: NDArray[np.int64]
) -> NDArray[np.float32]:
    """The teacher's vector of each piece alone, less what all have in common; frequent ones shorter."""
    projected = _unit((words - words.mean(axis=0)) @ axes)
    frequency = often / often.sum()
    return (projected * (_SMOOTHING / (_SMOOTHING + frequency))[:, None]).astype(np.float32)


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def _train(student: torch.nn.EmbeddingBag, sentences: _Sentences, targets: torch.Tensor) -> None:
    learned = sentences.number - _TEST
    steps = _EPOCHS * (learned // _BATCH)
    optimiser = torch.optim.Adam(student.parameters(), lr=_RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / _WARM_UP, max(1 - step / steps, _LEAST))
    )
    began = perf_counter()
    for epoch in range(_EPOCHS):
        order = torch.randperm(learned).numpy() + _TEST
        total = 0.0
        for start in range(0, learned - _BATCH + 1, _BATCH):
            chosen = order[start : start + _BATCH]
            pieces, begin = sentences.bags(chosen)
            weights = (torch.rand(len(pieces)) >= _DROPOUT).float()
            sums = student(pieces, begin, per_sample_weights=weights)
            loss = 1 - torch.cosine_similarity(sums, targets[chosen]).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += loss.item()
        print(
            f"epoch {epoch}: loss {total / (learned // _BATCH):.4f}, {perf_counter() - began:.0f} s",
            flush=True,
        )


def _test_cosine(student: torch.nn.EmbeddingBag, sentences: _Sentences, targets: torch.Tensor) -> float:
    with torch.no_grad():
        pieces, begin = sentences.bags(np.arange(_TEST))
        return float(torch.cosine_similarity(student(pieces, begin), targets[:_TEST]).mean())


if __name__ == "__main__":
    main()
