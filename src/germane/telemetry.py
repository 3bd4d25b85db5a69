"""OpenTelemetry spans and metrics of an engine's verbs (extra `otel`), and structured logs of them.

Names follow the conventions for memory of generative AI, which are in development:
https://github.com/open-telemetry/semantic-conventions-genai
"""

from __future__ import annotations

import copy
import json
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, wraps
from importlib.metadata import version
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from germane.engine import Engine
from germane.engine.handle import StoreHandle
from germane.engine.space import Space
from germane.errors import MissingExtra
from germane.lifecycle import Upkeep
from germane.model.context import Context, RefreshResult
from germane.model.conversation import Anchored, Group, Message, Selection, SessionSummary
from germane.model.extraction import EntityReport, LearningRun
from germane.model.learning import OutcomeResult
from germane.model.memory import Memory
from germane.model.request import Request
from germane.operations.conversation import Conversation

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from opentelemetry.trace import Tracer

    from germane.aio import AsyncEngine, AsyncStoreHandle
    from germane.model.query import Query, SearchResult
    from germane.operations.context import AgentContext
    from germane.protocols import Store

__all__ = ["instrument"]

CAPTURE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The environment variable that lets text into attributes: "true", "span_only" or "span_and_event"."""

_OPERATIONS: Final[Mapping[str, Sequence[str]]] = {
    "search_memory": ("recall",),
    "upsert_memory": ("remember", "remember_many", "import_memories"),
    "update_memory": (
        *("revise", "supersede", "confirm", "contradict", "review", "record_trigger", "retire", "restore"),
    ),
    "delete_memory": ("forget", "forget_many", "purge", "purge_many"),
}
_OWN: Final = ("assemble", "refresh", "request", "feedback", "observe", "outcome", "maintain")
"""Verbs for which the conventions have no name, with the searches in them as spans of their own."""
_WITHOUT_SEARCHES: Final = (
    *("get", "memories", "history", "count", "expand", "learn_from", "consolidate", "unlearn"),
    *("about", "same_name"),
)
_NAMES: Final = {verb: name for name, verbs in _OPERATIONS.items() for verb in verbs} | {
    verb: f"germane.{verb}" for verb in (*_OWN, *_WITHOUT_SEARCHES)
}
_CONVERSATION: Final = {
    verb: f"germane.conversation.{verb}"
    for verb in (
        *("append", "extend", "messages", "expand", "window", "ranked", "anchored", "summary"),
        *("hide", "unhide", "remove", "remove_message", "undo", "purge", "set_state"),
    )
}
_QUERIES: Final = {"recall": "query", "assemble": "query", "refresh": "new_input", "observe": "response"}
"""The parameter that is a text, of the verbs that take one; it comes first but for the last two."""
_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24)
_SHARES: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
_TOKENS: Final = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576)
_MOST_IDS: Final = 100

_log = logging.getLogger("germane")
_log.addHandler(logging.NullHandler())
_assembling: ContextVar[bool] = ContextVar("germane_assembling", default=False)

T = TypeVar("T", Engine, "AsyncEngine", StoreHandle, "AsyncStoreHandle")


def instrument(engine: T, tracer: Tracer | None = None, meter: Meter | None = None) -> T:
    """The engine, or handle of a store, with a span, a metric and a log record for each call that counts.

    The given one stays as it is, and both work on the same memory: use the returned one in its place. Engines
    of users, spaces and handles made from it are instrumented as well. Without a tracer or meter the global
    ones are used. No text of a memory or a question is in an attribute or a record, unless the environment
    variable OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT lets texts into spans. Without the package
    `opentelemetry-api` there are log records only, and a warning says so; raises MissingExtra then for a
    tracer or meter.
    """
    made: T = _instrumented(engine, _Recorder(tracer, meter))
    return made


def _instrumented(target: Any, recorder: _Recorder) -> Any:
    from germane.aio import AsyncEngine, AsyncStoreHandle  # noqa: PLC0415 - Many programs need neither.

    if isinstance(target, AsyncEngine):
        return AsyncEngine(_instrumented(target.engine, recorder))
    if isinstance(target, AsyncStoreHandle):
        return AsyncStoreHandle(_instrumented(target.handle, recorder))
    made: Any = object.__new__(_instrumented_class(_class_of(target)))
    plain = getattr(target, "_instrumented_from", target)
    vars(made).update(vars(plain) | {"_instrumented_from": plain, "_recorder": recorder})
    if not isinstance(plain, StoreHandle):
        made._session = _searched(plain._session, recorder)  # noqa: SLF001 - It is a copy of an engine.
        # Verbs that a verb itself calls are part of it, so the inner engine has plain ones.
        made._inner = copy.copy(plain)  # noqa: SLF001 - As above.
        made._inner._session = made._session  # noqa: SLF001 - As above.
    return made


def _class_of(target: object) -> type:
    return next(each for each in (Engine, Space, StoreHandle, Conversation) if isinstance(target, each))


@cache
def _instrumented_class(kind: type) -> type:
    """The class with its verbs recorded, and with its methods that return engines instrumented."""
    names = _CONVERSATION if kind is Conversation else _NAMES
    verbs: Mapping[str, Any] = {
        verb: _recorded(getattr(kind, verb), name) for verb, name in names.items() if hasattr(kind, verb)
    }
    makers = {
        name: _making(getattr(kind, name))
        for name in ("agent", "for_user", "space", "conversation")
        if _is_method(kind, name)
    }
    return type(kind.__name__, (kind,), {**verbs, **makers, "__module__": kind.__module__})


def _is_method(kind: type, name: str) -> bool:
    return callable(getattr(kind, name, None))


def _recorded(verb: Callable[..., Any], operation: str) -> Callable[..., Any]:
    name = verb.__name__

    @wraps(verb)
    def recorded(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._recorder.call(self._inner, name, args, kwargs, operation=operation)

    return recorded


def _making(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def making(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = method(self._instrumented_from, *args, **kwargs)
        return _instrumented(made, self._recorder)

    return making


class _SearchedStore:
    """A store whose searches during an assembly have a span; all else is the inner store's."""

    def __init__(self, inner: Store, recorder: _Recorder) -> None:
        self._inner = inner
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def search(self, agent: str, query: Query) -> SearchResult:
        """The candidates for a query."""
        if not _assembling.get():
            return self._inner.search(agent, query)
        attributes = {"gen_ai.operation.name": "search_memory", "gen_ai.memory.store.id": agent}
        with self._recorder.span("search_memory", attributes) as span:
            found = self._inner.search(agent, query)
            count = sum(len(each) for each in found.slices)
            span.set_attribute("gen_ai.memory.record.count", count)
            return found


