"""The MCP server, as clients of the official SDK meet it: in process, on standard input, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import germane
from germane import Engine, InvalidInput
from germane.testing.fakes import seeded_ids
from germane.tokens import get_counter

pytest.importorskip("mcp", reason="the extra `mcp` isn't installed")

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from germane.servers import mcp_server

DECISION = "Refunds go through Stripe because PayPal lost some."
MODES = ("auto", "legacy", "2026-07-28")
O200K = get_counter("o200k")


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "germane", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def tokens(text: str) -> int:
    return O200K.count(text)


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
        assert counted.startswith("Counted 1 memories as used. Outcome noted for ")

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


@settings(max_examples=25)
@given(texts=st.lists(st.text(min_size=1, max_size=300), max_size=8), budget=st.integers(50, 400))
def test_no_result_is_longer_than_its_budget(texts: list[str], budget: int) -> None:
    with germane.open(":memory:", embedder=None) as engine:
        for text in texts:
            try:
                engine.remember(f"refund {text}")
            except InvalidInput:
                continue

        async def ask(client: Client) -> None:
            for name, argument in (("context", "question"), ("recall", "query")):
                text = await called(client, name, **{argument: "refund", "budget": budget})
                assert tokens(text) <= budget

        talk(ask, engine)


def test_a_context_too_small_for_what_must_stand_in_it_says_so() -> None:
    async def ask(client: Client) -> None:
        text = await called(client, "context", question="refunds", budget=10)
        assert text.startswith("ERROR Error executing tool context: budget=10 is too small. Use 50 to 20,000")

    talk(ask, filled())


def test_errors_are_sentences_that_a_model_can_act_on() -> None:
    async def ask(client: Client) -> None:
        assert "No memory 'ffffffff' belongs to agent 'support'" in await called(
            client, "expand", id="ffffffff"
        )
        assert "has no assembly 'nothing'" in await called(client, "feedback", ref="nothing", used=[])
        assert "content=''" in await called(client, "remember", content="")
        assert "nonsense" in await called(client, "context", question="refunds", plan="nonsense")

    talk(ask, filled())


def test_another_agents_memories_are_not_found(tmp_path: Path) -> None:
    with germane.connect(tmp_path / "agents.db") as store:
        secret = store.agent("other").remember("The other agent's secret is Zanzibar.")

        async def ask(client: Client) -> None:
            for name in (secret.id, secret.id[-8:]):
                for tool in ("expand", "forget"):
                    assert (await called(client, tool, id=name)).startswith("ERROR")
            assert "Zanzibar" not in await called(client, "recall", query="secret Zanzibar")
            assert "Zanzibar" not in await called(client, "context", question="secret Zanzibar")

        talk(ask, store.agent("support"))


def test_a_read_only_server_offers_nothing_that_writes_and_changes_no_byte(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with germane.open(path, agent="support") as engine:
        engine.remember("Refunds take five days.", kind="fact")
    before = path.read_bytes()

    async def ask(client: Client) -> None:
        assert [each.name for each in (await client.list_tools()).tools] == ["context", "recall", "expand"]
        assert "five days" in await called(client, "context", question="refunds")
        assert [each.name for each in (await client.list_prompts()).prompts] == ["brief"]

    with germane.open(path, agent="support", read_only=True) as engine:
        talk(ask, engine, read_only=True, record=True)
    assert path.read_bytes() == before


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
        ({"tools": "all"}, "tools='all' is no set of tools. Use one of read, core, chatgpt."),
        ({"budget_max": 5}, "budget_max=5 is out of range. Use 50 to 20,000."),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        mcp_server(filled, agent="support", **options)


def test_over_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    arguments = ["-m", "germane", "mcp", "--db", str(path), "--agent", "support"]
    server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))

    async def ask() -> None:
        async with Client(server) as client:
            assert (await called(client, "remember", content="Refunds take five days.", kind="fact")) != ""
            assert "five days" in await called(client, "context", question="How long do refunds take?")

    asyncio.run(ask())
    with germane.open(path, agent="support", read_only=True) as engine:
        assert engine.count() == 1


def test_over_http(tmp_path: Path) -> None:
    with served(tmp_path / "agent.db") as url:

        async def ask() -> None:
            async with Client(url) as client:
                await called(client, "remember", content="Refunds take five days.", kind="fact")
                assert "five days" in await called(client, "recall", query="refunds")

        asyncio.run(ask())


@contextmanager
def served(path: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "germane", "mcp", "--db", str(path), "--http", "--port", str(port)]
    with subprocess.Popen(command) as process:
        try:
            deadline = time.monotonic() + 60
            while True:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()


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
