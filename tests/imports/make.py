"""Make the fixtures of imports with the products themselves; README.md names the versions.

`python make.py mem0 langgraph` in an environment with mem0ai and langgraph-checkpoint-sqlite, `letta` and
`graphiti` in one with letta and graphiti-core, `basic_memory` in one with basic-memory (Python 3.12), and
`mcp FOLDER` with the folder in which npm installed @modelcontextprotocol/server-memory.
"""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
WHEN = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def written(name: str, value: object) -> None:
    """Write a value as JSON."""
    text = json.dumps(value, indent=1, ensure_ascii=False, default=str)
    (HERE / name).write_text(text + "\n", encoding="utf-8")


def mem0() -> None:
    """A local Qdrant folder, the log of changes, and what `get_all` returns."""
    os.environ["MEM0_TELEMETRY"] = "False"
    os.environ["MEM0_DIR"] = str(HERE / "unused")
    from mem0 import Memory  # noqa: PLC0415 - Each part has an environment of its own.
    from mem0.embeddings.mock import MockEmbeddings  # noqa: PLC0415 - Each part has an environment of its own.

    folder = HERE / "mem0"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    store = {"path": str(folder / "qdrant"), "on_disk": True, "embedding_model_dims": 10}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "llm": {"provider": "openai", "config": {"api_key": "none"}},
            "embedder": {"provider": "openai", "config": {"api_key": "none"}},
            "history_db_path": str(folder / "history.sqlite"),
        }
    )
    memory.embedding_model = MockEmbeddings()
    given = [
        ("Ann prefers tea to coffee.", {"user_id": "ann", "run_id": "trip"}, {"topic": "drinks"}),
        ("Ann is allergic to nuts.", {"user_id": "ann", "agent_id": "waiter"}, {}),
        ("Ben travels by train only.", {"user_id": "ben"}, {}),
        ("The office closes at six.", {"agent_id": "waiter"}, {}),
    ]
    ids = [
        memory.add([{"role": "user", "content": text}], metadata=more, infer=False, **whose)["results"][0][
            "id"
        ]
        for text, whose, more in given
    ]
    memory.update(ids[2], "Ben travels by train and by boat.")
    gone = memory.add("Ben owns a car.", user_id="ben", infer=False)["results"][0]["id"]
    memory.delete(gone)
    several = [memory.get_all(filters={"user_id": user})["results"] for user in ("ann", "ben")]
    written("mem0/get_all.json", {"results": [each for one in several for each in one]})
    memory.vector_store.client.close()
    memory.db.connection.close()
    shutil.rmtree(HERE / "unused", ignore_errors=True)
    for lock in folder.glob("**/.lock"):
        lock.unlink()


def langgraph() -> None:
    """An SQLite store without vectors, with a time to live, and with an item that has expired."""
    from langgraph.store.sqlite import SqliteStore  # noqa: PLC0415 - Each part has an environment of its own.

    path = HERE / "langgraph.sqlite"
    path.unlink(missing_ok=True)
    with SqliteStore.from_conn_string(str(path), ttl={"default_ttl": None}) as store:
        store.setup()
        store.put(("users", "ann"), "food", {"text": "Ann is allergic to nuts.", "level": 3})
        store.put(("users", "ann"), "drink", {"text": "Ann prefers tea."})
        store.put(("app",), "settings", {"theme": "dark", "sizes": [1, 2]})
        store.put(("app",), "renewed", {"text": "Kept for a century."}, ttl=60 * 24 * 365 * 100)
        store.put(("app",), "over", {"text": "Kept for no time."}, ttl=0.0001)


def letta() -> None:
    """An agent file, from the schema by which Letta writes it."""
    from letta.schemas.agent_file import (  # noqa: PLC0415 - Each part has an environment of its own.
        AgentFileSchema,
        AgentSchema,
        BlockSchema,
        MessageSchema,
    )
    from letta.schemas.letta_message_content import TextContent  # noqa: PLC0415 - Each part has an environment of its own.

    def message(number: int, role: str, text: str, **more: object) -> MessageSchema:
        content = [TextContent(text=text)] if text else []
        when = WHEN.replace(minute=30 + number)
        return MessageSchema(
            id=f"message-{number}", role=role, content=content, agent_id="agent-0", created_at=when, **more
        )

    call = {
        "id": "call-1",
        "type": "function",
        "function": {"name": "send_message", "arguments": '{"message": "Nuts, noted."}'},
    }
    event = json.dumps({"type": "user_message", "message": "I can't eat nuts.", "time": "2026-03-01"})
    agent = AgentSchema(
        id="agent-0",
        name="waiter",
        system="You are a waiter.",
        block_ids=["block-0", "block-1"],
        messages=[
            message(0, "system", "You are a waiter."),
            message(1, "user", event),
            message(2, "assistant", "", tool_calls=[call]),
            message(3, "tool", '{"status": "OK"}', tool_call_id="call-1", name="send_message"),
        ],
        in_context_message_ids=["message-0", "message-1"],
    )
    blocks = [
        BlockSchema(id="block-0", label="persona", value="A friendly waiter.", description="Who I am"),
        BlockSchema(id="block-1", label="human", value="Ann can't eat nuts.", limit=2000),
        BlockSchema(id="block-2", label="empty", value=""),
    ]
    file = AgentFileSchema(
        agents=[agent],
        groups=[],
        blocks=blocks,
        files=[],
        sources=[],
        tools=[],
        mcp_servers=[],
        created_at=WHEN,
    )
    written("waiter.af", file.model_dump(mode="json"))


