"""Memory files of coding agents: instructions, their imports and rules, and folders of memories.

Claude Code reads `CLAUDE.md` and `.claude/rules`, Codex reads `AGENTS.md`; both have a folder of own notes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise, takewhile
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Final, TypeAlias

from germane.errors import UnreadableSource
from germane.importers.documents import prose_in, without_own_blocks
from germane.importers.sources import OnSkip, Skipped, read_text, split_front_matter, unreadable
from germane.importers.vaults import without_code
from germane.model.memory import Draft

HOST_FOLDERS: Final[Mapping[str, frozenset[str]]] = {
    ".claude": frozenset({"CLAUDE.md", "rules", "agent-memory", "agent-memory-local", "projects"}),
    ".codex": frozenset({"AGENTS.md", "AGENTS.override.md", "memories"}),
}
"""The folders of hosts, and what in each has memories; all else is settings, commands and programs."""

_IMPORTING: Final = frozenset({"CLAUDE.md", "CLAUDE.local.md"})
_INSTRUCTIONS: Final = _IMPORTING | {"AGENTS.md", "AGENTS.override.md"}


def is_instructions(path: Path) -> bool:
    """Whether a file has instructions for coding agents, for the work in a folder or on some paths."""
    return path.name in _INSTRUCTIONS or _is_rule(path)


def governed(place: str, root: Path) -> str:
    """The folder that instructions are for, from the project's root; empty for the whole project.

    `place` is the path of their file from `root`.
    """
    parts = PurePosixPath(place).parts
    hidden = next((number for number, part in enumerate(parts) if part in HOST_FOLDERS), None)
    if hidden is None:
        return "" if root.name in HOST_FOLDERS else "/".join(parts[:-1])
    return "/".join(parts[:hidden])


def for_folder(draft: Draft, folder: str) -> Draft:
    """The draft of instructions with their folder as its scope, or before its paths if it has any."""
    if not folder or draft.scope != "global":
        return draft
    if "paths" in draft.metadata:
        patterns = [f"/{folder}/{pattern.lstrip('/')}" for pattern in draft.metadata["paths"]]
        return replace(draft, metadata={**draft.metadata, "paths": patterns})
    return replace(draft, scope=f"path:{folder}")


def walked_names(folder: Path) -> frozenset[str] | None:
    """The names of what is read in a folder of a host; None for any other folder, of which all is read."""
    if folder.parent.name == "projects" and folder.parent.parent.name == ".claude":
        return frozenset({"memory"})  # Transcripts are beside it.
    return HOST_FOLDERS.get(folder.name)


def is_host_path(path: PurePath) -> bool:
    """Whether the hidden parts of a path, if any, are folders of hosts with what is read in them."""
    parts = path.parts
    return all(
        not part.startswith(".")
        or (part in HOST_FOLDERS and {*parts[number + 1 : number + 2]} <= HOST_FOLDERS[part])
        for number, part in enumerate(parts)
    )


def _is_rule(path: Path) -> bool:
    parts = path.parts
    return any(pair == (".claude", "rules") for pair in pairwise(parts))


# The files that CLAUDE.md and rules import with `@path`.

MOST_HOPS: Final = 4
"""The maximum number of imports from a CLAUDE.md to a file, as in Claude Code."""

_IMPORT = re.compile(r"(?<!\S)@(?P<path>(?:[^\s\\]|\\ )+)")
_LOOKS_LIKE_A_PATH = re.compile(r"[/.]")
_AFTER: Final = ".,;:!?)]}'\"*_"

Refusal: TypeAlias = Callable[[Path], str | None]
"""The reason why a file isn't read; None for one that is."""


def imported_files(
    files: Collection[Path], root: Path, refusal: Refusal, leave_out: OnSkip
) -> Iterator[Path]:
    """The files that a CLAUDE.md or a rule among these imports, directly or through others, nearest first.

    A path is relative to the file that names it, and code isn't searched. `leave_out` receives the imports of
    missing files, of files outside `root`, of files that `refusal` refuses, and of those more than MOST_HOPS
    away.
    """
    known = set(files)
    layer = [path for path in files if path.name in _IMPORTING or _is_rule(path)]
    searched = set(layer)
    for hop in range(MOST_HOPS + 1):
        following: dict[Path, None] = {}
        for path in layer:
            for name, target in _imports_of(path):
                if target in searched or target in following:
                    continue
                reason = _outside(target, root) or ("" if target in known else refusal(target))
                if not reason and hop == MOST_HOPS:
                    reason = f"it is more than {MOST_HOPS} imports away"
                if reason:
                    text = f"not taken over: it imports {name}, and {reason}"
                    leave_out(Skipped(source=str(path), reason=text))
                    continue
                following[target] = None
                if target not in known:
                    known.add(target)
                    yield target
        layer = [*following]
        searched |= following.keys()


def _outside(target: Path, root: Path) -> str:
    if not os.path.isfile(target):  # noqa: PTH113 - False also for a name that is too long.
        return "there is no such file"
    return "" if target.is_relative_to(root) else "it is outside the project; import it by its own path"