def _searched(session: AgentContext, recorder: _Recorder) -> AgentContext:
    if recorder.tracer is None:
        return session
    store: Any = _SearchedStore(getattr(session.store, "inner", session.store), recorder)
    base = None if session.base is None else _searched(session.base, recorder)
    return replace(session, store=store, base=base)


class _NoSpan:
    """Stands for a span where there is no tracer."""

    def set_attribute(self, key: str, value: object) -> None:
        """Does nothing."""

    def set_attributes(self, attributes: Mapping[str, object]) -> None:
        """Does nothing."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What a result says without its text: attributes, and the memories that it has."""

    attributes: Mapping[str, Any]
    memories: Sequence[Memory]
    ids: Sequence[str]
    context: Context | None = None


class _Recorder:
    """Writes what the verbs of engines do to a tracer, a meter and the logger `germane`."""

    def __init__(self, tracer: Tracer | None, meter: Meter | None) -> None:
        self.tracer = tracer
        self._captures = os.environ.get(CAPTURE, "").strip().lower() in (
            *("true", "1", "span_only", "span_and_event"),
        )
        self._duration = self._tokens = self._use = None
        try:
            from opentelemetry import metrics, trace  # noqa: PLC0415 - Optional.
        except ImportError as error:
            if tracer is not None or meter is not None:
                raise MissingExtra(feature="A tracer or a meter", extra="otel") from error
            _log.warning(
                "opentelemetry-api isn't installed, so there are log records and no spans: "
                "pip install 'germane[otel]'."
            )
            return
        release = version("germane")
        self.tracer = tracer or trace.get_tracer("germane", release)
        meter = meter or metrics.get_meter("germane", release)
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="Duration of an operation.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._tokens = meter.create_histogram(
            "germane.context.tokens",
            unit="{token}",
            description="Tokens of a context.",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
        self._use = meter.create_histogram(
            "germane.budget.use",
            unit="1",
            description="Tokens of a context as a share of its budget.",
            explicit_bucket_boundaries_advisory=_SHARES,
        )

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, Any], *, remote: bool = False) -> Iterator[Any]:
        """A span that says of an error its type only, since its message may quote a text."""
        if self.tracer is None:
            yield _NoSpan()
            return
        from opentelemetry.trace import SpanKind, Status, StatusCode  # noqa: PLC0415 - As above.

        kind = SpanKind.CLIENT if remote else SpanKind.INTERNAL
        silent: Any = {"record_exception": False, "set_status_on_exception": False}
        with self.tracer.start_as_current_span(name, kind=kind, attributes=attributes, **silent) as span:
            try:
                yield span
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(Status(StatusCode.ERROR))
                raise

    def call(
        self, engine: Any, verb: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, operation: str
    ) -> Any:
        """The result of a verb of an engine or a conversation, recorded. What it raises is raised."""
        name = operation
        # What a verb itself reads of a conversation is a part of it.
        args = [_plain(each) for each in args]
        kwargs = {key: _plain(each) for key, each in kwargs.items()}
        attributes = {"gen_ai.operation.name": name, "gen_ai.memory.store.id": engine._session.agent}  # noqa: SLF001 - The space's or the user's own.
        given = args[0] if verb in ("request", "learn_from") and args else None
        session = _session_of(
            engine if isinstance(engine, Conversation) else kwargs.get("conversation", given)
        )
        if session is not None:
            attributes["gen_ai.conversation.id"] = session
        token = _assembling.set(verb in _OWN)
        started, error = perf_counter(), None
        found = _Found({}, (), ())
        try:
            with self.span(name, attributes, remote=_is_remote(engine)) as span:
                result = getattr(engine, verb)(*args, **kwargs)
                found = _found(result)
                span.set_attributes(found.attributes)
                if self._captures:
                    span.set_attributes(_texts(verb, args, kwargs, result, found))
                return result
        except BaseException as raised:
            error = type(raised).__name__
            raise
        finally:
            _assembling.reset(token)
            self._end(engine, verb, name, perf_counter() - started, error=error, found=found)

    def _end(
        self, engine: Any, verb: str, name: str, seconds: float, *, error: str | None, found: _Found
    ) -> None:
        if self._duration is not None and self._tokens is not None and self._use is not None:
            labels = {"gen_ai.operation.name": name} | ({"error.type": error} if error else {})
            self._duration.record(seconds, labels)
            if found.context is not None:
                plan = {"germane.plan": found.context.trace.plan}
                self._tokens.record(found.context.tokens, plan)
                if found.context.trace.budget:
                    self._use.record(found.context.tokens / found.context.trace.budget, plan)
        level = logging.DEBUG if error is None else logging.WARNING
        if _log.isEnabledFor(level):
            extra = {
                "operation": verb,
                "agent": engine.agent,
                "seconds": round(seconds, 6),
                "error": error,
                "memory_ids": list(found.ids[:_MOST_IDS]),
                "figures": {
                    name: value for name, value in found.attributes.items() if name.startswith("germane.")
                },
            }
            ended = "" if error is None else f", {error}"
            _log.log(level, "%s: %.1f ms%s", verb, 1000 * seconds, ended, extra=extra)


