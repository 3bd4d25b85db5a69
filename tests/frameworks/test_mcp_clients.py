"""The MCP server as the client of the OpenAI Agents SDK meets it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

import germane
from support.mcp_servers import served

CORE = ["context", "recall", "expand", "remember", "forget", "feedback"]


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_openai_agents_sdk(transport: str, tmp_path: Path) -> None:
    memory = tmp_path / "agent.db"
    with germane.open(memory, embedder=None) as engine:
        engine.remember("Refunds take five days.", kind="fact")

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
