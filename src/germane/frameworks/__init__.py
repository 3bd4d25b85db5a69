"""Germane's memory in agent frameworks. Each adapter needs its framework, which is an extra of its own."""

from __future__ import annotations

from germane.exports import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
