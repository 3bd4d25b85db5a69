"""The MCP server, as clients of the official SDK meet it: in process, on standard input, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import germane
from germane import Engine, InvalidInput
from germane.testing.fakes import seeded_ids
from support.judges import EXACT_MODULE, tiktoken_of
from support.mcp_servers import served

pytest.importorskip("mcp", reason="the extra `mcp` isn't installed")

import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import PromptReference, ResourceTemplateReference

from germane.servers import mcp_server

DECISION = "Refunds go through Stripe because PayPal lost some."
ALL = "core+working+conversation+spaces+chatgpt"
MODES = ("auto", "legacy", "2026-07-28")


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "germane", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def tokens(text: str) -> int:
    return len(tiktoken_of("o200k").encode_ordinary(text))


def filled(**options: Any) -> Engine:
    engine = germane.open(":memory:", agent="support", ids=seeded_ids(7), **options)
    engine.remember("Never share passwords.", kind="constraint", metadata={"action": "block"})
    for number in range(20):
        engine.remember(
            f"Refund team {number} in Osaka answers within {number} days. " * (1 + number % 5), kind="fact"
        )
    engine.remember(
        "Refunds go through Stripe because PayPal lost some.", kind="decision", tags=("payments",)
    )
    return engine


@asynccontextmanager
async def connected(engine: Engine, mode: Any = "auto", **options: Any) -> AsyncIterator[Client]:
    server, _ = mcp_server(lambda: engine, agent=engine.agent, **options)
    async with Client(server, raise_exceptions=True, mode=mode) as client:
        yield client


async def called(client: Client, name: str, **arguments: Any) -> str:
    """The one text of a result. An error's text begins with ERROR."""
    result = await client.call_tool(name, arguments)
    (content,) = result.content
    assert result.structured_content is None
    text = str(getattr(content, "text", None))
    return f"ERROR {text}" if result.is_error else text


async def read(client: Client, address: str) -> str:
    """The text of a resource."""
    (content,) = (await client.read_resource(address)).contents
    return str(getattr(content, "text", None))


def talk(
    work: Callable[[Client], Awaitable[None]], engine: Engine, mode: Any = "auto", **options: Any
) -> None:
    async def talking() -> None:
        async with connected(engine, mode, **options) as client:
            await work(client)

    asyncio.run(talking())


@pytest.mark.parametrize("mode", MODES)
def test_a_session_with_every_tool(mode: str) -> None:
    engine = filled()

    async def session(client: Client) -> None:
        info = client.server_info  # One era of the protocol has none.
        assert info is None or info.version == germane.__version__
        context = await called(client, "context", question="How do refunds work?", budget=300)
        ref = re.search(r"\(ref (\w+); \d+ memories", context)
        assert "Never" in context
        assert "Stripe" in context
        assert ref is not None

        listing = await called(client, "recall", query="refunds Stripe", kinds="decision")
        name = listing[1:9]
        assert listing.startswith("[")
        assert "decision" in listing
        assert await called(client, "expand", id=name) == DECISION

        counted = await called(client, "feedback", ref=ref[1], used=name, outcome="success")
        assert counted.startswith("Counted 1 memory as used. Outcome noted for ")

        fact = {"content": "Ann prefers e-mail.", "kind": "preference", "tags": "ann"}
        stored = await called(client, "remember", **fact)
        new = stored[-10:-2]
        assert stored.startswith("Stored: [")
        again = await called(client, "remember", **fact)
        assert again == f"Known already: [{new}]."
        revised = await called(
            client, "remember", content="Ann prefers the phone.", kind="preference", replaces=new
        )
        assert revised == f"Stored as [{new}], version 2."
        assert (await called(client, "forget", id=new)).startswith(f"Forgotten: [{new}].")
        assert "Ann" not in await called(client, "recall", query="What does Ann prefer?")

    talk(session, engine, mode)


def test_the_list_of_tools_costs_little_and_says_what_each_does() -> None:
    async def look(client: Client) -> None:
        tools = (await client.list_tools()).tools
        sent = json.dumps([each.model_dump(exclude_none=True, by_alias=True) for each in tools])
        assert [each.name for each in tools] == [
            "context", "recall", "expand", "remember", "forget", "feedback",
        ]  # fmt: skip
        assert tokens(sent) <= 1000
        for each in tools:
            hints = each.annotations
            assert each.description
            assert hints is not None
            assert None not in (
                hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint,
            )  # fmt: skip
            assert hints.destructive_hint == (each.name == "forget")

    talk(look, filled())


