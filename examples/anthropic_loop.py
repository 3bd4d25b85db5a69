"""A loop over Anthropic's client: a conversation longer than the window, a tool, and a second session.

pip install 'germane[anthropic]'
python examples/anthropic_loop.py                                 # Your key is in ANTHROPIC_API_KEY.
python examples/anthropic_loop.py --base-url http://localhost:8080 --model some-model
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anthropic import Anthropic

import germane

WINDOW, RESERVE = 4000, 200
SYSTEM = "You help with the operation of a shop. Be brief."
TOOL: dict[str, Any] = {
    "name": "order_status",
    "description": "Where an order is.",
    "input_schema": {"type": "object", "properties": {"number": {"type": "string"}}, "required": ["number"]},
}


def turn(engine: germane.Engine, log: germane.Conversation, text: str, client: Anthropic, model: str) -> Any:
    """One turn of the conversation: as many requests as the model calls tools, each within the window."""
    log.append("user", text)
    while True:
        request = engine.request(
            log,
            provider="anthropic",
            system=SYSTEM,
            tools=[TOOL],
            memory="layered",
            window=WINDOW,
            reserve=RESERVE,
        )
        response: Any = client.messages.create(
            model=model, max_tokens=RESERVE, **request.arguments(cache=True)
        )
        content = [block.model_dump(exclude_none=True) for block in response.content]
        log.append({"role": "assistant", "content": content}, provider="anthropic")
        if response.stop_reason != "tool_use":
            return response
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": order_status(**block.input)}
            for block in response.content
            if block.type == "tool_use"
        ]
        log.append({"role": "user", "content": results}, provider="anthropic")


def order_status(number: str) -> str:
    return f"Order {number} left the warehouse in Rotterdam this morning."


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", help="another server than Anthropic's")
    parser.add_argument("--model", default="claude-sonnet-5-5")
    given = parser.parse_args()
    with TemporaryDirectory() as folder, Anthropic(base_url=given.base_url) as client:
        for session, texts in SESSIONS.items():
            # Opened for each session, as by programs that run on different days.
            with germane.open(Path(folder) / "agent.db", agent="shop") as engine:
                log = engine.conversation(session)
                most = 0
                for text in texts:
                    response = turn(engine, log, text, client, given.model)
                    most = max(most, response.usage.input_tokens)
                    if "?" in text:
                        print(f"> {text}\n  {response.content[-1].text}")
                whole = sum(engine.counter.count(message.text) for message in log.messages())
                print(f"{session}: {len(log.messages())} messages with {whole:,} tokens of text")
                print(f"  each request fits {WINDOW:,} tokens: {most + RESERVE <= WINDOW}")


STEP = "the worker of the queue reads its orders in turn, as the log of the last test run shows"
STEPS = [f"Step {number}: {', and '.join([STEP] * 12)}." for number in range(1, 16)]
SESSIONS = {
    "monday": ["Sessions are kept in Redis and expire after ninety seconds.", *STEPS, "Where is order 4711?"],
    "tuesday": ["After how many seconds do Redis sessions expire?"],
}

if __name__ == "__main__":
    main()
