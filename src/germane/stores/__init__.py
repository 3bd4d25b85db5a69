"""Whole stores: copy, migrate, reindex or vacuum one, remove an agent, and what these operations return."""

from __future__ import annotations

from germane.exports import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
