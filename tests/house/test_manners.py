"""What a linter doesn't see: purity, reasons beside exceptions, nothing unfinished, one public door."""

from __future__ import annotations

import ast
import inspect
import re

import germane
from house.source import ROOT, functions, modules, python_files

PURE = (
    "germane.conversation",
    "germane.ids",
    "germane.kinds",
    "germane.lifecycle",
    "germane.model",
    "germane.packing",
    "germane.scopes",
    "germane.pipeline",
    "germane.plans",
    "germane.ranking",
    "germane.renditions",
    "germane.retrieval",
    "germane.spaces",
)
IMPURE_CALLS = re.compile(
    r"(?:datetime\.now|datetime\.utcnow|time\.time|time\.monotonic|date\.today"
    r"|random\.\w+|secrets\.\w+|uuid4|uuid1|os\.environ\.\w+|open)\("
)


def test_the_pure_rooms_read_no_clock_no_chance_and_no_file() -> None:
    wrong = [
        f"{module.name}:{node.lineno} {ast.unparse(node.func)}"
        for module in modules()
        if module.name.startswith(PURE)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and IMPURE_CALLS.match(ast.unparse(node.func) + "(")
    ]
    assert wrong == []


def test_await_stays_at_the_edge() -> None:
    wrong = [
        f"{module.name}:{function.name}"
        for module in modules()
        if not module.name.startswith(("germane.aio", "germane.cli"))
        for function in functions(module.tree)
        if isinstance(function, ast.AsyncFunctionDef)
    ]
    assert wrong == []


def test_every_exception_to_a_rule_has_its_reason_beside_it() -> None:
    bare = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in python_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"#\s*(?:noqa|type:\s*ignore|pragma)\b", line)
        and not re.search(r"(?:noqa: [A-Z0-9, ]+|ignore\[[a-z-, ]+\])\s+(?:-|#)\s*\S", line)
        and "house" not in path.parts
    ]
    assert bare == []


def test_every_rule_that_is_off_says_why() -> None:
    lint = (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[tool.ruff.lint]")[1]
    rules = [line for line in lint.splitlines() if re.match(r'\s+"[A-Z]+\d*",', line)]
    assert rules
    assert [line for line in rules if not re.search(r"#\s*\S.*\.$", line)] == []


def test_nothing_is_left_unfinished() -> None:
    marks = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b|raise NotImplementedError")
    wrong = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in python_files()
        if "house" not in path.parts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if marks.search(line)
    ]
    assert wrong == []


def test_every_module_says_what_it_offers() -> None:
    for module in modules():
        text = ast.get_docstring(module.tree)
        if module.path.name == "__init__.py" and not module.path.read_text(encoding="utf-8").strip():
            continue
        assert text, f"{module.name} has no docstring"


def test_the_public_door_is_explicit_and_documented() -> None:
    assert sorted(germane.__all__) == sorted(set(germane.__all__))
    shown = {
        name
        for name in dir(germane)
        if not name.startswith("_")
        and not inspect.ismodule(getattr(germane, name))
        and name not in ("annotations", "Mapping", "TYPE_CHECKING", "import_module")
    }
    assert shown == set(germane.__all__) - {"__version__"}
    undocumented = [
        name
        for name in germane.__all__
        if inspect.isclass(getattr(germane, name)) and not (getattr(germane, name).__doc__ or "").strip()
    ]
    assert undocumented == []


# What these promise stands once, at the door that they fill, in protocols.py.
DOORS = {
    "apply",
    "close",
    "count",
    "dimension",
    "embed",
    "find",
    "get",
    "margin",
    "name",
    "search",
    "stats",
    "summarize",
}


def test_every_public_function_and_class_has_a_docstring() -> None:
    bare = []
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                if not ast.get_docstring(node):
                    bare.append(f"{module.name}.{node.name}")
                bare.extend(
                    f"{module.name}.{node.name}.{part.name}"
                    for part in getattr(node, "body", [])
                    if isinstance(node, ast.ClassDef)
                    and isinstance(part, ast.FunctionDef)
                    # A test's name says what it proves, in the public contract as well.
                    and not part.name.startswith(("_", "test_"))
                    and part.name not in DOORS
                    and not ast.get_docstring(part)
                    and not any("overload" in ast.unparse(mark) for mark in part.decorator_list)
                    and "Protocol" not in {ast.unparse(base) for base in node.bases}
                )
    assert bare == []
