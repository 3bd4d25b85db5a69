"""Puts a context into a file for agents, such as AGENTS.md, between marks, so that it can be put there again.

Level: exchange (imports errors).
"""

from __future__ import annotations

import re
from pathlib import Path

from germane.errors import InvalidInput
from germane.exchange.outputs import check_ordinary, write_through
from germane.exchange.sources import translated_os_errors

__all__ = ["BEGIN", "END", "marked", "with_block", "write_block"]

BEGIN = "<!-- germane:begin, written by `germane context`; all up to the end mark is replaced -->"
END = "<!-- germane:end -->"
# Only whole lines are marks: a memory's lines begin with a bullet or an indent, whatever they hold.
_BEGINS = re.compile(r"^<!-- germane:begin\b[^\n]*$", re.MULTILINE)
_ENDS = re.compile(r"^<!-- germane:end -->$", re.MULTILINE)


def marked(text: str) -> str:
    """A context between the marks."""
    return f"{BEGIN}\n{text.strip()}\n{END}\n"


def with_block(whole: str, text: str) -> str:
    """A file's text with a context in the place of the one before, or at its end where there was none.

    Raises InvalidInput where a mark is missing or there are several.
    """
    block = marked(text)
    begins, ends = list(_BEGINS.finditer(whole)), list(_ENDS.finditer(whole))
    if not begins and not ends:
        return f"{whole.rstrip()}\n\n{block}" if whole.strip() else block
    if len(begins) != 1 or len(ends) != 1 or ends[0].start() < begins[0].start():
        raise InvalidInput(
            f"The file has {len(begins)} marks that begin germane's part and {len(ends)} that end it; one of "
            "each, in that order, is needed to replace it. Remove what is left of them, and write it again."
        )
    return whole[: begins[0].start()] + block + whole[ends[0].end() :].removeprefix("\n")


def write_block(path: Path, text: str) -> bool:
    """Put a context into a file, which is made when it isn't there; whether that changed the file.

    What stands outside the marks is left to the byte, and the file keeps its mode and its links. Raises
    InvalidInput and UnreadableSource.
    """
    check_ordinary(path)
    with translated_os_errors(path):
        before = path.read_bytes().decode("utf-8", "surrogateescape") if path.exists() else ""
        ends = "\r\n" if "\r\n" in before else "\n"
        after = with_block(before.replace("\r\n", "\n"), text).replace("\n", ends)
        if after == before:
            return False
    write_through(path, after.encode("utf-8", "surrogateescape"))
    return True
