"""The MCP server as the clients of frameworks meet it: FastMCP, the OpenAI Agents SDK and Pydantic AI."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import germane
from support.mcp_servers import served

pytest.importorskip("fastmcp", reason="fastmcp-slim isn't installed")

from fastmcp import Client
from pydantic_ai.mcp import MCPToolset

CORE = ["context", "recall", "expand", "remember", "forget", "feedback"]


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    path = tmp_path / "agent.db"
    with germane.open(path, embedder=None) as engine:
        engine.remember("Refunds take five days.", kind="fact")
    return path


@pytest.fixture
def url(memory: Path) -> Iterator[str]:
    with served(memory) as address:
        yield address


def test_fastmcp(url: str) -> None:
    async def session() -> None:
        async with Client(url) as client:
            assert [each.name for each in await client.list_tools()] == CORE
            result = await client.call_tool("recall", {"query": "refunds"})
            text = result.content[0].text
            assert "five days" in text
            stored = await client.call_tool("remember", {"content": "Ann prefers e-mail.", "tags": "ann"})
            assert stored.content[0].text.startswith("Stored: [")
            resource = await client.read_resource(f"germane://memory/{text[1:9]}")
            assert "five days" in resource[0].text
            prompt = await client.get_prompt("brief", {"topic": "refunds"})
            assert "'refunds'" in prompt.messages[0].content.text
            refused = await client.call_tool("expand", {"id": "ffffffff"}, raise_on_error=False)
            assert "No memory 'ffffffff'" in refused.content[0].text

    asyncio.run(session())


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_openai_agents_sdk(transport: str, memory: Path) -> None:
    async def session(server: MCPServerStdio | MCPServerStreamableHttp) -> None:
        async with server:
            assert [each.name for each in await server.list_tools()] == CORE
            result: Any = await server.call_tool("context", {"question": "How long do refunds take?"})
            assert "five days" in result.content[0].text
            stored: Any = await server.call_tool("remember", {"content": "Ann prefers e-mail."})
            assert stored.content[0].text.startswith("Stored: [")

    if transport == "http":
        with served(memory) as address:
            asyncio.run(
                session(MCPServerStreamableHttp(params={"url": address}, client_session_timeout_seconds=60))
            )
        return
    arguments = ["-m", "germane", "mcp", "--db", str(memory)]
    params: Any = {"command": sys.executable, "args": arguments, "env": dict(os.environ)}
    asyncio.run(session(MCPServerStdio(params=params, client_session_timeout_seconds=60)))


def test_an_agent_of_pydantic_ai(url: str) -> None:
    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        returned = [part for each in messages for part in each.parts if isinstance(part, ToolReturnPart)]
        if returned:
            return ModelResponse(parts=[TextPart(str(returned[0].content))])
        assert [each.name for each in info.function_tools] == CORE
        return ModelResponse(parts=[ToolCallPart("recall", {"query": "refunds", "kinds": "fact"})])

    agent = Agent(FunctionModel(model), toolsets=[MCPToolset(url)])

    assert "five days" in asyncio.run(agent.run("How long do refunds take?")).output
