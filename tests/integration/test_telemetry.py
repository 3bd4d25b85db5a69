"""Telemetry: a span and a log record for each verb, without any text, and nothing where it isn't used."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from starlette.testclient import TestClient

import germane
from germane import Conversation, Engine, NotFound
from germane.aio import AsyncEngine, AsyncStoreHandle
from germane.servers import rest_app
from germane.telemetry import instrument
from germane.testing.fakes import seeded_ids

WORD = "kumquat"


def clock() -> datetime:
    return datetime(2026, 11, 20, 12, tzinfo=UTC)


class Spans:
    """What a tracer has recorded."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = provider.get_tracer("test")

    def take(self) -> list[ReadableSpan]:
        """The spans that ended since the last call, in the order of their ends."""
        spans = list(self._exporter.get_finished_spans())
        self._exporter.clear()
        return spans

    def shown(self) -> list[tuple[str, dict[str, Any]]]:
        """The same, as their names and attributes."""
        return [(span.name, dict(span.attributes or {})) for span in self.take()]


@pytest.fixture
def spans() -> Spans:
    return Spans()


@pytest.fixture
def plain() -> Iterator[Engine]:
    with germane.open(":memory:", agent="support", clock=clock, ids=seeded_ids(7)) as engine:
        yield engine


@pytest.fixture
def engine(plain: Engine, spans: Spans) -> Engine:
    return instrument(plain, spans.tracer)


def memory_span(operation: str, count: int, *ids: str, store: str = "support") -> tuple[str, dict[str, Any]]:
    one = {"gen_ai.memory.record.id": ids[0]} if ids else {}
    return operation, {
        "gen_ai.operation.name": operation,
        "gen_ai.memory.store.id": store,
        "gen_ai.memory.record.count": count,
        **one,
    }


def test_each_verb_on_memories_has_one_span(engine: Engine, spans: Spans) -> None:
    first = engine.remember(f"Anna likes {WORD} tea.", kind="fact").id
    assert spans.shown() == [memory_span("upsert_memory", 1, first)]
    two = engine.remember_many(["Refunds take five days.", "Invoices are due on Friday."])
    assert spans.shown() == [memory_span("upsert_memory", 2)]
    engine.recall(WORD)
    assert spans.shown() == [memory_span("search_memory", 1, first)]
    engine.revise(first, "Anna likes coffee.")
    engine.supersede(first, {"content": "Anna likes cocoa.", "kind": "fact"})
    engine.confirm(first)
    assert spans.shown() == [memory_span("update_memory", 1, first)] * 3
    engine.forget(first)
    assert spans.shown() == [memory_span("delete_memory", 1, first)]
    engine.restore(first)
    assert spans.shown() == [memory_span("update_memory", 1, first)]
    engine.purge_many([one.memory.id for one in two], confirm=True)
    assert spans.shown() == [memory_span("delete_memory", 2)]


def test_a_context_has_its_figures_and_the_search_within_it(engine: Engine, spans: Spans) -> None:
    for number in range(5):
        engine.remember(f"Fact {number} about {WORD} trees: they grow {number} metres.", kind="fact")
    spans.take()
    made = engine.assemble(f"How high are {WORD} trees?", budget=40, record=True, conversation="chat-1")

    search, assembly = spans.take()
    assert assembly.name == "germane.assemble"
    assert assembly.kind is SpanKind.INTERNAL
    assert dict(assembly.attributes or {}) == {
        "gen_ai.operation.name": "germane.assemble",
        "gen_ai.memory.store.id": "support",
        "gen_ai.conversation.id": "chat-1",
        "germane.plan": "layered",
        "germane.counter": "o200k",
        "germane.budget": 40,
        "germane.tokens": made.tokens,
        "germane.included": len(made.items),
        "germane.left_out.over_budget": len(made.trace.excluded),
        "germane.frame": "task",
        "germane.ref": made.ref,
    }
    assert search.parent is not None
    assert search.parent.span_id == assembly.context.span_id
    assert (search.name, dict(search.attributes or {})) == memory_span("search_memory", 5)


