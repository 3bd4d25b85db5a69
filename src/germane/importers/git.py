"""The history of a git repository as drafts, and the times of the last changes of files.

The `git` executable is run for reading only. Repositories are untrusted, so no command that a repository's
configuration, attributes or hooks name may run.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import IO

from germane.errors import UnreadableSource
from germane.importers.sources import EXTERNAL, OnSkip, Skipped, unreadable
from germane.model.memory import Draft

COMMIT = "commit"
"""The kind and the tag of every commit."""

MOST_FILES = 100
"""The maximum number of files in a commit's metadata; `files_changed` counts all of them."""

_FORMAT = "--format=format:%x00%H%x00%at%x00%an%x00%s%x00%b%x00"
_LOG = (
    *("log", "-z", "--no-merges", "--no-renames", "--name-only"),
    *("--no-show-signature", "--no-ext-diff", "--no-textconv", _FORMAT),
)
_FIELDS = 5
_SHORT = 12
_CHUNK = 1 << 16

_SETTINGS = (
    "core.quotePath=false",
    "i18n.logOutputEncoding=UTF-8",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    f"core.hooksPath={os.devnull}",
    f"core.attributesFile={os.devnull}",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.askPass=",
    "credential.helper=",
    "diff.external=",
    "log.showSignature=false",
    "log.follow=false",
    "protocol.allow=never",
)
"""Settings that override the untrusted configuration of a repository."""

_OF_A_REPOSITORY = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_DIR",
        "GIT_EXTERNAL_DIFF",
        "GIT_GRAFT_FILE",
        "GIT_INDEX_FILE",
        "GIT_NAMESPACE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)


def read_git(path: Path, *, on_skip: OnSkip | None = None) -> Iterator[Draft]:
    """The commits of the repository at `path`, newest first, read lazily.

    For a folder inside a repository they are the commits that touched it. Merges are skipped, since their
    changes are in the merged commits. Each draft has the kind `commit`, the author's time, the message as
    content, its first line as subject, author, day and files as metadata, and the source `git:HASH`. A
    shallow clone is reported to `on_skip`: its history is incomplete, and the changes of its oldest commits
    are unknown.

    Raises UnreadableSource if git isn't installed, or if the folder is in no repository, in one that git
    refuses to read, or in one without commits.
    """
    prefix = git_output(path, "rev-parse", "--show-prefix")
    if git_output(path, "rev-parse", "--verify", "--quiet", "HEAD", refused="") == "":
        raise unreadable(path, "the repository has no commits yet")
    cut = frozenset[str]()
    if git_output(path, "rev-parse", "--is-shallow-repository") == "true":
        # Git shows all files of the oldest commits of a shallow clone as new.
        listed = Path(path, git_output(path, "rev-parse", "--git-path", "shallow"))
        cut = frozenset(listed.read_text("ascii").split()) if listed.is_file() else cut
        if on_skip is not None:
            reason = "the clone is shallow, so older commits are missing; `git fetch --unshallow` brings them"
            on_skip(Skipped(source=f"git:{path}", reason=reason))
    any_commit = False
    limits = ["--", "."] if prefix else []
    for fields, files in _records(_output(path, *_LOG, *limits)):
        any_commit = True
        yield _draft(fields, [] if fields[0] in cut else files)
    if not any_commit:
        raise unreadable(path, "no commit of the repository touched this folder")


def _draft(fields: list[str], files: list[str]) -> Draft:
    commit, seconds, author, subject, body = fields
    body, subject = body.strip(), subject.strip() or f"Commit {commit[:_SHORT]}"
    at = None
    with suppress(ValueError, OverflowError, OSError):  # Broken tools have written times that don't exist.
        at = datetime.fromtimestamp(int(seconds), UTC)
    metadata = {
        "commit": commit,
        "short": commit[:_SHORT],
        "author": author,
        **({"day": at.date().isoformat()} if at else {}),
        "files": files[:MOST_FILES],
        "files_changed": len(files),
    }
    return Draft(
        content=f"{subject}\n\n{body}" if body else subject,
        kind=COMMIT,
        subject=subject,
        tags=(COMMIT,),
        trust=EXTERNAL,
        source=f"git:{commit}",
        created_at=at,
        metadata=metadata,
    )


def _records(chunks: Iterator[bytes]) -> Iterator[tuple[list[str], list[str]]]:
    """Each commit's fields and files.

    A record is an empty text, the fields, then the files up to an empty text. NUL ends each of them; neither
    messages nor paths can contain it.
    """
    tokens = _tokens(chunks)
    for opening in tokens:
        if opening:
            continue
        fields = list(islice(tokens, _FIELDS))
        if len(fields) < _FIELDS:
            return
        files: list[str] = []
        for token in tokens:
            if not token:
                break
            files.append(token.removeprefix("\n") if not files else token)
        yield fields, files


def _tokens(chunks: Iterator[bytes]) -> Iterator[str]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\0")
        for token in whole:
            yield token.decode("utf-8", "replace")


