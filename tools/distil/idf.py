"""Counts in how many lines of the training text each term stands: the table behind `coverage`.

python tools/distil/idf.py --work FOLDER --out src/germane/retrieval/data/idf-1.bin
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np

from germane.retrieval.quality import IdfTable
from germane.retrieval.tokenizer import index_terms

_TERMS = 40_000


def main() -> None:
    """Count, keep the most frequent terms and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    lines = (given.work / "text.tsv").read_text(encoding="utf-8").splitlines()
    counted: Counter[int] = Counter()
    for line in lines:
        counted.update(index_terms(line.partition("\t")[2]).hashes.tolist())
    selected = sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:_TERMS]
    hashes = np.array([term for term, _ in selected], dtype=np.uint32)
    often = np.array([often for _, often in selected], dtype=np.int64)
    table = IdfTable.of_counts(hashes, often, texts=len(lines))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_bytes(table.to_bytes())
    print(f"{len(selected)} of {len(counted)} terms, the rarest in {often[-1]} of {len(lines)} lines")


if __name__ == "__main__":
    main()
