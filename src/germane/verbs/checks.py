"""Argument checks: a value that can't be accepted is refused before anything is stored.

Level: verbs. Each error names the value, the limit and the remedy. `checking` holds the arguments of a public
verb against the verb's own annotations; the functions named `checked_…` know the limits of single values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from functools import cache, update_wrapper
from types import FunctionType, MappingProxyType
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

from germane import protocols
from germane.errors import InvalidInput, shown
from germane.model.memory import as_utc
from germane.model.names import is_tenant
from germane.model.query import Filter, TimeRange
from germane.model.recalled import own_text
from germane.protocols import Clock

__all__ = [
    "MAX_CONTENT",
    "checked_agent",
    "checked_content",
    "checked_count",
    "checked_filter",
    "checked_flag",
    "checked_id",
    "checked_json",
    "checked_moment",
    "checked_number",
    "checked_sequence",
    "checked_tags",
    "checked_text",
    "checked_time",
    "checked_word",
    "checked_words",
    "checking",
    "checking_verbs",
    "settled",
]

MAX_CONTENT = 10_000_000
"""Characters in one memory; more than that is a file, to be imported in parts."""

# Made once: `json.dumps` makes one for each call that doesn't want ASCII.
_in_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
Word = TypeVar("Word", bound=StrEnum)
P = ParamSpec("P")
R = TypeVar("R")
Owner = TypeVar("Owner", bound=type)

_DEEPEST: Final = 100
"""Levels of lists and mappings in a value; Python's JSON reader gives up at a few hundred more."""
_INTEGERS: Final = range(-(2**63), 2**63)
"""The whole numbers that both databases hold."""
_ALIASES: Final = {
    "Named": "str | Memory | Item | Ranked | Held",
    "Framing": "str | Frame | FrameSelector",
    "Sayable": "Conversation | str | Mapping[str, Any] | Sequence[Mapping[str, Any] | Message]",
    "Call": "ToolCall | Mapping[str, Any]",
    "Result": "ToolResult | Mapping[str, Any]",
    "Policy": "str | Callable",
}
"""Unions that annotations name, and that a verb's module imports for type checkers alone."""
_TEXTS: Final = frozenset({"ClusterBy", "Literal", "Quality", "Ranker", "RecencyScope", "StrategyName"})
_FUNCTIONS: Final = frozenset({"Callable", "Clock", "FrameSelector", "Progress", "Scorer", "Told"})
_SEQUENCES: Final = frozenset({"Iterable", "Sequence"})
_UNCHECKED: Final = frozenset({"Any", "object"})
_OWN_ERRORS: Final = frozenset({"confirm", "ids", "kinds", "summarizer"})
"""Parameters whose verb has an error of its own for whatever isn't right."""


class _Form(NamedTuple):
    """One of the forms that an annotation allows: `Sequence` of `str`, say."""

    head: str
    inner: tuple[str, ...] = ()


def checking(verb: Callable[P, R]) -> Callable[P, R]:
    """The verb, which refuses arguments that its annotations don't allow: InvalidInput names the argument.

    Checked are types, also those in sequences and mappings; that texts fit UTF-8, whole numbers 64 bits,
    numbers a float, and moments the years 1 to 9999 in UTC; and that nothing is nested deeper than 100
    levels. A missing or unknown argument stays a TypeError.
    """
    code: Any = getattr(verb, "__code__")  # noqa: B009 - A callable of any kind has no such attribute.
    names = code.co_varnames[: code.co_argcount]
    annotations = {name: each for name, each in verb.__annotations__.items() if name not in _OWN_ERRORS}

    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        given: Any = (
            _checked(value, annotations[name], name) if name in annotations else value
            for name, value in zip(names, args, strict=False)
        )
        named: Any = {
            name: _checked(value, annotations[name], name) if name in annotations else value
            for name, value in kwargs.items()
        }
        more: Any = args[len(names) :]
        return verb(*given, *more, **named)

    update_wrapper(checked, verb)
    return checked


