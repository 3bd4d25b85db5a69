"""Conditions on metadata and on a memory's own fields, as values, with what each is of a memory.

`germane.filters` reads them from text and from JSON. Pure: the same condition gives the same answer.
"""

from __future__ import annotations

import json
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as attribute
from datetime import UTC, date, datetime, timedelta
from operator import eq, ge, gt, le, lt
from typing import Any, Final, Literal, TypeAlias, get_args

from germane.errors import InvalidInput, shown
from germane.model.memory import Memory
from germane.model.validation import as_utc, checked_fields, checked_text

MAX_DEPTH: Final = 12
"""Levels of And, Or, Not and parentheses in a condition; SQLite can't parse many more."""
MAX_COMPARISONS: Final = 200
"""Comparisons in one condition; `in` is one, however many values it has."""
MAX_VALUES: Final = 1000
"""Values that all comparisons of one condition have together."""
MAX_PARTS: Final = 8
"""Names in the path of a nested metadata field."""

Value: TypeAlias = str | int | float | bool | date | None
"""What a field is compared with. None is the null of JSON; a date is an aware datetime, or a day in UTC."""
Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">=", "in", "startswith", "exists"]
"""The operator of a comparison. `in` takes a tuple of values, `exists` none."""

_OWN: Final[Mapping[str, Callable[[Memory], Any]]] = {
    "kind": lambda memory: memory.kind,
    "subject": lambda memory: memory.subject,
    "source": lambda memory: memory.source,
    "scope": lambda memory: str(memory.scope),
    "status": lambda memory: memory.status.value,
    "outcome": lambda memory: memory.outcome and memory.outcome.value,
    "trust": lambda memory: memory.trust.value,
    "tag": lambda memory: memory.tags,
    "pinned": lambda memory: memory.pinned,
    "importance": lambda memory: memory.importance,
    "confidence": lambda memory: memory.confidence,
    "created_at": lambda memory: memory.created_at,
    "updated_at": lambda memory: memory.updated_at,
}
OWN_FIELDS: Final = tuple(_OWN)
"""The names that mean a field of the memory itself; every other name means a metadata field."""

KEYWORDS: Final = frozenset(
    {"and", "or", "not", "in", "between", "startswith", "exists", "true", "false", "null"}
)
"""The words of the text form, in any case; a field of such a name stands in quotes."""
QUOTED: Final = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
"""The pattern of a text in quotes."""
NAMES: Final[Mapping[str, str]] = {
    "=": "$eq",
    "!=": "$ne",
    "<": "$lt",
    "<=": "$lte",
    ">": "$gt",
    ">=": "$gte",
    "in": "$in",
    "startswith": "$startswith",
}
"""The operators with values, each with its name in the JSON form."""
INTEGERS: Final = range(-(2**63), 2**63)
"""The whole numbers that are compared exactly with each other."""

_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_MOST: Final = sys.float_info.max
_BARE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_PART: Final = re.compile(rf"({QUOTED})|([^\"'.][^.]*)", re.DOTALL)
_DATE: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]((?:[01][0-9]|2[0-3]):[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)"
    r"(Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])?)?"
)
_ESCAPE: Final = re.compile(r"\\.|\"", re.DOTALL)
_SWAPPED: Final = {"\\'": "'", '"': '\\"'}
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - The difference of two naive times can't overflow.
_MICROSECOND: Final = timedelta(microseconds=1)


class Condition(ABC):
    """A condition that is true or false of each memory: a Comparison, And, Or or Not.

    `str()` gives its text form. `a & b`, `a | b` and `~a` are And, Or and Not.
    """

    __slots__ = ()
    size: tuple[int, int, int]  # Its depth, and how many comparisons and values it has.

    @abstractmethod
    def admits(self, memory: Memory) -> bool:
        """Whether the condition is true of the memory, as each store of the package decides it too."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The JSON form, which `read_condition` reads back as an equal value."""

    def __and__(self, other: Condition) -> And:
        return And((self, other))

    def __or__(self, other: Condition) -> Or:
        return Or((self, other))

    def __invert__(self) -> Not:
        return Not(self)


