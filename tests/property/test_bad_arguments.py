"""Every public verb and value refuses a bad argument with an error of germane's own, whatever it is."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import germane
from germane import Conversation, Engine, Ledger, Space, WorkingSet, stores
from germane.conversation import RecallLimits, Tiers, TokenCalibration
from germane.filters import Comparison
from germane.kinds import TemplatePart
from germane.lifecycle import Reconcile
from germane.plans import ScopedPlan, TaskContext
from germane.protocols import Query
from germane.ranking import Decay
from germane.testing.fakes import HashEmbedder
from house.source import PUBLIC


def _deep(levels: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for _ in range(levels):
        made = {"content": [made]}
    return made


_CIRCLE: dict[str, Any] = {"role": "user"}
_CIRCLE["content"] = [_CIRCLE]

BAD: Mapping[str, Any] = {
    "none": None,
    "true": True,
    "negative": -1,
    "past 64 bits": 2**63,
    "past float": 10**400,
    "fraction": 1.5,
    "nan": float("nan"),
    "infinite": float("inf"),
    "decimal": Decimal(1),
    "empty": "",
    "word": "x",
    "surrogate": "a\ud800b",
    "nul": "a\x00b",
    "long": "x" * 5000,
    "bytes": b"x",
    "object": object(),
    "class": int,
    "function": lambda *_: "x",
    "list of none": [None],
    "list of objects": [object()],
    "list of mappings": [{"x": object()}],
    "list of surrogates": ["\udfff"],
    "unhashable": [[]],
    "set": {1.5},
    "mapping of objects": {"x": object()},
    "mapping with odd keys": {5: "x", None: "y"},
    "deep": _deep(50_000),
    "deep content": {"role": "user", "content": [_deep(400)]},
    "list of deep": [_deep(50_000)],
    "circle": _CIRCLE,
    "naive": datetime(2026, 1, 1),  # noqa: DTZ001 - What is tried.
    "before year 1": datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
    "first moment": datetime.min.replace(tzinfo=UTC),
    "last moment": datetime.max.replace(tzinfo=UTC),
    "after year 9999": datetime.max.replace(tzinfo=timezone(-timedelta(hours=12))),
    "filter": germane.Filter(),
    "scoped": ScopedPlan(),
    "calibration": TokenCalibration(counter="x", provider="y"),
}


class World:
    """A fresh store with one of everything that a verb can refer to."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.fact = engine.remember("The pump of hall 4 hums.", kind="fact")
        self.decision = engine.remember("Chose Postgres.", kind="decision", confidence=0.8)
        self.constraint = engine.remember("Never deploy on Fridays.", kind="constraint")
        self.conversation = engine.conversation("standup")
        self.message = self.conversation.append("user", "Does the pump hum?")
        self.conversation.append("assistant", "It does.")
        self.working_set = engine.working_set()
        self.working_set.add(self.fact)
        self.ledger = engine.ledger()
        self.context = engine.assemble("Which pump hums?", record=True)
        self.assembly = self.ledger.list()[0].id
        self.space = engine.space("team", create=True)
        self.shared = self.space.remember("The valve is shut.", kind="fact")
        self.run = engine.learn_from(self.conversation)
        self.compaction = engine.compaction(self.conversation, budget=1000)

    def subjects(self) -> dict[type, Any]:
        """What has verbs, by its class."""
        return {
            Engine: self.engine,
            Space: self.space,
            Conversation: self.conversation,
            WorkingSet: self.working_set,
            Ledger: self.ledger,
        }

    def required(self, name: str, *, of: type) -> Any:
        """A good argument for a parameter that has no default."""
        fact = self.shared if of is Space else self.fact
        if name == "conversation":
            return self.conversation
        return {
            "content": "The pump hums.",
            "drafts": ["The pump hums."],
            "memories": [fact],
            "memory": fact,
            "memory_id": self.fact.id if of is Space else fact.id,
            "memory_ids": [fact.id],
            "decision_id": self.decision.id,
            "constraint_id": self.constraint.id,
            "draft": {"content": "The pump howls."},
            "where": germane.Filter(),
            "query": "Which pump hums?",
            "context": self.context,
            "new_input": "And the valve?",
            "response": "The pump hums.",
            "used": [],
            "outcome": "success",
            "usage_history": self.engine.usage_history(),
            "budget": 1000,
            "compaction": self.compaction,
            "messages": "Which pump hums?",
            "message": "user",
            "message_id": self.message.id,
            "session": "standup",
            "source": self.conversation,
            "run_id": self.run.id,
            "other": "Anna",
            "name": "team",
            "text": "Hums.",
            "group": self.message.group,
            "provider": "openai",
            "tokens": 10,
            "max_tokens": 1000,
            "callback": lambda _: None,
            "agent": "grace",
            "failed": "grace",
            "assembly_id": self.assembly,
            "first": self.assembly,
            "second": self.assembly,
        }[name]


