"""Import and export: readers turn a source into drafts, a writer feeds them to an engine."""

from __future__ import annotations

from germane.exports import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