def checking_verbs(owner: Owner) -> Owner:
    """The class, with each of its public methods as `checking` makes it."""
    for name, verb in tuple(vars(owner).items()):
        if isinstance(verb, FunctionType) and not name.startswith("_"):
            setattr(owner, name, checking(verb))
    return owner


def _checked(value: object, annotation: str, name: str) -> object:
    """The value, as one of the forms that an annotation allows."""
    forms = _forms(annotation)
    for form in forms:
        if _has_form(value, form):
            return _in_range(value, form, name)
    if len(forms) - (_NONE in forms) == 1:
        _refuse(value, forms[0], name)
    wanted = " or ".join(dict.fromkeys(_described(form) for form in forms if form.head != "Wrapping"))
    raise InvalidInput(f"{name}={shown(value)} is {type(value).__name__}; pass {wanted}.")


_NONE: Final = _Form("None")


@cache
def _forms(annotation: str) -> tuple[_Form, ...]:
    found: list[_Form] = []
    for text in _split(annotation, "|"):
        head, bracket, inner = text.partition("[")
        if head in _ALIASES:
            found += _forms(_ALIASES[head])
        elif head in _TEXTS:
            found.append(_Form("str"))
        elif head in _FUNCTIONS:
            found.append(_Form("Callable"))
        else:
            found.append(_Form(head, _split(inner[:-1], ",") if bracket else ()))
    return tuple(found)


def _split(text: str, mark: str) -> tuple[str, ...]:
    """The parts of an annotation between marks that stand in no brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == mark and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return tuple(part.strip() for part in parts)


def _has_form(value: object, form: _Form) -> bool:
    head = form.head
    if head in _TYPES:
        return isinstance(value, _TYPES[head]) and (head == "bool" or not isinstance(value, bool))
    if head in _SEQUENCES:
        return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    if head == "Callable":
        return callable(value)
    if head in _UNCHECKED:
        return True
    if head in protocols.__all__:
        return not isinstance(value, type) and isinstance(value, getattr(protocols, head))
    # By name, since most of what annotations name is imported for type checkers alone.
    return any(each.__name__ == head for each in type(value).__mro__)


_TYPES: Final[Mapping[str, Any]] = {
    "None": type(None),
    "bool": bool,
    "datetime": datetime,
    "float": int | float,
    "int": int,
    "str": str,
    "Mapping": Mapping,
}


def _in_range(value: Any, form: _Form, name: str) -> object:
    """The value, where its content can be stored as well. An iterator is read into a tuple."""
    head = form.head
    if head == "str":
        return checked_text(value, name=name)
    if head == "datetime":
        return as_utc(value, name=name)
    if head == "int" and value not in _INTEGERS:
        raise InvalidInput(f"{name}={shown(value)} is out of range: take a number of at most 64 bits.")
    if head == "float":
        return _checked_float(value, name)
    if head in _SEQUENCES:
        several = value if isinstance(value, Collection) else tuple(value)
        _check_nested(several, name)
        for each in several if form.inner else ():
            _checked(each, form.inner[0], name)
        return several
    if head == "Mapping":
        _check_nested(value, name)
        for key, each in value.items() if form.inner else ():
            _checked(key, form.inner[0], f"a key of {name}")
            _checked(each, form.inner[1], f"{name}[{shown(key)}]")
    return value


def _checked_float(value: float, name: str) -> float:
    try:
        float(value)
    except OverflowError:
        raise InvalidInput(
            f"{name}={shown(value)} is out of range: take a number that a float can hold."
        ) from None
    return value


def _check_nested(value: object, name: str) -> None:
    """Raise InvalidInput for containers nested too deeply for JSON, and for texts that UTF-8 can't hold."""
    level: list[Any] = [value]
    for _ in range(_DEEPEST + 1):
        # By identity, so that a circle with several ways round doesn't grow.
        deeper: dict[int, Any] = {}
        for each in level:
            for inner in each.values() if isinstance(each, Mapping) else each:
                if isinstance(inner, str):
                    if not inner.isascii():
                        checked_text(inner, name=f"a text in {name}")
                elif isinstance(inner, list | tuple | Mapping):
                    deeper[id(inner)] = inner
        if not deeper:
            return
        level = list(deeper.values())
    raise InvalidInput(
        f"{name} is nested deeper than {_DEEPEST} levels, or holds itself. Flatten it, or pass JSON text."
    )


