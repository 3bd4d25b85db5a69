"""The report under bench/ on names and texts that are merged, and what may not be merged."""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

import pytest

from house.source import ROOT


@pytest.fixture
def merging(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The report, whose folder has the modules that it imports."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("merging")


def test_the_pairs_are_labelled_in_halves(merging: Any) -> None:
    pairs = list(merging.pairs())

    assert len(pairs) >= 120
    for kind in ("names", "texts"):
        some = [each for each in pairs if each["kind"] == kind]
        assert len({(each["one"], each["other"], str(each.get("memories"))) for each in some}) == len(some)
        assert 0.4 <= sum(each["same"] for each in some) / len(some) <= 0.6


def test_no_pair_is_merged_that_is_not_the_same(merging: Any) -> None:
    for kind, least in (("names", 0.9), ("texts", 0.6)):
        found = merging.judged(kind, None)

        assert found.precision == 1.0, found.wrong
        assert found.recall >= least


def test_the_report_prints_shares_and_the_pairs_that_it_judges_otherwise(
    merging: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["merging", "--lexical", "--json"])
    merging.main()
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert [row["kind"] for row in rows] == ["names", "texts"]
    assert rows[1]["merged"] == rows[1]["rightly"]

    monkeypatch.setattr(sys, "argv", ["merging", "--lexical", "--wrong"])
    merging.main()
    assert "apart  The user lives in Graz, Austria." in capsys.readouterr().out