@dataclass(frozen=True, slots=True)
class Comparison(Condition):
    """A field compared with a value. False where the field is missing or has a value of another type.

    `field` is one of OWN_FIELDS, or a metadata field: a nested one as a path with dots, where a part with a
    dot or a quote stands in quotes. A name in quotes is a metadata field even if it is one of OWN_FIELDS.
    `value` is a tuple for `in`, and None for `exists`. `!=` is true wherever `=` is false. Comparisons are
    equal if their texts are, so that 1, 1.0 and True differ. Raises InvalidInput for an unknown operator, a
    field that can't be read, or a value that the operator doesn't take.
    """

    field: str
    operator: Operator
    value: Value | tuple[Value, ...] = attribute(default=None, compare=False)
    path: tuple[str, ...] = attribute(init=False, repr=False, compare=False)
    text: str = attribute(init=False, repr=False)
    size: tuple[int, int, int] = attribute(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        path, own = _path(self.field)
        name = path[0] if own else _written_path(path)
        if self.operator not in get_args(Operator):
            raise InvalidInput(
                f"operator={shown(self.operator)} is unknown: take {', '.join(get_args(Operator))}."
            )
        text = f"{name} {self.operator}"
        value: Value | tuple[Value, ...] = None
        if self.operator == "in":
            if isinstance(self.value, str) or not isinstance(self.value, Sequence) or not self.value:
                raise InvalidInput(f"{name} in {shown(self.value)}: pass one value or more in a sequence.")
            value = tuple(_checked(each, name, self.operator, own=own) for each in self.value)
            text += f" ({', '.join(map(_written, value))})"
        elif self.operator != "exists":
            value = _checked(self.value, name, self.operator, own=own)
            text += f" {_written(value)}"
        elif self.value is not None:
            raise InvalidInput(f"{name} exists {shown(self.value)}: exists takes no value.")
        for key, each in {"field": name, "value": value, "path": path, "text": text}.items():
            object.__setattr__(self, key, each)
        _measure(self, (0, 1, len(self.values)))

    @property
    def values(self) -> tuple[Value, ...]:
        """The values that the field is compared with: several for `in`, none for `exists`."""
        if self.operator == "exists":
            return ()
        return self.value if isinstance(self.value, tuple) else (self.value,)

    @property
    def is_own(self) -> bool:
        """Whether the field is the memory's own, and none of its metadata."""
        return self.field in _OWN

    def admits(self, memory: Memory) -> bool:
        """Whether a value of the field compares so with one of the values."""
        found = tuple(self._found(memory))
        if self.operator == "exists":
            return bool(found)
        admitted = any(self._compares(one, value) for one in found for value in self.values)
        return admitted is not (self.operator == "!=")

    def to_dict(self) -> dict[str, Any]:
        """Such as `{"team": "core"}` or `{"score": {"$gte": 3}}`; a moment is `{"$date": TEXT}`."""
        if self.operator == "exists":
            return {self.field: {"$exists": True}}
        values = [{"$date": each.isoformat()} if isinstance(each, datetime) else each for each in self.values]
        if self.operator == "=" and not isinstance(values[0], dict):
            return {self.field: values[0]}
        return {self.field: {NAMES[self.operator]: values if self.operator == "in" else values[0]}}

    def _found(self, memory: Memory) -> Iterator[Any]:
        found: Any = memory.metadata
        if self.is_own:
            found = _OWN[self.field](memory)
            yield from found if isinstance(found, tuple) else () if found is None else (found,)
            return
        for part in self.path:
            if not isinstance(found, Mapping) or part not in found:
                return
            found = found[part]
        yield found

    def _compares(self, found: Any, value: Value) -> bool:
        if value is None or isinstance(value, bool):
            return found is value
        order: Callable[[Any, Any], bool] = _ORDERS.get(self.operator, eq)
        if isinstance(value, str):
            if self.operator == "startswith" or (order is eq and self.field == "tag"):
                below = value if self.operator == "startswith" else f"{value}:"
                return isinstance(found, str) and (found.startswith(below) or found == value)
            return isinstance(found, str) and order(found, value)
        if isinstance(value, date):
            moment = microseconds_of(found)
            return moment is not None and order(moment, microseconds_of(value))
        if isinstance(found, bool) or not isinstance(found, int | float):
            return False
        exact = all(isinstance(each, int) and each in INTEGERS for each in (found, value))
        return order(found, value) if exact else order(_as_float(found), _as_float(value))

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
@checked_fields()
class _Several(Condition):
    parts: tuple[Condition, ...]
    size: tuple[int, int, int] = attribute(init=False, repr=False, compare=False)
    word = ""

    def __post_init__(self) -> None:
        if len(self.parts) < 2:  # noqa: PLR2004 - Of one condition, that one is meant.
            raise InvalidInput(f"{type(self).__name__} of {len(self.parts)} conditions; pass 2 or more.")
        _measure(self, _sum(*self.parts))

    def to_dict(self) -> dict[str, Any]:
        """`{"$and": [...]}` or `{"$or": [...]}`."""
        return {f"${self.word}": [part.to_dict() for part in self.parts]}

    def __str__(self) -> str:
        return f" {self.word} ".join(map(_in_parentheses, self.parts))


class And(_Several):
    """True where each of its `parts` is. Raises InvalidInput for fewer than two conditions."""

    __slots__ = ()
    word = "and"

    def admits(self, memory: Memory) -> bool:
        """Whether each part is true of the memory."""
        return all(part.admits(memory) for part in self.parts)


class Or(_Several):
    """True where at least one of its `parts` is. Raises InvalidInput for fewer than two conditions."""

    __slots__ = ()
    word = "or"

    def admits(self, memory: Memory) -> bool:
        """Whether at least one part is true of the memory."""
        return any(part.admits(memory) for part in self.parts)


@dataclass(frozen=True, slots=True)
@checked_fields()
class Not(Condition):
    """True where its `part` is false. Raises InvalidInput for what is no condition."""

    part: Condition
    size: tuple[int, int, int] = attribute(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _measure(self, _sum(self.part))

    def admits(self, memory: Memory) -> bool:
        """Whether the part is false of the memory."""
        return not self.part.admits(memory)

    def to_dict(self) -> dict[str, Any]:
        """`{"$not": {...}}`."""
        return {"$not": self.part.to_dict()}

    def __str__(self) -> str:
        return f"not {_in_parentheses(self.part)}"


def _in_parentheses(part: Condition) -> str:
    return f"({part})" if isinstance(part, _Several) else str(part)


def _sum(*parts: Condition) -> tuple[int, int, int]:
    depths, comparisons, values = zip(*(part.size for part in parts), strict=True)
    return 1 + max(depths), sum(comparisons), sum(values)


def _measure(condition: Condition, size: tuple[int, int, int]) -> None:
    object.__setattr__(condition, "size", size)
    depth, comparisons, values = size
    if depth > MAX_DEPTH:
        raise too_deep()
    if comparisons > MAX_COMPARISONS or values > MAX_VALUES:
        raise InvalidInput(
            f"The condition has {comparisons} comparisons and {values} values; at most {MAX_COMPARISONS} and "
            f"{MAX_VALUES} are possible. Use `in` for several values of a field, or ask in several calls."
        )


def too_deep() -> InvalidInput:
    """The error for a condition of too many levels."""
    return InvalidInput(
        f"The condition is nested deeper than {MAX_DEPTH} levels. Leave out parentheses, or join more parts "
        "by one `and` or `or`."
    )


# The fields and values of a comparison.


def _path(name: object) -> tuple[tuple[str, ...], bool]:
    """The parts of a field's name, and whether the field is the memory's own."""
    text = checked_text(name, name="field")
    parts: list[str] = []
    end = -1
    while end < len(text):
        match = _PART.match(text, end + 1)
        if match is None or text[match.end() : match.end() + 1] not in ("", "."):
            raise InvalidInput(
                f"field={shown(text)} can't be read: write names with dots between them, such as "
                "ticket.owner, and put a name with a dot or a quote in quotes."
            )
        end = match.end()
        parts.append(match[2] if match[1] is None else unquoted(match[1]))
    bare = text[0] not in "\"'"
    if bare and len(parts) == 1 and parts[0] in _OWN:
        return tuple(parts), True
    if bare and len(parts) > 1 and parts[0] == "metadata":
        del parts[0]
    if len(parts) > MAX_PARTS:
        raise InvalidInput(f"field={shown(text)} has {len(parts)} parts; at most {MAX_PARTS} are possible.")
    return tuple(parts), False


def _written_path(path: tuple[str, ...]) -> str:
    """The name of a metadata field, with those parts in quotes that would otherwise be read differently."""
    reserved = _OWN if len(path) == 1 else {"metadata"}
    return ".".join(
        part
        if _BARE.fullmatch(part) and part.lower() not in KEYWORDS and (place or part not in reserved)
        else quoted(part)
        for place, part in enumerate(path)
    )


def _checked(given: object, name: str, operator: Operator, *, own: bool) -> Value:
    """A value in the form in which a comparison has it. Raises InvalidInput."""
    if operator == "startswith" and not isinstance(given, str):
        raise InvalidInput(f"{name} startswith {shown(given)}: the value has to be a text.")
    if given is None or isinstance(given, bool):
        if operator in _ORDERS:
            raise InvalidInput(f"{name} {operator} {_written(given)}: true, false and null have no order.")
        return given
    if isinstance(given, str):
        text = checked_text(str(given), name=f"the value of {name}")
        is_moment = own and name in ("created_at", "updated_at") and operator != "startswith"
        return moment_of(text) if is_moment else text
    if isinstance(given, datetime):
        return as_utc(given, name=f"the value of {name}")
    if isinstance(given, date):
        return datetime(given.year, given.month, given.day, tzinfo=UTC)
    if isinstance(given, int | float) and -_MOST <= given <= _MOST:
        return given
    raise InvalidInput(
        f"{name} {operator} {shown(given)} can't be compared: the value has to be a text, a number that a "
        "float can hold, a date, True, False or None."
    )


def moment_of(text: str) -> datetime:
    """The moment of a date by ISO 8601, in UTC unless it says otherwise. Raises InvalidInput."""
    microseconds = microseconds_of(text)
    try:
        if microseconds is not None:
            return (_EPOCH + timedelta(microseconds=microseconds)).replace(tzinfo=UTC)
    except OverflowError:
        pass
    raise InvalidInput(
        f"{shown(text)} is no date of the years 1 to 9999. Write one such as 2026-03-01, 2026-03-01T12:00 or "
        "2026-03-01T12:00:00.5+01:00."
    )


def microseconds_of(found: object) -> int | None:
    """Microseconds since 1970 of a moment, or of a text that is a date by ISO 8601; None of anything else."""
    if isinstance(found, datetime):
        return (found.astimezone(UTC).replace(tzinfo=None) - _EPOCH) // _MICROSECOND
    match = _DATE.fullmatch(found) if isinstance(found, str) else None
    if match is None:
        return None
    try:
        naive = datetime.fromisoformat(f"{match[1]}T{match[2] or '00:00'}")
    except ValueError:
        return None
    zone = match[3] or "Z"
    minutes = 0 if zone == "Z" else int(zone[1:3]) * 60 + int(zone[4:])
    return (naive - _EPOCH) // _MICROSECOND - (-minutes if zone[0] == "-" else minutes) * 60_000_000


def _as_float(number: Any) -> float:
    """The nearest float; the largest one of what lies beyond it."""
    try:
        return float(number)
    except OverflowError:
        return _MOST if number > 0 else -_MOST


def _written(value: Value) -> str:
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat()
        return text.removesuffix("T00:00:00") if text.endswith("T00:00:00") else f"{text}Z"
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def quoted(text: str) -> str:
    """The text in double quotes, as JSON writes it."""
    return json.dumps(text, ensure_ascii=False)


def unquoted(text: str) -> str:
    """The text that stands in double or single quotes, with the escapes of JSON. Raises ValueError."""
    if text[0] == "'":
        text = '"' + _ESCAPE.sub(lambda each: _SWAPPED.get(each[0], each[0]), text[1:-1]) + '"'
    found: str = json.loads(text, strict=False)
    return found
