"""Small texts shared by all packages: columns of a fixed width, counts and dates in words, the fence around
memory text, and the default names of calls.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, Protocol, TypeVar, cast
from weakref import WeakValueDictionary

from germane.errors import InvalidInput

COLUMNS: Final = 110
"""Columns of a table for people, where its reader's terminal isn't known."""

_FEWEST_COLUMNS = 40
_WIDE = ("W", "F")
_FILLED, _FREE = "█", "░"


_Cached = TypeVar("_Cached", bound=Callable[..., Any])
_TEXT_CACHES: list[Callable[[], None]] = []
"""What empties each cache of texts in this process."""
_WITH_PATTERNS: Final = ("re", "regex")
"""The modules that cache compiled patterns, which may contain names from memories."""
_HOLDERS: Final = WeakValueDictionary[int, "_Clearable"]()


class _Clearable(Protocol):
    """Caches texts, and can drop them."""

    def clear(self) -> None: ...


def text_cache(maxsize: int | None) -> Callable[[_Cached], _Cached]:
    """A decorator like `functools.lru_cache` for functions of texts, whose results a purge drops."""

    def decorated(function: _Cached) -> _Cached:
        cached: Any = lru_cache(maxsize=maxsize)(function)
        _TEXT_CACHES.append(cached.cache_clear)
        return cast("_Cached", cached)

    return decorated


def clear_at_purge(holder: _Clearable) -> None:
    """Let `clear_text_caches` clear this object too, for as long as it is in use."""
    _HOLDERS[id(holder)] = holder


def clear_text_caches() -> None:
    """Drop every text of a memory or a message that this process caches outside a store, as after a purge."""
    for clear in _TEXT_CACHES:
        clear()
    for module in filter(None, map(sys.modules.get, _WITH_PATTERNS)):
        module.purge()
    for reference in _HOLDERS.valuerefs():
        if (holder := reference()) is not None:
            holder.clear()


def width(text: str) -> int:
    """How many columns of a terminal a text takes: two for wide characters, none for combining ones.

    Widths are those of Unicode's annex 11; what a terminal joins into one emoji counts in parts.
    """
    if text.isascii():
        return len(text)
    return sum(_width_of(character) for character in text)


def counted(count: int, noun: str) -> str:
    """A count with its noun, such as "1 agent" and "2,000 memories"."""
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else several}"


def line_of(text: str) -> str:
    """A harmless text on one line, each run of white space as one space."""
    return " ".join(harmless(text).split())


def harmless(text: str) -> str:
    """A text without what could move a terminal's cursor, change its state or reverse the direction.

    Line feeds and tabs stay.
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_harmless, text))


def cut(text: str, columns: int) -> str:
    """The text if it fits, else as much of it as fits together with an ellipsis."""
    if width(text) <= columns:
        return text
    fitting, left = [], columns - 1
    for character in text:
        left -= _width_of(character)
        if left < 0:
            break
        fitting.append(character)
    return "".join(fitting).rstrip(" …") + "…" if columns > 0 else ""


def checked_columns(columns: object) -> int:
    """The columns of a table. Raises InvalidInput for fewer than 40."""
    if isinstance(columns, bool) or not isinstance(columns, int) or columns < _FEWEST_COLUMNS:
        raise InvalidInput(f"columns={columns!r} is too narrow for a table: use {_FEWEST_COLUMNS} or more.")
    return columns


def cell(text: str, columns: int, *, right: bool = False) -> str:
    """The text in exactly so many columns, cut or filled with spaces."""
    shown = cut(text, columns)
    space = " " * (columns - width(shown))
    return space + shown if right else shown + space


def bar(part: int, whole: int, *, scale: int, columns: int) -> str:
    """A bar of at most `columns`: filled for `part`, free up to `whole`, where `scale` fills all of it.

    Anything above 0 shows at least one mark.
    """
    if scale <= 0:
        return ""
    filled = _marks(part, scale, columns)
    return _FILLED * filled + _FREE * max(0, _marks(whole, scale, columns) - filled)


