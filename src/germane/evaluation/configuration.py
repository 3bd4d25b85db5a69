"""A configuration of germane that can be measured: which embedder, which plan, without which part.

Level: evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from germane.embedders.onnx import OnnxEmbedder
from germane.embedders.static import StaticEmbedder
from germane.engine import Engine, open_engine
from germane.errors import InvalidInput
from germane.evaluation.corpus import Corpus, Retriever
from germane.evaluation.greedy import Packed
from germane.evaluation.records import all_memories, open_records, record_key
from germane.kinds import BUILT_IN
from germane.model.context import Context
from germane.model.plan import Plan
from germane.plans.frames import DEFAULT_FRAME
from germane.plans.registry import PLANS, plan_for
from germane.protocols import Embedder

__all__ = [
    "BUNDLED",
    "EMBEDDERS",
    "GATE",
    "GROUPING",
    "Configuration",
    "GermaneReader",
    "configured",
    "embedder_named",
]

BUNDLED: Embedder = StaticEmbedder()
"""The embedder of a run that is given none: the one that comes with the package."""

GROUPING = "grouping"
"""What `without` calls the standing together of a session's turns, which is no part of a score.

Without it a context holds the same ranking, each memory on a dated line of its own.
"""

GATE = "gate"
"""What `without` calls the gate that keeps out what has nothing to do with the question."""

_AS_GIVEN = "default"
_ITSELF = "germane"
_WORDS_ONLY = "lexical"
_JOINT = "+"
_DEFAULT_PLAN = "layered"
"""The plan of an `Engine.assemble` that names none; a test compares it with the method's signature."""
_ANY_BUDGET = 1000
"""The ranking doesn't depend on the budget; one that holds what a plan requires."""

EMBEDDERS: dict[str, Callable[[], Embedder | None]] = {
    "none": lambda: None,
    "static": StaticEmbedder,
    "onnx": OnnxEmbedder,
}
"""The embedders that have a name, and how each is made."""


def embedder_named(name: str) -> Embedder | None:
    """The embedder of that name; None for "none". Raises InvalidInput."""
    if name not in EMBEDDERS:
        raise InvalidInput(f"Unknown embedder {name!r}. Known embedders: {', '.join(EMBEDDERS)}.")
    return EMBEDDERS[name]()


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One way to set germane up. Its text is what differs from the default, joined by `+`.

    `germane` and `default` are the default: `engine.assemble(question, budget=n)` and nothing else,
    with the embedder of the run. `embedder=none|static|onnx` names another embedder (`lexical`,
    `static` and `onnx` are short for them), `plan=NAME` passes that plan to the call, and
    `without=PART` leaves a part out of every score, or with `without=grouping` or `without=gate`
    what isn't part of a score:

        Configuration.parse("onnx+without=window")
    """

    embedder: str = _AS_GIVEN
    plan: str | None = None
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.embedder not in (_AS_GIVEN, *EMBEDDERS):
            raise InvalidInput(
                f"embedder={self.embedder!r} is unknown. Known embedders: {', '.join(EMBEDDERS)}."
            )
        if self.plan is not None and self.plan not in PLANS:
            raise InvalidInput(f"plan={self.plan!r} is unknown. Known plans: {', '.join(PLANS)}.")

    def __str__(self) -> str:
        said = {_AS_GIVEN: [], "none": [_WORDS_ONLY]}.get(self.embedder, [self.embedder])
        if self.plan is not None:
            said = [*said, f"plan={self.plan}"]
        return _JOINT.join([*said, *(f"without={part}" for part in self.without)]) or _ITSELF

    @classmethod
    def parse(cls, text: str) -> Configuration:
        """The configuration of that text. Raises InvalidInput."""
        found = cls()
        for word in text.split(_JOINT):
            name, _, value = word.strip().partition("=")
            if not value and name in (_AS_GIVEN, _ITSELF):
                continue
            if not value and name == _WORDS_ONLY:
                found = replace(found, embedder="none")
            elif not value and name in EMBEDDERS:
                found = replace(found, embedder=name)
            elif value and name == "embedder":
                found = replace(found, embedder=value)
            elif value and name == "plan":
                found = replace(found, plan=value)
            elif value and name == "without":
                found = replace(found, without=tuple(dict.fromkeys((*found.without, value))))
            else:
                raise InvalidInput(
                    f"{text!r} is no configuration: {word!r} can't be read. Write germane, lexical, static, "
                    "onnx, embedder=NAME, plan=NAME or without=PART, several joined by +."
                )
        return found

    def leaving_out(self, part: str) -> Configuration:
        """This configuration without one part more."""
        return replace(self, without=(*self.without, part))

    def plan_of(self) -> Plan:
        """The plan, with what the configuration leaves out left out; without a frame of the question's."""
        plan = plan_for(self.plan or _DEFAULT_PLAN, kinds=BUILT_IN, frame=DEFAULT_FRAME)
        parts = tuple(part for part in self.without if part not in (GROUPING, GATE))
        return replace(plan, without=parts, gate=plan.gate and GATE not in self.without)


