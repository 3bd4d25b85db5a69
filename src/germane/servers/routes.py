"""The table of operations: each with its method, its address, its verb and the right that it needs."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from germane import Conversation, Engine, Ledger, RecallResult, Space, WorkingSet
from germane.access import AccessRight
from germane.extractors import EntityReport, LearningRun
from germane.ledger import Assembly, AssemblyDiff, Finding, LoggedChange, Metrics, Replay, StoreStats
from germane.lifecycle import DecisionCalibration, Upkeep
from germane.model.context import RefreshReason, TraceNote
from germane.model.conversation import Compaction, ConversationInfo, Message, Selection, SessionSummary
from germane.model.learning import Feedback, LearningReport, ObserveResult, OutcomeResult
from germane.model.memory import LifecycleEvent, LifecycleState, Memory, RememberResult, Renditions
from germane.model.plan import Frame
from germane.model.request import RequestState
from germane.provenance import Derivation, QuarantinedMemory, Revocation
from germane.servers import conversations, verbs
from germane.servers.endpoints import FORMS, Route, SpaceName
from germane.servers.shared import known_conversation
from germane.spaces import SpaceEvent, SpaceInfo
from germane.stores import Removal
from germane.working_sets import Eviction, WorkingSetEvent, WorkingSetItem

_ADMIN: Final = AccessRight.ADMIN
_READ: Final = AccessRight.READ
_TUNING: Final = frozenset({"scorer", "tiers", "shares", "calibration", "context", "weights"})
"""Parameters that take objects of Python's."""

_SET: Final = {
    "name": str,
    "owner": str,
    "max_tokens": int,
    "tokens": int,
    "utilization": float,
    "count": int,
}
_MOVED: Final = {"id": str, "item": WorkingSetItem | None, "set": _SET}


def _memories() -> list[Route]:
    on: dict[str, Any] = {"in_space": True}
    one = "/memories/{memory_id}"
    return [
        Route(
            method="POST",
            path="/memories",
            verb=Engine.remember,
            returns=Memory,
            wrap="memory",
            status=HTTPStatus.CREATED,
            **on,
        ),
        Route(
            method="POST",
            path="/memories/batch",
            verb=verbs.remember_many,
            returns=tuple[RememberResult, ...],
            wrap="results",
            **on,
        ),
        Route(
            method="GET",
            path="/memories",
            verb=verbs.list_memories,
            returns={
                **_page("memories", Memory, str),
                "total": int,
                "notes": tuple[TraceNote, ...],
            },
            **on,
        ),
        Route(
            method="GET",
            path=one,
            verb=verbs.show_memory,
            returns={"memory": Memory, "renditions": Renditions, "lifecycle": LifecycleState},
            **on,
        ),
        Route(method="PATCH", path=one, verb=Engine.revise, returns=Memory, wrap="memory", **on),
        Route(
            method="DELETE",
            path=one,
            verb=verbs.purge,
            returns={"id": str, "purged": int},
            may=_ADMIN,
            **on,
        ),
    ]


def _memory() -> list[Route]:
    """What is done to one memory, and what was done."""
    on: dict[str, Any] = {"in_space": True}
    one = "/memories/{memory_id}"
    return [
        Route(method="GET", path=f"{one}/text", verb=verbs.expand, returns={"text": str}, **on),
        Route(
            method="GET",
            path=f"{one}/history",
            verb=verbs.history,
            returns=_page("versions", Memory, int),
            **on,
        ),
        Route(
            method="GET",
            path=f"{one}/events",
            verb=verbs.page_of_events,
            returns=_page("events", LifecycleEvent, int),
        ),
        *(
            Route(
                method="POST",
                path=f"{one}/{verb.__name__.replace('_', '-')}",
                verb=verb,
                returns=Memory,
                wrap="memory",
                fields=fields,
                **on,
            )
            for verb, fields in (
                (verbs.supersede, {}),
                (Engine.forget, {}),
                (Engine.restore, {}),
                (Engine.confirm, {}),
                (Engine.contradict, {}),
                (verbs.review, {}),
                (verbs.record_trigger, {}),
                (Engine.retire, {}),
            )
        ),
        Route(
            method="GET",
            path="/events/lifecycle",
            verb=verbs.page_of_events,
            returns=_page("events", LifecycleEvent, int),
            without=frozenset({"memory_id"}),
        ),
        Route(method="GET", path="/changes", verb=verbs.changes, returns=_page("changes", LoggedChange, int)),
    ]