def test_the_instructions_stand_alone_in_their_first_512_characters() -> None:
    server, _ = mcp_server(filled, agent="support")
    first = (server.instructions or "")[:512]

    assert "'support'" in first
    assert "`context`" in first
    assert "never an instruction" in first


@settings(max_examples=15)
@given(texts=st.lists(st.text(min_size=1, max_size=300), max_size=8), budget=st.integers(50, 400))
def test_no_result_is_longer_than_its_budget(texts: list[str], budget: int) -> None:
    with germane.open(":memory:", embedder=None) as engine:
        space, working = engine.space("team", create=True), engine.working_set()
        log = engine.conversation("monday")
        for text in texts:
            try:
                working.add(engine.remember(f"refund {text}"))
                space.remember(f"refund {text}")
                log.append({"role": "user", "content": f"refund {text}"})
            except InvalidInput:
                continue
        newest = engine.memories(limit=1)

        async def ask(client: Client) -> None:
            results = [
                await called(client, "context", question="refund", budget=budget),
                await called(client, "recall", query="refund", budget=budget),
                await called(client, "working_set", budget=budget),
                await called(client, "search_conversations", query="refund", budget=budget),
                await called(client, "space_recall", space="team", query="refund", budget=budget),
            ]
            assert max(map(tokens, results)) <= budget
            most = [await called(client, "search", query="refund")]
            most += [await called(client, "expand", id=each.id) for each in newest]
            most += [await called(client, "fetch", id=each.id) for each in newest]
            assert max(map(tokens, most)) <= 400

        talk(ask, engine, tools=ALL, budget_max=400)


def test_a_long_memory_is_cut_to_the_most_tokens_of_a_result() -> None:
    engine = filled()
    memory = engine.remember("One more word. " * 2000)

    async def ask(client: Client) -> None:
        text = await called(client, "expand", id=memory.id)
        assert tokens(text) <= 300
        assert re.search(
            r"\(cut after [\d,]+ of [\d,]+ characters; `expand` with start=\d+ shows more\)$", text
        )
        beyond = await called(client, "expand", id=memory.id, start=10**6)
        assert "start=1000000 is outside this text of " in beyond
        fetched = await called(client, "fetch", id=memory.id)
        assert tokens(fetched) <= 300
        assert "cut after" in json.loads(fetched)["text"]

    talk(ask, engine, tools=ALL, budget_max=300)


@settings(max_examples=15)
@given(
    text=st.text(min_size=1, max_size=80).filter(str.strip),
    times=st.integers(1, 40),
    budget=st.integers(100, 300),
)
def test_reading_on_gives_the_whole_text(text: str, times: int, budget: int) -> None:
    with germane.open(":memory:", embedder=None) as engine:
        try:
            memory = engine.space("team", create=True).remember(text * times)
            engine.remember(text * times)
        except InvalidInput:
            return
        (own,) = engine.memories()
        whole = engine.expand(own.id)

        async def read_on(client: Client, tool: str, **named: str) -> str:
            parts, start = "", 0
            while True:
                page = await called(client, tool, **named, start=start)
                assert tokens(page) <= budget
                page = page.removeprefix(f"(from character {start}) ") if start else page
                end = re.search(
                    rf"\n\(cut after [\d,]+ of [\d,]+ characters; `{tool}` with start=(\d+) .*\)\Z", page
                )
                if end is None:
                    return parts + page
                parts, start = parts + page[: end.start()], int(end[1])

        async def ask(client: Client) -> None:
            assert await read_on(client, "expand", id=own.id) == whole
            assert await read_on(client, "space_expand", space="team", id=memory.id) == whole

        talk(ask, engine, tools=ALL, budget_max=budget)


def test_a_context_too_small_for_what_must_stand_in_it_says_so() -> None:
    async def ask(client: Client) -> None:
        text = await called(client, "context", question="refunds", budget=10)
        assert text.startswith("ERROR Error executing tool context: budget=10 is too small. Use 50 to 20,000")

    talk(ask, filled())


def test_errors_are_sentences_that_a_model_can_act_on() -> None:
    async def ask(client: Client) -> None:
        unknown = await called(client, "expand", id="ffffffff")
        assert unknown.endswith("No memory 'ffffffff' is stored. Use an id that `context` or `recall` shows.")
        assert "No context has the ref 'nothing'" in await called(client, "feedback", ref="nothing", used=[])
        refused = await called(client, "remember", content="Ann called.", kind="call")
        assert "Unknown kind 'call'. Use one of: " in refused
        assert "germane." not in refused
        assert "content=''" in await called(client, "remember", content="")
        assert "nonsense" in await called(client, "context", question="refunds", plan="nonsense")

    talk(ask, filled())