def table(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Rows of cells as aligned lines, two spaces apart; each column is as wide as its widest cell.

    `right` names the columns, from 0, that are aligned to the right. Every row has the same length.
    """
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell(text, columns, right=number in right)
            for number, (text, columns) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _width_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf", "Cc"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1


def _harmless(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Cc", "Zl", "Zp"):
        return character if character in "\n\t" else " "
    # Joiners hold emoji and some scripts together; the other format characters steer the display.
    return "" if category in ("Cf", "Cs") and character not in "\u200c\u200d" else character


def _marks(amount: int, scale: int, columns: int) -> int:
    return min(columns, max(1, round(amount * columns / scale))) if amount > 0 else 0


# Days in words: in English whatever the locale, since the words are stored and shown.

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


def day_in_words(moment: datetime) -> str:
    """The day of a moment, such as `8 May 2023`."""
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}"


# The fence around text that came from memory, by which it is known again and never learned as new.
#
# What a context shows goes to a model, comes back in transcripts, and would be remembered a second time by
# whoever learns from them. The fence travels with the text through every provider's layout.

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
    unless the text isn't the `whole` of a message but, for instance, a file.
    """
    if _OPEN not in text:
        return text
    outside, opened = _split_fences(text)
    return "".join(outside) + ("" if whole or opened is None else text[opened:])


def left_open(text: str) -> int:
    """How many characters follow the start of a fence that nothing closes; 0 where each is closed."""
    opened = _split_fences(text)[1] if _OPEN in text else None
    return 0 if opened is None else len(text) - opened - len(_OPEN)


def _split_fences(text: str) -> tuple[list[str], int | None]:
    """What stands outside of fences, and where the fence begins that nothing closes, if there is one."""
    outside: list[str] = []
    end, opened = 0, None
    for mark in _MARK.finditer(text):
        if mark["closes"] and opened is not None:
            end, opened = mark.start() + len(_CLOSE), None
        elif not mark["closes"] and opened is None and text[mark.start() - 1 : mark.start()] != "`":
            # At the beginning of a code span a tag is only mentioned.
            opened = mark.start()
            outside.append(text[end:opened])
    if opened is None:
        outside.append(text[end:])
    return outside, opened


# Default names of calls, and the names of spaces as agents of a store. They are defined apart from what they
# name, which few calls need.

DEFAULT_BUDGET: Final = 8000
"""Tokens where neither a call nor a frame says how many, as in two of the four designs before it."""

DEFAULT_FRAME: Final = "task"
"""The frame of an assembly that names none."""

DEFAULT_PROVIDER: Final = "openai"
"""Whose layout a request has that names none."""

DEFAULT_RANKER: Final = "relevance"
"""What ranks a recall that names no ranker."""

DEFAULT_SET: Final = "default"
"""The working set that an agent has without naming one."""

LONGEST_NAME: Final = 200
"""Characters of the name of a space or a user."""

_LONGEST_FREE_NAME: Final = 1000
"""Characters of the name of an agent, a session or a working set."""

_PREFIX: Final = "space:"
USER_PREFIX: Final = "user:"
"""How the names of users begin, see `user_tenant`."""

# No agent can have it, since it is reserved for spaces, and no space, since theirs don't begin with a blank.
REMOVED: Final = f"{_PREFIX} removed "
"""How the names of agents begin whose removal has begun; their numbers follow."""


def tenant_of(space: str) -> str:
    """The name of the agent that a space is in a store."""
    return _PREFIX + checked_name(space, name="space")


def space_of(tenant: str) -> str:
    """The name of the space that such an agent is; the other way round."""
    return tenant.removeprefix(_PREFIX)


def is_space(agent: str) -> bool:
    """Whether the name is that of a space."""
    return agent.startswith(_PREFIX)


def user_tenant(user: str, agent: str) -> str:
    """The name under which a store has what an agent knows of one user alone: `user:NAME:AGENT`.

    A colon and a percent sign in the user's name are written as %3A and %25.
    """
    return f"{users_prefix(user)}{agent}"


def users_prefix(user: str) -> str:
    """How the names begin under which a store has what its agents know of a user."""
    escaped = checked_name(user, name="user").replace("%", "%25").replace(":", "%3A")
    return f"{USER_PREFIX}{escaped}:"


def user_and_agent(tenant: str) -> tuple[str | None, str]:
    """The user and the agent of a name in a store; None for what is no user's."""
    if not tenant.startswith(USER_PREFIX):
        return None, tenant
    user, _, agent = tenant.removeprefix(USER_PREFIX).partition(":")
    return user.replace("%3A", ":").replace("%25", "%"), agent


def is_tenant(agent: str) -> bool:
    """Whether the name is reserved for spaces or users, so that no agent may have it."""
    return agent.startswith((_PREFIX, USER_PREFIX))


def removed_name(number: int) -> str:
    """What an agent of this number is called from the moment on in which its removal begins."""
    return f"{REMOVED}{number}"


def is_removed(name: str) -> bool:
    """Whether that is the name of an agent, or of a space, of which only rows to remove are left."""
    return name.startswith(REMOVED)


def check_free_name(name: str, field: str) -> None:
    """Raise InvalidInput for a name of an agent, a session or a working set that is empty or too long."""
    if not name or len(name) > _LONGEST_FREE_NAME:
        raise InvalidInput(f"{field}={name[:50]!r} is no name. Use 1 to {_LONGEST_FREE_NAME} characters.")


def checked_name(given: object, *, name: str) -> str:
    """The name of a space or a user. Raises InvalidInput for what can't be one."""
    if not isinstance(given, str):
        raise InvalidInput(f"{name}={given!r} is {type(given).__name__}; a name (str) is needed.")
    if not 1 <= len(given) <= LONGEST_NAME or not given.isprintable() or given != given.strip():
        shown = repr(given if len(given) <= LONGEST_NAME else given[:40] + "…")
        raise InvalidInput(
            f"{name}={shown} is no name for a {name}: use 1 to {LONGEST_NAME} visible characters, "
            "with no space at either end, such as 'team'."
        )
    return given
