"""What a project depends on, by its manifests: pyproject.toml, package.json, Cargo.toml and go.mod.

Level: exchange (imports errors and model).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from germane.errors import UnreadableSource
from germane.exchange.dependencies import Manifest, of_cargo, of_go, of_npm, of_pyproject
from germane.exchange.fields import FieldError
from germane.exchange.sources import EXTERNAL, read_text, unreadable
from germane.model.draft import Draft

__all__ = ["MANIFESTS", "manifest_drafts", "name_in_manifest"]

_READERS: Mapping[str, Callable[[Any], Manifest]] = {
    "pyproject.toml": of_pyproject,
    "package.json": of_npm,
    "Cargo.toml": of_cargo,
    "go.mod": of_go,
}

MANIFESTS = frozenset(_READERS)
"""The names of the files that are read as manifests."""


def manifest_drafts(path: Path, *, name: str, folder: str) -> list[Draft]:
    """The draft of one manifest: kind `dependency`, what is needed by group, in the manifest's own words.

    `name` is its source, `folder` its folder from the project's root, empty at the root. A manifest that
    names neither a project nor a dependency, such as one that only sets up tools, gives none. Raises
    UnreadableSource for one that can't be parsed.
    """
    found = _parsed(path)
    if not found.groups and not found.name:
        return []
    place = f"{folder}/{path.name}" if folder else path.name
    title = " ".join(filter(None, ["Dependencies of", found.name or folder or "the project", found.version]))
    lines = [f"{title} ({place})", *_lines(found)]
    return [
        Draft(
            content="\n".join(lines),
            kind="dependency",
            subject=found.name or place,
            scope=f"path:{folder}" if folder else "global",
            trust=EXTERNAL,
            source=name,
            metadata={
                "manifest": path.name,
                "ecosystem": found.ecosystem,
                "dependencies": {group: list(needs) for group, needs in found.groups},
            },
        )
    ]


def name_in_manifest(folder: Path) -> str | None:
    """The name that the first manifest of a folder gives its project; None where none does."""
    for name in _READERS:
        if (folder / name).is_file():
            try:
                found = _parsed(folder / name).name
            except UnreadableSource:
                continue
            if found:
                return found
    return None


def _parsed(path: Path) -> Manifest:
    text = read_text(path)
    try:
        if path.suffix == ".toml":
            return _READERS[path.name](tomllib.loads(text))
        return _READERS[path.name](json.loads(text) if path.suffix == ".json" else text)
    except FieldError as error:
        raise unreadable(path, str(error)) from error
    except (ValueError, RecursionError) as error:  # What is no TOML and what is no JSON.
        language = "TOML" if path.suffix == ".toml" else "JSON"
        raise unreadable(path, f"it is no {language} ({error})") from error


def _lines(found: Manifest) -> Iterator[str]:
    if found.requires:
        yield f"Requires {found.requires}"
    for group, needs in found.groups:
        yield f"{group}: {', '.join(needs) or 'nothing'}"
    if found.note:
        yield found.note
