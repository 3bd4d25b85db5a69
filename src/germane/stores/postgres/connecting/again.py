"""Doing a store's work again, where the server or the way to it failed and nothing had been committed.

Level: stores (imports errors only).
"""

from __future__ import annotations

import inspect
import random
import time
from collections.abc import Callable
from functools import wraps
from threading import local
from typing import Any, Final, TypeVar

from germane.errors import GermaneError

__all__ = ["ATTEMPTS", "Again", "note_commit", "retrying"]

ATTEMPTS: Final = 5
"""How often a piece of work is done at most."""

_FIRST_PAUSE: Final = 0.01

Store = TypeVar("Store", bound=type)


class Again(Exception):
    """A transaction failed by no fault of its own, nothing of it is stored, and it may succeed if repeated.

    It never leaves a store: `error` is what to raise when it can't be repeated.
    """

    def __init__(self, error: GermaneError) -> None:
        super().__init__(str(error))
        self.error = error


class _Commits(local):
    """How many transactions this thread has committed."""

    count = 0


_commits = _Commits()


def note_commit() -> None:
    """Note that the thread has committed: what it does can't be repeated from before that any more."""
    _commits.count += 1


def retrying(store: Store) -> Store:
    """Let opening a store and every public method of it be repeated when a transaction in it raises `Again`.

    A method is repeated from its beginning, at most ATTEMPTS times in all and with growing pauses, so
    it must not change what it was given. One that has committed something before isn't.
    """
    for name, method in inspect.getmembers(store, inspect.isfunction):
        if name == "__init__" or not name.startswith("_"):
            setattr(store, name, _repeated(method))
    return store


def _repeated(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def repeated(*args: Any, **kwargs: Any) -> Any:
        before = _commits.count
        pause = _FIRST_PAUSE
        for _ in range(ATTEMPTS - 1):
            try:
                return method(*args, **kwargs)
            except Again as again:
                if _commits.count != before:
                    raise again.error from again.__cause__
            # Those who met would meet again if they waited equally long.
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - no secret.
            pause *= 3
        try:
            return method(*args, **kwargs)
        except Again as again:
            raise again.error from again.__cause__

    return repeated
