"""The YAML block that opens a Markdown file.

Level: exchange (imports errors).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from germane.errors import MissingExtra
from germane.exchange.sources import unreadable

__all__ = ["FrontMatter", "split_front_matter"]

_FENCE = "---"
_FENCE_ENDS = ("---", "...")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """A document's own fields and its text without them; `lines` is how many lines they took."""

    fields: Mapping[str, Any]
    body: str
    lines: int


def split_front_matter(text: str, path: Path) -> FrontMatter:
    """Part a document into the fields that open it and the rest.

    A first line `---` that nothing closes, or with mere prose up to the next, is a rule across the
    page and no front matter. Raises UnreadableSource, naming the line, for a block that is no YAML
    or holds a list.
    """
    lines = text.split("\n")
    if lines[0].rstrip() != _FENCE:
        return FrontMatter(fields={}, body=text, lines=0)
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() in _FENCE_ENDS), None)
    if end is None:
        return FrontMatter(fields={}, body=text, lines=0)
    fields = _load("\n".join(lines[1:end]), path)
    if fields is None:
        return FrontMatter(fields={}, body=text, lines=0)
    return FrontMatter(fields=fields, body="\n".join(lines[end + 1 :]), lines=end + 1)


def _load(block: str, path: Path) -> Mapping[str, Any] | None:
    """The block's fields; None where it is prose."""
    try:
        import yaml  # noqa: PLC0415 - An optional dependency, needed only where there is front matter.
    except ImportError as error:
        raise MissingExtra(feature="Reading front matter", extra="cli") from error
    try:
        fields = yaml.safe_load(block)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else None
        reason = f"its front matter is no YAML ({error.problem or error.context})"
        raise unreadable(path, reason, line=line) from error
    except (yaml.YAMLError, ValueError) as error:  # A date such as 2024-13-45 is a ValueError.
        raise unreadable(path, f"its front matter is no YAML ({error})") from error
    except RecursionError as error:
        raise unreadable(path, "its front matter is nested too deeply", line=1) from error
    if fields is None:
        return {}
    if isinstance(fields, str):
        return None
    if not isinstance(fields, dict):
        raise unreadable(path, "its front matter must be `name: value` lines", line=2)
    return {str(name): value for name, value in fields.items()}
