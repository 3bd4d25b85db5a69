"""Print the lower end of each dependency's range as a constraint for pip.

The ranges are those of the package and of all its extras. A lower end has to be a release, so that it can be
installed: `make test-oldest` does so, and runs the tests there.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

_PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
_NEED = re.compile(r"(?P<name>[\w.-]+)(?:\[[^]]*\])?(?P<range>[^;]*)(?P<marker>;.*)?")


def oldest(pyproject: Path = _PYPROJECT) -> Iterator[str]:
    """The constraints in the order of the file, without what is pinned and the package itself."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    for need in dict.fromkeys((*project["dependencies"], *(each for extra in extras for each in extra))):
        parts = _NEED.fullmatch(need)
        lowest = parts and re.search(r">=\s*([\w.]+)", parts["range"])
        if parts and lowest and parts["name"] != project["name"]:
            yield f"{parts['name']}=={lowest[1]}{parts['marker'] or ''}"


if __name__ == "__main__":
    print("\n".join(oldest()))
