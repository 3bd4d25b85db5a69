"""Summarizers that ask a language model, and what keeps them from holding anything up for long.

Level: summarizers (imports errors, protocols and what shortens by itself). They are asked when a memory is
written, never when a context is made. `germane.open(..., summarizer=OpenAISummarizer(model=...))`.
"""

from __future__ import annotations

from germane.summarizers.anthropic_api import AnthropicSummarizer
from germane.summarizers.asking import ModelSummarizer
from germane.summarizers.circuit import Circuit, CircuitState
from germane.summarizers.openai_api import OpenAISummarizer

__all__ = ["AnthropicSummarizer", "Circuit", "CircuitState", "ModelSummarizer", "OpenAISummarizer"]