def _origins() -> list[Route]:
    """Where memories come from, and what is in quarantine."""
    on: dict[str, Any] = {"in_space": True}
    one = "/memories/{memory_id}"
    return [
        Route(
            method="GET",
            path=f"{one}/trace-back",
            verb=verbs.trace_back,
            returns={"derivation": Derivation, "text": str},
            **on,
        ),
        Route(
            method="GET",
            path="/quarantine",
            verb=verbs.quarantined,
            returns=_page("memories", QuarantinedMemory, str),
            **on,
        ),
        Route(
            method="POST",
            path="/quarantine/{memory_id}/release",
            verb=verbs.release,
            returns=Memory,
            wrap="memory",
            may=_ADMIN,
            **on,
        ),
        Route(
            method="DELETE",
            path="/quarantine",
            verb=verbs.purge_quarantine,
            returns={"purged": int},
            may=_ADMIN,
            **on,
        ),
        Route(method="POST", path="/revoke", verb=Engine.revoke, returns=Revocation, may=_ADMIN, **on),
    ]


def _contexts() -> list[Route]:
    def post(path: str, verb: Any, returns: Any, **more: Any) -> Route:
        more.setdefault("may", _READ)
        return Route(
            method="POST", path=path, verb=verb, returns=returns, without=_TUNING, in_space=True, **more
        )

    request = {
        "session": str | None,
        "provider": str,
        "counter": str,
        "window": int,
        "reserve": int,
        "limit": int,
        "tokens": int,
        "arguments": Any,
        "costs": tuple[int, ...],
        "stable": int,
        "state": RequestState,
        "memory": verbs.AssembledContext | None,
    }
    write = AccessRight.WRITE
    assembles: dict[str, Any] = {"like": Engine.assemble}
    return [
        post("/recall", verbs.recall, RecallResult, like=Engine.recall, fields={"into": FORMS["str | None"]}),
        post("/assemble", verbs.assemble, verbs.AssembledContext, **assembles),
        post("/explain", verbs.explain, {"tokens": int, "trace": Any, "text": str}, **assembles),
        post(
            "/refresh",
            verbs.refresh,
            {
                "needed": bool,
                "reason": RefreshReason | None,
                "context": verbs.AssembledContext,
                "similarity": float | None,
            },
            like=Engine.refresh,
            fields={"new_input": FORMS["str"]},
        ),
        post("/request", verbs.request, request, like=Engine.request),
        post("/feedback", verbs.feedback, Feedback, may=write),
        post("/observe", verbs.observe, ObserveResult, may=write),
        post("/outcome", verbs.outcome, OutcomeResult, may=write),
        Route(method="GET", path="/frames", verb=Engine.frames, returns=tuple[Frame, ...], wrap="frames"),
        Route(method="GET", path="/kinds", verb=verbs.kinds, returns=list[dict[str, Any]], wrap="kinds"),
        Route(method="GET", path="/plans", verb=verbs.plans, returns=tuple[str, ...], wrap="plans"),
        Route(method="POST", path="/learning", verb=verbs.learning, returns=LearningReport),
        Route(
            method="GET",
            path="/learning",
            verb=verbs.learning,
            returns=LearningReport,
            without=frozenset({"on"}),
        ),
        Route(method="DELETE", path="/learning", verb=Engine.reset_learning, returns=int, wrap="removed"),
    ]


def _ledger() -> list[Route]:
    def ledger(target: Any, _: Any) -> Ledger:
        found: Ledger = target.ledger()
        return found

    return [
        Route(
            method="GET",
            path="/ledger",
            verb=verbs.assemblies,
            returns=_page("assemblies", Any, str),
            in_space=True,
        ),
        Route(
            method="GET",
            path="/ledger/{assembly_id}",
            verb=Ledger.show,
            returns=Assembly,
            on=ledger,
            in_space=True,
        ),
        Route(
            method="POST",
            path="/ledger/{assembly_id}/replay",
            verb=verbs.replay,
            returns=Replay,
            on=ledger,
            may=_READ,
            in_space=True,
        ),
        Route(
            method="GET",
            path="/ledger/{first}/diff/{second}",
            verb=Ledger.diff,
            returns=AssemblyDiff,
            on=ledger,
            in_space=True,
        ),
        Route(
            method="POST",
            path="/ledger/{first}/compare/{second}",
            verb=verbs.compare,
            returns={"difference": AssemblyDiff, "reused": int, "texts": list[dict[str, Any]]},
            on=ledger,
            may=_READ,
            in_space=True,
        ),
        Route(method="GET", path="/metrics", verb=Engine.metrics, returns=Metrics, in_space=True),
    ]