@contextmanager
def world() -> Iterator[World]:
    """A store of its own for one verb and parameter."""
    with germane.open(":memory:", embedder=None) as engine:
        yield World(engine)


def _parameters() -> Iterator[tuple[type, str, str]]:
    for owner in (Engine, Space, Conversation, WorkingSet, Ledger):
        for name, verb in inspect.getmembers(owner, inspect.isfunction):
            if name.startswith("_") or name == "close":
                continue
            for parameter in list(inspect.signature(verb).parameters.values())[1:]:
                if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                    yield owner, name, parameter.name


def _call(verb: Callable[..., Any], given: dict[str, Any]) -> None:
    parameters = inspect.signature(verb).parameters
    only_by_place = [
        given.pop(each.name) for each in parameters.values() if each.kind is inspect.Parameter.POSITIONAL_ONLY
    ]
    found = verb(*only_by_place, **given)
    if isinstance(found, Iterator):
        list(found)
    if hasattr(found, "close"):
        found.close()


def _failures(owner: type, name: str, parameter: str) -> Iterator[str]:
    with world() as tried:
        verb = getattr(tried.subjects()[owner], name)
        wanted = {
            each.name: tried.required(each.name, of=owner)
            for each in inspect.signature(verb).parameters.values()
            if each.default is inspect.Parameter.empty
            and each.kind is not inspect.Parameter.VAR_KEYWORD
            and each.name != parameter
        }
        if name == "append" and parameter != "content":
            wanted["content"] = "So it does."
        for what, bad in BAD.items():
            if callable(bad) and parameter in ("progress", "callback"):
                # What the caller's own function raises reaches the caller.
                continue
            try:
                _call(verb, {**wanted, parameter: bad})
            except germane.GermaneError:
                pass
            except Exception as error:  # noqa: BLE001 - What is looked for.
                yield f"{what}: {type(error).__name__}: {str(error)[:100]}"


@pytest.mark.parametrize(("owner", "name", "parameter"), list(_parameters()))
def test_a_verb_refuses_a_bad_argument_with_an_error_of_its_own(
    owner: type, name: str, parameter: str
) -> None:
    assert list(_failures(owner, name, parameter)) == []


