"""Summaries by Anthropic's models.

Level: summarizers. The SDK is imported when the first text is shortened.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from germane.errors import MissingExtra
from germane.protocols import TokenCounter
from germane.summarizers.asking import ModelSummarizer
from germane.summarizers.circuit import Circuit

__all__ = ["AnthropicSummarizer"]


class AnthropicSummarizer(ModelSummarizer):
    """Asks `POST {base_url}/v1/messages` through the official SDK (`pip install 'germane[anthropic]'`).

    `timeout` is in seconds for each request; `retries` more tries follow what may pass (429, 5xx, no
    connection), with the SDK's growing waits. Without a key the SDK reads ANTHROPIC_API_KEY.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        key: str | None = None,
        timeout: float = 20.0,
        retries: int = 2,
        counter: str | TokenCounter = "o200k",
        circuit: Circuit | None = None,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(self._answer, name=model, counter=counter, circuit=circuit, timer=timer)
        self.model = model
        self._options: dict[str, Any] = {
            "base_url": base_url,
            "api_key": key,
            "timeout": timeout,
            "max_retries": retries,
        }
        self._client: Any = None

    def _answer(self, request: str, tokens: int) -> str:
        if self._client is None:
            try:
                import anthropic  # noqa: PLC0415 - an optional dependency, imported when it is needed.
            except ImportError as missing:
                raise MissingExtra(feature="Summaries by Anthropic", extra="anthropic") from missing
            self._client = anthropic.Anthropic(**self._options)
        made = self._client.messages.create(
            model=self.model,
            max_tokens=3 * tokens,
            messages=[{"role": "user", "content": request}],
        )
        return "".join(part.text for part in made.content if part.type == "text")
