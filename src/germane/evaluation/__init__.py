"""Measure how much of what answers a question stands in the context, without a judge.

Level: evaluation (imports everything above it: engine, exchange and below). `evaluate` runs;
everything else here is a value or a pure function.
"""

from __future__ import annotations

from germane.evaluation.comparison import Difference
from germane.evaluation.configuration import Configuration, embedder_named
from germane.evaluation.corpus import Corpus, Order, Reader, Retriever, Stored
from germane.evaluation.gate import Floor, Judged, judged
from germane.evaluation.lost import Loss, Losses, Lost, Stage, losses
from germane.evaluation.page import page, write_page
from germane.evaluation.plot import curve, plot
from germane.evaluation.records import Records
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
    "Floor",
    "Judged",
    "Loss",
    "Losses",
    "Lost",
    "Order",
    "Reader",
    "Records",
    "Report",
    "Result",
    "Retriever",
    "Stage",
    "Stored",
    "curve",
    "embedder_named",
    "evaluate",
    "judged",
    "losses",
    "page",
    "plot",
    "ranked_by",
    "write_page",
]
