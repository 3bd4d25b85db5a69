"""The contract of the stores that keep everything in tables: what every store promises, and more."""

from __future__ import annotations

from germane.testing.contract import StoreContract
from support.contracts.conversations import ConversingContract
from support.contracts.feedback import LearningContract
from support.contracts.learning_runs import LearningRunsContract
from support.contracts.ledgers import RecordingContract
from support.contracts.lifecycles import LifecyclesContract
from support.contracts.outcomes import ValidatingContract
from support.contracts.space_learning import SpaceLearningContract
from support.contracts.spaces import SharingContract
from support.contracts.usage_history import AdoptingContract
from support.contracts.working_sets import HoldingContract

__all__ = ["TablesContract"]


class TablesContract(
    LearningContract,
    LifecyclesContract,
    HoldingContract,
    SharingContract,
    SpaceLearningContract,
    ConversingContract,
    ValidatingContract,
    RecordingContract,
    LearningRunsContract,
    AdoptingContract,
    StoreContract,
):
    """Everything that a store in tables promises. Subclasses say how one is opened."""
