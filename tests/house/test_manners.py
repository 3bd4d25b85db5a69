"""What a linter doesn't see: purity, reasons beside exceptions, nothing unfinished, one public module."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module

import germane
from house.source import PUBLIC, ROOT, functions, modules, python_files

LONGEST_LINE = 110
PURE = (
    "germane.conversation",
    "germane.ids",
    "germane.kinds",
    "germane.ledger",
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
    "germane.working_sets",
)
IMPURE_CALLS = re.compile(
    r"(?:datetime\.now|datetime\.utcnow|time\.time|time\.monotonic|date\.today"
    r"|random\.\w+|secrets\.\w+|uuid4|uuid1|os\.environ\.\w+|open)\("
)


def test_the_pure_packages_read_no_clock_no_chance_and_no_file() -> None:
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
        if not module.name.startswith(("germane.aio", "germane.cli", "germane.frameworks", "germane.servers"))
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


# Each has a more precise standard term, such as requested, query, reported, cached, stored or owned.
VAGUE = frozenset(
    {
        "asked",
        "door",
        "doors",
        "happening",
        "held",
        "house",
        "houses",
        "kept",
        "living",
        "parted",
        "room",
        "rooms",
        "said",
        "standing",
        "told",
        "wing",
        "wings",
    }
)
COLUMNS = {"said", "held_in"}
"""Columns of `conversations` and `space_events`; rows and parameters of queries have the same names."""


def test_no_name_has_a_vague_word() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)} {name}"
        for path in python_files()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in (getattr(node, field, None) for field in ("arg", "asname", "attr", "id", "name"))
        if isinstance(name, str)
        and not VAGUE.isdisjoint(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_"))
        and not (name in COLUMNS and "relational" in path.parts)
    ]
    assert wrong == []


def test_no_docstring_of_the_package_has_a_vague_word() -> None:
    wrong = [
        f"{module.name}:{node.lineno} {word}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for word in re.findall(r"\w+", str(node.value.value).lower())
        if word in VAGUE
    ]
    assert wrong == []


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


MOST_NAMES = 60
"""The public names of `germane` itself: what one can take in at a glance. The submodules have the rest."""


def test_germane_exports_few_names_and_each_class_is_documented() -> None:
    assert len(set(germane.__all__)) == len(germane.__all__) <= MOST_NAMES
    for module in map(import_module, PUBLIC):
        undocumented = [
            name
            for name in module.__all__
            if inspect.isclass(getattr(module, name)) and not (getattr(module, name).__doc__ or "").strip()
        ]
        assert undocumented == []


def test_a_public_name_has_one_home() -> None:
    """What `germane` exports may come from a submodule; no two submodules have the same thing."""
    homes: dict[int, list[str]] = {}
    for name in PUBLIC[1:]:
        for each in import_module(name).__all__:
            homes.setdefault(id(getattr(import_module(name), each)), []).append(f"{name}.{each}")
    assert [several for several in homes.values() if len(several) > 1] == []


# The protocol in protocols.py documents these methods for all implementations.
PROTOCOL_METHODS = {
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
                    and part.name not in PROTOCOL_METHODS
                    and not ast.get_docstring(part)
                    and not any("overload" in ast.unparse(mark) for mark in part.decorator_list)
                    and "Protocol" not in {ast.unparse(base) for base in node.bases}
                )
    assert bare == []


def test_the_lines_of_the_inspector_are_as_short_as_those_of_python() -> None:
    wrong = [
        f"{path.name}:{number}"
        for path in (ROOT / "src" / "germane" / "servers" / "static").glob("*.js")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > LONGEST_LINE
    ]
    assert wrong == []
