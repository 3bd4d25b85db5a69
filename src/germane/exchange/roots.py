"""Where a project begins: the folder from which its paths are told.

Level: exchange (imports errors). An import, a watch and a context of one project have to agree on it, from
whichever of its folders they are run, or the scopes of its paths would not be those that are asked for.
"""

from __future__ import annotations

from pathlib import Path

from germane.errors import InvalidInput
from germane.exchange.manifests import MANIFESTS

__all__ = ["SETTINGS", "project_root", "root_over"]

SETTINGS = "germane.toml"
"""The name of the file with a project's settings, at its root."""

_MARKS = (SETTINGS, ".git")


def project_root(start: Path) -> Path:
    """The nearest folder at or above `start` with a germane.toml or a repository, else with a manifest.

    Where there is none it is `start` itself, or the folder of that file. A manifest in the home folder, or
    above it, marks no project.
    """
    here = start.resolve()
    here = here if here.is_dir() else here.parent
    above = (here, *here.parents)
    for folder in above:
        if any((folder / mark).exists() for mark in _MARKS):
            return folder
    home = Path.home()
    for folder in above:
        if folder != here and (folder == home or folder in home.parents):
            break
        if any((folder / manifest).is_file() for manifest in MANIFESTS):
            return folder
    return here


def root_over(start: Path, root: Path | str | None) -> Path:
    """The root that was named for `start`, or else `project_root`.

    Raises InvalidInput for a root that is no folder, or that `start` doesn't lie in.
    """
    if root is None:
        return project_root(start)
    folder = Path(root).expanduser().resolve()
    if not folder.is_dir():
        raise InvalidInput(f"The root {str(root)!r} is no folder. Name the one that the project begins in.")
    if not start.resolve().is_relative_to(folder):
        raise InvalidInput(
            f"{str(start)!r} lies outside the project at {str(folder)!r}. Name a path inside it, or the root "
            "of the project that it belongs to."
        )
    return folder
