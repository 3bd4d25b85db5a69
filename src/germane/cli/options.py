"""The options and arguments that commands share, each declared once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from germane.errors import InvalidInput, shown
from germane.model.validation import INTEGERS, checked_tags

if TYPE_CHECKING:
    from germane import Filter


def opt(spec: str, text: str, **more: Any) -> Any:
    """An option from its name and metavar, such as "--limit N", and its help; `more` goes to typer."""
    name, _, metavar = spec.partition(" ")
    return typer.Option(name, metavar=metavar or None, help=text, **more)


def arg(metavar: str, text: str, **more: Any) -> Any:
    """An argument from its metavar and its help; `more` goes to typer."""
    return typer.Argument(metavar=metavar, help=text, **more)


_TIME = "ISO 8601, UTC by default"
_WORDS = "ISO 8601, or words: last week"

Target = Annotated[
    str, arg("ID", "Memory id, or 4 or more characters of its beginning or end; ID@2: version 2.")
]
QueryText = Annotated[str, arg("QUERY", "What to look for, in any words.")]
MemoryText = Annotated[str, arg("TEXT", "The text of the memory; - reads standard input.")]

# The fields of a memory.

Subject = Annotated[str | None, opt("--subject TEXT", "What or whom it is about, in a word or two.")]
Tags = Annotated[list[str] | None, opt("--tag TAG", "A tag, such as storage:cache. Repeatable.")]
Importance = Annotated[float | None, opt("--importance 0-10", "Importance; 1 for a new memory.")]
Confidence = Annotated[float | None, opt("--confidence 0-1", "Confidence; 1 for a new memory.")]
OutcomeName = Annotated[
    str | None, opt("--outcome OUTCOME", "success, partial, ongoing, pending, failure or abandoned.")
]
Meta = Annotated[
    list[str] | None, opt("--meta KEY=VALUE", "A metadata field; VALUE may be JSON. Repeatable.")
]


ValidFrom = Annotated[str | None, opt("--valid-from TIME", f"Start of its validity ({_WORDS}).")]
ValidUntil = Annotated[str | None, opt("--valid-until TIME", f"End of its validity, exclusive ({_WORDS}).")]


class DraftFields(NamedTuple):
    """The options for the fields of a new memory, by the names that these have in `germane.Draft`."""

    kind: Annotated[
        str, opt("--kind KIND", "Such as note, fact, decision, procedure, episode, constraint.")
    ] = "note"
    subject: Subject = None
    tags: Tags = None
    scope: Annotated[str, opt("--scope SCOPE", "Where it applies, such as global, task:T-42, path:src.")] = (
        "global"
    )
    importance: Importance = None
    confidence: Confidence = None
    outcome: OutcomeName = None
    trust: Annotated[
        str | None, opt("--trust TRUST", "Whose word it is: owner, agent, peer or external.")
    ] = None
    source: Annotated[str | None, opt("--source TEXT", "Where the text comes from.")] = None
    pinned: Annotated[bool, opt("--pinned", "Always show it in contexts.")] = False
    created_at: Annotated[str | None, opt("--created-at TIME", f"Creation time, if not now ({_TIME}).")] = (
        None
    )
    metadata: Meta = None
    session: Annotated[str | None, opt("--session NAME", "The session in which it was learned.")] = None
    key: Annotated[
        str | None, opt("--key KEY", "Your name for it: a new version of the memory of that key.")
    ] = None
    valid_from: ValidFrom = None
    valid_until: ValidUntil = None
    ttl: Annotated[float | None, opt("--ttl SECONDS", "Remove it this many seconds from now.")] = None

    def checked(self) -> dict[str, Any]:
        """The fields as a draft takes them. Raises InvalidInput."""
        created_at = moment_of(self.created_at, name="--created-at")
        metadata = fields_of(self.metadata or ())
        return {**self._asdict(), "tags": self.tags or (), "created_at": created_at, "metadata": metadata}


# Filters and times.

SinceWords = Annotated[str | None, opt("--since TIME", f"Created at this time or later ({_WORDS}).")]
WithSpaces = Annotated[
    list[str] | None, opt("--with-space SPACE", "Also use the memories of this space. Repeatable.")
]
Without = Annotated[list[str] | None, opt("--without ID", "As if this memory were not stored. Repeatable.")]
Limit = Annotated[int, opt("--limit N", "The maximum number of memories to show.")]
Now = Annotated[str | None, opt("--now TIME", f"The time of the question, if not now ({_TIME}).")]
AsOf = Annotated[str | None, opt("--as-of TIME", f"Use the memories as they were then ({_WORDS}).")]


class Filters(NamedTuple):
    """The options that restrict which memories take part. A command with such a parameter has all of them."""

    kind: Annotated[list[str] | None, opt("--kind KIND", "Only this kind. Repeatable.")] = None
    tag: Annotated[list[str] | None, opt("--tag TAG", "Only this tag or a tag below it. Repeatable.")] = None
    scope: Annotated[
        list[str] | None, opt("--scope SCOPE", "Only this scope, such as task:T-42. Repeatable.")
    ] = None
    subject: Annotated[str | None, opt("--subject TEXT", "Only this subject.")] = None
    meta: Annotated[
        list[str] | None, opt("--meta KEY=VALUE", "Only this value of a metadata field. Repeatable.")
    ] = None
    since: SinceWords = None
    until: Annotated[str | None, opt("--until TIME", f"Created before this time ({_WORDS}).")] = None
    min_importance: Annotated[
        float | None, opt("--min-importance 0-10", "Only this importance or higher.")
    ] = None

    condition: Annotated[
        str | None,
        opt("--where CONDITION", "Only if this is true, such as 'team = \"core\" and score >= 3'."),
    ] = None

    def where(self, **more: Any) -> Filter:
        """The filter of these options and of `more` fields. Raises InvalidInput."""
        from germane import Filter, TimeRange  # noqa: PLC0415 - A server starts without numpy.

        several = {"kinds": self.kind, "tags": checked_tags(self.tag or ()), "scopes": self.scope, **more}
        timed = self.since is not None or self.until is not None
        return Filter(
            subject=self.subject,
            metadata=fields_of(self.meta or ()),
            when=TimeRange(since=self.since, until=self.until) if timed else None,
            min_importance=self.min_importance,
            where=self.condition,
            **{name: value for name, value in several.items() if value},
        )


# The settings of a context.

Budget = Annotated[
    int | None, opt("--budget TOKENS", "Maximum tokens of the text; by default the frame's budget.")
]
FramesFile = Annotated[
    Path | None, opt("--frames FILE", "A TOML file of further frames, one table for each.")
]
Record = Annotated[bool, opt("--record", "Record the assembly in the ledger.")]


def _counter(name: str | None) -> str | None:
    """The name of a counter; the path of a `tokenizer.json` becomes one."""
    if name is not None and name.endswith(".json"):
        from germane.tokens import tokenizer_counter  # noqa: PLC0415 - Few commands count by a file.

        tokenizer_counter(name)
    return name


CounterName = Annotated[
    str | None,
    opt("--counter NAME", "Token counter, a model, or its tokenizer.json.", callback=_counter),
]
Root = Annotated[
    Path | None,
    opt("--root FOLDER", "Project root; found by germane.toml, repository or manifest otherwise."),
]
Into = Annotated[str | None, opt("--into SET", "Add the results to this working set, as far as they fit.")]

# Confirmation, and following events.

Yes = Annotated[bool, opt("--yes", "Confirm: this can't be undone.")]
Follow = Annotated[bool, opt("--follow", "Print new events until interrupted.")]
AfterNumber = Annotated[int | None, opt("--after NUMBER", "Only events after this number.")]


_LONGEST_NAME = 255
"""The maximum bytes of a file name on the usual file systems."""


def path_of(text: str) -> Path:
    """The path of a text. Raises BadParameter for a text that can't be a path."""
    longest = max((len(part.encode(errors="replace")) for part in Path(text).parts), default=0)
    if not text or "\0" in text or longest > _LONGEST_NAME:
        raise typer.BadParameter(f"{shown(text)} can't be a path.")
    return Path(text)


