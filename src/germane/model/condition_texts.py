"""Conditions read from their text form and from their JSON form."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

from germane.errors import InvalidInput, shown
from germane.model.conditions import (
    KEYWORDS,
    MAX_DEPTH,
    NAMES,
    QUOTED,
    And,
    Comparison,
    Condition,
    Not,
    Operator,
    Or,
    Value,
    moment_of,
    quoted,
    too_deep,
    unquoted,
)
from germane.model.validation import checked_text

MAX_LENGTH: Final = 100_000
"""Characters in the text of a condition."""
_AROUND: Final = 50
"""Characters before and after the place of an error that its message shows."""
_MOST_DIGITS: Final = 400
"""Digits of a whole number; one of more is greater than every float."""
_ORDERS: Final = frozenset({"=", "!=", "<", "<=", ">", ">="})
_WORDS: Final[Mapping[str, Value]] = {"true": True, "false": False, "null": None}
_OPERATORS: Final[Mapping[Any, Any]] = {name: operator for operator, name in NAMES.items()}
_TOKEN: Final = re.compile(
    rf"\s*(?:(?P<text>{QUOTED})"
    r"|(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]+(?:Z|[+-][0-9]{2}:[0-9]{2})?)?)(?![\w.])"
    r"|(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![\w.])"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_-]*)|(?P<mark><=|>=|!=|[=<>(),.])|(?P<end>\Z))",
    re.DOTALL,
)


def read_condition(given: str | Mapping[str, Any] | Condition) -> Condition:
    """Read a condition from its text form or its JSON form; a condition is returned as it is.

    The JSON form is a mapping such as `{"team": "core", "score": {"$gte": 3}, "$or": [...]}`. Raises
    InvalidInput, which shows the place in a text and says what was expected there.
    """
    if isinstance(given, Condition):
        return given
    if isinstance(given, str):
        return _Parser(given).condition()
    return _of_mapping(given, 1)


# The JSON form.


def _of_mapping(given: object, level: int) -> Condition:
    if level > MAX_DEPTH + 1:
        raise too_deep()
    if not isinstance(given, Mapping) or not given:
        raise InvalidInput(
            f"{shown(given)} is no condition: pass a mapping such as {{'score': 3}}, or a text."
        )
    parts = [part for name, value in given.items() for part in _of_entry(name, value, level)]
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _of_entry(name: object, value: Any, level: int) -> Sequence[Condition]:
    if name == "$not":
        return (Not(_of_mapping(value, level + 1)),)
    if name in ("$and", "$or"):
        if not isinstance(value, list | tuple) or not value:
            raise InvalidInput(f"{name} of {shown(value)}: pass a list of one condition or more.")
        parts = tuple(_of_mapping(each, level + 1) for each in value)
        return parts if name == "$and" or len(parts) == 1 else (Or(parts),)
    text = checked_text(name, name="field")
    if text.startswith("$"):
        own = quoted(quoted(text))
        raise InvalidInput(f"{text!r} is unknown: take $and, $or, $not, or for a field of this name {own}.")
    if not isinstance(value, Mapping) or not value or "$date" in value:
        return (Comparison(text, "=", _of_json(value)),)
    return [_of_operator(text, operator, each) for operator, each in value.items()]


def _of_operator(name: str, operator: object, value: Any) -> Condition:
    values = tuple(map(_of_json, value)) if isinstance(value, list | tuple) else ()
    if values and operator in ("$in", "$nin"):
        one = Comparison(name, "in", values)
        return one if operator == "$in" else Not(one)
    if operator == "$between" and len(values) == 2:  # noqa: PLR2004 - From one to the other.
        return And((Comparison(name, ">=", values[0]), Comparison(name, "<=", values[1])))
    if operator == "$exists" and isinstance(value, bool):
        return Comparison(name, "exists") if value else Not(Comparison(name, "exists"))
    if operator in _OPERATORS and operator != "$in":
        return Comparison(name, _OPERATORS[operator], _of_json(value))
    raise InvalidInput(
        f"{name} can't be read with {shown(operator)}: {shown(value)}. Take {', '.join(_OPERATORS)}, $nin or "
        "$between ($in, $nin and $between with a list), or $exists with true or false; write a nested field "
        "as a path, such as 'ticket.owner'."
    )


def _of_json(value: Any) -> Any:
    if isinstance(value, Mapping) and set(value) == {"$date"}:
        return moment_of(checked_text(value["$date"], name="$date"))
    return value


# The text form.


class _Parser:
    """Reads a text by recursive descent, in time linear in its length."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise InvalidInput(f"where has {len(text):,} characters; at most {MAX_LENGTH:,} are possible.")
        self._text = checked_text(text, name="where")
        self._level = 0
        self._advance(0)

    def condition(self) -> Condition:
        """The condition of the whole text."""
        found = self._any()
        if self._type != "end":
            self._refuse("`and`, `or` or the end")
        return found

    def _any(self) -> Condition:
        self._level += 1
        if self._level > MAX_DEPTH + 1:
            raise too_deep()
        parts = [self._all()]
        while self._take("or"):
            parts.append(self._all())
        self._level -= 1
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _all(self) -> Condition:
        parts = [self._single()]
        while self._take("and"):
            parts.append(self._single())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _single(self) -> Condition:
        negations = 0
        while self._take("not"):
            negations += 1
        if self._take("("):
            found = self._any()
            self._need(")", "`and`, `or` or `)`")
        else:
            found = self._comparison()
        for _ in range(negations):
            found = Not(found)
        return found

    def _comparison(self) -> Condition:
        place, name = self._start, self._field()

        def made(operator: Operator, value: Any = None) -> Condition:
            try:
                return Comparison(name, operator, value)
            except InvalidInput as error:
                self._refuse_at(place, str(error))

        word: Any = self._word
        if self._type == "mark" and word in _ORDERS:
            self._advance(self._end)
            return made(word, self._value())
        negated = self._take("not")
        if self._take("exists"):
            found = made("exists")
        elif self._take("startswith"):
            found = made("startswith", self._value())
        elif self._take("between"):
            least = made(">=", self._value())
            self._need("and", "`and` and the second value")
            found = And((least, made("<=", self._value())))
        elif self._take("in"):
            self._need("(", "`(` and values")
            values = [self._value()]
            while self._take(","):
                values.append(self._value())
            self._need(")", "`,` or `)`")
            found = made("in", tuple(values))
        else:
            self._refuse(f"{'' if negated else '=, !=, <, <=, >, >=, '}in, between, startswith or exists")
        return Not(found) if negated else found

    def _field(self) -> str:
        name = ""
        while True:
            if self._type == "text":
                name += quoted(self._read(unquoted))
            elif self._type == "word" and self._word not in KEYWORDS:
                name += self._read(str)
            else:
                self._refuse("a field such as team or ticket.owner, in quotes if it is a word such as in")
            if not self._take("."):
                return name
            name += "."

    def _value(self) -> Value:
        if self._type == "word" and self._word in _WORDS:
            return _WORDS[self._read(str.lower)]
        if self._type not in _READERS:
            self._refuse("a text in quotes, a number, a date, true, false or null")
        value: Value = self._read(_READERS[self._type])
        return value

    def _read(self, read: Callable[[str], Any]) -> Any:
        """The token as a value; the next one follows."""
        try:
            value = read(self._token)
        except ValueError as error:
            if not isinstance(error, InvalidInput):
                self._refuse("escapes of JSON, such as \\n or \\u00e9")
            self._refuse_at(self._start, str(error))
        self._advance(self._end)
        return value

    def _take(self, word: str) -> bool:
        found = self._type in ("word", "mark") and self._word == word
        if found:
            self._advance(self._end)
        return found

    def _need(self, word: str, expected: str) -> None:
        if not self._take(word):
            self._refuse(expected)

    def _advance(self, place: int) -> None:
        match = _TOKEN.match(self._text, place)
        if match is None:
            rest = self._text[place:].lstrip()
            self._start, self._type, self._token = len(self._text) - len(rest), "", rest[0]
            self._refuse("a text that ends in a quote" if rest[0] in "\"'" else "a field, operator or value")
        self._type = str(match.lastgroup)
        self._token = match[self._type]
        self._word = self._token.lower()
        self._start, self._end = match.span(self._type)

    def _refuse(self, expected: str) -> NoReturn:
        found = "the end" if self._type == "end" else shown(self._token)
        self._refuse_at(self._start, f"expected {expected}; found {found}.")

    def _refuse_at(self, place: int, why: str) -> NoReturn:
        first = max(0, place - _AROUND)
        around = self._text[first : place + _AROUND]
        line = "".join(each if each.isprintable() else " " for each in around)
        raise InvalidInput(
            f"where can't be read at character {place + 1}: {why}\n  {line}\n  {' ' * (place - first)}^"
        ) from None


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdigit() and len(text) < _MOST_DIGITS else float(text)


_READERS: Final[Mapping[str, Callable[[str], Value]]] = {
    "text": unquoted,
    "date": moment_of,
    "number": _number,
}
