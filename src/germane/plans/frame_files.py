"""Frames of one's own, written in TOML.

Level: plans (imports model and errors). Pure: it reads a text and no file.

    [frame.review]
    description = "Reading what somebody else has written."
    questions = ["What does it change?", "What does it break?"]
    patterns = ["^review|pull request*|diff", "approve*"]
    precedence = 6
    domain = ["review"]
    budget = 6000

    [frame.review.priorities]
    procedures = 1.0

    [frame.review.shares]
    decisions = 1500
    facts = 1000
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from germane.errors import InvalidInput
from germane.model.frame import Frame

__all__ = ["frames_from_toml"]

_TEXTS = ("questions", "patterns", "domain")
_TABLES = ("priorities", "shares")
_NUMBERS = ("precedence", "budget")


def frames_from_toml(text: str) -> tuple[Frame, ...]:
    """The frames of a TOML text, in its order.

    Each is a table `[frame.NAME]` with the fields of `Frame`; only a description is needed. Raises
    InvalidInput for what is no TOML, an unknown field, or a value that a frame can't have, and
    InvalidPlan for tokens below 0.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"The frames can't be read as TOML: {error}.") from error
    frames = document.pop("frame", {})
    if document or not isinstance(frames, dict):
        raise InvalidInput(
            "A file of frames has tables [frame.NAME] and nothing else; it has "
            f"{sorted(document) or frames!r}."
        )
    return tuple(_frame(name, fields) for name, fields in frames.items())


def _frame(name: str, fields: Any) -> Frame:
    if not isinstance(fields, Mapping):
        raise InvalidInput(f"frame.{name} is {fields!r}; write a table [frame.{name}].")
    known = {"description", *_TEXTS, *_TABLES, *_NUMBERS}
    if unknown := sorted(set(fields) - known):
        raise InvalidInput(
            f"frame.{name} has a field {unknown[0]!r}. Known fields: {', '.join(sorted(known))}."
        )
    values = {field: _value(name, field, value) for field, value in fields.items()}
    return Frame(name=name, **{"description": "", **values})


def _value(name: str, field: str, value: Any) -> Any:
    if field in _TEXTS and isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    if field in _TABLES and isinstance(value, dict) and all(map(_is_number, value.values())):
        return tuple(value.items())
    if field in _NUMBERS and isinstance(value, int) and not isinstance(value, bool):
        return value
    if field == "description" and isinstance(value, str):
        return value
    wanted = {
        "description": "a text",
        **dict.fromkeys(_TEXTS, "a list of texts"),
        **dict.fromkeys(_TABLES, "a table of numbers"),
        **dict.fromkeys(_NUMBERS, "a whole number"),
    }
    raise InvalidInput(f"frame.{name}.{field} is {value!r}; it has to be {wanted[field]}.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
