"""Totals that say how large the package is and how much of it one call uses; `make house` prints them.

Each has a limit that a test holds, and a goal. A limit is only ever lowered.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import germane
from germane.testing.fakes import FixedClock, seeded_ids
from house.source import PUBLIC, ROOT, Module, modules

__all__ = ["FIGURES", "Figure", "measured", "table"]

_SOURCE = ROOT / "src" / "germane"
_PROGRAM = Path(__file__).with_name("warm_assemble.py")
_BESIDES_CORE = ("importers", "evaluation", "cli", "frameworks", "servers", "testing", "demo", "telemetry.py")
# Protocols that users implement; each other one describes what only some stores can do.
_FOR_USERS = {"Embedder", "Extractor", "Reranker", "Store", "Summarizer", "TokenCounter"}
_NOW = datetime(2026, 5, 1, tzinfo=UTC)
_KINDS = ("decision", "episode", "fact", "note", "procedure", "rule")


@dataclass(frozen=True)
class Figure:
    """One total: the limit that a test holds, and the goal that the limit is to reach."""

    name: str
    limit: int
    goal: int


# Lower the limit when you lower the figure. A higher one needs a reason that reviewers accept.
FIGURES = (
    Figure("Python files", limit=266, goal=175),
    Figure("lines of Python", limit=85_452, goal=41_000),
    Figure("core: Python files", limit=180, goal=125),
    Figure("core: lines of Python", limit=61_569, goal=31_000),
    Figure("lines of SQL", limit=3_025, goal=2_600),
    Figure("names exported by germane", limit=60, goal=60),
    Figure("files called by a warm assemble", limit=46, goal=45),
    Figure("functions called by a warm assemble", limit=338, goal=200),  # 337 up to Python 3.13.
    Figure("modules loaded by a first assemble", limit=87, goal=80),
    Figure("source files that name seen_count", limit=8, goal=8),
    Figure("modules in the longest import chain", limit=15, goal=15),
    Figure("import circles of folders", limit=0, goal=0),
    Figure("protocols with one implementation", limit=0, goal=0),
    Figure("test files that import internals", limit=54, goal=60),
)


@cache
def measured() -> Mapping[str, int]:
    """Each figure as it is now, by its name."""
    core = [module for module in modules() if module.path.relative_to(_SOURCE).parts[0] not in _BESIDES_CORE]
    use = _use()
    now = (
        len(modules()),
        sum(map(_lines, _with_stubs(modules()))),
        len(core),
        sum(map(_lines, _with_stubs(core))),
        sum(map(_lines, _SOURCE.rglob("*.sql"))),
        len(germane.__all__),
        use["files"],
        use["functions"],
        use["loaded"],
        sum("seen_count" in path.read_text(encoding="utf-8") for path in _python_and_sql()),
        _longest_chain(),
        len(_circles()),
        len(_of_one_store()),
        sum(map(_imports_internals, (ROOT / "tests").rglob("*.py"))),
    )
    return dict(zip((figure.name for figure in FIGURES), now, strict=True))


def table() -> str:
    """The figures as a table for a terminal."""
    now = measured()
    rows = [("figure", "now", "limit", "goal")]
    rows += [
        (figure.name, f"{now[figure.name]:,}", f"{figure.limit:,}", f"{figure.goal:,}") for figure in FIGURES
    ]
    return "\n".join(f"{name:<37}{value:>8}{limit:>8}{goal:>8}" for name, value, limit, goal in rows)


def _with_stubs(counted: Iterable[Module]) -> Iterator[Path]:
    """The files of modules, and the stubs beside them that list what they export."""
    for module in counted:
        yield from filter(Path.exists, (module.path, module.path.with_suffix(".pyi")))


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _python_and_sql() -> Iterator[Path]:
    yield from (path for path in _SOURCE.rglob("*") if path.suffix in (".py", ".sql"))


def _use() -> dict[str, int]:
    """What `assemble` loads and calls on a store of 48 memories of several kinds, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder, "memory.db"))
        with germane.open(store, agent="ada", clock=FixedClock(_NOW), ids=seeded_ids()) as engine:
            engine.remember("I am the assistant of a small shop.", kind="identity")
            for number in range(48):
                text = (
                    f"Service {number} keeps orders in database {number % 7}; deployed on day {number % 5}."
                )
                engine.remember(text, kind=_KINDS[number % len(_KINDS)])
        answer = subprocess.run(
            [sys.executable, str(_PROGRAM), store],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": "0"},
        )
    return dict(json.loads(answer.stdout))


