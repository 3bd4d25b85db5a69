"""Fields of JSON objects: what is understood becomes values, all else is kept as it came.

Level: ranking (imports errors and model). Pure.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from germane.errors import InvalidInput, shown
from germane.model.message import ContentPart, OpaquePart, Part, Role, TextPart
from germane.model.recalled import is_fenced

__all__ = [
    "TEXT",
    "content_of",
    "extra_fields",
    "object_of",
    "read_content",
    "refused",
    "rest_of",
    "role_of",
    "to_json",
    "write_content",
]

TEXT = frozenset({"text"})


def to_json(value: object) -> str:
    """The value as JSON text. Raises InvalidInput for what JSON can't hold."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{shown(value)} is no JSON ({error}), and a message is JSON. Use texts, finite numbers, true, "
            "false, None, lists, and mappings with text keys."
        ) from error


def refused(place: str, wanted: str, value: object) -> InvalidInput:
    """The error that says what was expected where."""
    return InvalidInput(f"{place} must be {wanted}, and is {shown(value)}.")


def object_of(value: object, place: str) -> Mapping[str, Any]:
    """A JSON object."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise refused(place, "an object with text keys", value)
    return value


def role_of(fields: Mapping[str, Any], roles: Mapping[str, Role]) -> Role:
    """The role that a provider's word for it means."""
    role = fields.get("role")
    if not isinstance(role, str) or role not in roles:
        raise refused("'role'", f"one of {', '.join(roles)}", role)
    return roles[role]


def rest_of(fields: Mapping[str, Any], understood: Collection[str]) -> str:
    """The fields that nothing else keeps, as a JSON object; empty when there are none."""
    rest = {name: value for name, value in fields.items() if name not in understood}
    return to_json(rest) if rest else ""


def extra_fields(extra: str) -> dict[str, Any]:
    """The fields that `rest_of` kept."""
    return json.loads(extra) if extra else {}


def read_content(content: object, place: str, *, texts: Collection[str] = TEXT) -> tuple[ContentPart, ...]:
    """A content that is a text, or a list of parts with a type. `texts` are the types of texts."""
    if isinstance(content, str):
        return (TextPart(text=content, recalled=is_fenced(content)),)
    if content is None:
        return ()
    if not isinstance(content, Sequence):
        raise refused(place, "a text or a list of parts", content)
    return tuple(_part(each, f"{place}[{index}]", texts) for index, each in enumerate(content))


def content_of(parts: Sequence[Part]) -> tuple[ContentPart, ...]:
    """The parts of a message that are content, and no tool traffic."""
    return tuple(part for part in parts if isinstance(part, TextPart | OpaquePart))


def write_content(parts: Sequence[ContentPart], *, text: str = "text") -> str | list[dict[str, Any]]:
    """What `read_content` read; a text part of no form gets the type `text` where there are several."""
    only = parts[0] if len(parts) == 1 else None
    if isinstance(only, TextPart) and not only.form:
        return only.text
    return [_written(part, text) for part in parts]


def _part(part: object, place: str, texts: Collection[str]) -> ContentPart:
    fields = object_of(part, place)
    form = fields.get("type")
    if not isinstance(form, str) or not form:
        raise refused(f"{place}['type']", "the name of a type", form)
    text = fields.get("text")
    if form in texts and isinstance(text, str):
        rest = rest_of(fields, ("type", "text"))
        return TextPart(text=text, recalled=is_fenced(text), form=form, extra=rest)
    return OpaquePart(json=to_json(fields), form=form)


def _written(part: ContentPart, text: str) -> dict[str, Any]:
    if isinstance(part, OpaquePart):
        return json.loads(part.json)  # type: ignore[no-any-return]  # An object was read.
    return {"type": part.form or text, "text": part.text, **extra_fields(part.extra)}
