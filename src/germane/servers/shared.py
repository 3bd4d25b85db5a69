"""What several operations of the REST server need: pages of lists, and conversations by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from germane import Conversation
from germane.errors import MessageNotFound

Page: TypeAlias = int
"""How many entries an answer has at most."""


def page_of(name: str, found: Sequence[Any], limit: int, mark: str | None = None) -> dict[str, Any]:
    """The first `limit` of `limit + 1` entries, and `after`: the attribute `mark` of the last, or itself.

    `after` is None on the last page.
    """
    page = found[:limit]
    last = page[-1] if len(found) > limit else None
    return {name: page, "after": last if last is None or mark is None else getattr(last, mark)}


def known_conversation(engine: Any, path: Mapping[str, str]) -> Conversation:
    """The existing conversation of that name. Raises MessageNotFound."""
    found: Conversation = engine.conversation(path["session"])
    if not found.exists():
        raise MessageNotFound("conversation", found.session, found.session)
    return found
