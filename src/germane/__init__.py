"""Germane: the best context that provably fits a token budget, with an account of what was left out.

`germane.open` gives an engine. The other names here are those that most programs write, annotate or catch;
the rest are in the submodules that the API reference lists, such as `germane.errors` and `germane.stores`.

`import germane` costs next to nothing: a name's module is imported when the name is first used. The stub
`__init__.pyi` is the list of the names.
"""

from __future__ import annotations

from germane.exports import attach

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach(__name__, __file__)
__all__ += ["__version__"]
