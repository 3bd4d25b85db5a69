"""A stand-in for a model's server, in OpenAI's and in Anthropic's protocol, with a window that it enforces.

Its model calls the first tool it is offered where the last prompt has a number, answers with what a tool
returned, and otherwise with the line of the request that has most words of the prompt.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from germane.tokens import get_counter

__all__ = ["model_server"]

_WORD = re.compile(r"\w{4,}")
_PER_MESSAGE = 3
_FEWEST = 2


@contextmanager
def model_server(window: int) -> Iterator[str]:
    """The address of a server whose model has a window of so many tokens, prompt and answer together."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            openai = self.path.endswith("/chat/completions")
            counter = get_counter("o200k" if openai else "claude")
            parts = (sent.get("system"), sent.get("tools"), sent["messages"])
            tokens = sum(map(counter.count, _strings(parts))) + _PER_MESSAGE * len(sent["messages"])
            if tokens + (sent.get("max_completion_tokens") or sent["max_tokens"]) > window:
                message = f"The prompt has {tokens} tokens, too many for a window of {window}."
                self._answer(400, {"error": {"type": "invalid_request_error", "message": message}})
            else:
                self._answer(200, (_openai if openai else _anthropic)(sent, tokens))

        def _answer(self, status: int, answer: Mapping[str, Any]) -> None:
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _openai(sent: Mapping[str, Any], tokens: int) -> dict[str, Any]:
    last = sent["messages"][-1]
    result = last["content"] if last["role"] == "tool" else None
    text, number = _decided(sent, result)
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if number:
        function = sent["tools"][0]["function"]
        (name,) = function["parameters"]["properties"]
        call = {"name": function["name"], "arguments": json.dumps({name: number})}
        message["tool_calls"] = [{"id": f"call_{number}", "type": "function", "function": call}]
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": sent["model"],
        "choices": [{"index": 0, "finish_reason": "tool_calls" if number else "stop", "message": message}],
        "usage": {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1},
    }


def _anthropic(sent: Mapping[str, Any], tokens: int) -> dict[str, Any]:
    last = sent["messages"][-1]["content"]
    results = [each for each in last if isinstance(each, Mapping) and each["type"] == "tool_result"]
    text, number = _decided(sent, "\n".join(_strings(results[0]["content"])) if results else None)
    block: dict[str, Any] = {"type": "text", "text": text}
    if number:
        tool = sent["tools"][0]
        (name,) = tool["input_schema"]["properties"]
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": tool["name"], "input": {name: number}}
    return {
        "id": "1",
        "type": "message",
        "role": "assistant",
        "model": sent["model"],
        "content": [block],
        "stop_reason": "tool_use" if number else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": tokens, "output_tokens": 1},
    }


def _decided(sent: Mapping[str, Any], result: str | None) -> tuple[str, str]:
    """The words of an answer, or the number that a tool is called with."""
    if result is not None:
        return result, ""
    *texts, prompt = _strings([message["content"] for message in sent["messages"]])
    if "tools" in sent and (number := re.search(r"\b\d{4}\b", prompt)):
        return "", number[0]
    if not prompt.endswith("?"):
        return "Noted.", ""
    lines = [line for text in texts for line in text.splitlines()]
    wanted = set(_WORD.findall(prompt.casefold()))
    shared = {line: len(wanted.intersection(_WORD.findall(line.casefold()))) for line in lines}
    best = max(shared, key=shared.__getitem__, default="")
    return (best if shared.get(best, 0) >= _FEWEST else "I don't know."), ""


def _strings(value: object) -> Iterator[str]:
    """The texts in a JSON value, in their order, without the marks of a prompt cache."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _strings([each for name, each in value.items() if name != "cache_control"])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each)