def test_another_agents_memories_are_not_found(tmp_path: Path) -> None:
    with germane.connect(tmp_path / "agents.db") as store:
        other = store.agent("other")
        secret = other.remember("The other agent's secret is Zanzibar.")
        other.space("hidden", create=True).remember("The hidden secret is Zanzibar.")
        context = other.assemble("secret", record=True)
        other.conversation("monday").append({"role": "user", "content": "Where is Zanzibar?"})

        async def ask(client: Client) -> None:
            for name in (secret.id, secret.id[-8:]):
                for tool in ("expand", "forget", "fetch", "working_set_add", "working_set_remove"):
                    assert (await called(client, tool, id=name)).startswith("ERROR"), tool
                assert (await called(client, "remember", content="Mine.", replaces=name)).startswith("ERROR")
                for tool in ("space_share", "space_expand"):
                    assert (await called(client, tool, space="hidden", id=name)).startswith("ERROR")
            assert (await called(client, "feedback", ref=context.ref, used=[secret.id])).startswith("ERROR")
            for tool, arguments in {
                "space_recall": {"query": "Zanzibar"},
                "space_remember": {"content": "Mine."},
            }.items():
                assert (await called(client, tool, space="hidden", **arguments)).startswith("ERROR")
            for tool in ("recall", "search_conversations", "search"):
                assert "Zanzibar" not in await called(client, tool, query="secret Zanzibar")
            assert "Zanzibar" not in await called(client, "context", question="secret Zanzibar")
            assert await called(client, "spaces") == "The agent is a member of no space."
            assert "Zanzibar" not in await called(client, "working_set")

        talk(ask, store.agent("support"), tools=ALL)
        assert other.get(secret.id) == secret


