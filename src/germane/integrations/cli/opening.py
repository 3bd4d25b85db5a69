"""From what stands on a command line to an engine, a moment, an id.

Level: integrations.
"""

from __future__ import annotations

import json
import os
import string
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import germane
from germane import Filter, InvalidInput, NotFound, Status, StoreUnavailable
from germane.stores.opening import exists

if TYPE_CHECKING:
    from germane import Embedder, Engine, Memory, Space

DEFAULT_AGENT = "default"

EMBEDDERS: Final = {"static": "StaticEmbedder", "onnx": "OnnxEmbedder"}

_ID_LENGTH = 36
_SHORTEST = 4
_PAGE = 1000
_NAMED = 5


def text_of(file: Path) -> str:
    """The text of a file. Raises UnreadableSource."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise germane.UnreadableSource(f"{str(file)!r} can't be read: {error}.") from error


def chosen_embedder() -> Embedder | Literal["bundled"] | None:
    """The embedder that GERMANE_EMBEDDER names, or the bundled one, which gives way to a file's own."""
    name = os.environ.get("GERMANE_EMBEDDER", "bundled")
    if name == "bundled":
        return "bundled"
    return None if name == "none" else embedder_named(name)


def embedder_named(name: str) -> Embedder:
    """The embedder of that name. Raises InvalidInput."""
    if name not in EMBEDDERS:
        known = ", ".join(EMBEDDERS)
        raise InvalidInput(f"The embedder {name!r} is unknown. Take {known}, or none for words alone.")
    found: Embedder = getattr(import_module("germane.embedders"), EMBEDDERS[name])()
    return found


def moment_of(text: str | None, *, name: str) -> datetime | None:
    """A time in ISO 8601; one without an offset is UTC, since a command line is for people."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(
            f"{name}={text!r} is no time. Write it as 2026-11-20 or 2026-11-20T12:00Z (ISO 8601)."
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def fields_of(pairs: Iterable[str]) -> dict[str, Any]:
    """Metadata from KEY=VALUE texts. A value that is JSON is read as such, any other is a text."""
    found: dict[str, Any] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not key or not separator:
            raise InvalidInput(f"--meta {pair!r} names no field. Write KEY=VALUE, such as reason='too slow'.")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
        except RecursionError:
            raise InvalidInput(f"--meta {key}=… is JSON that is nested too deeply. Flatten it.") from None
    return found


def id_of(engine: Engine | Space, text: str) -> str:
    """The whole id of the memory that a text names by its id, or by the beginning or end of it.

    The version of an `id@n` stays. Raises NotFound, or InvalidInput for what is too short or names several
    memories.
    """
    wanted, at, version = text.strip().lower().partition("@")
    if len(wanted) == _ID_LENGTH:
        return wanted + at + version
    if len(wanted) < _SHORTEST:
        raise InvalidInput(
            f"{text!r} is too short for an id: give {_SHORTEST} characters or more of its beginning or end."
        )
    if not set(wanted) <= set(string.hexdigits + "-"):
        raise NotFound(text, engine.agent)
    every = (memory.id for memory in all_memories(engine))
    found = list(dict.fromkeys(one for one in every if one.startswith(wanted) or one.endswith(wanted)))
    if not found:
        raise NotFound(text, engine.agent)
    if len(found) > 1:
        raise InvalidInput(_ambiguous(text, found))
    return found[0] + at + version


def all_memories(engine: Engine | Space) -> Iterator[Memory]:
    """Every memory of the agent, whatever its status, newest first."""
    after: str | None = None
    everything = Filter(statuses=tuple(Status))
    while page := engine.memories(everything, limit=_PAGE, after=after):
        yield from page
        after = page[-1].ref


def _ambiguous(text: str, found: Sequence[str]) -> str:
    named = ", ".join(found[:_NAMED])
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f"{text!r} names {len(found)} memories: {named}{more}. Give more of the id."


def check_is_there(database: str) -> None:
    """Raise StoreUnavailable where there is no store: only some commands make one.

    A server is asked when the store is opened, and says then what it lacks.
    """
    if not exists(database):
        raise StoreUnavailable(
            f"There is no store at {database}. `germane remember` and `germane import` make one; "
            "--db or GERMANE_DB names another."
        )
