"""A project's own settings, in the file `germane.toml` at its root.

Level: exchange (imports plans, model and errors).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from germane.errors import InvalidInput
from germane.exchange.sources import read_text, unreadable
from germane.plans.scoped import SCOPED, Scoped
from germane.plans.scoping import scoped_from

__all__ = ["read_scoped"]


def read_scoped(path: Path | str) -> Scoped:
    """The scoped plan as the table `scoped` of a file says, and as it is by default where it says nothing.

    Raises UnreadableSource for what is no TOML, InvalidInput for what is no setting, and InvalidPlan.
    """
    file = Path(path)
    try:
        found = tomllib.loads(read_text(file))
    except tomllib.TOMLDecodeError as error:
        raise unreadable(file, f"it is no TOML ({error})") from error
    table = found.get("scoped", {})
    if not isinstance(table, Mapping):
        raise InvalidInput(f"`scoped` in {file} is no table. Write [scoped].")
    return scoped_from(table, source=str(file)) if table else SCOPED