def _imports_internals(path: Path) -> bool:
    """Whether a test imports what isn't public: see `germane.exports`."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = {
        (node.module, each.name)
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        for each in node.names
    }
    names |= {
        (each.name, "")
        for node in nodes
        if isinstance(node, ast.Import)
        for each in node.names
        if "." in each.name
    }
    return any(
        module.partition(".")[0] == "germane" and name not in _public(module)
        for module, name in names
        if f"{module}.{name}".rstrip(".") not in PUBLIC[1:]
    )


def _public(module: str) -> Collection[str]:
    return (*importlib.import_module(module).__all__, "__version__", "") if module in PUBLIC else ()


def _longest_chain() -> int:
    """How many modules the longest chain of imports at the top level of modules has."""
    graph = {module.name: _loaded_with(module) for module in modules()}

    @cache
    def length(name: str) -> int:
        return 1 + max(map(length, graph[name]), default=0)

    return max(map(length, graph))


def _loaded_with(module: Module) -> set[str]:
    """What importing a module imports of the package; not what only type checkers or functions import."""
    body: list[ast.stmt] = []
    waiting = list(module.tree.body)
    for node in waiting:
        if isinstance(node, ast.Import | ast.ImportFrom):
            body.append(node)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting.extend(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting.extend(part for part in ast.iter_child_nodes(node) if isinstance(part, ast.stmt))
    tree = ast.Module(body=body, type_ignores=[])
    return Module(name=module.name, path=module.path, tree=tree).imports() - {module.name}


def _folder(name: str) -> str:
    """The folder of a module; one directly in the package stands for itself."""
    module = next(module for module in modules() if module.name == name)
    folder = module.path.parent.relative_to(_SOURCE)
    return name if folder == Path() else str(folder)


def _circles() -> list[set[str]]:
    """The groups of folders that import each other, in whatever part of their modules the imports stand."""
    graph: dict[str, set[str]] = {}
    for module in modules():
        graph.setdefault(_folder(module.name), set()).update(map(_folder, module.imports()))
    reached = {folder: _reached(folder, graph) for folder in graph}
    circles: list[set[str]] = []
    for folder in graph:
        circle = {other for other in reached[folder] if folder in reached[other]} | {folder}
        if len(circle) > 1 and circle not in circles:
            circles.append(circle)
    return circles


def _reached(folder: str, graph: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [folder]
    while waiting:
        new = graph.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached


def _of_one_store() -> list[str]:
    """The protocols of what only some stores can do that fewer than two stores of the package implement.

    A store and its subclasses are one implementation.
    """
    classes = {
        node.name: node
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and module.name != "germane.protocols"
    }
    protocols = {
        node.name: _methods(node)
        for module in modules()
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and module.name == "germane.protocols"
    }
    members = {name: _members(name, classes) for name in classes}
    stores = [name for name in classes if protocols["Store"] <= members[name]]
    roots = [name for name in stores if not any(base in stores for base in _bases(classes[name]))]
    return [
        name
        for name, methods in protocols.items()
        if name not in _FOR_USERS and sum(methods <= members[root] for root in roots) < 2
    ]


def _methods(node: ast.ClassDef) -> set[str]:
    return {part.name for part in node.body if isinstance(part, ast.FunctionDef)}


def _bases(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base) for base in node.bases}


def _members(name: str, classes: Mapping[str, ast.ClassDef]) -> set[str]:
    if name not in classes:
        return set()
    return _methods(classes[name]).union(
        *(_members(base, classes) for base in _bases(classes[name]) - {name})
    )


if __name__ == "__main__":
    print(table())  # noqa: T201 - The table is what the program is for.
