"""Measure how much of the evidence for a question its context contains, without a judge.

`evaluate` runs; everything else here is a value or a pure function.
"""

from __future__ import annotations

from germane.evaluation.losses import Loss, Losses, LossStage, Lost, losses
from germane.evaluation.material import Corpus, Order, Reader, Records, Retriever, Stored
from germane.evaluation.page import curve, page, plot, trend, write_page
from germane.evaluation.report import (
    Floor,
    GateResult,
    Kind,
    KindsReport,
    Report,
    ReportTable,
    check_floors,
)
from germane.evaluation.result import Answer, EvaluationFigures, PairedDifference, Result, TurnLengths
from germane.evaluation.retrievers import Configuration, ranked_by
from germane.evaluation.run import BUDGETS, PEER_NAMES, compare_kinds, evaluate

__all__ = [
    "BUDGETS",
    "PEER_NAMES",
    "Answer",
    "Configuration",
    "Corpus",
    "EvaluationFigures",
    "Floor",
    "GateResult",
    "Kind",
    "KindsReport",
    "Loss",
    "LossStage",
    "Losses",
    "Lost",
    "Order",
    "PairedDifference",
    "Reader",
    "Records",
    "Report",
    "ReportTable",
    "Result",
    "Retriever",
    "Stored",
    "TurnLengths",
    "check_floors",
    "compare_kinds",
    "curve",
    "evaluate",
    "losses",
    "page",
    "plot",
    "ranked_by",
    "trend",
    "write_page",
]
