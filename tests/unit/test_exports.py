"""`import germane` loads names at their first use, and looks like any other package all the same."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import germane
from germane import embedders, errors

LAZY = (
    "germane",
    "germane.conversation",
    "germane.embedders",
    "germane.plans",
    "germane.ranking",
    "germane.stores",
)
"""The packages whose names are listed in a stub."""


@pytest.mark.parametrize("package", LAZY)
def test_the_stub_of_a_package_is_the_list_of_its_names(package: str) -> None:
    module = import_module(package)
    tree = ast.parse(Path(str(module.__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]

    assert [(alias.name, alias.asname) for node in imports for alias in node.names] == [
        (name, name) for node in imports for name in [node.names[0].name]
    ]
    assert set(module.__all__) - {"__version__"} == {node.names[0].name for node in imports}
    for node in imports:
        name = node.names[0].name
        if node.module != package:
            assert getattr(module, name) is getattr(import_module(str(node.module)), name)


def test_the_modules_of_germane_are_loaded_when_they_are_first_used() -> None:
    program = "import germane, sys; print(*(name for name in sys.modules if name.split('.')[0] == 'germane'))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert sorted(ran.stdout.split()) == ["germane", "germane.exports"]


def test_a_name_is_the_object_of_its_module() -> None:
    assert germane.NotFound is errors.NotFound
    assert pickle.loads(pickle.dumps(germane.GLOBAL)) == germane.GLOBAL  # noqa: S301 - What was dumped here.


def test_a_star_brings_every_public_name() -> None:
    space: dict[str, object] = {}
    exec("from germane import *", space)  # noqa: S102 - A star import stands at no other place in a test.
    assert set(germane.__all__) <= set(space)


def test_dir_names_everything_before_anything_is_loaded() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", "import germane; print(*dir(germane))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(germane.__all__) <= set(ran.stdout.split())


def test_an_unknown_name_is_an_attribute_error_like_that_of_any_module() -> None:
    unknown = "opne"
    with pytest.raises(AttributeError, match=r"module 'germane' has no attribute 'opne'"):
        getattr(germane, unknown)
    with pytest.raises(ImportError, match="cannot import name 'opne' from 'germane'"):
        exec(f"from germane import {unknown}")  # noqa: S102 - As above.


def test_the_embedders_are_loaded_when_requested_too() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", "import sys, germane.embedders; print(*dir(germane.embedders), *sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    shown = set(ran.stdout.split())
    assert set(embedders.__all__) <= shown
    assert shown & {"numpy", "germane.embedders.static", "germane.embedders.adapters"} == set()
    assert [getattr(embedders, name).__name__ for name in embedders.__all__] == embedders.__all__
    unknown = "StatikEmbedder"
    with pytest.raises(
        AttributeError, match=r"module 'germane\.embedders' has no attribute 'StatikEmbedder'"
    ):
        getattr(embedders, unknown)