def _session_of(conversation: object) -> str | None:
    name = conversation if isinstance(conversation, str) else getattr(conversation, "session", None)
    return name if isinstance(name, str) else None


def _plain(value: Any) -> Any:
    """A conversation without its spans; all else as it is."""
    return getattr(value, "_instrumented_from", value) if isinstance(value, Conversation) else value


def _is_remote(engine: Any) -> bool:
    """Whether the store is a server."""
    return getattr(engine._session.store, "notifications", None) is not None  # noqa: SLF001 - As above.


def _found(result: Any) -> _Found:
    match result:
        case Context():
            return _of_context(result)
        case RefreshResult():
            return _of_refresh(result)
        case Request():
            return _of_request(result)
        case int() | OutcomeResult():
            count = result if isinstance(result, int) else result.memories
            return _Found({"gen_ai.memory.record.count": count}, (), ())
        case Upkeep():
            return _Found({"germane.upkeep.done": result.done}, (), ())
    return _of_conversation(result)


def _of_conversation(result: Any) -> _Found:
    """What a verb of a conversation returned or learned, or else the memories that a result has."""
    match result:
        case LearningRun():
            outcomes = Counter(str(each.outcome) for each in result.decisions)
            attributes = {f"germane.learned.{name}": count for name, count in sorted(outcomes.items())}
        case Message():
            attributes = {"germane.messages": 1}
        case Group() | Selection():
            attributes = {"germane.messages": len(result.messages)}
        case tuple() if result and isinstance(result[0], Message):
            attributes = {"germane.messages": len(result)}
        case None | str() | list() | SessionSummary() | Anchored():
            attributes = {}
        case EntityReport():
            return _of_report(result)
        case _:
            return _of_memories((result,) if isinstance(result, Memory) else getattr(result, "used", result))
    return _Found(attributes, (), ())