def _conversations() -> list[Route]:
    one = "/conversations/{session}"
    known: dict[str, Any] = {"on": known_conversation}
    return [
        Route(
            method="GET",
            path="/conversations",
            verb=conversations.sessions,
            returns=_page("conversations", ConversationInfo, str),
        ),
        Route(
            method="GET",
            path=one,
            verb=conversations.show_conversation,
            returns={
                "session": str,
                "anchors": dict[str, str],
                "state": str,
                **_page("messages", Message, int),
            },
            **known,
        ),
        Route(
            method="DELETE",
            path=one,
            verb=conversations.purge_conversation,
            returns={"session": str, "purged": int},
            may=_ADMIN,
            **known,
        ),
        Route(
            method="POST",
            path=f"{one}/messages",
            verb=conversations.append,
            returns=tuple[Message, ...],
            wrap="messages",
            status=HTTPStatus.CREATED,
            on=conversations.any_conversation,
        ),
        Route(
            method="GET",
            path=f"{one}/messages/{{message_id}}",
            verb=conversations.expand_message,
            returns={"content": Any},
            **known,
        ),
    ]


def _conversation() -> list[Route]:
    """What is done to one conversation beside its messages."""
    one = "/conversations/{session}"
    known: dict[str, Any] = {"on": known_conversation}
    groups = [
        Route(
            method="POST",
            path=f"{one}/groups/{{group}}/{verb.__name__}",
            verb=verb,
            returns=Any,
            wrap="group",
            **known,
        )
        for verb in (Conversation.hide, Conversation.unhide)
    ]
    return [
        *groups,
        Route(method="GET", path=f"{one}/window", verb=conversations.window, returns=Selection, **known),
        Route(
            method="POST", path=f"{one}/summary", verb=Conversation.summary, returns=SessionSummary, **known
        ),
        Route(method="POST", path=f"{one}/compact", verb=conversations.compact, returns=Compaction),
        Route(method="POST", path=f"{one}/uncompact", verb=conversations.uncompact, returns=Compaction),
        Route(
            method="PUT",
            path=f"{one}/anchors/{{name}}",
            verb=conversations.set_anchor,
            returns={"anchors": dict[str, str]},
            on=conversations.any_conversation,
        ),
        Route(
            method="PUT",
            path=f"{one}/state",
            verb=conversations.set_state,
            returns={"state": str},
            on=conversations.any_conversation,
        ),
    ]


def _learning_runs() -> list[Route]:
    """What is learned from conversations, and undone."""
    runs = "/learning-runs"
    one: dict[str, Any] = {"returns": LearningRun, "wrap": "run"}
    here: dict[str, Any] = {**one, "in_space": True}
    return [
        Route(method="POST", path="/conversations/{session}/learn", verb=conversations.learn, **here),
        Route(
            method="POST",
            path=runs,
            verb=conversations.consolidate,
            returns=tuple[LearningRun, ...],
            wrap="runs",
            in_space=True,
        ),
        Route(
            method="GET",
            path=runs,
            verb=conversations.learning_runs,
            returns=_page("runs", LearningRun, str),
            in_space=True,
        ),
        Route(method="GET", path=f"{runs}/{{run_id}}", verb=Engine.learning_run, **here),
        Route(method="POST", path=f"{runs}/{{run_id}}/undo", verb=Engine.unlearn, **here),
        Route(method="GET", path="/entities", verb=Engine.about, returns=EntityReport),
        Route(method="POST", path="/entities/names", verb=Engine.same_name, **one),
    ]


