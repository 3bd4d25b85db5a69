"""How much evidence contexts contain with and without late interaction over MiniLM as a reranker.

    python bench/rerank.py FILE [--budgets 500,1000,2000] [--limit-questions N]

`FILE` has questions as `germane eval run` takes them. Both are the default call with the bundled embedder.
The reranker has a minute for each question, so that the load of the machine doesn't change the figures.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from unittest.mock import patch

import germane
from germane.embedders import LateInteractionReranker
from germane.evaluation import Configuration, Corpus, Reader, evaluate
from germane.evaluation.retrievers import configured

_RERANKER = LateInteractionReranker(timeout=60)


def main() -> None:
    """Ask every question with and without the reranker, and print both and the paired differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--budgets", default="500,1000,2000")
    parser.add_argument("--limit-questions", type=int)
    given = parser.parse_args()
    report = evaluate(
        given.file,
        budgets=[int(budget) for budget in given.budgets.split(",")],
        retrievers={"germane": configured(Configuration()), "reranked": _reranked},
        questions_limit=given.limit_questions,
    )
    print(report.comparing("germane", "reranked").to_text())


def _reranked(corpus: Corpus) -> Reader:
    with patch.object(germane, "open", partial(germane.open, reranker=_RERANKER)):
        return configured(Configuration())(corpus)


if __name__ == "__main__":
    main()