def _imports_of(path: Path) -> Iterator[tuple[str, Path]]:
    """Each import of a file as it is written, with the path that it names, which may not exist."""
    try:
        text = read_text(path)
        body = without_own_blocks(split_front_matter(text, path)[1]) if "@" in text else ""
    except UnreadableSource:
        return  # Reading the file reports it.
    for prose in prose_in(body) if "@" in body else ():
        for match in _IMPORT.finditer(without_code(prose.text)):
            written = match["path"].replace("\\ ", " ").partition("#")[0]
            bare = written.rstrip(_AFTER)
            name = written if written and os.path.isfile(_place(written, path)) else bare  # noqa: PTH113 - False also for what is no path.
            place = _place(name, path)
            # A word without a slash or a dot is the name of a person, unless there is such a file.
            if name and (_LOOKS_LIKE_A_PATH.search(name) or os.path.isfile(place)):  # noqa: PTH113 - As above.
                yield f"@{name}", Path(os.path.realpath(place))


def _place(name: str, path: Path) -> str:
    """The path that a file means with this name."""
    return str(Path.home() / name[2:]) if name.startswith("~/") else str(path.parent / name)


# The fields of files that hosts write in their own form.

_HANDBOOK: Final = "MEMORY.md"
_CODEX_MARKS: Final = (_HANDBOOK, "memory_summary.md", "raw_memories.md")
_SUMMARIES: Final = "rollout_summaries"
_DEEPEST: Final = 4
_HEADER = re.compile(r"(?P<name>[a-z_]+):[ \t]*(?P<value>.*)")
_VERSION_LINE = re.compile(r"v\d+[ \t]*\n")


def working_file(path: Path) -> str | None:
    """What a Markdown file of Codex is that isn't a memory, in the plural; None for all other files."""
    folder = _codex_folder(path)
    name = path.relative_to(folder).as_posix() if folder else ""
    if folder and name == "raw_memories.md" and (folder / _HANDBOOK).is_file():
        return "drafts of Codex, which its MEMORY.md contains"
    if name == "phase2_workspace_diff.md" or name.startswith("extensions/"):
        return "working files of Codex"
    return None


def host_fields(path: Path, text: str) -> tuple[Mapping[str, Any], str, int]:
    """The fields of a Markdown file, its body, and the number of lines before the body.

    They are those of its front matter, or of the form that a host gives its memories. Raises
    UnreadableSource.
    """
    fields, body, above = split_front_matter(text, path)
    if _is_rule(path):
        return _with_patterns(fields, path), body, above
    named = {} if "title" in fields or "name" not in fields else {"title": fields["name"]}
    folder = _codex_folder(path)
    if folder is None:
        is_memory = path.parent.name == "memory" or path.parent.parent.name.startswith("agent-memory")
        return ({**fields, **named} if is_memory else fields), body, above
    if path.name == "SKILL.md":
        return {**fields, **named, "kind": "procedure"}, body, above
    if path.parent == folder / _SUMMARIES and not fields:
        return _summary(body)
    version = _VERSION_LINE.match(body) if path.name == "memory_summary.md" else None
    return fields, body[version.end() :] if version else body, above + (1 if version else 0)


def _codex_folder(path: Path) -> Path | None:
    """The folder of Codex's memories that a file is in; None for all other files."""
    for folder in path.parents[:_DEEPEST]:
        marks = [folder / mark for mark in _CODEX_MARKS]
        if (folder / _SUMMARIES).is_dir() and any(mark.is_file() for mark in marks):
            return folder
    return None


def _summary(text: str) -> tuple[Mapping[str, Any], str, int]:
    """What Codex noted of one session: `name: value` lines, a blank line, and the text."""
    lines = text.split("\n")
    head = list(takewhile(bool, (_HEADER.fullmatch(line) for line in lines)))
    given = {match["name"]: match["value"].strip() for match in head if match}
    if "thread_id" not in given:
        return {}, text, 0
    about = {name: value for name, value in given.items() if name != "updated_at" and value}
    fields = {**about, "kind": "episode", "date": given.get("updated_at")}
    return fields, "\n".join(lines[len(head) :]), len(head)


# The patterns of rules, which name braces, and names of files at the root of the project alone.

_BRACES = re.compile(r"\{(?P<several>[^{}]*)\}")
_COMMA = re.compile(r",(?![^{}]*\})")
_MOST_PATTERNS: Final = 1_000


def _with_patterns(fields: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    """The fields of a rule with `paths` as patterns of a .gitignore. Raises UnreadableSource."""
    stated = fields.get("paths")
    texts = _COMMA.split(stated) if isinstance(stated, str) else stated
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return fields
    left, patterns = [text.strip().removeprefix("./") for text in reversed(texts)], []
    while left:
        text = left.pop()
        if braces := _BRACES.search(text):
            several = braces["several"].split(",")
            left += [text[: braces.start()] + each + text[braces.end() :] for each in reversed(several)]
        elif text:
            patterns.append(text if text.startswith("/") else f"/{text}")
        if len(left) + len(patterns) > _MOST_PATTERNS:
            raise unreadable(path, f"its 'paths' are more than {_MOST_PATTERNS:,} patterns. Write fewer")
    return {**fields, "paths": patterns}