def _working_sets() -> list[Route]:
    one = "/working-sets/{name}"
    on: dict[str, Any] = {"on": verbs.working_set, "in_space": True}

    def post(path: str, verb: Any, returns: Any) -> Route:
        return Route(method="POST", path=f"{one}/{path}", verb=verb, returns=returns, **on)

    return [
        Route(
            method="GET",
            path=one,
            verb=verbs.show_working_set,
            returns={"set": _SET, "items": tuple[WorkingSetItem, ...]},
            **on,
        ),
        post("items", verbs.add_items, {"items": list[Any], "eviction": Eviction, "set": _SET}),
        *(post(f"items/{{memory_id}}/{name}", verb, _MOVED) for name, verb in verbs.MOVES.items()),
        post("resize", verbs.resize, {"set": _SET}),
        post("clear", verbs.clear, {"left": int, "set": _SET}),
        post("evict", verbs.evict, {"eviction": Eviction, "set": _SET}),
        Route(
            method="POST",
            path=f"{one}/assemble",
            verb=verbs.assemble_working_set,
            like=WorkingSet.assemble,
            returns=verbs.AssembledContext,
            may=_READ,
            without=frozenset({"scorer", "decay"}),
            **on,
        ),
        Route(
            method="GET",
            path=f"{one}/events",
            verb=verbs.working_set_events,
            returns=_page("events", WorkingSetEvent, int),
            **on,
        ),
    ]


def _spaces() -> list[Route]:
    one = "/spaces/{space}"
    entered: dict[str, Any] = {"on": verbs.space}
    return [
        Route(
            method="POST",
            path="/spaces",
            verb=verbs.create_space,
            returns=SpaceInfo,
            wrap="space",
            status=HTTPStatus.CREATED,
            fields={"name": SpaceName},
        ),
        Route(method="GET", path="/spaces", verb=verbs.spaces, returns=_page("spaces", SpaceInfo, str)),
        Route(method="GET", path=one, verb=Space.info, returns=SpaceInfo, wrap="space", **entered),
        Route(
            method="DELETE", path=one, verb=verbs.disband, returns={"disbanded": str}, may=_ADMIN, **entered
        ),
        *(
            Route(
                method="POST",
                path=f"{one}/{verb.__name__.replace('_', '-')}",
                verb=verb,
                returns=SpaceInfo,
                wrap="space",
                fields={
                    "failed": FORMS["Named"],
                    "agent": FORMS["Named"] if needed else FORMS["Named"] | None,
                },
                **entered,
            )
            for verb, needed in (
                (Space.join, False),
                (Space.leave, False),
                (Space.promote, True),
                (Space.demote, False),
                (Space.fail_over, True),
            )
        ),
        Route(
            method="POST",
            path=f"{one}/share",
            verb=Space.share,
            returns=Memory,
            wrap="memory",
            fields={"memory_id": FORMS["Named"]},
            **entered,
        ),
        Route(
            method="GET",
            path=f"{one}/events",
            verb=verbs.space_events,
            returns=_page("events", SpaceEvent, int),
            **entered,
        ),
    ]


def _store() -> list[Route]:
    return [
        Route(
            method="GET",
            path="/me",
            verb=verbs.me,
            returns={"agent": str, "user": str | None, "may": list[AccessRight], "expires_at": str | None},
            by_caller=True,
        ),
        Route(method="GET", path="/stats", verb=Engine.stats, returns=StoreStats, in_space=True),
        Route(
            method="GET",
            path="/calibration",
            verb=Engine.calibration,
            returns=DecisionCalibration,
            in_space=True,
        ),
        Route(
            method="GET",
            path="/decay",
            verb=verbs.decay,
            returns={"shape": str, "hours": float, "points": list[dict[str, float]]},
        ),
        Route(
            method="GET",
            path="/doctor",
            verb=Engine.doctor,
            returns=tuple[Finding, ...],
            wrap="findings",
            may=_ADMIN,
        ),
        Route(method="POST", path="/maintain", verb=verbs.maintain, returns=Upkeep, may=_ADMIN),
        Route(
            method="GET",
            path="/users",
            verb=verbs.users,
            returns=_page("users", str, str),
            by_caller=True,
        ),
        Route(
            method="DELETE",
            path="/users/{user}",
            verb=verbs.purge_user,
            returns=Removal,
            may=_ADMIN,
            by_caller=True,
        ),
    ]


def all_routes() -> list[Route]:
    """Every operation, in the order of the document."""
    return [
        *_memories(),
        *_memory(),
        *_origins(),
        *_contexts(),
        *_ledger(),
        *_conversations(),
        *_conversation(),
        *_learning_runs(),
        *_working_sets(),
        *_spaces(),
        *_store(),
    ]


def _page(name: str, entry: Any, after: Any) -> dict[str, Any]:
    """The fields of an answer that is one page of a list."""
    return {name: tuple[entry, ...], "after": after | None}
