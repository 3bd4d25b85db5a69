"""What a project depends on, by its manifests, and where the project begins."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from germane.errors import InvalidInput, UnreadableSource
from germane.importers.sources import EXTERNAL, FieldError, read_text, unreadable
from germane.model.memory import Draft

# The dependencies that manifests name, by group, from their parsed text.

_GO_LINE = re.compile(r"^(?P<module>\S+)\s+(?P<version>v\S+)\s*(?://\s*(?P<indirect>indirect\b)?.*)?$")
_GO_BLOCK = re.compile(r"^(?P<verb>\w+)\s*\(\s*(?://.*)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The content of a manifest: the project, what it runs on, and its dependencies by group, in order."""

    ecosystem: str
    name: str | None
    version: str | None = None
    requires: str | None = None
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    note: str | None = None


def of_pyproject(data: Mapping[str, Any]) -> Manifest:
    """A pyproject.toml: PEP 621 with its extras, the groups of PEP 735, and Poetry's tables."""
    project, poetry = _table(data, "project"), _table(_table(data, "tool"), "poetry")
    optional, needs = _table(project, "optional-dependencies"), _texts(project, "dependencies")
    groups = [("Runtime", needs)] if needs else []
    groups += [(f"Extra {extra}", _texts(optional, extra)) for extra in optional]
    groups += [*_of_groups(_table(data, "dependency-groups")), *_of_poetry(poetry)]
    build = _texts(_table(data, "build-system"), "requires")
    if (project or poetry) and build:
        groups.append(("Build", build))
    requires = _text(project, "requires-python") or _text(_table(poetry, "dependencies"), "python")
    dynamic = _texts(project, "dynamic")
    return Manifest(
        ecosystem="python",
        name=_text(project, "name") or _text(poetry, "name"),
        version=_text(project, "version") or _text(poetry, "version"),
        requires=f"Python {requires}" if requires else None,
        groups=tuple(groups),
        note="The dependencies are computed when it is built." if "dependencies" in dynamic else None,
    )


def of_npm(data: Mapping[str, Any]) -> Manifest:
    """A package.json."""
    if not isinstance(data, dict):
        raise FieldError("one JSON object was expected")
    labels = {
        "dependencies": "Runtime",
        "peerDependencies": "Peer",
        "optionalDependencies": "Optional",
        "devDependencies": "Development",
    }
    engines = ", ".join(f"{name} {wanted}" for name, wanted in _table(data, "engines").items())
    return Manifest(
        ecosystem="npm",
        name=_text(data, "name"),
        version=_text(data, "version"),
        requires=engines or None,
        groups=tuple(_tables(data, labels)),
    )


def of_cargo(data: Mapping[str, Any]) -> Manifest:
    """A Cargo.toml: of a package, of a workspace, or both."""
    package = _table(data, "package")
    rust = _text(package, "rust-version")
    labels = {"dependencies": "Runtime", "build-dependencies": "Build", "dev-dependencies": "Development"}
    places = {"": data, "Workspace: ": _table(data, "workspace")}
    places |= {f"{target}: ": table for target, table in _table(data, "target").items()}
    return Manifest(
        ecosystem="cargo",
        name=_text(package, "name"),
        version=_text(package, "version"),
        requires=f"Rust {rust}" if rust else None,
        groups=tuple(
            (f"{prefix}{label}", needs)
            for prefix, place in places.items()
            for label, needs in _tables(place if isinstance(place, dict) else {}, labels)
        ),
    )


def of_go(text: str) -> Manifest:
    """A go.mod: its module, its version of Go, and what it requires directly and through others."""
    name = version = None
    needs: dict[str, list[str]] = {"Runtime": [], "Indirect": [], "Replaced": []}
    for verb, rest in _go_statements(text):
        if verb == "module":
            name = rest.partition("//")[0].strip().strip('"`')
        elif verb == "go":
            version = rest.partition("//")[0].strip()
        elif verb == "require" and (match := _GO_LINE.match(rest)):
            group = "Indirect" if match["indirect"] else "Runtime"
            needs[group].append(f"{match['module']} {match['version']}")
        elif verb == "replace":
            needs["Replaced"].append(rest.partition("//")[0].strip())
    if name is None:
        raise FieldError("it has no line `module NAME`, which every go.mod has")
    return Manifest(
        ecosystem="go",
        name=name,
        requires=f"Go {version}" if version else None,
        groups=tuple((group, tuple(needed)) for group, needed in needs.items() if needed),
    )