def _of_memories(found: Iterable[Any]) -> _Found:
    """The memories of a result, or what has them, or their ids alone."""
    given = list(found)
    memories = [getattr(each, "memory", each) for each in given if not isinstance(each, str)]
    ids = [each.id for each in memories] or given
    one = {"gen_ai.memory.record.id": ids[0]} if len(ids) == 1 else {}
    return _Found({"gen_ai.memory.record.count": len(ids), **one}, memories, ids)


def _of_report(report: EntityReport) -> _Found:
    facts = [fact for each in report.entities for fact in each.facts] + list(report.unclear)
    found = _of_memories(fact.memory for fact in facts)
    return replace(found, attributes={**found.attributes, "germane.entities": len(report.entities)})


def _of_refresh(result: RefreshResult) -> _Found:
    made = _of_context(result.context) if result.needed else _Found({}, (), ())
    reason = {} if result.reason is None else {"germane.refresh.reason": str(result.reason)}
    own = {"germane.refresh.needed": result.needed, **reason}
    return replace(made, attributes={**own, **made.attributes})


def _of_context(context: Context) -> _Found:
    trace = context.trace
    out = Counter(str(entry.reason) for entry in trace.excluded)
    frame = {} if trace.frame is None else {"germane.frame": trace.frame}
    ref = {} if context.ref is None else {"germane.ref": context.ref}
    attributes = {
        "germane.plan": trace.plan,
        "germane.counter": trace.counter,
        "germane.budget": trace.budget,
        "germane.tokens": context.tokens,
        "germane.included": len(context.items),
        **{f"germane.left_out.{reason}": count for reason, count in sorted(out.items())},
        **frame,
        **ref,
    }
    memories = [item.memory for item in context.items]
    return _Found(attributes, memories, [each.id for each in memories], context)


def _of_request(request: Request) -> _Found:
    memory = None if request.memory is None else _of_context(request.memory)
    attributes = {
        "germane.provider": str(request.provider),
        "germane.counter": request.counter,
        "germane.budget": request.limit,
        "germane.tokens": request.tokens,
        "germane.messages": len(request.texts),
        "germane.stable_messages": request.stable,
        "germane.groups_left_out": len(request.left_out),
    }
    if memory is None:
        return _Found(attributes, (), ())
    return replace(memory, attributes={**attributes, "germane.included": len(memory.memories)})


def _texts(
    verb: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, found: _Found
) -> dict[str, str]:
    """The attributes that have text, for who opted in."""
    place = 0 if verb in ("recall", "assemble") else 1
    query = kwargs.get(
        _QUERIES.get(verb, ""), args[place] if verb in _QUERIES and len(args) > place else None
    )
    scores = {each.id: each.score for each in result if hasattr(each, "score")} if verb == "recall" else {}
    records = [
        {"id": each.id, "content": each.content} | ({"score": scores[each.id]} if each.id in scores else {})
        for each in found.memories
    ]
    texts = {"gen_ai.memory.records": json.dumps(records, ensure_ascii=False)} if records else {}
    return texts if not isinstance(query, str) else {"gen_ai.memory.query.text": query, **texts}
