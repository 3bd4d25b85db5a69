"""`import germane` loads names when they are asked for, and looks like any other package all the same."""

from __future__ import annotations

import ast
import inspect
import pickle
import subprocess
import sys

import pytest

import germane
from germane import embedders, engine, errors, exports


def test_the_three_lists_of_public_names_agree() -> None:
    tree = ast.parse(inspect.getsource(germane))
    for_checkers = {
        (str(node.module), alias.name, alias.asname or alias.name)
        for block in tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    at_run_time = {
        (module, exports.RENAMED.get(name, name), name)
        for module, names in exports.HOMES.items()
        for name in names
    }

    assert at_run_time == for_checkers
    assert sorted(name for _, _, name in at_run_time) == sorted(set(germane.__all__) - {"__version__"})


def test_a_name_is_the_object_of_its_module() -> None:
    assert germane.open is engine.open_engine
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


def test_the_embedders_are_loaded_when_asked_for_too() -> None:
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
    assert sorted(embedders._HOMES) == sorted(embedders.__all__)
    unknown = "StatikEmbedder"
    with pytest.raises(
        AttributeError, match=r"module 'germane\.embedders' has no attribute 'StatikEmbedder'"
    ):
        getattr(embedders, unknown)