@pytest.mark.parametrize("option", list(inspect.signature(germane.open).parameters))
def test_opening_refuses_a_bad_argument_with_an_error_of_its_own(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    failures = []
    for what, bad in BAD.items():
        given = {"location": ":memory:", "embedder": None, option: bad}
        try:
            with closing(germane.open(given.pop("location"), **given)):
                pass
        except germane.GermaneError:
            pass
        except Exception as error:  # noqa: BLE001 - What is looked for.
            failures.append(f"{what}: {type(error).__name__}: {str(error)[:100]}")
    assert failures == []


_ON_STORES: tuple[Callable[..., Any], ...] = tuple(
    # `location_of` does nothing to a store.
    verb
    for name in stores.__all__
    if name != "location_of" and inspect.isfunction(verb := getattr(stores, name))
)


@pytest.mark.parametrize(
    ("verb", "parameter"),
    [(verb, parameter) for verb in _ON_STORES for parameter in inspect.signature(verb).parameters],
)
def test_what_is_done_to_a_store_refuses_a_bad_argument_as_well(
    verb: Callable[..., Any], parameter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with germane.open("agent.db", embedder=None) as engine:
        engine.remember("The pump hums.")
    good = {
        "location": "agent.db",
        "source": "agent.db",
        "target": "copy.db",
        "agent": "nobody",
        "embedder": HashEmbedder(),
        "new_key": "6b" * 32,
    }
    wanted = {
        name: good[name]
        for name, each in inspect.signature(verb).parameters.items()
        if each.default is inspect.Parameter.empty and name != parameter
    }
    failures = []
    for what, bad in BAD.items():
        if callable(bad) and parameter == "progress":
            continue
        try:
            verb(**wanted, **{parameter: bad})
        except germane.GermaneError:
            pass
        except Exception as error:  # noqa: BLE001 - What is looked for.
            failures.append(f"{what}: {type(error).__name__}: {str(error)[:100]}")
    assert failures == []


_RESULTS = tuple(
    word
    for line in (
        "AddResult AgentCopy AgentFigures Anchored Assembly AssemblyDiff CacheUsage Candidate Context",
        "CalibrationBin Compaction ConversationInfo CopyReport DatabaseStatus Day Decided",
        "DecisionCalibration DerivedQuery",
        "EmbeddingIdentity Entry Erasure Evicted Eviction Example Feedback Finding FrameChoice Fused",
        "Impressions Item LargeMemory LearningReport LearningStatus LedgerEntry LeftOut LifecycleEvent",
        "LifecycleState Member Memory MemoryChange Metrics ObserveResult OutcomeHistory OutcomeRecord",
        "OutcomeResult PartUsage Payload Question Ranked RecallResult RefreshResult RememberResult",
        "Removal Rendition Renditions Replay Request SectionUsage Selection SpaceEvent SpaceInfo",
        "StoreStats StoreUsage Trace TraceNote Upkeep UpkeepStep UsageHistory ValueChange VectorIndex",
        "SessionSummary Weights WorkingSetEvent WorkingSetItem DemoQuestion Kinds AccessKey NewKey",
        "LoggedChange RequestState RestServer Decision Effect LearningRun MemoryState ModelAnswer Attempt",
        "Entity EntityFact EntityReport NameMerge",
        "Derivation DerivationStep ImportOrigin LearningOrigin QuotedMessage Revocation VersionOrigin",
        "QuarantinedMemory",
        # What an engine asks of a store, and its answers.
        "Applied ApplySignal ImportUsage Insert Merge Purge RecordOutcome RecordUse Revise Reword",
        "Damage RepairReport SearchResult SetStatus SetVector Slice RecordRun Reinstate PurgeConversation",
        # What it asks of a store's spaces.
        "Create Demote Disband FailOver Join Leave Promote SpaceAct",
    )
    for word in line.split()
)
"""What methods return and stores are given; any other public dataclass is made by callers, and checked."""


def _fields() -> Iterator[tuple[Any, str]]:
    public = {
        name: getattr(import_module(module), name)
        for module in PUBLIC
        if module
        not in ("germane.evaluation", "germane.frameworks", "germane.importers", "germane.summarizers")
        for name in import_module(module).__all__
    }
    for name, made in public.items():
        if isinstance(made, type) and dataclasses.is_dataclass(made) and name not in _RESULTS:
            for field in dataclasses.fields(made):
                if field.init:
                    yield made, field.name


def _required_fields(made: type) -> dict[str, Any]:
    """Good values for what has no default."""
    section = germane.Section(name="facts", heading="## Facts", share=germane.Share(weight=1))
    good = {
        **dict.fromkeys(("id", "name", "heading", "content", "text", "description", "counter"), "pump"),
        **dict.fromkeys(("provider", "json", "form", "call_id"), "pump"),
        **dict.fromkeys(("weight", "others"), 1),
        "field": "pump",
        "operator": "=",
        "part": Comparison("pump", "exists"),
        "priorities": {"fact": 1},
        "role": "user",
        "parts": (),
        "messages": (),
        "quotes": (),
        "message": "pump",
        "sections": (section,),
        "share": section.share,
    }
    return {
        field.name: good[field.name]
        for field in dataclasses.fields(made)
        if field.init and field.default is field.default_factory is dataclasses.MISSING
    }


@pytest.mark.parametrize(("made", "field"), list(_fields()))
def test_a_value_refuses_a_bad_field_with_an_error_that_names_it(made: Any, field: str) -> None:
    required = _required_fields(made)
    failures = []
    for what, bad in BAD.items():
        try:
            made(**{**required, field: bad})
        except germane.InvalidInput:
            pass
        except Exception as error:  # noqa: BLE001 - What is looked for.
            failures.append(f"{what}: {type(error).__name__}: {str(error)[:100]}")
    assert failures == []
    wrong: list[Any] = [object(), TokenCalibration(counter="x", provider="y")]
    if made is not germane.Draft or field not in ("importance", "confidence"):
        # These limits are a memory's, so that an import goes on with the drafts that keep within them.
        wrong.append(float("nan"))
    for bad in wrong:
        with pytest.raises(germane.InvalidInput, match=field):
            made(**{**required, field: bad})


@pytest.mark.parametrize(
    ("made", "field", "bad"),
    [
        *((germane.Share, name, -1) for name in ("weight", "floor")),
        *((germane.Section, name, -1) for name in ("limit", "each", "items")),
        *((germane.Section, name, "x") for name in ("order", "overflow", "style", "alike", "levels")),
        *((germane.Plan, name, "x") for name in ("roll_over", "fusion", "repeats")),
        *((Tiers, name, -1) for name in ("recent", "older", "inactive", "head")),
        *((RecallLimits, name, -1) for name in ("most", "share", "least")),
        *((Reconcile, name, 1.5) for name in ("confirm", "supersede")),
        (Decay, "shape", "x"),
        (Decay, "basis", "x"),
        (Decay, "hours", -1),
        (germane.Filter, "statuses", ["x"]),
        (germane.Filter, "without", ["x"]),
        (germane.Filter, "scopes", [""]),
        (germane.Frame, "budget", -1),
        (germane.Kind, "lifecycle", "x"),
        (germane.Message, "role", "x"),
        (germane.Message, "provider", "x"),
        (TemplatePart, "least", -1),
        (Query, "least_cosine", 2),
        (TaskContext, "leanings", {"x": 2}),
    ],
)
def test_a_value_refuses_what_lies_outside_its_limits(made: Any, field: str, bad: object) -> None:
    with pytest.raises(germane.InvalidInput):
        made(**{**_required_fields(made), field: bad})
