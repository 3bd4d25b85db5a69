"""Extractors, which propose what to learn from messages: by rules, or by a language model.

Importing this package imports no optional dependency.
"""

from __future__ import annotations

from germane.exports import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
