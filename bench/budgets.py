"""What a larger budget loses, and what it leaves empty: the default call from 60 to 8,000 tokens.

    python bench/budgets.py [--plan NAME] [--budgets 60,100,...] [--by-budget] [--set demo|records|FILE]

Each question of the demo and of `data/decisions.jsonl` (about this repository's decision records), or of a
file in LoCoMo's layout, is assembled at every budget, the smallest first.

    lost       memories whole at a budget and not at the next: gone from it, or shortened
    questions  share of the questions that lose one anywhere
    falls      budgets at which the mean evidence recall is lower than at the one before, and by how much
    idle, cut  mean share of the budget that is empty while a shortened memory would fit whole
    idle, out  mean share of the budget that is empty while expected evidence, or a candidate that the gate
               let through and no duplicate, would fit and is out
    refused    contexts that can't hold what is required (BudgetTooSmall)
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import germane.demo
from germane import BudgetTooSmall, Context, Item, Level, Reason
from germane.evaluation import Configuration, Records
from germane.evaluation.material import EvaluationQuestion, Material, drawn, read_material
from germane.evaluation.result import Needle
from germane.evaluation.retrievers import BUNDLED, GermaneReader, contained_pieces
from germane.tokens import CachedCounter, get_counter

__all__ = ["BUDGETS", "Step", "main", "measured", "report"]

BUDGETS = (
    *(60, 80, 100, 125, 150, 175, 200, 250, 300, 350, 400, 450, 500, 600, 700, 800, 900, 1000),
    *(1250, 1500, 1750, 2000, 2500, 3000, 3500, 4000, 5000, 6000, 7000, 8000),
)
"""Budgets from 60 to 8,000 tokens, at most a third apart."""

_ROOT = Path(__file__).parent.parent
_LEFT_OUT = (Reason.OVER_BUDGET, Reason.STOPPED, Reason.LIMIT, Reason.ALIKE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One context. `gone` and `shortened` count memories that were whole at the budget before."""

    question: int
    budget: int
    recall: float
    whole: int
    cut: int
    gone: int
    shortened: int
    idle_cut: float
    idle_out: float
    refused: bool = False


