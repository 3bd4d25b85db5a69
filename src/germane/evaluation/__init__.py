"""Measure how much of what answers a question stands in the context, without a judge.

Level: evaluation (imports everything above it: engine, exchange and below). `evaluate` runs;
everything else here is a value or a pure function.
"""

from __future__ import annotations

from germane.evaluation.comparison import Difference
from germane.evaluation.configuration import Configuration, embedder_named
from germane.evaluation.corpus import Corpus, Order, Reader, Retriever, Stored
from germane.evaluation.plot import curve, plot
from germane.evaluation.report import Report
from germane.evaluation.result import Answer, Figures, Result
from germane.evaluation.retrievers import ranked_by
from germane.evaluation.run import BUDGETS, evaluate

__all__ = [
    "BUDGETS",
    "Answer",
    "Configuration",
    "Corpus",
    "Difference",
    "Figures",
    "Order",
    "Reader",
    "Report",
    "Result",
    "Retriever",
    "Stored",
    "curve",
    "embedder_named",
    "evaluate",
    "plot",
    "ranked_by",
]
