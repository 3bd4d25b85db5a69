"""Checks of values against the annotations that name their forms: a wrong one is refused where it is given.

`checked_fields` is for the values that a caller makes, such as a plan; `germane.operations.inputs` holds the
arguments of public methods against the same forms.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, get_args, get_origin

from germane.errors import InvalidInput, shown
from germane.exports import SUBMODULES

Word = TypeVar("Word", bound=StrEnum)
Made = TypeVar("Made", bound=type)

_DEEPEST: Final = 100
"""Levels of lists and mappings in a value; Python's JSON reader gives up at a few hundred more."""
INTEGERS: Final = range(-(2**63), 2**63)
"""The whole numbers that both databases hold."""
_ALIASES: Final = {
    "Call": "ToolCall | Mapping[str, Any]",
    "ContentPart": "TextPart | OpaquePart",
    "Framing": "str | Frame | FrameSelector",
    "Named": "str | Memory | Item | Ranked | WorkingSetItem",
    "Part": "TextPart | OpaquePart | ToolCall | ToolResult",
    "Policy": "str | Callable",
    "Result": "ToolResult | Mapping[str, Any]",
    "Sayable": "Conversation | str | Mapping[str, Any] | Sequence[Mapping[str, Any] | Message]",
    "Template": "tuple[TemplatePart, ...]",
    "Vector": "ndarray",
}
"""What annotations name that a module imports for type checkers alone, or that is no class."""
_TEXTS: Final = frozenset(
    {"ClusterBy", "Literal", "Quality", "Ranker", "RecencyScope", "StrategyName", "Voucher"}
)
_FUNCTIONS: Final = frozenset(
    {"Callable", "Clock", "FrameSelector", "Progress", "Scorer", "ProgressCallback", "UpkeepCallback"}
)
_AT_ONCE: Final[Mapping[type, Callable[[Any], bool]]] = {
    str: str.isascii,
    int: INTEGERS.__contains__,
    float: math.isfinite,
    datetime: lambda value: value.tzinfo is UTC,
}
"""What tells at once that a value of a type is in range; one of any other type always is."""
_SEQUENCES: Final = frozenset({"Iterable", "Sequence", "tuple"})
_UNCHECKED: Final = frozenset({"Any", "object"})
_SOURCES: Final = (
    "germane.model.memory",
    "germane.model.query",
    "germane.model.plan",
    "germane.spaces",
    "germane.working_sets",
    "germane.model.context",
    "germane.model.conversation",
    "germane.ledger",
)
"""The modules of scopes, and of the closed lists whose members a caller may name by a text."""


class _Form(NamedTuple):
    """One of the forms that an annotation allows: `Sequence` of `str`, say, or a text out of `words`."""

    head: str
    inner: tuple[Forms, ...] = ()
    words: tuple[str, ...] = ()


Forms: TypeAlias = tuple[_Form, ...]
_NONE: Final = _Form("None")
_MORE: Final = (_Form("..."),)


def checked_fields(**limits: tuple[float, float]) -> Callable[[Made], Made]:
    """For a dataclass, below `@dataclass`: it refuses values that its annotations don't allow.

    InvalidInput names the field; checked is what `checked_value` says, and that a number lies within
    its limits, both included. Texts that name a member of a closed list or a scope become that, and any
    sequence becomes a tuple where one is expected. A `__post_init__` of the class runs afterwards.
    """

    def checking(made: Made) -> Made:
        further: Callable[[Any], None] = vars(made).get("__post_init__", lambda _: None)
        fields = tuple(_fields_of(made, limits))

        def check(self: Any) -> None:
            for name, default, annotation, plain in fields:
                given = getattr(self, name)
                # These values are made for each question, and most of their fields need no second look.
                if given is default:
                    continue
                at_once = _AT_ONCE.get(type(given))
                if type(given).__name__ in plain and (at_once is None or at_once(given)):
                    continue
                if name in limits:
                    _check_limits(given, *limits[name], name=name)
                value = checked_value(given, forms_of(annotation, made.__module__), name)
                object.__setattr__(self, name, value)
            further(self)

        setattr(made, "__post_init__", check)  # noqa: B010 - A type has no such attribute.
        return made

    return checking


