"""Where drafts come from: reading text files, naming places, saying what can't be read.

Level: exchange (imports errors).
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from germane.errors import UnreadableSource

__all__ = [
    "EXTERNAL",
    "OnSkip",
    "Skipped",
    "name_of",
    "numbered_lines",
    "read_text",
    "translated_os_errors",
    "unreadable",
]

EXTERNAL = "external"
"""The trust of what a file says: it may claim any speaker and any rank, so it is given none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A part of a source that was left out, and why."""

    source: str
    reason: str


OnSkip: TypeAlias = Callable[[Skipped], None]
"""Told of each part that a reader leaves out."""


def read_text(path: Path) -> str:
    """The whole file as text with line feeds as line ends and without a byte order mark.

    Raises UnreadableSource for what is missing, unreadable, binary, not UTF-8, or blank.
    """
    with translated_os_errors(path):
        data = path.read_bytes()
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise unreadable(path, "it is UTF-16, and UTF-8 was expected. Save it as UTF-8")
    if b"\0" in data:
        raise unreadable(path, "it is binary, and text in UTF-8 was expected")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise unreadable(
            path, f"byte {data[error.start]:#04x} is not UTF-8. Save the file as UTF-8", line=line
        ) from error
    if not text.strip():
        raise unreadable(path, "it is empty")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file that aren't blank, each with its number from 1, read as they are asked for.

    Only a line feed ends a line here (after a carriage return or not), since a JSON text may hold every
    other separator of Unicode. Raises UnreadableSource as `read_text` does.
    """
    with translated_os_errors(path), path.open("rb") as file:
        for number, data in enumerate(file, 1):
            if b"\0" in data:
                raise unreadable(path, "it holds a NUL byte, and text in UTF-8 was expected", line=number)
            try:
                line = data.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise unreadable(path, "it is not UTF-8. Save the file as UTF-8", line=number) from error
            if line.strip():
                yield number, line.strip()


def name_of(path: Path) -> str:
    """A name for a file that stays the same however the user spelled its path.

    Inside a repository it is the path from the repository's root, so that importing the whole, a
    folder or one file names each file alike; elsewhere it is the file with the folder it lies in.
    """
    absolute = path.resolve()
    for folder in absolute.parents:
        if (folder / ".git").exists():
            return absolute.relative_to(folder).as_posix()
    return f"{absolute.parent.name}/{absolute.name}" if absolute.parent.name else absolute.name


def unreadable(path: Path | str, reason: str, *, line: int | None = None) -> UnreadableSource:
    """The error for a file, or one line of it, that isn't what it claims to be."""
    place = f"{path}, line {line}" if line is not None else str(path)
    return UnreadableSource(f"Can't import {place}: {reason}.")


@contextmanager
def translated_os_errors(path: Path) -> Iterator[None]:
    """What the operating system refuses inside the block becomes an UnreadableSource."""
    try:
        yield
    except FileNotFoundError as error:
        raise unreadable(path, "there is no such file or folder") from error
    except IsADirectoryError as error:
        raise unreadable(path, "it is a folder, and a file was expected") from error
    except OSError as error:
        raise unreadable(path, f"the system refused to read it ({error.strerror or error})") from error
