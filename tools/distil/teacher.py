"""Encodes the training text, or the vocabulary, with the teacher, in parts that survive an interruption.

    python tools/distil/teacher.py --model model.onnx --tokenizer tokenizer.json --work FOLDER [--words]

Writes `text-000.npy` … (or `words-000.npy` …): float16 sentence vectors of unit length, in the order
of the lines of `text.tsv` (of `words.txt`). A part that is there is not made again.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

_PART = 8192
_BATCH = 64
_LONGEST = 128
_DIMENSION = 384


def main() -> None:
    """Encode every part that isn't there yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--words", action="store_true")
    given = parser.parse_args()
    teacher = Teacher(given.model, given.tokenizer)
    name = "words" if given.words else "text"
    lines = _lines(given.work, name)
    for number, start in enumerate(range(0, len(lines), _PART)):
        file = given.work / f"{name}-{number:03}.npy"
        if file.exists():
            continue
        began = perf_counter()
        part = lines[start : start + _PART]
        vectors = teacher.encode(teacher.ids_of_words(part) if given.words else teacher.ids_of_texts(part))
        unfinished = file.with_suffix(".unfinished.npy")
        np.save(unfinished, vectors.astype(np.float16))
        unfinished.rename(file)
        print(f"{file.name}: {len(vectors) / (perf_counter() - began):.0f} a second", flush=True)


class Teacher:
    """all-MiniLM-L6-v2: mean of the tokens' vectors, at unit length."""

    def __init__(self, model: Path, tokenizer: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_LONGEST)
        options = onnxruntime.SessionOptions()
        # Threads that spin while they wait would take the processor from each other.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._inputs = {each.name for each in self._session.get_inputs()}

    def ids_of_texts(self, texts: list[str]) -> list[list[int]]:
        """The token ids of whole texts, [CLS] and [SEP] around them."""
        return [each.ids for each in self._tokenizer.encode_batch(texts)]

    def ids_of_words(self, words: list[str]) -> list[list[int]]:
        """The token ids of pieces of words (`##ing` as the one token that it is) and of whole words."""
        known = {word: self._tokenizer.token_to_id(word) for word in words}
        opening, closing = (self._tokenizer.token_to_id(mark) for mark in ("[CLS]", "[SEP]"))
        return [
            [opening, known[word], closing] if known[word] is not None else self.ids_of_texts([word])[0]
            for word in words
        ]

    def encode(self, ids: list[list[int]]) -> NDArray[np.float32]:
        """One row for each list of ids, in order; lists of like length share a batch."""
        order = sorted(range(len(ids)), key=lambda place: len(ids[place]))
        vectors = np.zeros((len(ids), _DIMENSION), dtype=np.float32)
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            vectors[places] = self._batch([ids[place] for place in places])
        return vectors

    def _batch(self, ids: list[list[int]]) -> NDArray[np.float32]:
        longest = max(map(len, ids))
        mask = np.array([[1] * len(each) + [0] * (longest - len(each)) for each in ids], dtype=np.int64)
        padded = np.array([each + [0] * (longest - len(each)) for each in ids], dtype=np.int64)
        feed = {"input_ids": padded, "attention_mask": mask, "token_type_ids": np.zeros_like(padded)}
        (states, *_) = self._session.run(None, {name: feed[name] for name in self._inputs})
        pooled = (states * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)


def _lines(work: Path, name: str) -> list[str]:
    if name == "words":
        return (work / "words.txt").read_text(encoding="utf-8").splitlines()
    rows = (work / "text.tsv").read_text(encoding="utf-8").splitlines()
    return [row.partition("\t")[2] for row in rows]


if __name__ == "__main__":
    main()
