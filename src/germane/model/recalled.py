"""The fence around text that came from memory, by which it is known again and never learned as new.

Level: model (imports nothing of the package).

What a context shows goes to a model, comes back in transcripts, and would be remembered a second
time by whoever learns from them. The fence travels with the text through every provider's layout.
"""

from __future__ import annotations

import re

__all__ = ["fenced", "is_fenced", "left_open", "own_text"]

_OPEN, _CLOSE = "<recalled-from-memory>", "</recalled-from-memory>"
_MARK = re.compile(r"(?<!\\)<(?=(?P<closes>/?)recalled-from-memory>)")


def fenced(text: str) -> str:
    """The text between two marks; marks within it are made harmless, so that it can't end the fence."""
    harmless = _MARK.sub(r"\\<", text)
    return f"{_OPEN}\n{harmless}\n{_CLOSE}"


def is_fenced(text: str) -> bool:
    """Whether all of a text, but for white space around it, came from memory."""
    return _OPEN in text and not own_text(text).strip()


def own_text(text: str, *, whole: bool = True) -> str:
    """The text without what stands in fences: what may be learned from.

    Where the end of a fence is missing, because somebody cut the text, all the rest counts as recalled,
    unless the text isn't the `whole` of what was said at once but, for instance, a file.
    """
    if _OPEN not in text:
        return text
    outside, opened = _parted(text)
    return "".join(outside) + ("" if whole or opened is None else text[opened:])


def left_open(text: str) -> int:
    """How many characters follow the start of a fence that nothing closes; 0 where each is closed."""
    opened = _parted(text)[1] if _OPEN in text else None
    return 0 if opened is None else len(text) - opened - len(_OPEN)


def _parted(text: str) -> tuple[list[str], int | None]:
    """What stands outside of fences, and where the fence begins that nothing closes, if there is one."""
    outside: list[str] = []
    end, opened = 0, None
    for mark in _MARK.finditer(text):
        if mark["closes"] and opened is not None:
            end, opened = mark.start() + len(_CLOSE), None
        elif not mark["closes"] and opened is None:
            opened = mark.start()
            outside.append(text[end:opened])
    if opened is None:
        outside.append(text[end:])
    return outside, opened
