"""Measure how much of what answers a question stands in the context, without a judge.

Level: evaluation (imports everything above it: engine, exchange and below). `evaluate` runs;
everything else here is a value or a pure function.
"""

from __future__ import annotations

from germane.evaluation.plot import curve, plot
from germane.evaluation.report import Figures, Report, Result
from germane.evaluation.retrievers import Corpus, Reader, Retriever, ranked_by
from germane.evaluation.run import BUDGETS, evaluate

__all__ = [
    "BUDGETS",
    "Corpus",
    "Figures",
    "Reader",
    "Report",
    "Result",
    "Retriever",
    "curve",
    "evaluate",
    "plot",
    "ranked_by",
]
