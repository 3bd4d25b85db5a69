"""Limits that only go down: lengths of files and functions, methods of a protocol."""

from __future__ import annotations

import ast

from house.source import ROOT, functions, modules, python_files

LINES_OF_A_FILE = 600
LINES_OF_A_FUNCTION = 60
METHODS_OF_A_PROTOCOL = 6
# Declarations with nothing to read in them but parameters and what they mean; none may be added.
# Its arguments alone take thirty lines, and are passed on by name.
LONGER: dict[str, int] = {"src/germane/engine/contexts.py:assemble": 67}
# Packages whose protocols are internal; users don't implement them.
INNER = ("germane.importers", "germane.evaluation", "germane.embedders", "germane.stores")


def test_no_file_is_longer_than_the_limit() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in python_files()
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > LINES_OF_A_FILE
    }
    assert long == {}


def test_no_function_is_longer_than_the_limit() -> None:
    long = {}
    for path in python_files():
        for function in functions(ast.parse(path.read_text(encoding="utf-8"))):
            lines = (function.end_lineno or 0) - function.lineno + 1
            name = f"{path.relative_to(ROOT)}:{function.name}"
            if lines > LONGER.get(name, LINES_OF_A_FUNCTION):
                long[name] = lines
    assert long == {}


def test_no_protocol_has_more_methods_than_the_limit() -> None:
    wide = {}
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "Protocol" for base in node.bases):
                methods = [
                    part
                    for part in node.body
                    if isinstance(part, ast.FunctionDef)
                    and not any(ast.unparse(mark) == "property" for mark in part.decorator_list)
                ]
                if len(methods) > METHODS_OF_A_PROTOCOL:
                    wide[node.name] = len(methods)
    assert wide == {}


def test_every_protocol_for_users_is_in_one_file() -> None:
    protocols = [
        f"{module.name}.{node.name}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
        and not node.name.startswith("_")
        and any(ast.unparse(base) == "Protocol" for base in node.bases)
        and module.name != "germane.protocols"
        and not module.name.startswith(INNER)
    ]
    assert protocols == []
