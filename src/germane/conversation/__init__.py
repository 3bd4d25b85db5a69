"""Conversations: messages in every provider's layout, and what of them to show.

Pure: no clock, no I/O. Scores are arguments, since search belongs to the stores.
"""

from __future__ import annotations

from germane.exports import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
