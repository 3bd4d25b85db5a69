"""The options of `germane eval`, each with its one help text.

Level: integrations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from germane.integrations.cli.options import arg, opt

QuestionFile = Annotated[
    Path | None,
    arg(
        "FILE",
        "Conversations and questions in LoCoMo's layout; or JSON lines (.jsonl): questions about what"
        " --records imports, questions about the store of --db, or probes that bring their memories.",
    ),
]
RecordsSource = Annotated[
    str | None,
    opt(
        "--records SOURCE",
        "Import this folder or file into a store in memory, as germane import does, and ask about it.",
    ),
]
DemoData = Annotated[bool, opt("--demo", "Ask the demo's questions about the demo's memory; leave out FILE.")]
Budgets = Annotated[str, opt("--budgets N,N,...", "The budgets to measure at, in o200k tokens.")]
Baselines = Annotated[
    str | None,
    opt(
        "--baselines NAMES",
        "What to compare with: names parted by commas, or none; all that are installed if not said, "
        "and none beside --plan, --compare or --ablate.",
    ),
]
EmbedderName = Annotated[
    str | None,
    opt(
        "--embedder NAME",
        "static, onnx or none: what germane and the peers that need vectors embed with; static if not"
        " said, and for a store the one that it has.",
    ),
]
Plans = Annotated[
    list[str],
    opt("--plan NAME", "Measure this plan too, compared in pairs with the default call; repeatable."),
]
Compared = Annotated[
    tuple[str, str] | None,
    opt(
        "--compare A B",
        "Two configurations to compare in pairs: germane, lexical, static, onnx, plan=NAME, "
        "without=PART, or several joined by +.",
    ),
]
Ablate = Annotated[bool, opt("--ablate", "Measure again without each part of the score, compared in pairs.")]
Limit = Annotated[int | None, opt("--limit-questions N", "Ask only N of the questions, drawn by a seed.")]
Plot = Annotated[Path | None, opt("--plot SVG", "Draw recall against budget into this file.")]
HtmlFile = Annotated[Path | None, opt("--html HTML", "Write the report into this file as one page.")]
MinRecall = Annotated[
    list[str],
    opt(
        "--min-recall BUDGET=SHARE",
        "Exit with 1 when the evidence recall at a budget is lower, such as 1000=0.84; repeatable.",
    ),
]
MinAll = Annotated[
    list[str],
    opt("--min-all BUDGET=SHARE", "As --min-recall, for the share of questions with all of their evidence."),
]
Why = Annotated[
    str | None,
    opt(
        "--why QUESTION",
        "Say of one question, by its number or a part of its text, where its evidence was lost; "
        "nothing else is measured.",
    ),
]
WhyMissing = Annotated[
    int | None,
    opt(
        "--why-missing N",
        "Say where evidence was lost: totals, and the N questions that lost the most; nothing else is"
        " measured.",
    ),
]