def _of_groups(groups: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for group, needs in groups.items():
        if not isinstance(needs, list):
            raise FieldError(f"the dependency group {group!r} must be a list")
        named = [need if isinstance(need, str) else _included(group, need) for need in needs]
        yield f"Group {group}", tuple(named)


def _included(group: str, need: object) -> str:
    if isinstance(need, dict) and isinstance(need.get("include-group"), str):
        return f"all of group {need['include-group']}"
    raise FieldError(f"the dependency group {group!r} holds what is neither a text nor an include-group")


def _of_poetry(poetry: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield from _tables(poetry, {"dependencies": "Runtime", "dev-dependencies": "Group dev"}, without="python")
    groups = _table(poetry, "group")
    for name in groups:
        yield from _tables(_table(groups, name), {"dependencies": f"Group {name}"}, without="python")


def _tables(
    fields: Mapping[str, Any], labels: Mapping[str, str], *, without: str | None = None
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The dependencies of each table that isn't empty, under its label."""
    for name, label in labels.items():
        table = _table(fields, name)
        needs = tuple(_need(each, wanted) for each, wanted in table.items() if each.lower() != without)
        if needs:
            yield label, needs


def _need(name: str, wanted: object) -> str:
    """One dependency of a table: its version, or where it comes from."""
    if isinstance(wanted, str):
        return f"{name} {wanted}"
    if isinstance(wanted, list):  # Poetry: several, each under a condition.
        return " or ".join(_need(name, one) for one in wanted)
    if not isinstance(wanted, dict):
        raise FieldError(f"the dependency {name!r} must be a text or a table, and is {wanted!r}")
    words = [str(wanted["version"])] if "version" in wanted else []
    words += [f"from {wanted[key]}" for key in ("git", "path", "url") if key in wanted]
    if wanted.get("workspace"):
        words.append("of the workspace")
    if isinstance(features := wanted.get("features", wanted.get("extras")), list) and features:
        words.append(f"with {'+'.join(map(str, features))}")
    if wanted.get("optional"):
        words.append("(optional)")
    return " ".join([name, *words])


def _go_statements(text: str) -> Iterator[tuple[str, str]]:
    """Each statement's verb and what follows it; the lines of a block each with the block's verb."""
    block = None
    for line in map(str.strip, text.split("\n")):
        if not line or line.startswith("//"):
            continue
        if block is not None and line.startswith(")"):
            block = None
        elif block is not None:
            yield block, line
        elif match := _GO_BLOCK.match(line):
            block = match["verb"]
        else:
            verb, _, rest = line.partition(" ")
            yield verb, rest.strip()


def _table(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = fields.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise FieldError(f"{name!r} must be a table, and is {type(value).__name__}")
    return value


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value.strip() or None if isinstance(value, str) else None


def _texts(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value: Iterable[object] = fields.get(name) or ()
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise FieldError(f"{name!r} must be a list of texts")
    return tuple(str(each) for each in value)


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
    manifest = _parsed(path)
    if not manifest.groups and not manifest.name:
        return []
    place = f"{folder}/{path.name}" if folder else path.name
    title = " ".join(
        filter(None, ["Dependencies of", manifest.name or folder or "the project", manifest.version])
    )
    lines = [f"{title} ({place})", *_lines(manifest)]
    return [
        Draft(
            content="\n".join(lines),
            kind="dependency",
            subject=manifest.name or place,
            scope=f"path:{folder}" if folder else "global",
            trust=EXTERNAL,
            source=name,
            metadata={
                "manifest": path.name,
                "ecosystem": manifest.ecosystem,
                "dependencies": {group: list(needs) for group, needs in manifest.groups},
            },
        )
    ]


def name_in_manifest(folder: Path) -> str | None:
    """The name that the first manifest of a folder gives its project; None where none does."""
    for name in _READERS:
        with suppress(UnreadableSource):
            if (folder / name).is_file() and (project := _parsed(folder / name).name):
                return project
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


def _lines(manifest: Manifest) -> Iterator[str]:
    if manifest.requires:
        yield f"Requires {manifest.requires}"
    for group, needs in manifest.groups:
        yield f"{group}: {', '.join(needs) or 'nothing'}"
    if manifest.note:
        yield manifest.note


# Where a project begins: the folder that its paths are relative to.
#
# An import, a watch and a context of one project have to agree on it, from whichever of its folders they
# are run, or the scopes of its paths would not match.

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