def test_refreshes_requests_and_feedback_have_spans_of_their_own(engine: Engine, spans: Spans) -> None:
    engine.remember("Refunds take five days.", kind="fact")
    chat = engine.conversation("chat-1")
    chat.append("user", "How long does a refund take?")
    context = engine.assemble("How long does a refund take?", budget=50)
    spans.take()

    engine.refresh(context, "How long does a refund take, then?")
    *_, (name, attributes) = spans.shown()
    assert (name, attributes["germane.refresh.needed"]) == ("germane.refresh", False)

    request = engine.request(chat, memory="layered", window=1000, reserve=200)
    *_, (name, attributes) = spans.shown()
    assert name == "germane.request"
    assert attributes == {
        "gen_ai.operation.name": "germane.request",
        "gen_ai.memory.store.id": "support",
        "gen_ai.conversation.id": "chat-1",
        "germane.provider": "openai",
        "germane.counter": "o200k",
        "germane.budget": request.limit,
        "germane.tokens": request.tokens,
        "germane.messages": 2,
        "germane.stable_messages": 0,
        "germane.groups_left_out": 0,
        "germane.included": 1,
    }

    engine.feedback(context, [context.items[0].memory.id])
    engine.observe(context, "A refund takes five days.")
    engine.outcome(context, "success")
    engine.maintain()
    assert [name for name, _ in spans.shown()] == [
        "germane.feedback",
        "germane.observe",
        "germane.outcome",
        "germane.maintain",
    ]


def test_reads_and_what_is_learned_have_spans(engine: Engine, spans: Spans) -> None:
    memory = engine.remember(f"The {WORD} is in the kitchen.")
    chat = engine.conversation("monday")
    chat.append("user", f"I live in Nagoya with a {WORD}.")
    spans.take()
    engine.get(memory.id)
    engine.memories()
    engine.history(memory.id)
    engine.count()
    engine.expand(memory.id)
    run = engine.learn_from(chat)
    engine.unlearn(run.id)
    shown = spans.shown()
    assert [name for name, _ in shown] == [
        *("germane.get", "germane.memories", "germane.history", "germane.count", "germane.expand"),
        *("germane.learn_from", "germane.unlearn"),
    ]
    assert shown[-2][1]["germane.learned.new"] == 1
    assert WORD not in str(shown)


def test_what_is_known_about_a_name_has_a_span_with_the_memories_and_without_the_name(
    engine: Engine, spans: Spans
) -> None:
    memory = engine.remember("Zebulon is the user's brother.")
    spans.take()
    engine.about("Zebulon")
    engine.same_name("Zebulon", "Zeb")
    reported, decided = spans.shown()
    assert reported == (
        "germane.about",
        {
            "gen_ai.operation.name": "germane.about",
            "gen_ai.memory.store.id": engine.agent,
            "gen_ai.memory.record.count": 1,
            "gen_ai.memory.record.id": memory.id,
            "germane.entities": 1,
        },
    )
    assert decided[0] == "germane.same_name"
    assert "Zeb" not in str((reported, decided))


def test_each_verb_of_a_conversation_has_one_span(engine: Engine, spans: Spans) -> None:
    chat = engine.conversation("monday")
    message = chat.append("user", f"Where is the {WORD}?")
    chat.extend([{"role": "assistant", "content": "In the kitchen."}], provider="openai")
    chat.append("user", "Thanks.")
    group = message.group or ""
    called = [
        *("append", "extend", "append", "messages", "expand", "window", "ranked", "anchored", "summary"),
        *("set_state", "hide", "unhide", "remove_message", "undo", "remove", "purge"),
    ]
    chat.messages()
    chat.expand(message.id)
    chat.window()
    chat.ranked(query="kitchen")
    chat.anchored()
    chat.summary(store=False)
    chat.set_state("searching")
    chat.hide(group)
    chat.unhide(group)
    chat.remove_message(chat.append("user", "One more.").id)
    chat.undo()
    chat.remove(group)
    chat.append("user", "The end.")
    chat.purge(confirm=True)
    shown = [
        (name, at["gen_ai.conversation.id"])
        for name, at in spans.shown()
        if name.startswith("germane.conversation.")
    ]
    named = [name.rpartition(".")[2] for name, _ in shown]
    assert sorted(named) == sorted([*called, "append", "append"])
    assert {session for _, session in shown} == {"monday"}
    unnamed = {
        "session",
        "agent",
        "state",
        "groups",
        "current",
        "anchor",
        "without_state",
        "exists",
        "anchors",
        "items",
        "payload",
    }
    public = {name for name in vars(Conversation) if not name.startswith("_")}
    assert public == unnamed | set(called)


def test_an_error_is_named_by_its_type_alone(engine: Engine, spans: Spans) -> None:
    with pytest.raises(NotFound):
        engine.forget(WORD)
    (span,) = spans.take()
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description is None
    assert span.events == ()
    assert (span.attributes or {})["error.type"] == "NotFound"


