"""The names that calls go by: which stand where none is given, and how a space's is an agent's in a store.

Level: model (imports errors only). They stand apart from what they name, which few calls need.
"""

from __future__ import annotations

from typing import Final

from germane.errors import InvalidInput

__all__ = [
    "DEFAULT_BUDGET",
    "DEFAULT_FRAME",
    "DEFAULT_PROVIDER",
    "DEFAULT_RANKER",
    "DEFAULT_SET",
    "LONGEST_NAME",
    "REMOVED",
    "checked_name",
    "is_removed",
    "is_tenant",
    "removed_name",
    "space_of",
    "tenant_of",
]

DEFAULT_BUDGET: Final = 8000
"""Tokens where neither a call nor a frame says how many, as in two of the four designs before it."""

DEFAULT_FRAME: Final = "task"
"""The frame of an assembly that names none."""

DEFAULT_PROVIDER: Final = "openai"
"""Whose layout a request has that names none."""

DEFAULT_RANKER: Final = "relevance"
"""What ranks a recall that names no ranker."""

DEFAULT_SET: Final = "default"
"""The working set that an agent has without naming one."""

LONGEST_NAME: Final = 200
"""Characters of a space's name."""

_PREFIX: Final = "space:"

# No agent can have it, since it is kept for spaces, and no space, since theirs don't begin with a blank.
REMOVED: Final = f"{_PREFIX} removed "
"""How the names of agents begin whose removal has begun; their numbers follow."""


def tenant_of(space: str) -> str:
    """The name of the agent that a space is in a store."""
    return _PREFIX + checked_name(space)


def space_of(tenant: str) -> str:
    """The name of the space that such an agent is; the other way round."""
    return tenant.removeprefix(_PREFIX)


def is_tenant(agent: str) -> bool:
    """Whether the name is kept for spaces, so that no agent may have it."""
    return agent.startswith(_PREFIX)


def removed_name(number: int) -> str:
    """What an agent of this number is called from the moment on in which its removal begins."""
    return f"{REMOVED}{number}"


def is_removed(name: str) -> bool:
    """Whether that is the name of an agent, or of a space, of which only rows to remove are left."""
    return name.startswith(REMOVED)


def checked_name(space: object) -> str:
    """The name of a space. Raises InvalidInput for what can't be one."""
    if not isinstance(space, str):
        raise InvalidInput(f"space={space!r} is {type(space).__name__}; a name (str) is needed.")
    if not 1 <= len(space) <= LONGEST_NAME or not space.isprintable() or space != space.strip():
        shown = repr(space if len(space) <= LONGEST_NAME else space[:40] + "…")
        raise InvalidInput(
            f"space={shown} is no name for a space: use 1 to {LONGEST_NAME} visible characters, "
            "with no space at either end, such as 'team'."
        )
    return space
