"""A research agent over documents: findings with their sources, and a source that turns out to be wrong.

It imports documents, answers questions from the passages that fit, and stores each answer as a finding with
what it comes from. When a source is withdrawn, one call removes all that came of it. `python
examples/research_agent.py --model NAME` lets a real model answer.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from model import Model, model_or

import germane
from germane.importers import import_source

SYSTEM = "Answer from the documents alone, in one sentence."
BUDGET = 300
DOCUMENTS = {
    "range.md": (
        "# Range\n\nThe ferry Aurora sails 40 kilometres on one charge.\n\n"
        "In winter the range falls by a fifth.\n"
    ),
    "cost.md": "# Cost\n\nCharging the ferry takes 900 kilowatt hours and costs 180 euro at night.\n",
    "blog.md": "# A blog\n\nSomebody wrote that the battery of the ferry lasts for thirty years.\n",
}
QUESTIONS = (
    "How far does the ferry sail in winter?",
    "What does charging cost at night?",
    "How many years does the battery last?",
)


def main() -> None:
    model = model_or(script)
    with TemporaryDirectory() as folder, germane.open(":memory:", agent="reader") as engine:
        for name, text in DOCUMENTS.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        print(f"{import_source(engine, folder).created} passages of {len(DOCUMENTS)} documents")
        for question in QUESTIONS:
            answer(engine, question, model)
        withdrawn = next(
            each.source for each in engine.memories() if each.source and "blog.md" in each.source
        )
        removed = engine.revoke(withdrawn, confirm=True)
        print(f"blog.md is withdrawn: {len(removed.memories)} memories are gone")
        left = engine.memories(where='kind = "fact"')
        print(f"Left: {[each.content for each in left]}")


def answer(engine: germane.Engine, question: str, model: Model) -> None:
    """Answer a question from the passages that fit, and store the finding with what it comes from."""
    context = engine.assemble(question, budget=BUDGET, plan="relevance", kinds=["note"])
    request = engine.request(
        [{"role": "user", "content": question}], system=SYSTEM, memory=context, window=2000, reserve=300
    )
    text = str(model(request)["content"])
    used = engine.observe(context, text).used
    sources = sorted({Path(str(engine.get(each).source).partition("#")[0]).name for each in used})
    print(f"> {question}\n< {text} ({', '.join(sources)}; {context.tokens} of {BUDGET} tokens)")
    engine.remember(text, kind="fact", metadata={"_derived_from": list(used)})


def script(shown: str, last: str) -> str:
    """Answers from what the request shows, and from nothing else."""
    if "winter" in last and "40 kilometres" in shown and "falls by a fifth" in shown:
        return "It sails 32 kilometres in winter, since the range of 40 kilometres falls by a fifth."
    if "charging" in last and "180 euro" in shown:
        return "Charging the ferry costs 180 euro at night."
    if "battery" in last and "thirty years" in shown:
        return "The battery of the ferry lasts for thirty years."
    return "The documents don't say it."


if __name__ == "__main__":
    main()