def test_a_read_only_server_offers_nothing_that_writes_and_changes_no_byte(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.open(path, agent="support") as engine:
        memory = engine.remember("Refunds take five days.", kind="fact")
        engine.working_set().add(memory)
        engine.space("team", create=True).remember("Lunch is at noon.")
        engine.conversation("monday").append({"role": "user", "content": "Where is the parcel?"})
    before = path.read_bytes()

    async def ask(client: Client) -> None:
        assert [each.name for each in (await client.list_tools()).tools] == [
            "context", "recall", "expand", "working_set", "search_conversations", "spaces", "space_recall",
            "space_expand", "search", "fetch",
        ]  # fmt: skip
        assert "five days" in await called(client, "context", question="refunds")
        assert "five days" in await called(client, "recall", query="refunds")
        assert "five days" in await called(client, "expand", id=memory.id[-8:])
        assert "five days" in await called(client, "working_set")
        assert "parcel" in await called(client, "search_conversations", query="parcel")
        assert "team" in await called(client, "spaces")
        assert "Lunch" in await called(client, "space_recall", space="team", query="lunch")
        assert "five days" in await called(client, "search", query="refunds")
        assert "five days" in await called(client, "fetch", id=memory.id)
        assert [each.name for each in (await client.list_prompts()).prompts] == ["brief"]

    with germane.open(path, agent="support", read_only=True) as engine:
        talk(ask, engine, tools=ALL, read_only=True, record=True)
    assert path.read_bytes() == before


def test_nothing_is_loaded_before_the_first_answer_that_it_does_not_need() -> None:
    code = (
        "import sys, germane.cli.servers, germane.servers.mcp\n"
        f"heavy = {{'dateparser', 'fastapi', 'onnxruntime', {EXACT_MODULE!r}, 'germane.packing.fit'}}\n"
        "print(*heavy & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == ""


def test_a_recorded_context_has_the_ledgers_id() -> None:
    engine = filled()

    async def ask(client: Client) -> None:
        text = await called(client, "context", question="refunds")
        (assembly,) = engine.ledger().list()
        assert f"(ref {assembly.id};" in text
        assert "refunds" in await read(client, f"germane://context/{assembly.id}")

    talk(ask, engine, record=True)


def test_resources_and_prompts() -> None:
    async def look(client: Client) -> None:
        name = (await called(client, "recall", query="Stripe", kinds=["decision"]))[1:9]
        assert "Stripe" in await read(client, f"germane://memory/{name}")
        assert (await read(client, "germane://stats")).startswith("22 memories of agent support: ")
        brief = await client.get_prompt("brief", {"topic": "refunds"})
        assert "'refunds'" in str(brief.messages[0].content)
        assert {each.name for each in (await client.list_prompts()).prompts} == {"brief", "keep"}

    talk(look, filled())


def test_the_two_tools_that_chatgpt_asks_for() -> None:
    async def ask(client: Client) -> None:
        found = json.loads(await called(client, "search", query="Stripe"))["results"]
        assert set(found[0]) == {"id", "title", "url"}
        whole = json.loads(await called(client, "fetch", id=found[0]["id"]))
        assert "Stripe" in whole["text"]
        assert set(whole) == {"id", "title", "text", "url", "metadata"}

    talk(ask, filled(), tools="chatgpt")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tools": "core+all"}, "tools='core+all' has 'all', which is no set of tools. Use read, core, "),
        ({"budget_max": 5}, "budget_max=5 is out of range. Use 50 to 20,000."),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        mcp_server(filled, agent="support", **options)


def test_the_tools_of_the_working_set() -> None:
    async def ask(client: Client) -> None:
        name = (await called(client, "recall", query="Stripe", kinds="decision"))[1:9]
        assert await called(client, "working_set_add", id=name, pinned=True) == "Added."
        listed = await called(client, "working_set")
        assert listed.startswith("(1 memory, ")
        assert f"[{name}] decision: Refunds go through Stripe" in listed
        assert listed.endswith("(pinned)")
        assert (await called(client, "working_set_remove", id=name)).startswith("Removed")
        assert (await called(client, "working_set")).startswith("(0 memories")

    talk(ask, filled(), tools="+working")


def test_the_tool_that_searches_conversations() -> None:
    engine = filled()
    engine.conversation("monday").append({"role": "user", "content": "The parcel waits in Osaka."})

    async def ask(client: Client) -> None:
        assert "The parcel waits in Osaka." in await called(client, "search_conversations", query="parcel")
        assert (await called(client, "search_conversations", query="zzz")).startswith("No message to show")

    talk(ask, engine, tools="+conversation")


def test_the_tools_of_spaces() -> None:
    engine = filled()
    engine.space("team", create=True)

    async def ask(client: Client) -> None:
        assert await called(client, "spaces") == "team: support (write)"
        name = (await called(client, "recall", query="Stripe", kinds="decision"))[1:9]
        copy = await called(client, "space_share", space="team", id=name)
        assert copy.startswith("Shared as [")
        stored = await called(client, "space_remember", space="team", content="Lunch is at noon.")
        assert stored.startswith("Stored: [")
        assert "Lunch" in await called(client, "space_recall", space="team", query="lunch")
        assert "Stripe" in await called(client, "space_expand", space="team", id=copy[-10:-2])

    talk(ask, engine, tools="+spaces")


def test_completion_of_kinds_tags_and_refs() -> None:
    async def ask(client: Client) -> None:
        text = await called(client, "context", question="refunds")
        ref = re.findall(r"\(ref (\w+);", text)[0]
        prompt = PromptReference(name="brief")
        for argument, begun, wanted in (("kind", "dec", "decision"), ("tag", "pay", "payments")):
            found = await client.complete(prompt, {"name": argument, "value": begun})
            assert found.completion.values == [wanted]
        resource = ResourceTemplateReference(uri="germane://context/{ref}")
        found = await client.complete(resource, {"name": "ref", "value": ref[:2]})
        assert found.completion.values == [ref]
        assert "kinds 'decision'" in str(await client.get_prompt("brief", {"topic": "x", "kind": "decision"}))

    talk(ask, filled())


@pytest.mark.parametrize("mode", MODES)
def test_over_standard_input(mode: Any, tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    arguments = ["-m", "germane", "mcp", "--db", str(path), "--agent", "support"]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))

    async def ask() -> None:
        async with Client(server, mode=mode) as client:
            assert (await called(client, "remember", content="Refunds take five days.", kind="fact")) != ""
            assert "five days" in await called(client, "context", question="How long do refunds take?")

    asyncio.run(ask())
    with germane.open(path, agent="support", read_only=True) as engine:
        assert engine.count() == 1


@pytest.mark.parametrize("mode", MODES)
def test_over_http(mode: Any, tmp_path: Path) -> None:
    with served(tmp_path / "agent.db") as url:

        async def ask() -> None:
            async with Client(url, mode=mode) as client:
                await called(client, "remember", content="Refunds take five days.", kind="fact")
                assert "five days" in await called(client, "recall", query="refunds")

        asyncio.run(ask())


@pytest.mark.parametrize("host", ["claude-code", "claude-desktop", "codex", "cursor", "vscode"])
def test_the_configuration_of_a_host_names_absolute_paths(host: str, tmp_path: Path) -> None:
    done = run("mcp", "--db", "agent.db", "--agent", "support", "--print-config", host, folder=tmp_path)

    assert done.returncode == 0
    assert str(tmp_path / "agent.db") in done.stdout
    assert "support" in done.stdout


def test_another_host_is_refused(tmp_path: Path) -> None:
    done = run("mcp", "--http", "--host", "0.0.0.0", folder=tmp_path)  # noqa: S104 - It is refused.

    assert done.returncode == 2
    assert "--host 0.0.0.0 would let other machines read this memory without a key" in done.stderr


def test_malformed_messages_get_errors_and_lose_nothing(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "germane", "mcp", "--db", "agent.db"]
    hello = {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }  # fmt: skip
    fact = {"name": "remember", "arguments": {"content": "Refunds take five days."}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        "{not json",
        '{"jsonrpc": "2.0", "id": 2}',
        {"jsonrpc": "2.0", "id": 3, "method": "no/such"},
        {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": 7}},
        {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "no_such", "arguments": {}}},
        {"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": {"name": "recall", "arguments": {}}},
        {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": fact},
    ]
    answers: dict[int, Any] = {}
    with subprocess.Popen(
        arguments,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in lines:
            process.stdin.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
        process.stdin.flush()
        while 7 not in answers:
            answer = json.loads(process.stdout.readline())
            answers[answer.get("id") or 0] = answer
        process.stdin.close()

    assert answers[3]["error"]["code"] == -32601
    assert answers[4]["error"]["code"] == -32602
    assert "no_such" in json.dumps(answers[5])
    assert "query" in json.dumps(answers[6])
    assert answers[7]["result"]["content"][0]["text"].startswith("Stored")
    with germane.open(tmp_path / "agent.db", read_only=True) as engine:
        assert [each.content for each in engine.memories()] == ["Refunds take five days."]


@pytest.mark.parametrize("mode", MODES)
def test_over_http_a_key_decides_whose_memory_it_is_and_what_may_be_done(mode: Any, tmp_path: Path) -> None:
    path = tmp_path / "agents.db"
    with germane.connect(path, embedder=None) as store:
        store.agent("support").remember("Refunds take five days.", kind="fact")
        store.agent("sales").remember("Discounts end on Friday.", kind="fact")
        writing = store.create_key("support", may=["read", "write"]).text
        reading = store.create_key("sales", may=["read"]).text

    async def ask(url: str) -> None:
        async with keyed(url, writing, mode) as client:
            assert "five days" in await called(client, "recall", query="refunds")
            assert "Friday" not in await called(client, "recall", query="discounts")
            assert (await called(client, "remember", content="Ann prefers e-mail.")).startswith("Stored")
            # With a fixed version a client asks for no instructions.
            assert mode == "2026-07-28" or "'support'" in (client.instructions or "")
        async with keyed(url, reading, mode) as client:
            assert [each.name for each in (await client.list_tools()).tools] == [
                "context",
                "recall",
                "expand",
            ]
            assert [each.name for each in (await client.list_prompts()).prompts] == ["brief"]
            assert "`remember`" not in (client.instructions or "")
            assert "Friday" in await called(client, "context", question="discounts")
            assert await read(client, "germane://stats") == "1 memory of agent sales: 1 fact."
            found = await client.complete(PromptReference(name="brief"), {"name": "kind", "value": "dec"})
            assert found.completion.values == ["decision"]
            for name in ("remember", "forget", "feedback"):
                with pytest.raises(MCPError, match=f"Unknown name: {name}. This key may not write"):
                    await client.call_tool(name, {"content": "x", "id": "x", "ref": "x", "used": []})
        async with httpx2.AsyncClient() as client:
            assert (await client.post(url, json={})).status_code == 401
            headers = {"Authorization": f"Bearer {reading}", "Host": "evil.example"}
            assert (await client.post(url, json={}, headers=headers)).status_code == 421

    with served(path, "--keys") as url:
        asyncio.run(ask(url))


@asynccontextmanager
async def keyed(url: str, key: str, mode: Any) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


def test_the_configuration_starts_the_server_also_where_no_program_is_installed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "germane", "mcp", "--db", str(tmp_path / "m.db")]
    done = subprocess.run(
        [*command, "--print-config", "cursor"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": ""},
    )

    entry = json.loads(done.stdout)["mcpServers"]["germane"]
    assert (entry["command"], entry["args"][:3]) == (sys.executable, ["-m", "germane", "mcp"])
