"""A project's folder as drafts: decision records, changelogs, manifests, notes, and what its modules say.

Level: exchange (imports errors and model).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from germane.errors import InvalidInput, UnreadableSource
from germane.exchange.governing import named_paths, pattern_of
from germane.exchange.manifests import MANIFESTS, manifest_drafts, name_in_manifest
from germane.exchange.markdown import MARKDOWN_SUFFIXES, drafts_of_markdown
from germane.exchange.modules import MODULE_SUFFIXES, module_drafts
from germane.exchange.roots import root_over
from germane.exchange.sources import OnSkip, Skipped, unreadable
from germane.exchange.walking import walk
from germane.model.draft import Draft

__all__ = [
    "FileDrafts",
    "Project",
    "files_of",
    "is_read",
    "nothing_in",
    "project_of",
    "read_file",
    "read_project",
]

PATHS = "paths"
"""The metadata that holds the patterns of the paths a memory applies to, besides its scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A folder whose files belong together. `prefix` precedes their paths in the sources of memories."""

    root: Path
    name: str
    prefix: str

    def place(self, path: Path) -> str:
        """A path from the project's root. Raises InvalidInput for one outside."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            raise InvalidInput(
                f"{str(path)!r} lies outside the project at {str(self.root)!r}. Name a path inside it, or "
                "import the other project by itself."
            ) from None

    def source(self, path: Path) -> str:
        """The name that a file's memories carry as their source."""
        return self.prefix + self.place(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDrafts:
    """What one file holds. `unread` says why it couldn't be read, so that nothing of it counts as gone."""

    path: Path
    drafts: tuple[Draft, ...] = ()
    unread: str | None = None


def project_of(path: Path, *, name: str | None = None, root: Path | str | None = None) -> Project:
    """The project that a file or folder belongs to: that of `root`, or else of `project_root`.

    It is called `name`, or as a manifest at its root says, or as its folder. Sources are paths from a
    repository's root; elsewhere the folder's own name comes first. Raises InvalidInput for a path
    outside `root`.
    """
    folder = root_over(path, root)
    called = name or name_in_manifest(folder) or folder.name or "project"
    prefix = "" if (folder / ".git").exists() or not folder.name else f"{folder.name}/"
    return Project(root=folder, name=called, prefix=prefix)


def read_project(path: Path, *, on_skip: OnSkip | None = None, long: int | None = None) -> Iterator[Draft]:
    """The drafts of a project's folder, or of one file of it, in the order of their paths.

    Markdown is read as `read_markdown` reads it; a README below the root is of kind `module`, and so are the
    docstrings of Python and the leading doc comments of JavaScript, TypeScript, Go and Rust, each in
    the scope of its path. A manifest (pyproject.toml, package.json, Cargo.toml, go.mod) is one draft of
    kind `dependency`. A decision record has in its metadata the `paths` that it governs: those of its
    front matter, or else those that it names between backticks and that are there.

    What git ignores is left out, and so are hidden folders, others' work and files of more than a
    megabyte. What can't be read goes to `on_skip`, or raises UnreadableSource where there is none.
    Raises MissingExtra without `pathspec`.
    """
    project = project_of(path)

    def left_out(skipped: Skipped) -> None:
        if on_skip is None:
            raise UnreadableSource(skipped.reason)
        on_skip(skipped)

    found = False
    start = path.resolve()
    files = [start] if not path.is_dir() else files_of(project, start, passed_over=_ignore, refused=left_out)
    for file in files:
        one = read_file(project, file, long=long)
        found = True
        if one.unread is not None and (file is start or file.suffix.lower() not in MODULE_SUFFIXES):
            left_out(Skipped(source=str(file), reason=one.unread))
        yield from one.drafts
    if not found:
        raise nothing_in(path)


def nothing_in(path: Path) -> UnreadableSource:
    """The error for a folder that holds nothing to read."""
    known = ", ".join(sorted(MARKDOWN_SUFFIXES))
    return unreadable(
        path, f"the folder holds no Markdown file ({known}), no manifest and no documented module"
    )


def files_of(project: Project, start: Path, *, passed_over: OnSkip, refused: OnSkip) -> Iterator[Path]:
    """The files at or below `start` that a project's import reads, in the order of their paths."""
    return walk(start, root=project.root, wanted=is_read, passed_over=passed_over, refused=refused)


def read_file(project: Project, path: Path, *, long: int | None = None) -> FileDrafts:
    """The drafts of one file of a project, all or none."""
    read = _reader(path)
    try:
        drafts = read(project, path, long)
        return FileDrafts(path=path, drafts=tuple(_placed(project, draft) for draft in drafts))
    except (UnreadableSource, OSError) as error:
        return FileDrafts(path=path, unread=str(error))
    except RecursionError:
        return FileDrafts(path=path, unread=str(unreadable(path, "it is nested too deeply to be read")))


def _ignore(_: Skipped) -> None:
    """What is left out by rule is no news to a reader of drafts."""


def is_read(path: Path) -> bool:
    """Whether a project's import reads files of that name."""
    return path.name in MANIFESTS or path.suffix.lower() in MARKDOWN_SUFFIXES | MODULE_SUFFIXES


def _reader(path: Path) -> Callable[[Project, Path, int | None], list[Draft]]:
    if path.name in MANIFESTS:
        return _of_manifest
    if path.suffix.lower() in MODULE_SUFFIXES:
        return _of_module
    return _of_markdown


def _of_manifest(project: Project, path: Path, _: int | None) -> list[Draft]:
    return manifest_drafts(path, name=project.source(path), folder=_folder(project, path))


def _of_module(project: Project, path: Path, _: int | None) -> list[Draft]:
    return module_drafts(path, name=project.source(path), place=project.place(path))


def _of_markdown(project: Project, path: Path, long: int | None) -> list[Draft]:
    folder = _folder(project, path)
    drafts = drafts_of_markdown(path, name=project.source(path), long=long)
    if path.stem.lower() != "readme" or not folder:
        return drafts
    scope = f"path:{folder}"
    return [
        replace(draft, kind="module", scope=scope)
        if (draft.kind, draft.scope) == ("note", "global")
        else draft
        for draft in drafts
    ]


def _placed(project: Project, draft: Draft) -> Draft:
    """The draft with the paths that it applies to in its metadata, as far as it says or shows them."""
    scope = str(draft.scope)
    if PATHS in draft.metadata:
        return draft
    if scope.startswith("path:"):
        place = scope.removeprefix("path:")
        paths: tuple[str, ...] = (pattern_of(place, folder=(project.root / place).is_dir()),)
    else:
        paths = named_paths(draft.content, project.root) if draft.kind == "adr" else ()
    return replace(draft, metadata={**draft.metadata, PATHS: list(paths)}) if paths else draft


def _folder(project: Project, path: Path) -> str:
    folder = project.place(path.parent)
    return "" if folder == "." else folder
