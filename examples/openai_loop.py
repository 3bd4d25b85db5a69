"""A loop over OpenAI's client: a conversation longer than the window, a tool, and a second session.

pip install 'germane[openai]'
python examples/openai_loop.py                                    # Your key is in OPENAI_API_KEY.
python examples/openai_loop.py --base-url http://localhost:11434/v1 --model qwen3
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from openai import OpenAI

import germane

WINDOW, RESERVE = 1200, 200
SYSTEM = "You help with the operation of a shop. Be brief."
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "order_status",
        "description": "Where an order is.",
        "parameters": {
            "type": "object",
            "properties": {"number": {"type": "string"}},
            "required": ["number"],
        },
    },
}


def turn(engine: germane.Engine, log: germane.Conversation, text: str, client: OpenAI, model: str) -> Any:
    """One turn of the conversation: as many requests as the model calls tools, each within the window."""
    log.append("user", text)
    while True:
        request = engine.request(
            log, system=SYSTEM, tools=[TOOL], memory="layered", window=WINDOW, reserve=RESERVE
        )
        response: Any = client.chat.completions.create(
            model=model, max_completion_tokens=RESERVE, **request.arguments()
        )
        answer = response.choices[0].message
        log.append(answer.model_dump(exclude_none=True), provider="openai")
        if not answer.tool_calls:
            return response
        for call in answer.tool_calls:
            result = order_status(**json.loads(call.function.arguments))
            log.append({"role": "tool", "tool_call_id": call.id, "content": result}, provider="openai")


def order_status(number: str) -> str:
    return f"Order {number} left the warehouse in Rotterdam this morning."


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", help="another server than OpenAI's")
    parser.add_argument("--model", default="gpt-5.5")
    given = parser.parse_args()
    with TemporaryDirectory() as folder, OpenAI(base_url=given.base_url) as client:
        for session, texts in SESSIONS.items():
            # Opened for each session, as by programs that run on different days.
            with germane.open(Path(folder) / "agent.db", agent="shop") as engine:
                log = engine.conversation(session)
                most = 0
                for text in texts:
                    response = turn(engine, log, text, client, given.model)
                    most = max(most, response.usage.prompt_tokens)
                    if "?" in text:
                        print(f"> {text}\n  {response.choices[0].message.content}")
                whole = sum(engine.counter.count(message.text) for message in log.messages())
                print(f"{session}: {len(log.messages())} messages with {whole:,} tokens of text")
                print(f"  each request fits {WINDOW:,} tokens: {most + RESERVE <= WINDOW}")


STEP = "the worker of the queue reads its orders in turn, as the log of the last test run shows"
STEPS = [f"Step {number}: {', and '.join([STEP] * 5)}." for number in range(1, 16)]
SESSIONS = {
    "monday": ["Sessions are kept in Redis and expire after ninety seconds.", *STEPS, "Where is order 4711?"],
    "tuesday": ["After how many seconds do Redis sessions expire?"],
}

if __name__ == "__main__":
    main()
