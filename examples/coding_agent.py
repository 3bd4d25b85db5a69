"""A coding agent in a repository: what holds for a task and its files, a tool call, and what the task taught.

It imports a small repository, with its rules, decision records and docstrings. Each task is given what
holds for its paths. `python examples/coding_agent.py --model NAME` works with a real model. It needs `pip
install 'germane[project]'`.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from model import Model, model_or

import germane
from germane.importers import import_source

FILES = {
    "pyproject.toml": '[project]\nname = "shop"\nversion = "1.0"\ndependencies = ["httpx>=0.27"]\n',
    "AGENTS.md": "# Rules\n\nRun `make test` before you say that something works.\n",
    "src/shop/money.py": (
        '"""Amounts of money, in whole cents."""\n\n\ndef total(prices):\n    return sum(prices)\n'
    ),
    "docs/adr/0001-cents.md": (
        "# 1. Money is counted in whole cents\n\nStatus: accepted\n\n## Context\n\n"
        "`src/shop/money.py` lost a cent per invoice with floats.\n\n"
        "## Decision\n\nAmounts are integers of cents.\n"
    ),
}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Reads a file of the repository.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}
TASKS = (
    "Add a discount of 10 % in src/shop/money.py.",
    "Add a tax of 21 % in src/shop/money.py.",
)


def main() -> None:
    model = model_or(script)
    with TemporaryDirectory() as folder, germane.open(":memory:", agent="coder") as engine:
        shop = Path(folder, "shop")
        for name, text in FILES.items():
            path = shop / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        print(f"{import_source(engine, str(shop)).created} memories of the repository")
        for number, text in enumerate(TASKS, 1):
            work(engine, shop, number, text, model)


def work(engine: germane.Engine, shop: Path, number: int, text: str, model: Model) -> None:
    """One task: the context of its paths, the model with its tool, and what is remembered of it."""
    context = engine.assemble(text, plan="scoped", paths=["src/shop/money.py"], budget=600)
    log = engine.conversation(f"task-{number}")
    log.append("user", text)
    while True:
        request = engine.request(log, tools=[TOOL], memory=context, window=4000, reserve=500)
        answer = model(request)
        log.append(answer, provider="openai")
        calls = answer.get("tool_calls")
        if not calls:
            break
        for call in calls:
            path = json.loads(call["function"]["arguments"])["path"]
            result = (shop / path).read_text(encoding="utf-8")
            log.append({"role": "tool", "tool_call_id": call["id"], "content": result}, provider="openai")
            print(f"  read {path}")
    print(f"> {text}\n< {answer['content']}")
    print(f"  {context.tokens} of 600 tokens: {', '.join(item.memory.kind for item in context.items)}")
    engine.remember(
        f"{text} {answer['content']}", kind="decision", metadata={"paths": ["/src/shop/money.py"]}
    )
    engine.outcome(context, "success")


def script(shown: str, last: str) -> str | dict[str, str]:
    """Reads the file, then answers from what the request shows."""
    if "def total" not in last:
        return {"name": "read_file", "arguments": '{"path": "src/shop/money.py"}'}
    cents = "in whole cents, rounded down" if "integers of cents" in shown else "as a float"
    before = ", after the discount" if "discount of 10 % in src/shop/money.py. I add" in shown else ""
    rule = " Then I run `make test`." if "make test" in shown else ""
    return f"I add it to total(){before}, {cents}.{rule}"


if __name__ == "__main__":
    main()
