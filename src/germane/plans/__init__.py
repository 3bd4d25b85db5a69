"""Plans: data that says which sections a context has and how they are filled. Pure.

`Plan`, `Section` and `Share` themselves are in `germane`.
"""

from __future__ import annotations

from germane.exports import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
