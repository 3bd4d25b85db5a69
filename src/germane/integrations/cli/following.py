"""Commands that go on telling of what happens, until they are interrupted.

Level: integrations.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeVar

from germane.integrations.cli.command import Call
from germane.integrations.cli.options import opt
from germane.integrations.cli.output import print_text

if TYPE_CHECKING:
    from germane.verbs.following import Following

_TURN = 0.05
"""Seconds until an end is noticed that no event has brought."""

T = TypeVar("T")

Follow = Annotated[bool, opt("--follow", "Go on with what happens from now on, until it is interrupted.")]
Since = Annotated[int | None, opt("--since NUMBER", "Only those after this number.")]


def follow_each(
    call: Call,
    follow: Callable[[Callable[[T], object]], Following[T]],
    *,
    row: Callable[[T], tuple[str, ...]],
    limit: int | None,
) -> None:
    """Print each entry of a log as it comes, on a line of its own, until so many or an interruption.

    What ends the following of the log by itself is raised.
    """
    stop, left = threading.Event(), limit

    def tell(entry: T) -> None:
        nonlocal left
        if stop.is_set():
            return
        if not call.prints(entry, on_a_line=True):
            print_text("  ".join(filter(None, row(entry))))
        if left is not None:
            left -= 1
            if left <= 0:
                stop.set()

    if limit == 0:
        return
    with stopped_by_signals(stop), follow(tell) as following:
        while following.is_alive and not stop.wait(_TURN):
            pass
    if following.error is not None:
        raise following.error


@contextmanager
def stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Inside, an interruption lets the step that is going on finish, and ends the watch after it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread may say what signals do.
        return
    before = {each: signal.signal(each, lambda *_: stop.set()) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