def work(engine: Engine) -> None:
    """Each kind of verb once, with a word in every text that it takes."""
    one = engine.remember(f"{WORD} one", subject=WORD, tags=[WORD], source=WORD, key=WORD)
    engine.recall(WORD)
    made = engine.assemble(WORD, budget=100, task=WORD, plan="scoped")
    engine.refresh(made, f"And {WORD} jam?")
    engine.request([{"role": "user", "content": WORD}], system=WORD, memory="layered")
    engine.observe(made, f"{WORD} one")
    engine.revise(one.id, f"{WORD} two")
    for failing in (lambda: engine.forget(WORD), lambda: engine.recall("", kinds=[WORD], limit=-1)):
        with pytest.raises(germane.GermaneError):
            failing()


def test_no_text_is_in_an_attribute_or_a_log_record(
    engine: Engine, spans: Spans, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="germane"):
        work(engine)
    taken = spans.take()
    assert len(taken) > 8
    assert WORD not in "\n".join(span.to_json() for span in taken)
    records = [record for record in caplog.records if record.name == "germane"]
    assert len(records) == 9
    assert WORD not in "\n".join(str(vars(record)) for record in records)


@pytest.mark.parametrize(("value", "captured"), [("true", True), ("SPAN_ONLY", True), ("no_content", False)])
def test_texts_are_captured_for_who_opts_in(
    value: str, captured: bool, plain: Engine, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value)
    engine = instrument(plain, spans.tracer)
    engine.remember(f"Anna likes {WORD} tea.")
    engine.recall(WORD)
    attributes = spans.shown()[-1][1]
    assert (attributes.get("gen_ai.memory.query.text") == WORD) is captured
    assert (f"Anna likes {WORD} tea." in attributes.get("gen_ai.memory.records", "")) is captured


def test_log_records_have_ids_and_times(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="germane"):
        memory = engine.remember("Refunds take five days.")
        with pytest.raises(NotFound):
            engine.forget("ffffffff")
    stored, failed = (vars(record) for record in caplog.records if record.name == "germane")
    assert (stored["operation"], stored["agent"], stored["error"]) == ("remember", "support", None)
    assert stored["memory_ids"] == [memory.id]
    assert 0 < stored["seconds"] < 60
    assert (failed["levelname"], failed["operation"], failed["error"]) == ("WARNING", "forget", "NotFound")


def test_metrics_count_durations_tokens_and_the_use_of_budgets(plain: Engine) -> None:
    reader = InMemoryMetricReader()
    engine = instrument(plain, meter=MeterProvider(metric_readers=[reader]).get_meter("test"))
    engine.remember("Refunds take five days.", kind="fact")
    made = engine.assemble("refunds", budget=100)
    with pytest.raises(NotFound):
        engine.forget("ffffffff")

    data = reader.get_metrics_data()
    assert data is not None
    (scope,) = data.resource_metrics[0].scope_metrics
    points = {
        (metric.name, *sorted(map(str, (point.attributes or {}).values()))): point
        for metric in scope.metrics
        for point in metric.data.data_points
    }
    duration = "gen_ai.client.operation.duration"
    assert set(points) == {
        (duration, "upsert_memory"),
        (duration, "germane.assemble"),
        (duration, "NotFound", "delete_memory"),
        ("germane.context.tokens", "layered"),
        ("germane.budget.use", "layered"),
    }
    tokens: Any = points["germane.context.tokens", "layered"]
    share: Any = points["germane.budget.use", "layered"]
    assert (tokens.count, tokens.sum) == (1, made.tokens)
    assert share.sum == pytest.approx(made.tokens / 100)


def test_users_spaces_and_handles_are_instrumented_too(spans: Spans) -> None:
    with germane.connect(":memory:") as plain:
        handle = instrument(plain, spans.tracer)
        engine = handle.agent("support")
        engine.for_user("anna").remember("Anna likes tea.")
        engine.space("team", create=True).remember("We meet on Mondays.")
        stores = [attributes["gen_ai.memory.store.id"] for _, attributes in spans.shown()]
        assert stores == ["user:anna:support", "space:team"]


