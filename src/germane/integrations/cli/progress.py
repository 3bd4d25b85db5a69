"""How far a long piece of work is: a bar on a terminal, now and then a line elsewhere, nothing with --json.

Level: integrations.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from germane.integrations.cli.output import warn

_SECONDS_BETWEEN_LINES: Final = 2.0


@contextmanager
def progress_of(what: str, *, quiet: bool, tenths: bool = False) -> Iterator[Callable[[int, int], None]]:
    """What to tell how much is done, and of how much. `what` is in the plural: "tables".

    Where there is no terminal, a line is printed each few seconds, or with `tenths` for each tenth.
    """
    if quiet:
        yield lambda *_: None
    elif sys.stderr.isatty():
        from rich.console import Console  # noqa: PLC0415 - Only a terminal needs it.
        from rich.progress import Progress  # noqa: PLC0415 - As above.

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
    else:
        yield _tenths_of(what) if tenths else _Lines(what)


def _tenths_of(what: str) -> Callable[[int, int], None]:
    def tell(done: int, total: int) -> None:
        if done * 10 // total > (done - 1) * 10 // total:
            warn(f"{done:,} of {total:,} {what}")

    return tell


class _Lines:
    """A line each few seconds, and one in the end if there was any."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._told = time.monotonic()
        self._any = False

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._told >= _SECONDS_BETWEEN_LINES or (self._any and done >= total):
            self._told, self._any = now, True
            warn(f"{done:,} of {total:,} {self._what}")
