"""Summaries by Anthropic's models.

Level: summarizers.
"""

from __future__ import annotations

from typing import Any

from germane.summarizers.sdk import SdkSummarizer

__all__ = ["AnthropicSummarizer"]


class AnthropicSummarizer(SdkSummarizer):
    """Asks `POST {base_url}/v1/messages` through the official SDK (`pip install 'germane[anthropic]'`).

    `timeout` is in seconds for each request; `retries` more tries follow what may pass (429, 5xx, no
    connection), with the SDK's growing waits. Without a key the SDK reads ANTHROPIC_API_KEY.
    """

    package = "anthropic"
    client = "Anthropic"

    def _asked(self, client: Any, request: str, most: int) -> str:
        made = client.messages.create(
            model=self.model,
            max_tokens=most,
            messages=[{"role": "user", "content": request}],
        )
        return "".join(part.text for part in made.content if part.type == "text")
