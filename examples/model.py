"""The model of the examples: a script, which needs no key, or one behind any OpenAI-compatible server.

    python examples/chat_agent.py                                           # the script
    python examples/chat_agent.py --model gpt-5.5                           # your key is in OPENAI_API_KEY
    python examples/chat_agent.py --model qwen3 --base-url http://localhost:11434/v1

A model needs `pip install 'germane[openai]'`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import germane

Message: TypeAlias = dict[str, Any]
Model: TypeAlias = Callable[[germane.Request], Message]
"""Takes a request, returns the message of the assistant in OpenAI's layout."""


def model_or(script: Callable[[str, str], str | Mapping[str, Any]]) -> Model:
    """The model that the command line names, or the script.

    A script is given all that the request shows, and its last message. It returns a text, or a call of a
    tool: its `name` and `arguments`.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", help="the name of a model; default: a script")
    parser.add_argument("--base-url", help="another server than OpenAI's")
    given = parser.parse_args()
    if given.model is None:
        return lambda request: _scripted(script, request)
    from openai import OpenAI  # noqa: PLC0415 - The script needs no package.

    client = OpenAI(base_url=given.base_url)

    def ask(request: germane.Request) -> Message:
        response: Any = client.chat.completions.create(
            model=given.model, max_completion_tokens=request.reserve, **request.arguments()
        )
        answer: Message = response.choices[0].message.model_dump(exclude_none=True)
        return answer

    return ask


def _scripted(script: Callable[[str, str], str | Mapping[str, Any]], request: germane.Request) -> Message:
    messages = request.messages
    last = str(messages[-1]["content"])
    answer = script("\n".join(str(each.get("content")) for each in messages), last)
    if isinstance(answer, str):
        return {"role": "assistant", "content": answer}
    call = {"id": f"call_{len(messages)}", "type": "function", "function": dict(answer)}
    return {"role": "assistant", "content": None, "tool_calls": [call]}