def _refuse(value: object, form: _Form, name: str) -> None:
    """Raise the more telling error that a form has for what isn't of it."""
    if form.head == "str" and name.endswith("_id"):
        checked_id(value, name=name)
    elif form.head in _REFUSING:
        _REFUSING[form.head](value, name)


def _described(form: _Form) -> str:
    if form.head in _DESCRIBED:
        return _DESCRIBED[form.head]
    return f"germane.{form.head}"


def checked_agent(agent: object) -> str:
    """The name of an agent. Raises InvalidInput for none, and for one that is kept for spaces."""
    name = checked_text(agent, name="agent")
    if not name.strip():
        raise InvalidInput(f"agent={name!r} is empty: every memory belongs to a named agent.")
    if is_tenant(name):
        raise InvalidInput(
            f"agent={name!r} can't be taken: names that begin with 'space:' are kept for spaces. "
            "Open the store as a member, and use engine.space(...)."
        )
    return name


def checked_content(content: object) -> str:
    """A text with something in it, storable in UTF-8, of at most MAX_CONTENT characters.

    What stands in the fence of recalled text is left out, so that no memory is learned again as new.
    """
    given = checked_text(content, name="content")
    text = own_text(given)
    if text != given and not text.strip():
        raise InvalidInput(
            f"content={shown(given)} came from memory as a whole, as its fence says, and isn't learned "
            "again. Remember what was concluded from it, or take the fence away."
        )
    if not any(character.isprintable() and not character.isspace() for character in text):
        raise InvalidInput(f"content={shown(text)} is empty: a memory needs at least one visible character.")
    if len(text) > MAX_CONTENT:
        raise InvalidInput(
            f"content has {len(text):,} characters; at most {MAX_CONTENT:,} make one memory. "
            "Split it, or let `germane import` split the file by its headings."
        )
    return text


def checked_text(value: object, *, name: str) -> str:
    """A text that UTF-8 can hold."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name}={shown(value)} is {type(value).__name__}; a text (str) is needed.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{name}={shown(value)} holds half of a surrogate pair at character {error.start}, which no "
            "UTF-8 text can. Decode the source with errors='replace'."
        ) from None
    return value


def checked_time(value: object, *, name: str, clock: Clock) -> datetime:
    """A time in UTC: an aware one, or the beginning of what a text names, as "last week", by the clock."""
    if not isinstance(value, str):
        return checked_moment(value, name=name)
    from germane.retrieval.when import parse_moment  # noqa: PLC0415 - Seldom is a time given in words.

    moment = parse_moment(checked_text(value, name=name), now=as_utc(clock(), name="clock"))
    if moment is None:
        raise InvalidInput(
            f"{name}={shown(value)} names no time. Write one such as 2026-11-20, 2026-11-20T12:00Z, "
            "'last week', '3 days ago' or 'May 2023'."
        )
    return moment


def settled(where: Filter, clock: Clock) -> Filter:
    """The filter with the moments that texts in its time range name. Raises InvalidInput."""
    when = where.when
    if when is None or not when.in_words:
        return where
    ends = {
        name: None if end is None else checked_time(end, name=name, clock=clock)
        for name, end in (("since", when.since), ("until", when.until))
    }
    return replace(where, when=TimeRange(**ends))


def checked_filter(where: object) -> Filter:
    """A filter, and not the mapping that would say the same."""
    if not isinstance(where, Filter):
        raise InvalidInput(
            f"where={shown(where)} is {type(where).__name__}; "
            "pass one such as germane.Filter(kinds=['fact'])."
        )
    return where


def checked_id(value: object, *, name: str = "memory_id") -> str:
    """The id of a memory. Whoever passes the memory itself is told so."""
    if not isinstance(value, str) and isinstance(getattr(value, "id", None), str):
        raise InvalidInput(f"{name} is a {type(value).__name__}; pass its id: memory.id.")
    return checked_text(value, name=name)


def checked_number(value: object, low: float, high: float, *, name: str) -> float:
    """A finite number from `low` to `high`, both included."""
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not low <= number <= high:
        raise InvalidInput(f"{name}={shown(value)} is out of range: take a number from {low:g} to {high:g}.")
    return number


def checked_count(value: object, *, name: str, least: int = 0) -> int:
    """A whole number that is at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidInput(f"{name}={shown(value)} can't be used: take a whole number of {least} or more.")
    return value


