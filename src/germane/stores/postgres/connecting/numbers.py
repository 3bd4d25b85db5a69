"""Agents' numbers in place of their names, where a statement has to say by itself which server it is for.

Level: stores (imports nothing of the package). A cluster chooses the server before it evaluates a function,
and servers don't ask each other while they answer.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

__all__ = ["NUMBER", "numbered"]

NUMBER: Final = b"SELECT agent FROM agents WHERE name = %s"
"""What asks for the number of a name."""

_LOOK_UP: Final = re.compile(rb"number_of\(%\((\w+)\)s\)")


@cache
def numbered(query: bytes) -> tuple[bytes, dict[str, str]]:
    """A query without look-ups of names, and which value each has instead, by that of the name."""
    names = sorted({name.decode() for name in _LOOK_UP.findall(query)})
    return _LOOK_UP.sub(rb"%(number_of_\1)s::bigint", query), {name: f"number_of_{name}" for name in names}
