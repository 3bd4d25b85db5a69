"""The shortest useful program: store a few memories, assemble a context, and explain it."""

from __future__ import annotations

import germane

MEMORIES = [
    germane.Draft(
        content="I am newton, the backend agent of a team of three.", kind="identity", importance=10
    ),
    germane.Draft(
        content="Never deploy on a Friday.",
        kind="constraint",
        metadata={"action": "block", "reason": "nobody is on call at the weekend"},
    ),
    germane.Draft(
        content="Tried Redis as a cache in front of the search; took it out after two weeks.",
        kind="decision",
        outcome="failure",
        confidence=0.9,
        metadata={"reasons": ["the hit rate stayed under 20 %", "one more server to patch"]},
    ),
    germane.Draft(content="The search answers in 40 ms at the median without a cache.", kind="fact"),
    germane.Draft(content="Ana likes short pull requests.", kind="fact"),
]


def main() -> None:
    with germane.open(":memory:", agent="newton") as engine:
        engine.remember_many(MEMORIES)
        context = engine.assemble("Should we use Redis for caching?", budget=160)
    print(context.text)
    print()
    print(f"{context.tokens} tokens, and never more than 160.")
    print()
    print(context.explain())


if __name__ == "__main__":
    main()
