"""Servers over the public API, such as MCP for hosts and agents, and REST. Each needs an extra of its own."""

from __future__ import annotations

from germane.exports import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