def _fields_of(made: type, limits: Collection[str]) -> Iterator[tuple[str, object, str, frozenset[str]]]:
    """Name, default, annotation and the types without limits of each field that can be given."""
    for name, annotation in made.__annotations__.items():
        default = vars(made).get(name, MISSING)
        plain = frozenset() if name in limits else frozenset(annotation.split(" | "))
        if not isinstance(default, Field):
            yield name, default, annotation, plain
        elif default.init:
            yield name, default.default, annotation, plain


def checked_value(value: object, forms: Forms, name: str) -> Any:
    """The value, as one of the forms that an annotation allows; InvalidInput names the argument.

    Checked are types, also those in sequences and mappings; that texts fit UTF-8, whole numbers 64 bits,
    numbers a float, and moments the years 1 to 9999 in UTC; and that nothing is nested deeper than 100
    levels.
    """
    for form in forms:
        if form.head == type(value).__name__ and type(value).__module__.startswith("germane."):
            return value
        if _has_form(value, form):
            return _in_range(value, form, name)
    for form in forms if isinstance(value, str) else ():
        if form.words:
            raise _unknown(value, form.words, name)
        named = _named_by_text(form.head)
        if named is not None:
            return named.parse(value) if form.head == "Scope" else checked_word(named, value, name=name)
    if len(forms) - (_NONE in forms) == 1:
        # Some forms have a more telling error for what isn't of them.
        head = forms[0].head
        if head == "str" and name.endswith("_id"):
            checked_id(value, name=name)
        elif head in _REFUSING:
            _REFUSING[head](value, name)
    wanted = " or ".join(dict.fromkeys(_described(form) for form in forms if form.head != "Wrapping"))
    raise InvalidInput(f"{name}={shown(value)} is {type(value).__name__}; pass {wanted}.")


@cache
def forms_of(annotation: str, module: str) -> Forms:
    """The forms that an annotation allows, in the module that it stands in."""
    forms: list[_Form] = []
    for text in _split(annotation, "|"):
        head, bracket, inner = text.partition("[")
        alias = vars(sys.modules[module]).get(head)
        if head in _ALIASES:
            forms += forms_of(_ALIASES[head], module)
        elif get_origin(alias) is Literal:
            forms.append(_Form("str", words=get_args(alias)))
        elif head in _TEXTS:
            forms.append(_Form("str"))
        elif head in _FUNCTIONS:
            forms.append(_Form("Callable"))
        else:
            parts = _split(inner[:-1], ",") if bracket else ()
            forms.append(_Form(head, tuple(forms_of(part, module) for part in parts)))
    return tuple(forms)


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


@cache
def _named_by_text(head: str) -> Any:
    """The closed list of that name, or `Scope`; None for any other class."""
    named = next(
        (vars(module)[head] for module in map(import_module, _SOURCES) if head in vars(module)), None
    )
    closed = isinstance(named, type) and issubclass(named, StrEnum)
    return named if closed or head == "Scope" else None


def _has_form(value: object, form: _Form) -> bool:
    head = form.head
    if head in _TYPES:
        right = isinstance(value, _TYPES[head]) and (head == "bool" or not isinstance(value, bool))
        return right and (not form.words or value in form.words)
    if head in _SEQUENCES:
        return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    if head == "Callable":
        return callable(value)
    if head in _UNCHECKED:
        return True
    # A protocol that isn't loaded yet can't be the type of a value.
    named: Any = getattr(sys.modules.get("germane.protocols"), head, None)
    if getattr(named, "_is_protocol", False):
        return not isinstance(value, type) and isinstance(value, named)
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
    if head == "int" and value not in INTEGERS:
        raise InvalidInput(f"{name}={shown(value)} is out of range: take a number of at most 64 bits.")
    if head == "float" and isinstance(value, int) and abs(value) > sys.float_info.max:
        raise InvalidInput(f"{name}={shown(value)} is out of range: take a number that a float can hold.")
    if head == "tuple":
        return _checked_tuple(tuple(value), form, name)
    if head in _SEQUENCES:
        several = value if isinstance(value, Collection) else tuple(value)
        check_nested(several, name)
        for each in several if form.inner else ():
            checked_value(each, form.inner[0], name)
        return several
    if head == "Mapping":
        check_nested(value, name)
        for key, each in value.items() if form.inner else ():
            checked_value(key, form.inner[0], f"a key of {name}")
            checked_value(each, form.inner[1], f"{name}[{shown(key)}]")
    return value


