"""Install the package from its wheel into empty environments, and use it there.

    python tools/test_install.py                 without extras, with each extra, and with all of them
    python tools/test_install.py core cli        only these; `core` is without extras, `all` with all

It needs hatchling (the group `package`) and a package index. `sentence-transformers` brings gigabytes, so it
is installed only if it is named.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["ROOT", "build", "main", "test"]

ROOT = Path(__file__).resolve().parents[1]
_HUGE = "sentence-transformers"
_CORE = """
import germane
with germane.open("memory.db", agent="newton") as engine:
    engine.remember("Never deploy on a Friday.", kind="constraint")
    context = engine.assemble("May I deploy?", budget=60)
assert "Friday" in context.text and 0 < context.tokens <= 60, context
"""
_USES = {
    "agent-framework": "from germane.frameworks import AgentFrameworkContext",
    "anthropic": "from germane.frameworks import AnthropicMemoryTool",
    "claude": "from germane.tokens import get_counter; assert get_counter('claude-4.8').count('Hello') > 0",
    "cli": "import germane.cli.app",
    "crypto": "import germane; germane.open(':memory:', key=bytes(range(32))).remember('tea')",
    "google-adk": "from germane.frameworks import ADKMemoryService",
    "http": "from germane.embedders import HttpEmbedder; import httpx",
    "keyring": "import cryptography, keyring",
    "langchain": "from germane.frameworks import LangChainMemory",
    "langgraph": "from germane.frameworks import LangGraphStore",
    "llama-index": "from germane.frameworks import LlamaIndexMemoryBlock",
    "mcp": "from germane.servers import mcp_server; import mcp",
    "onnx": "from germane.embedders import OnnxEmbedder; OnnxEmbedder().embed(['Hello'])",
    "openai": "from germane.extractors import OpenAIExtractor; import openai",
    "openai-agents": "from germane.frameworks import OpenAIAgentsSession",
    "otel": "import opentelemetry.trace",
    "postgres": "import pgvector, psycopg, psycopg_pool",
    "project": "from germane.importers import find_secrets; assert not find_secrets('Hello')",
    "pydantic-ai": "from germane.frameworks import PydanticAIMemory",
    "sentence-transformers": "from germane.embedders import SentenceTransformersEmbedder",
    "server": "from germane.servers import rest_app; import fastapi, jinja2, uvicorn",
    "tokenizers": "import tokenizers",
    "watch": "import watchfiles",
}


def main() -> None:
    """Build the wheel, and test it with the extras of the command line."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = sorted(extras["optional-dependencies"])
    if names != sorted(_USES):
        sys.exit("Each extra needs a line in _USES, and each line an extra.")
    chosen = sys.argv[1:] or ["core", *(name for name in names if name != _HUGE), "all"]
    with TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        for name in chosen:
            print(f"{name:22} {test(wheel, name)} packages", flush=True)


def build(folder: Path) -> Path:
    """Build the wheel of this tree into the folder. Raises CalledProcessError."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def test(wheel: Path, name: str) -> int:
    """Install the wheel with an extra, `core` or `all`, and use it. Returns the number of installed packages.

    Raises CalledProcessError if a step fails.
    """
    extras = {"core": [], "all": [extra for extra in _USES if extra != _HUGE]}.get(name, [name])
    with TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = next(_pythons(Path(folder)))
        wanted = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
        pip = [python, "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "-q", "-c", ROOT / "constraints.txt", wanted], check=True)
        env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        for program in (_CORE, *(_USES[extra] for extra in extras)):
            if "claude" not in program or sys.version_info >= (3, 12):
                subprocess.run([python, "-c", program], check=True, cwd=folder, env=env)
        listed = subprocess.run([*pip, "list", "--format=freeze"], check=True, capture_output=True, text=True)
    return sum(not line.startswith(("pip=", "setuptools=")) for line in listed.stdout.splitlines())


def _pythons(folder: Path) -> Iterator[Path]:
    """The interpreter of an environment, wherever its platform has it."""
    yield from filter(Path.exists, (folder / "bin" / "python", folder / "Scripts" / "python.exe"))


if __name__ == "__main__":
    main()
