"""Models: the embedder that comes with the package, MiniLM as an extra, and adapters of what a user has.

Importing this package imports no optional dependency, and an adapter only when it is first used.
"""

from __future__ import annotations

from germane.exports import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
