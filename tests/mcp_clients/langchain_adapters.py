"""The same calls by LangChain's adapters, with the SDK of the generation before; prints JSON."""

import asyncio
import json
import sys
from typing import Any

from langchain_mcp_adapters.client import MultiServerMCPClient  # type: ignore[import-not-found] # In its own environment.


async def main(database: str, python: str, url: str) -> None:
    arguments = ["-m", "germane", "mcp", "--db", database]
    servers: Any = {
        "http": {"transport": "streamable_http", "url": url},
        "stdio": {"transport": "stdio", "command": python, "args": arguments},
    }
    found = {}
    client = MultiServerMCPClient(servers)
    for name in servers:
        tools = {each.name: each for each in await client.get_tools(server_name=name)}
        prompt = await client.get_prompt(name, "brief", arguments={"topic": "refunds"})
        recalled = await tools["recall"].ainvoke({"query": "refunds", "kinds": "fact"})
        context = await tools["context"].ainvoke({"question": "How long do refunds take?", "budget": 300})
        stored = await tools["remember"].ainvoke({"content": f"Written by LangChain over {name}."})
        found[name] = {
            "tools": list(tools),
            "recalled": _text(recalled),
            "context": _text(context),
            "stored": _text(stored),
            "prompt": prompt[0].content,
        }
    sys.stdout.write(json.dumps(found))


def _text(result: Any) -> str:
    return str(result if isinstance(result, str) else result[0]["text"])


asyncio.run(main(*sys.argv[1:]))