def place_of(text: str) -> str:
    """A path or an address. Raises BadParameter for a text that can't be either."""
    if "://" not in text:
        path_of(text)
    return text


def moment_of(text: str | None, *, name: str) -> datetime | None:
    """A time in ISO 8601, in UTC unless it has an offset. Raises InvalidInput that mentions `name`."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"{name}={shown(text)} is no time of the years 1 to 9999 in UTC. Write it as 2026-11-20 or "
            "2026-11-20T12:00Z (ISO 8601)."
        ) from None


def fields_of(pairs: Iterable[str]) -> dict[str, Any]:
    """Metadata from KEY=VALUE texts; a value that is JSON is parsed. Raises InvalidInput."""
    fields: dict[str, Any] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not key or not separator:
            raise InvalidInput(f"--meta {pair!r} names no field. Write KEY=VALUE, such as reason='too slow'.")
        try:
            fields[key] = json.loads(value)
        except ValueError:
            fields[key] = value
        except RecursionError:
            raise InvalidInput(f"--meta {key}=… is JSON that is nested too deeply. Flatten it.") from None
    return fields


def numbers_of(text: str, *, name: str, least: int = 0) -> list[int]:
    """64-bit integers of `least` or more, separated by commas. Raises InvalidInput that mentions `name`."""
    try:
        numbers = [int(part.replace("_", "")) for part in text.split(",") if part.strip()]
    except ValueError:
        numbers = []
    if min(numbers, default=-1) < least or max(numbers) not in INTEGERS:
        raise InvalidInput(
            f"{name}={shown(text)} is no list of numbers from {least} to {INTEGERS[-1]}. Write 500,1000,2000."
        )
    return numbers
