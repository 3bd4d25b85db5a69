"""What ranks memories: fusing rankings, decay in working sets, and what ranking learns from use. Pure."""

from __future__ import annotations

from germane.exports import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
