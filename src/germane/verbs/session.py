"""What every verb works with: one agent's store, counter, kinds and the rest, as one value.

Level: verbs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from germane.conversation.arrangements import Arrangements
from germane.ids import IdSequence
from germane.kinds import Kinds
from germane.model.frame import Frame
from germane.packing.remembered import RememberedLines
from germane.protocols import Clock, Embedder, FrameSelector, Store, Summarizer, TokenCounter
from germane.verbs.attested import KnownOutcomes
from germane.verbs.judged import KnownJudgement
from germane.verbs.learned import KnownWeights

__all__ = ["Session"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """An agent's side of a store. The engine makes one and hands it to each verb.

    `set_aside` names the model whose vectors are in the store when no embedder of it is at hand.
    `frames` are known beside the built-in ones; `frame_selector` chooses among all, if there is one.
    `lines` remembers how memories look in a context and what they cost there, by `counter`;
    `known_weights` what use has taught, `known_outcomes` how work turned out, `known_judgement` how well the
    agent judges itself, `arrangements` conversations as they are sent. With `records`, assemblies go into
    the ledger unless a call says otherwise; `timer` tells the seconds for it.
    """

    agent: str
    store: Store
    counter: TokenCounter
    kinds: Kinds
    clock: Clock
    ids: IdSequence
    embedder: Embedder | None = None
    set_aside: str = ""
    summarizer: Summarizer | None = None
    language: str = "english"
    frames: tuple[Frame, ...] = ()
    frame_selector: FrameSelector | None = None
    lines: RememberedLines = field(default_factory=RememberedLines, repr=False, compare=False)
    known_weights: KnownWeights = field(default_factory=KnownWeights, repr=False, compare=False)
    records: bool = False
    timer: Callable[[], float] = field(default=time.perf_counter, repr=False, compare=False)
    arrangements: Arrangements = field(default_factory=Arrangements, repr=False, compare=False)
    known_outcomes: KnownOutcomes = field(default_factory=KnownOutcomes, repr=False, compare=False)
    known_judgement: KnownJudgement = field(default_factory=KnownJudgement, repr=False, compare=False)
