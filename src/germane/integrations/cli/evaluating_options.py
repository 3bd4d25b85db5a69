"""The options of `germane eval`, each with its one help text.

Level: integrations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

QuestionFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="Conversations and questions in LoCoMo's layout; or JSON lines (.jsonl): questions about what "
        "--records imports, questions about the store of --db, or probes that bring their memories.",
    ),
]
RecordsSource = Annotated[
    str | None,
    typer.Option(
        "--records",
        metavar="SOURCE",
        help="Import this folder or file into a store in memory, as germane import does, and ask about it.",
    ),
]
DemoData = Annotated[
    bool, typer.Option("--demo", help="Ask the demo's questions about the demo's memory; leave out FILE.")
]
Budgets = Annotated[
    str, typer.Option("--budgets", metavar="N,N,...", help="The budgets to measure at, in o200k tokens.")
]
Baselines = Annotated[
    str | None,
    typer.Option(
        "--baselines",
        metavar="NAMES",
        help="What to compare with: names parted by commas, or none; all that are installed if not said, "
        "and none beside --plan, --compare or --ablate.",
    ),
]
EmbedderName = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        metavar="NAME",
        help="static, onnx or none: what germane and the peers that need vectors embed with; static if not "
        "said, and for a store the one that it has.",
    ),
]
Plans = Annotated[
    list[str],
    typer.Option(
        "--plan",
        metavar="NAME",
        help="Measure this plan too, compared in pairs with the default call; repeatable.",
    ),
]
Compared = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--compare",
        metavar="A B",
        help="Two configurations to compare in pairs: germane, lexical, static, onnx, plan=NAME, "
        "without=PART, or several joined by +.",
    ),
]
Ablate = Annotated[
    bool, typer.Option("--ablate", help="Measure again without each part of the score, compared in pairs.")
]
Limit = Annotated[
    int | None,
    typer.Option("--limit-questions", metavar="N", help="Ask only N of the questions, drawn by a seed."),
]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="SVG", help="Draw recall against budget into this file.")
]
HtmlFile = Annotated[
    Path | None, typer.Option("--html", metavar="HTML", help="Write the report into this file as one page.")
]
MinRecall = Annotated[
    list[str],
    typer.Option(
        "--min-recall",
        metavar="BUDGET=SHARE",
        help="Exit with 1 when the evidence recall at a budget is lower, such as 1000=0.84; repeatable.",
    ),
]
MinAll = Annotated[
    list[str],
    typer.Option(
        "--min-all",
        metavar="BUDGET=SHARE",
        help="As --min-recall, for the share of questions with all of their evidence.",
    ),
]
Why = Annotated[
    str | None,
    typer.Option(
        "--why",
        metavar="QUESTION",
        help="Say of one question, by its number or a part of its text, where its evidence was lost; nothing "
        "else is measured.",
    ),
]
WhyMissing = Annotated[
    int | None,
    typer.Option(
        "--why-missing",
        metavar="N",
        help="Say where evidence was lost: totals, and the N questions that lost the most; nothing else is "
        "measured.",
    ),
]