def checked_words(values: object, *, name: str) -> tuple[str, ...]:
    """Several texts."""
    return tuple(checked_text(value, name=name) for value in checked_sequence(values, name=name))


def checked_sequence(values: object, *, name: str) -> Iterable[object]:
    """Several values; one text alone is refused, since it would be read letter by letter."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidInput(
            f"{name}={shown(values)} is one value; pass a sequence, such as ({shown(values)},)."
        )
    return values


def checked_moment(value: object, *, name: str) -> datetime:
    """An aware time, in UTC."""
    if not isinstance(value, datetime):
        raise InvalidInput(
            f"{name}={shown(value)} is {type(value).__name__}; pass an aware datetime, such as "
            "datetime.fromisoformat('2026-11-21T12:00:00+00:00')."
        )
    return as_utc(value, name=name)


def checked_flag(value: object, *, name: str) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise InvalidInput(f"{name}={shown(value)} is {type(value).__name__}; pass True or False.")
    return value


def checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags in the order given, each once; a tag is a path such as 'storage:cache'."""
    kept: dict[str, None] = {}
    for text in checked_words(tags, name="tags"):
        if not all(part.strip() for part in text.split(":")):
            raise InvalidInput(
                f"tag={shown(text)} has an empty part: write words parted by ':', such as 'storage:cache'."
            )
        kept[text] = None
    return tuple(kept)


def checked_word(words: type[Word], value: object, *, name: str) -> Word:
    """A value of a closed list, given as itself or as its text."""
    try:
        return words(str(value))
    except ValueError:
        raise InvalidInput(f"{name}={shown(value)} is unknown: take one of {', '.join(words)}.") from None


def checked_json(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Metadata that JSON can hold, as JSON will give it back, and that nobody can change."""
    try:
        given = dict(metadata)
        if not given:
            return MappingProxyType(given)
        _check_nested(given, "metadata")
        text = _in_json(given)
        held = json.loads(text)
        if not text.isascii():
            checked_text(_in_json(held), name="metadata")
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"metadata={shown(metadata)} can't be stored: {error}. Use texts, numbers, booleans, None, "
            "lists and mappings of them."
        ) from error
    if not all(isinstance(key, str) for key in metadata):
        raise InvalidInput(f"metadata={shown(metadata)} has a key that is no text: JSON would change it.")
    return MappingProxyType(held)


_REFUSING: Final[Mapping[str, Callable[[Any, str], object]]] = {
    "Filter": lambda value, _: checked_filter(value),
    "Iterable": lambda value, name: checked_sequence(value, name=name),
    "Sequence": lambda value, name: checked_sequence(value, name=name),
    "bool": lambda value, name: checked_flag(value, name=name),
    "datetime": lambda value, name: checked_moment(value, name=name),
    "str": lambda value, name: checked_text(value, name=name),
}
_DESCRIBED: Final = {
    "Callable": "a function",
    "Iterable": "a sequence",
    "Mapping": "a mapping",
    "None": "None",
    "Path": "a path",
    "Sequence": "a sequence",
    "bool": "True or False",
    "datetime": "an aware datetime",
    "float": "a number",
    "int": "a whole number",
    "str": "a text",
}