def _output(path: Path, *arguments: str) -> Iterator[bytes]:
    """The output of git in chunks. The process ends with the iterator, even if not all was read."""
    with tempfile.TemporaryFile() as complaints:
        process = _start(path, *arguments, complaints=complaints)
        try:
            assert process.stdout is not None  # noqa: S101 - A pipe is always opened; this tells the checker.
            while chunk := process.stdout.read(_CHUNK):
                yield chunk
            if process.wait() != 0:
                complaints.seek(0)
                message = complaints.read().decode("utf-8", "replace").strip().removeprefix("fatal: ")
                outside = "not a git repository" in message
                why = "it is in no git repository" if outside else f"git refused: {message.rstrip('.')}"
                raise unreadable(path, why)
        finally:
            process.kill()
            process.communicate()


def git_output(path: Path, *arguments: str, refused: str | None = None) -> str:
    """The output of a git command; `refused`, if given, when git can't be run or fails.

    `arguments` must be a command that reads the object database, the references or the index. Commands that
    compare file contents (`status`, `diff`, `ls-files -m`) run the filters in the repository's configuration,
    and no option disables these. Raises UnreadableSource with git's message.
    """
    try:
        return b"".join(_output(path, *arguments)).decode("utf-8", "replace").strip()
    except UnreadableSource:
        if refused is None:
            raise
        return refused


def _start(path: Path, *arguments: str, complaints: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start git in a folder without running anything that the repository's configuration names.

    Every git process of the package starts here. Options of `-c` override the configuration of the repository
    and its included files.
    """
    options = [part for setting in _SETTINGS for part in ("-c", setting)]
    command = ["git", "--no-pager", "--literal-pathspecs", *options, "-C", str(path), *arguments]
    try:
        return subprocess.Popen(  # noqa: S603 - A fixed program; the path is an argument and no shell reads it.
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints, env=_environment()
        )
    except FileNotFoundError as error:
        raise unreadable(path, "the program `git` isn't installed or isn't on the PATH") from error
    except OSError as error:
        raise unreadable(path, f"the program `git` can't be run ({error})") from error


def _environment() -> dict[str, str]:
    """The environment in English, without prompts and without the variables that git hooks set.

    No transport is allowed: git would fetch missing objects of a partial clone by commands in the clone's
    configuration.
    """
    ours = {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY}
    return {
        **ours,
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
    }


# The times of the last changes of files by git, which never reads the files themselves: it would run the
# filters and the monitor in the repository's configuration.

_ENTRY = re.compile(
    r"^(?P<mode>\d{6}) (?P<blob>[0-9a-f]+) 0\t.*$\n(?s:.*?)^  mtime: (?P<seconds>\d+):(?P<nanoseconds>\d+)$"
    r"(?s:.*?)^  size: (?P<size>\d+)\b",
    re.MULTILINE,
)
_SYMLINK = "120000"
_SHA1_DIGITS = 40


def changed_paths(root: Path | str, paths: Iterable[str]) -> dict[str, datetime]:
    """The time of the last commit that touched each path, for `engine.assemble(changed=...)`.

    For a file that was edited since, it is the time of the edit. Paths are relative to `root`. Paths that git
    doesn't know are skipped, and all paths if `root` is in no repository or git isn't installed. No command
    in the repository's configuration is run. A file that a filter changes on checkout counts as edited if
    its time or size differs from the checkout's.
    """
    folder = Path(root)
    changed: dict[str, datetime] = {}
    for path in dict.fromkeys(paths):
        with suppress(UnreadableSource, OSError, ValueError):
            seconds = git_output(folder, "log", "-1", "--format=%ct", "--", path, refused="")
            times = [int(seconds)] if seconds.isdigit() else []
            if (folder / path).is_file() and _is_edited(folder, path):
                times.append(int((folder / path).stat().st_mtime))
            if times:
                changed[path] = datetime.fromtimestamp(max(times), UTC)
    return changed


def _is_edited(folder: Path, path: str) -> bool:
    """Whether a file differs from the last commit, or is new and not ignored."""
    entry = _ENTRY.match(git_output(folder, "ls-files", "--stage", "--debug", "--", path))
    if entry is None:
        return git_output(folder, "ls-files", "--others", "--exclude-standard", "--", path) != ""
    committed = git_output(folder, "ls-tree", "HEAD", "--", path, refused="").split()[2:3]
    return not committed or committed[0] not in _blobs(folder / path, entry)


def _blobs(file: Path, entry: re.Match[str]) -> Iterator[str]:
    """The possible blobs of a file: the index's if time and size are equal, or else by content.

    Git may store line feeds for Windows line ends, so both are tried.
    """
    status = file.lstat()
    written = int(entry["seconds"]) * 1_000_000_000 + int(entry["nanoseconds"])
    if (status.st_mtime_ns, status.st_size) == (written, int(entry["size"])):
        yield entry["blob"]
        return
    algorithm = "sha1" if len(entry["blob"]) == _SHA1_DIGITS else "sha256"
    content = str(file.readlink()).encode() if entry["mode"] == _SYMLINK else file.read_bytes()
    for data in (content, content.replace(b"\r\n", b"\n")):
        yield hashlib.new(algorithm, b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()