def configured(configuration: Configuration, *, by_plan: bool = False) -> Retriever:
    """The retriever that is germane in this configuration; `by_plan` as for GermaneReader."""
    return lambda corpus: GermaneReader(corpus, configuration, by_plan=by_plan)


class GermaneReader:
    """Germane over one corpus: every conversation is one agent in a store of its own, in memory.

    `parts` collects the names of the score parts that were seen: they say what there is to leave out.
    `shown` holds the corpus's ids of the items of the last context, whole or shortened. `by_plan` passes
    the plan as a value even where nothing is left out of it. A plan that is passed has no frame, so its
    contexts may differ a little from those of the call by name, and what is left out is compared with it.
    """

    def __init__(self, corpus: Corpus, configuration: Configuration, *, by_plan: bool = False) -> None:
        self.configuration = configuration
        self.parts: set[str] = set()
        self.shown: frozenset[str] = frozenset()
        self._plan = configuration.plan_of()
        self._gated = GATE not in configuration.without
        self._by_plan = by_plan or bool(self._plan.without) or not self._gated
        self._ungrouped = Packed(corpus) if GROUPING in configuration.without else None
        self._places = {own: place for place, own in enumerate(corpus.ids)}
        self.engine = _opened(corpus, configuration)
        if corpus.stored is not None:
            self.ids = {each: each for each in corpus.ids}
            return
        if corpus.records is not None:
            own = dict(zip(corpus.keys, corpus.ids, strict=True))
            memories = all_memories(self.engine)
            self.ids = {each.id: own[key] for each in memories if (key := record_key(each)) in own}
        else:
            stored = self.engine.remember_many(corpus.drafts)
            self.ids = {each.memory.id: own_id for each, own_id in zip(stored, corpus.ids, strict=True)}
        if self.engine.stats().pending:
            # A slow embedder works in the background; nothing is measured before it is done.
            self.engine.embed_pending()

    def recall(self, question: str, limit: int) -> Sequence[str]:
        """The corpus's ids, best first, by what the configuration ranks with."""
        found = self.engine.recall(question, limit=limit, gate=self._gated)
        for one in found:
            self.parts.update(one.parts)
        if not self._plan.without:
            return [self.ids[one.memory.id] for one in found if one.memory.id in self.ids]
        # A plan leaves parts out and a recall doesn't, so the ranking is the one of the trace.
        return self._order(question, _ANY_BUDGET)[:limit]

    def assemble(self, question: str, budget: int) -> str:
        """The context's text."""
        if self._ungrouped is None:
            context = self.context(question, budget)
            self.shown = frozenset(self.ids.get(item.memory.id, "") for item in context.items)
            return context.text
        return self._ungrouped.text([self._places[own] for own in self._order(question, budget)], budget)

    def context(self, question: str, budget: int) -> Context:
        """The context with its account, assembled as a caller would: nothing is passed but what differs."""
        if self._by_plan:
            return self.engine.assemble(question, budget=budget, plan=self._plan)
        if self.configuration.plan is not None:
            return self.engine.assemble(question, budget=budget, plan=self.configuration.plan)
        return self.engine.assemble(question, budget=budget)

    @property
    def gathered(self) -> int:
        """How many candidates of each signal a context of the plan is made from, at most."""
        return sum(section.limit for section in self._plan.sections if section.order is None)

    def shows(self, kind: str) -> bool:
        """Whether the plan has a section for memories of that kind."""
        return any(kind in section.kinds for section in self._plan.sections)

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()

    def _order(self, question: str, budget: int) -> list[str]:
        """The ids of all that was gathered, in rank order."""
        entries = sorted(self.context(question, budget).trace.entries, key=lambda entry: -entry.score)
        return [self.ids[entry.memory_id] for entry in entries if entry.memory_id in self.ids]


def _opened(corpus: Corpus, configuration: Configuration) -> Engine:
    named = configuration.embedder != _AS_GIVEN
    embedder = embedder_named(configuration.embedder) if named else corpus.embedder
    if corpus.records is not None:
        return open_records(corpus.records, now=corpus.now, embedder=embedder, counter=corpus.counter)
    if corpus.stored is None:
        return open_engine(
            ":memory:",
            agent="evaluation",
            embedder=embedder,
            counter=corpus.counter,
            clock=lambda: corpus.now,
        )
    opened = partial(
        open_engine,
        corpus.stored.database,
        agent=corpus.stored.agent,
        counter=corpus.counter,
        read_only=True,
        clock=lambda: corpus.now,
    )
    # A store has the vectors that it has, so it is opened as its users open it unless told otherwise.
    return opened() if embedder is BUNDLED else opened(embedder=embedder)
