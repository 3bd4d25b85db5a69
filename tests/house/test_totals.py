"""Totals of the whole package only go down: its size, and how much of it one `assemble` uses.

Lower the number in `house.totals` when you lower the figure. `make house` prints both.
"""

from __future__ import annotations

import pytest

from house.totals import FIGURES, Figure, measured


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_no_total_is_above_its_limit(figure: Figure) -> None:
    now = measured()[figure.name]
    assert now <= figure.limit, (
        f"{figure.name}: {now:,}, above the limit of {figure.limit:,}. Remove as much as you add. "
        "(Lower the number in tests/house/totals.py when you lower the figure.)"
    )
