"""Summaries by OpenAI, or by any server that speaks its chat protocol.

Level: summarizers.
"""

from __future__ import annotations

from typing import Any

from germane.summarizers.sdk import SdkSummarizer

__all__ = ["OpenAISummarizer"]


class OpenAISummarizer(SdkSummarizer):
    """Asks `POST {base_url}/chat/completions` through the official SDK (`pip install 'germane[openai]'`).

    `timeout` is in seconds for each request; `retries` more tries follow what may pass (429, 5xx, no
    connection), with the SDK's growing waits. Without a key the SDK reads OPENAI_API_KEY.
    """

    package = "openai"
    client = "OpenAI"

    def _asked(self, client: Any, request: str, most: int) -> str:
        made = client.chat.completions.create(
            model=self.model,
            messages=[{"role": "user", "content": request}],
            max_completion_tokens=most,
        )
        return made.choices[0].message.content or ""
