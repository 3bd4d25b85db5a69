"""The package's source as syntax trees, for the tests of conventions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from germane.exports import SUBMODULES

__all__ = ["PUBLIC", "ROOT", "Module", "functions", "modules", "python_files"]

PUBLIC = ("germane", *SUBMODULES)
"""The modules whose `__all__` is public."""
ROOT = Path(__file__).resolve().parents[2]
_SOURCE = ROOT / "src"


@dataclass(frozen=True)
class Module:
    """One module of the package."""

    name: str
    path: Path
    tree: ast.Module

    def imports(self) -> set[str]:
        """The package's modules that this one names in an import, wherever it stands."""
        known = {module.name for module in modules()}
        found: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = {f"{node.module}.{alias.name}" for alias in node.names} & known
                found.update(names or {node.module})
        return {name for name in found if name.split(".")[0] == "germane"}


@cache
def modules() -> tuple[Module, ...]:
    """Every module of the package, in order of its name."""
    found = []
    for path in sorted(_SOURCE.rglob("*.py")):
        parts = path.relative_to(_SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Module(name=name, path=path, tree=ast.parse(path.read_text(encoding="utf-8"))))
    return tuple(found)


def python_files() -> Iterator[Path]:
    """Every Python file that the project keeps."""
    for folder in ("src", "tests", "bench", "examples", "tools", "docs"):
        yield from sorted((ROOT / folder).rglob("*.py"))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a tree, methods and inner ones included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
