"""The fence around text that came from memory, by which it is known again and never learned as new.

Level: model (imports nothing of the package).

What a context shows goes to a model, comes back in transcripts, and would be remembered a second
time by whoever learns from them. The fence travels with the text through every provider's layout.
"""

from __future__ import annotations

import re

__all__ = ["fenced", "is_fenced", "own_text"]

_OPEN, _CLOSE = "<recalled-from-memory>", "</recalled-from-memory>"
_MARK = re.compile(r"(?<!\\)<(?=/?recalled-from-memory>)")
_CLOSED = re.compile(rf"(?<!\\){_OPEN}.*?(?<!\\){_CLOSE}", re.DOTALL)
_FENCED = re.compile(rf"(?<!\\){_OPEN}.*?(?:(?<!\\){_CLOSE}|\Z)", re.DOTALL)


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
    return (_FENCED if whole else _CLOSED).sub("", text) if _OPEN in text else text
