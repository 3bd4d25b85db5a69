"""What no database keeps, whichever it is: half characters and numbers of more than 64 bits.

Level: stores (imports errors only).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from germane.errors import InvalidInput

__all__ = ["storable"]

_AROUND: Final = 20


@contextmanager
def storable() -> Iterator[None]:
    """Raise InvalidInput for a text or a number that a driver couldn't even write down."""
    try:
        yield
    except UnicodeEncodeError as error:
        around = error.object[max(0, error.start - _AROUND) : error.start + _AROUND]
        raise InvalidInput(
            f"The text {around!r} holds a lone surrogate (U+{ord(error.object[error.start]):04X}), "
            "which is half a character and can't be written as UTF-8. "
            "Decode the text with errors='replace' before it is remembered."
        ) from error
    except OverflowError as error:
        raise InvalidInput(f"A number is too large to be stored ({error}); the limit is 64 bits.") from error