def main() -> None:
    """Print the report of each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--plan", help="the plan; that of the default call unless given")
    parser.add_argument("--budgets", help="budgets, separated by commas")
    parser.add_argument("--by-budget", action="store_true", help="print a row for each budget")
    parser.add_argument("--set", action="append", help="demo, records or a file; repeatable")
    parser.add_argument("--questions", type=int, help="ask so many of a file's questions, drawn by a seed")
    given = parser.parse_args()
    budgets = BUDGETS if given.budgets is None else tuple(int(each) for each in given.budgets.split(","))
    for name in given.set or ("demo", "records"):
        material = drawn(_material(name), given.questions, 7)
        steps = measured(material, Configuration(plan=given.plan), sorted(budgets))
        print(report(name, steps, by_budget=given.by_budget))


def measured(material: Material, configuration: Configuration, budgets: Sequence[int]) -> list[Step]:
    """Every question at every budget, the budgets in their order."""
    steps: list[Step] = []
    for place, corpus in enumerate(material.corpora):
        questions = [each for each in material.questions if each.corpus == place]
        if not questions:
            continue
        reader = GermaneReader(corpus, configuration)
        try:
            needles = dict(zip(corpus.ids, corpus.turns, strict=True))
            for each in questions:
                steps += _steps(reader, each, needles, budgets)
        finally:
            reader.close()
    return steps


def report(name: str, steps: Sequence[Step], *, by_budget: bool) -> str:
    """The figures of a set for people."""
    questions = {step.question for step in steps}
    losing = {step.question for step in steps if step.gone or step.shortened}
    gone, shortened = sum(step.gone for step in steps), sum(step.shortened for step in steps)
    budgets = sorted({step.budget for step in steps})
    recalls = [mean(step.recall for step in steps if step.budget == budget) for budget in budgets]
    falls = [
        f"{budget} (-{100 * (before - after):.1f})"
        for budget, before, after in zip(budgets[1:], recalls, recalls[1:], strict=False)
        if after < before - 1e-9
    ]
    lines = [
        f"{name}: {len(questions)} questions, {len(steps)} contexts",
        f"  lost       {gone + shortened} ({gone} gone, {shortened} shortened)",
        f"  questions  {len(losing) / len(questions):.1%}",
        f"  falls      {', '.join(falls) or 'none'}",
        f"  idle, cut  {mean(step.idle_cut for step in steps):.1%}",
        f"  idle, out  {mean(step.idle_out for step in steps):.1%}",
        f"  refused    {sum(step.refused for step in steps)}",
    ]
    if by_budget:
        lines.append(
            f"  {'budget':>6}{'recall':>9}{'whole':>8}{'cut':>8}{'gone':>6}{'shortened':>11}{'idle':>8}"
        )
        for budget, recall in zip(budgets, recalls, strict=True):
            of = [step for step in steps if step.budget == budget]
            idle = mean(max(step.idle_cut, step.idle_out) for step in of)
            whole, cut = mean(step.whole for step in of), mean(step.cut for step in of)
            lines.append(
                f"  {budget:6}{recall:9.1%}{whole:8.1f}{cut:8.1f}"
                f"{sum(step.gone for step in of):6}{sum(step.shortened for step in of):11}{idle:8.1%}"
            )
    return "\n".join(lines)


def _material(name: str) -> Material:
    counter = CachedCounter(get_counter("o200k"))
    if name == "demo":
        folder = Path(germane.demo.__file__).parent
        path = folder / "questions.jsonl"
        records = Records(source=folder / "memory.jsonl", now=germane.demo.DEMO_NOW)
    elif name == "records":
        path = _ROOT / "bench" / "data" / "decisions.jsonl"
        records = Records(source=_ROOT / "docs" / "decisions")
    else:
        return read_material(Path(name), counter=counter, embedder=BUNDLED)
    return read_material(path, counter=counter, embedder=BUNDLED, records=records)


def _steps(
    reader: GermaneReader, question: EvaluationQuestion, needles: Mapping[str, Needle], budgets: Sequence[int]
) -> list[Step]:
    steps = []
    before: frozenset[str] = frozenset()
    for budget in budgets:
        try:
            context = reader.context(question.question, budget)
        except BudgetTooSmall:
            steps.append(_refused(question, budget, before))
            before = frozenset()
            continue
        whole = frozenset(item.memory.id for item in context.items if _is_whole(item))
        shown = {item.memory.id for item in context.items}
        present = contained_pieces(context.text, question, needles)
        idle_cut, idle_out = _idle(reader, context, question, present)
        steps.append(
            Step(
                question=question.number,
                budget=budget,
                recall=sum(present) / len(present),
                whole=len(whole),
                cut=len(shown) - len(whole),
                gone=len(before - shown),
                shortened=len((before & shown) - whole),
                idle_cut=idle_cut,
                idle_out=idle_out,
            )
        )
        before = whole
    return steps


def _refused(question: EvaluationQuestion, budget: int, before: frozenset[str]) -> Step:
    return Step(
        question=question.number,
        budget=budget,
        recall=0.0,
        whole=0,
        cut=0,
        gone=len(before),
        shortened=0,
        idle_cut=0.0,
        idle_out=0.0,
        refused=True,
    )


def _idle(
    reader: GermaneReader, context: Context, question: EvaluationQuestion, present: Sequence[bool]
) -> tuple[float, float]:
    """The share of the budget left empty, where it would hold a shortened memory, or one that is out."""
    budget = context.trace.budget
    left = budget - context.tokens
    cut = any(
        not _is_whole(item) and item.memory.renditions.full.tokens - item.tokens <= left
        for item in context.items
    )
    ids = {own: stored for stored, own in reader.ids.items()}
    shown = {item.memory.id for item in context.items}
    missing = [
        ids[each]
        for piece, there in zip(question.pieces, present, strict=True)
        if not there
        for each in piece.ids
        if each in ids and ids[each] not in shown
    ]
    # A line costs a token more than its text, and a heading of its own some more.
    out = any(
        not entry.included and entry.reason in _LEFT_OUT and 0 < entry.tokens <= left
        for entry in context.trace.entries
    ) or any(memory.renditions.full.tokens < left for memory in map(reader.engine.get, missing))
    share = left / budget
    return share if cut else 0.0, share if out else 0.0


def _is_whole(item: Item) -> bool:
    renditions = item.memory.renditions
    return item.level is not Level.EXCERPT and renditions.at(item.level).text == renditions.full.text


if __name__ == "__main__":
    main()
