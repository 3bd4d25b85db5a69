"""Claude's memory tool over germane answers as Anthropic's own tool over local files does."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import anthropic
import pytest
from anthropic.tools import ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool
from hypothesis import given
from hypothesis import strategies as st

import germane
from germane.frameworks import AnthropicMemoryTool, AsyncAnthropicMemoryTool

NAMES = st.sampled_from(["a.txt", "b", ".hidden", "c/d.md", "c/e/f", "c", "ü"])
PATHS = NAMES.map(lambda name: f"/memories/{name}") | st.sampled_from(
    ["/memories", "/memories/", "/memories/c/../b", "/memories/../x", "/etc/x", "/memories//a.txt"]
)
TEXTS = st.sampled_from(
    ["", "\n", "one", "one\ntwo\n", "one\r\ntwo\none", "a\n\nb\n\n", " \t", "two one two"]
)
COMMANDS = st.one_of(
    st.fixed_dictionaries(
        {
            "command": st.just("view"),
            "path": PATHS,
            "view_range": st.none() | st.sampled_from([[1, 1], [2, -1], [1, 9]]),
        }
    ),
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries(
        {
            "command": st.just("str_replace"),
            "path": PATHS,
            "old_str": st.sampled_from(["one", "two", "\n", "none"]),
            "new_str": TEXTS,
        }
    ),
    st.fixed_dictionaries(
        {
            "command": st.just("insert"),
            "path": PATHS,
            "insert_line": st.integers(-1, 4),
            "insert_text": TEXTS,
        }
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS, "new_path": PATHS}),
)


@pytest.fixture
def engine() -> Iterator[germane.Engine]:
    with germane.open(":memory:", agent="claude") as engine:
        yield engine


@given(commands=st.lists(COMMANDS, max_size=12))
def test_its_answers_are_those_of_the_tool_for_local_files(commands: list[dict[str, Any]]) -> None:
    with (
        TemporaryDirectory() as folder,
        germane.open(":memory:", agent="claude", embedder=None) as engine,
    ):
        theirs, mine = BetaLocalFilesystemMemoryTool(folder), AnthropicMemoryTool(engine)
        for command in commands:
            expected = answered(theirs, command)
            without_empty_folders(Path(folder, "memories"))
            found = answered(mine, command)
            assert (command, found) == (command, expected) or (
                expected is REFUSED and found.startswith("Error")
            )


REFUSED = "Error of the operating system"


def answered(tool: Any, command: dict[str, Any]) -> str:
    """What a tool answers, without sizes."""
    try:
        return re.sub(r"^[\d.]+[BKMG]\t", "", str(tool.call(command)), flags=re.MULTILINE)
    except ToolError as error:
        return f"Error: {error}"
    except OSError:
        return REFUSED


def without_empty_folders(root: Path) -> None:
    """A directory of memories is there as long as a file is in it."""
    for each in sorted(root.rglob("*"), reverse=True):
        if each.is_dir() and not any(each.iterdir()):
            each.rmdir()


def test_what_claude_writes_is_found_with_its_versions(engine: germane.Engine) -> None:
    tool = AnthropicMemoryTool(engine)
    tool.call({"command": "create", "path": "/memories/home.md", "file_text": "Anna lives in Rome.\n"})
    replaced = {"command": "str_replace", "path": "/memories/home.md", "old_str": "Rome", "new_str": "Oslo"}
    tool.call(replaced)
    tool.call({"command": "rename", "old_path": "/memories/home.md", "new_path": "/memories/anna/home.md"})

    (memory,) = engine.recall("Where does Anna live?")
    assert memory.content == "Anna lives in Oslo.\n"
    assert [one.content for one in engine.history(memory.id)] == [
        "Anna lives in Rome.\n",
        "Anna lives in Oslo.\n",
        "Anna lives in Oslo.\n",
    ]


@pytest.mark.parametrize(("delete", "left"), [("purge", 0), ("forget", 2)])
def test_deleted_files_are_gone_or_restorable(engine: germane.Engine, delete: Any, left: int) -> None:
    tool = AnthropicMemoryTool(engine, delete=delete)
    for name in ("a", "b"):
        tool.call({"command": "create", "path": f"/memories/x/{name}", "file_text": name})
    tool.call({"command": "delete", "path": "/memories/x"})
    assert engine.stats().memories == left
    assert engine.recall("a").empty_reason is not None
    assert tool.clear_all_memory() == "All memory cleared"


def test_edits_at_the_same_time_are_all_made(engine: germane.Engine) -> None:
    tool = AsyncAnthropicMemoryTool(engine)

    async def edit() -> str:
        await tool.call({"command": "create", "path": "/memories/log", "file_text": "begin\n"})
        lines = [
            tool.call({"command": "insert", "path": "/memories/log", "insert_line": 1, "insert_text": f"{n}"})
            for n in range(20)
        ]
        await asyncio.gather(*lines)
        return str(await tool.call({"command": "view", "path": "/memories/log"}))

    text = asyncio.run(edit())
    assert {line.partition("\t")[2] for line in text.splitlines()[1:]} >= {str(n) for n in range(20)}


class Model(BaseHTTPRequestHandler):
    """Plays the model: asks for two commands, and then answers with what the second one returned."""

    answered: ClassVar[int] = 0

    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asks = [
            {"command": "create", "path": "/memories/tea.md", "file_text": "Anna likes green tea."},
            {"command": "view", "path": "/memories/tea.md"},
        ]
        number = Model.answered
        Model.answered += 1
        if number < len(asks):
            uses = {"type": "tool_use", "id": f"t{number}", "name": "memory", "input": asks[number]}
            content, reason = [uses], "tool_use"
        else:
            result = sent["messages"][-1]["content"][0]["content"]
            content, reason = [{"type": "text", "text": str(result)}], "end_turn"
        answer = json.dumps(
            {
                "id": "m",
                "type": "message",
                "role": "assistant",
                "model": "claude",
                "content": content,
                "stop_reason": reason,
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


def test_the_sdks_runner_uses_it(engine: germane.Engine) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with anthropic.Anthropic(
            api_key="none", base_url=f"http://127.0.0.1:{server.server_port}", max_retries=0
        ) as client:
            last = client.beta.messages.tool_runner(
                model="claude",
                max_tokens=100,
                messages=[{"role": "user", "content": "What does Anna like?"}],
                tools=[AnthropicMemoryTool(engine)],
                betas=["context-management-2025-06-27"],
            ).until_done()
    finally:
        server.shutdown()
        server.server_close()
    assert "Anna likes green tea." in last.content[0].text  # type: ignore[union-attr] # The model answers with text.
    assert engine.recall("tea")[0].content == "Anna likes green tea."
