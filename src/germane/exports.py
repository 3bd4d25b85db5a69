"""Public names that are imported when they are first used, each listed once: in the stub of its package.

A stub, `__init__.pyi`, has a line `from MODULE import NAME as NAME` for each name. Type checkers and
editors read these lines, and so does `attach`. The library lazy-loader isn't used for this: it accepts only
modules inside the package, and `germane.stores` takes names from `germane.operations.stores`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Final

SUBMODULES: Final = (
    "germane.access",
    "germane.aio",
    "germane.conversation",
    "germane.demo",
    "germane.embedders",
    "germane.errors",
    "germane.evaluation",
    "germane.extractors",
    "germane.filters",
    "germane.frameworks",
    "germane.importers",
    "germane.kinds",
    "germane.ledger",
    "germane.lifecycle",
    "germane.plans",
    "germane.protocols",
    "germane.provenance",
    "germane.ranking",
    "germane.renditions",
    "germane.servers",
    "germane.spaces",
    "germane.stores",
    "germane.summarizers",
    "germane.telemetry",
    "germane.testing.contract",
    "germane.testing.fakes",
    "germane.tokens",
    "germane.working_sets",
)
"""The modules besides `germane` whose `__all__` is public. All other modules are internal."""


def attach(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of the package whose `__init__.py` is `file`.

    A name becomes an ordinary attribute of the package when it is first used. An unknown name raises
    AttributeError.
    """
    names = origins(file)

    def get(name: str) -> object:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = names[name]
        is_module = module == package  # `from germane import aio as aio`
        value = import_module(f"{package}.{name}") if is_module else getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    def names_shown() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names})

    return get, names_shown, sorted(names)


def origins(file: str) -> dict[str, str]:
    """The module that each public name is imported from, as the stub of an `__init__.py` says."""
    lines = Path(file).with_suffix(".pyi").read_text(encoding="utf-8").splitlines()
    words = (line.split() for line in lines if line.startswith("from "))
    return {name: module for _, module, _, name, *_ in words}
