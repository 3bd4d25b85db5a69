"""The same calls by FastMCP's client and by an agent of Pydantic AI, which uses it; prints JSON."""

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client  # type: ignore[import-not-found] # In its own environment.
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

CALLS: dict[str, dict[str, Any]] = {
    "recall": {"query": "refunds", "kinds": "fact"},
    "context": {"question": "How long do refunds take?", "budget": 300},
    "remember": {"content": "Written by FastMCP.", "tags": "ann"},
}
AGENT_CALLS = CALLS | {"remember": {"content": "Written by Pydantic AI.", "tags": "ann"}}
NAMES = {"recall": "recalled", "context": "context", "remember": "stored"}


async def by_fastmcp(url: str) -> dict[str, Any]:
    async with Client(url) as client:
        found: dict[str, Any] = {"tools": [each.name for each in await client.list_tools()]}
        for tool, arguments in CALLS.items():
            found[NAMES[tool]] = (await client.call_tool(tool, arguments)).content[0].text
        prompt = await client.get_prompt("brief", {"topic": "refunds"})
        refused = await client.call_tool("expand", {"id": "ffffffff"}, raise_on_error=False)
        resource = await client.read_resource(f"germane://memory/{found['recalled'][1:9]}")
        return found | {
            "prompt": prompt.messages[0].content.text,
            "refused": refused.content[0].text,
            "resource": resource[0].text,
        }


async def by_pydantic_ai(url: str) -> dict[str, Any]:
    """An agent whose model calls one tool after the other."""
    found: dict[str, Any] = {}

    def model(messages: list[Any], info: Any) -> ModelResponse:
        found["tools"] = [each.name for each in info.function_tools]
        returned = [part for each in messages for part in each.parts if isinstance(part, ToolReturnPart)]
        found.update({NAMES[part.tool_name]: str(part.content) for part in returned})
        left = list(AGENT_CALLS.items())[len(returned) :]
        return ModelResponse(parts=[ToolCallPart(*left[0]) if left else TextPart("Done.")])

    await Agent(FunctionModel(model), toolsets=[MCPToolset(url)]).run("How long do refunds take?")
    return found


async def main(url: str) -> None:
    found = {"fastmcp": await by_fastmcp(url), "pydantic_ai": await by_pydantic_ai(url)}
    sys.stdout.write(json.dumps(found))


asyncio.run(main(*sys.argv[1:]))