def test_the_asynchronous_engine_keeps_the_spans_of_its_task(spans: Spans) -> None:
    async def turn(engine: AsyncEngine, number: int) -> None:
        with spans.tracer.start_as_current_span(f"turn {number}"):
            await engine.remember(f"Number {number} is known.")
            await engine.assemble(f"number {number}", budget=50)

    async def turns() -> None:
        async with germane.aio.connect(":memory:") as plain:
            handle: AsyncStoreHandle = instrument(plain, spans.tracer)
            await asyncio.gather(*(turn(handle.agent("support"), number) for number in range(5)))

    asyncio.run(turns())
    taken = spans.take()
    names = {span.context.span_id: span.name for span in taken}
    children: dict[str, list[str]] = {}
    for span in taken:
        if span.parent is not None:
            children.setdefault(names[span.parent.span_id], []).append(span.name)
    assert children == {
        "germane.assemble": ["search_memory"] * 5,
        **{f"turn {number}": ["upsert_memory", "germane.assemble"] for number in range(5)},
    }


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_spans_nest_under_those_of_the_mcp_sdk() -> None:
    pytest.importorskip("mcp")
    printed = run("""
import asyncio, germane
from mcp.client import Client
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from germane.servers import mcp_server
from germane.telemetry import instrument

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

async def main():
    engine = instrument(germane.open(":memory:", agent="support"))
    engine.remember("Refunds take five days.")
    server, _ = mcp_server(lambda: engine, agent="support")
    async with Client(server) as client:
        await asyncio.gather(*(client.call_tool("recall", {"query": "refunds"}) for _ in range(3)))
    engine.close()

asyncio.run(main())
spans = {span.context.span_id: span for span in exporter.get_finished_spans()}
for span in spans.values():
    if span.name == "search_memory":
        parent = spans[span.parent.span_id]
        print(parent.instrumentation_scope.name, parent.name)
""")
    lines = printed.splitlines()
    assert len(lines) == 3
    assert all("mcp" in line and "recall" in line for line in lines), lines


WITHOUT = """
import sys, logging
for name in ("opentelemetry", "opentelemetry.trace", "opentelemetry.metrics"):
    sys.modules[name] = None
logging.basicConfig(stream=sys.stdout, level=logging.DEBUG, format="%(levelname)s %(message)s")
import germane
from germane import MissingExtra
from germane.telemetry import instrument
"""


def test_without_the_package_there_are_log_records_and_a_warning() -> None:
    printed = run(
        WITHOUT
        + """
with germane.open(":memory:") as plain:
    engine = instrument(plain)
    engine.remember("Refunds take five days.")
    assert engine.assemble("refunds", budget=50).items
    try:
        instrument(plain, tracer=object())
    except MissingExtra as error:
        print(error)
"""
    )
    warning, stored, made, refused = printed.splitlines()
    assert warning.startswith("WARNING opentelemetry-api isn't installed")
    assert stored.startswith("DEBUG remember: ")
    assert made.startswith("DEBUG assemble: ")
    assert "germane[otel]" in refused


def test_an_engine_without_telemetry_loads_none_of_it() -> None:
    code = (
        "import sys, germane; engine = germane.open(':memory:', embedder=None); engine.remember('One.');"
        "engine.recall('one'); engine.close();"
        "print([n for n in sys.modules if n.startswith(('opentelemetry', 'germane.telemetry'))])"
    )
    assert run(code).strip() == "[]"


def test_the_given_engine_stays_plain_and_the_other_is_of_the_same_type(plain: Engine, spans: Spans) -> None:
    engine = instrument(plain, spans.tracer)
    plain.remember("Refunds take five days.")
    assert spans.take() == []
    assert isinstance(engine, Engine)
    assert repr(engine) == repr(plain)
    again = instrument(engine, spans.tracer)
    again.recall("refunds")
    assert len(spans.take()) == 1


def test_a_server_records_its_routes(spans: Spans, tmp_path: Path) -> None:
    with germane.connect(tmp_path / "m.db") as handle:
        key = handle.create_key("support").text
        app = rest_app(instrument(handle, spans.tracer), hosts=["testserver"])
        http = TestClient(app, headers={"authorization": f"Bearer {key}"})
        assert http.post("/v1/memories", json={"content": "Refunds take five days."}).is_success
        assert http.post("/v1/recall", json={"query": "refunds"}).is_success
    assert [name for name, _ in spans.shown()] == ["upsert_memory", "search_memory"]


def test_the_command_line_uses_the_sdk_that_was_set_up_before_it(tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    from mcp.client import Client  # noqa: PLC0415 - An extra.
    from mcp.client.stdio import StdioServerParameters  # noqa: PLC0415 - As above.

    code = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=open(sys.argv.pop(1), "w"))))
trace.set_tracer_provider(provider)
from germane.cli import main
main()
"""
    arguments = ["-c", code, str(tmp_path / "spans"), "mcp", "--db", str(tmp_path / "m.db")]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))

    async def ask() -> None:
        async with Client(server) as client:
            await client.call_tool("remember", {"content": "Refunds take five days."})

    asyncio.run(ask())
    assert '"upsert_memory"' in (tmp_path / "spans").read_text(encoding="utf-8")
