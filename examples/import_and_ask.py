"""Import existing documents (this project's documentation) and query them."""

from __future__ import annotations

from pathlib import Path

import germane
from germane.importers import import_source

DOCS = Path(__file__).parents[1] / "docs" / "decisions"
QUESTION = "Why is a context fitted in rank order and not by a knapsack?"
BUDGET = 400


def main() -> None:
    with germane.open(":memory:", agent="reader") as engine:
        first = import_source(engine, str(DOCS))
        again = import_source(engine, str(DOCS))
        print(f"Something was read: {first.created > 0}; read again, new: {again.created}.")
        context = engine.assemble(QUESTION, budget=BUDGET, plan="relevance")
        best = context.items[0]
        print(QUESTION)
        print(f"The context fits into {BUDGET} tokens: {context.tokens <= BUDGET}.")
        print(f"The best passage is from {Path(best.memory.source or '').name}:")
        print()
        print(best.text)


if __name__ == "__main__":
    main()