def graphiti() -> None:
    """Edges, nodes and episodes of a graph, as Graphiti's own models write them."""
    from graphiti_core.edges import EntityEdge  # noqa: PLC0415 - Each part has an environment of its own.
    from graphiti_core.nodes import EntityNode, EpisodeType, EpisodicNode  # noqa: PLC0415 - Each part has an environment of its own.

    def node(name: str, summary: str) -> EntityNode:
        return EntityNode(
            uuid=f"node-{name}",
            name=name,
            group_id="ann",
            labels=["Entity", "Person"],
            summary=summary,
            created_at=WHEN,
            name_embedding=[0.1, 0.2],
        )

    def edge(number: int, fact: str, **times: datetime) -> EntityEdge:
        return EntityEdge(
            uuid=f"edge-{number}",
            group_id="ann",
            source_node_uuid="node-Ann",
            target_node_uuid="node-Acme",
            created_at=WHEN,
            name="WORKS_AT",
            fact=fact,
            fact_embedding=[0.1, 0.2],
            episodes=["episode-1"],
            **times,
        )

    episode = EpisodicNode(
        uuid="episode-1",
        name="chat",
        group_id="ann",
        source=EpisodeType.message,
        source_description="a chat",
        content="Ann: I left Acme last week.",
        created_at=WHEN,
        valid_at=WHEN,
        entity_edges=["edge-1"],
    )
    nodes = [node("Ann", "Ann is an engineer."), node("Acme", "")]
    started = datetime(2024, 1, 1, tzinfo=UTC)
    edges = [
        edge(1, "Ann works at Acme.", valid_at=started, invalid_at=WHEN),
        edge(2, "Ann left Acme.", valid_at=WHEN),
    ]
    parts = {"edges": edges, "nodes": nodes, "episodes": [episode]}
    written(
        "graphiti.json",
        {name: [each.model_dump(mode="json") for each in part] for name, part in parts.items()},
    )


def mcp(folder: str) -> None:
    """The file of the reference MCP memory server, written through its tools."""
    path = HERE / "mcp_memory.jsonl"
    path.unlink(missing_ok=True)
    entities = [
        {"name": "Ann", "entityType": "person", "observations": ["Can't eat nuts", "Prefers tea"]},
        {"name": "Acme", "entityType": "company", "observations": []},
    ]
    relations = [{"from": "Ann", "to": "Acme", "relationType": "works at"}]
    calls = [("create_entities", {"entities": entities}), ("create_relations", {"relations": relations})]
    opening = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "make", "version": "1"},
    }
    lines: list[dict[str, object]] = [
        {"id": 0, "method": "initialize", "params": opening},
        {"method": "notifications/initialized"},
    ]
    lines += [
        {"id": number, "method": "tools/call", "params": {"name": name, "arguments": given}}
        for number, (name, given) in enumerate(calls, 1)
    ]
    server = Path(folder) / "node_modules/@modelcontextprotocol/server-memory/dist/index.js"
    with subprocess.Popen(
        [str(shutil.which("node")), str(server)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "MEMORY_FILE_PATH": str(path)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in lines:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **line}) + "\n")
            process.stdin.flush()
            if "id" in line:
                process.stdout.readline()
        process.stdin.close()


def basic_memory() -> None:
    """A folder of notes, written through its tools, and the statements that its own parser finds in them."""
    folder = HERE / "basic_memory"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"HOME": home, "BASIC_MEMORY_HOME": str(folder / "notes")}
        asyncio.run(_notes(folder))


async def _notes(folder: Path) -> None:
    import basic_memory.mcp.tools  # noqa: F401, PLC0415 - Registers the tools.
    from basic_memory.markdown.entity_parser import EntityParser  # noqa: PLC0415 - Each part has an environment of its own.
    from basic_memory.mcp.server import mcp  # noqa: PLC0415 - As above.
    from fastmcp import Client  # noqa: PLC0415 - As above.

    (folder / "notes").mkdir()
    async with Client(mcp) as client:
        for fields in NOTES:
            await client.call_tool("write_note", fields)
    found = {}
    for path in sorted((folder / "notes").rglob("*.md")):
        note = await EntityParser(folder / "notes").parse_file(path)
        found[path.relative_to(folder / "notes").as_posix()] = {
            "observations": [each.model_dump(mode="json") for each in note.observations],
            "relations": [each.model_dump(mode="json") for each in note.relations],
        }
    written("basic_memory/expected.json", found)


NOTES = [
    {
        "title": "Coffee",
        "directory": "drinks",
        "tags": ["drinks", "morning"],
        "content": """# Coffee

Ann brews it every morning, see [[Ann]] and `[[no link]]`.

## Observations
- [method] Pour over at 94 degrees #brewing #water (measured)
- [preference] No sugar
- [decision] @effective[2026-01-01,2026-06-01) The office buys beans from [[Acme]].
- [ ] Buy a grinder
- [00:12] a line of a transcript

```
- [method] in a block of code
```

## Relations
- contrasts_with [[Tea]] (also caffeine)
- "goes well with" [[Carrot cake]]
- served at the [[Office]]
""",
    },
    {
        "title": "Ann",
        "directory": "people",
        "note_type": "person",
        "metadata": {"role": "engineer", "created": "2026-03-01"},
        "content": "# Ann\n\n- [fact] Can't eat nuts #health\n- works_at [[Acme]]\n",
    },
    {"title": "Plain", "directory": "", "content": "A note without statements.\n"},
]


if __name__ == "__main__":
    names = sys.argv[1:]
    while names:
        name = names.pop(0)
        if name == "mcp":
            mcp(names.pop(0))
        else:
            parts = {"mem0": mem0, "langgraph": langgraph, "letta": letta, "graphiti": graphiti}
            (parts | {"basic_memory": basic_memory})[name]()