def _checked_tuple(values: tuple[Any, ...], form: _Form, name: str) -> tuple[Any, ...]:
    forms = form.inner[:1] * len(values) if form.inner[-1] == _MORE else form.inner
    if len(values) != len(forms):
        raise InvalidInput(
            f"{name} holds {shown(values)}, which is {len(values)} values; pass {len(forms)} of them."
        )
    return tuple(checked_value(value, each, name) for value, each in zip(values, forms, strict=True))


def check_nested(value: object, name: str) -> None:
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


def _described(form: _Form) -> str:
    if form.head in _DESCRIBED:
        return _DESCRIBED[form.head]
    loaded = [module for module in ("germane", *SUBMODULES) if module in sys.modules]
    homes = [module for module in loaded if form.head in sys.modules[module].__all__]
    return ".".join([*homes[:1], form.head])


def as_utc(moment: datetime, *, name: str) -> datetime:
    """The same moment in UTC. Raises InvalidInput for a naive time, and outside the years 1 to 9999."""
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InvalidInput(
            f"{name}={moment.isoformat()!r} has no time zone. Every time is aware: "
            "pass datetime(..., tzinfo=timezone.utc), or add an offset such as +00:00."
        )
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(
            f"{name}={moment.isoformat()!r} lies outside the years 1 to 9999 in UTC. Pass one within them."
        ) from None


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


def checked_id(value: object, *, name: str = "memory_id") -> str:
    """The id of a memory. Raises InvalidInput, with a hint where the memory itself is passed."""
    if not isinstance(value, str) and isinstance(getattr(value, "id", None), str):
        raise InvalidInput(f"{name} is a {type(value).__name__}; pass its id: memory.id.")
    return checked_text(value, name=name)


def checked_number(value: object, low: float, high: float, *, name: str) -> float:
    """A finite number from `low` to `high`, both included."""
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not low <= number <= high:
        raise _out_of_range(value, low, high, name)
    return float(number)


def _check_limits(value: object, low: float, high: float, *, name: str) -> None:
    """Refuse numbers beyond the limits, also those in a mapping; what is no number is left to its form."""
    for each in value.values() if isinstance(value, Mapping) else (value,):
        if isinstance(each, int | float) and not isinstance(each, bool) and not low <= each <= high:
            raise _out_of_range(each, low, high, name)


def _out_of_range(value: object, low: float, high: float, name: str) -> InvalidInput:
    limits = f"from {low:g} to {high:g}" if high < math.inf else f"of {low:g} or more"
    return InvalidInput(f"{name}={shown(value)} is out of range: take a number {limits}.")


def checked_sequence(values: object, *, name: str) -> Iterable[object]:
    """Several values; one text alone is refused, since it would be read letter by letter."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidInput(
            f"{name}={shown(values)} is one value; pass a sequence, such as ({shown(values)},)."
        )
    return values


def checked_words(values: object, *, name: str) -> tuple[str, ...]:
    """Several texts."""
    return tuple(checked_text(value, name=name) for value in checked_sequence(values, name=name))


def checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags in the order given, each once; a tag is a path such as 'storage:cache'."""
    words = tuple(dict.fromkeys(checked_words(tags, name="tags")))
    for text in words:
        if not all(part.strip() for part in text.split(":")):
            raise InvalidInput(
                f"tag={shown(text)} has an empty part: separate words by ':', such as 'storage:cache'."
            )
    return words


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


def checked_word(words: type[Word], value: object, *, name: str) -> Word:
    """A value of a closed list, given as itself or as its text."""
    try:
        return words(str(value))
    except ValueError:
        raise _unknown(value, words, name) from None


def _unknown(value: object, words: Iterable[str], name: str) -> InvalidInput:
    return InvalidInput(f"{name}={shown(value)} is unknown: take one of {', '.join(words)}.")


_REFUSING: Final[Mapping[str, Callable[[Any, str], object]]] = {
    "Iterable": lambda value, name: checked_sequence(value, name=name),
    "Sequence": lambda value, name: checked_sequence(value, name=name),
    "bool": lambda value, name: checked_flag(value, name=name),
    "tuple": lambda value, name: checked_sequence(value, name=name),
    "datetime": lambda value, name: checked_moment(value, name=name),
    "str": lambda value, name: checked_text(value, name=name),
}
_DESCRIBED: Final = {
    "Callable": "a function",
    "Filter": "one such as germane.Filter(kinds=['fact'])",
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
    "tuple": "a sequence",
}
