"""Writes a file in the place that it has: through links, with the mode and the owner that it had.

Level: exchange (imports errors).
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final, TextIO

from germane.errors import InvalidInput

__all__ = ["check_ordinary", "write_through", "written_through"]

_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# Opening a pipe that nobody reads would wait for ever.
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@contextmanager
def written_through(path: Path) -> Iterator[TextIO]:
    """What is written inside stands in the file when the block ends, and not before.

    A file that is there keeps its mode, its owner and its other names, and a link is followed. Raises
    InvalidInput for what is no ordinary file, or can't be written; then nothing has changed, unless the
    disk is full.
    """
    check_ordinary(path)
    with TemporaryFile() as whole, TextIOWrapper(whole, encoding="utf-8", newline="\n") as text:
        yield text
        text.flush()
        whole.seek(0)
        _copy(whole, path)


def write_through(path: Path, whole: bytes) -> None:
    """Write a file as `written_through` does."""
    check_ordinary(path)
    _copy(BytesIO(whole), path)


def check_ordinary(path: Path) -> None:
    """Raise InvalidInput for what is there and no ordinary file."""
    with suppress(FileNotFoundError), _refused(path):
        _check_mode(path, path.stat().st_mode)


def _check_mode(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise InvalidInput(
            f"{path} is {kind} and no ordinary file, so nothing is written to it. Name a file."
        )


def _copy(whole: IO[bytes], path: Path) -> None:
    with _refused(path):
        is_new = not path.exists()
        number = os.open(path, _FLAGS, 0o666)
        with os.fdopen(number, "wb") as file:
            _check_mode(path, os.fstat(number).st_mode)
            try:
                shutil.copyfileobj(whole, file)
                file.truncate()
            except OSError:
                if is_new:
                    path.unlink()
                raise


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        if path.parent.is_dir():
            raise
        raise InvalidInput(f"{path} can't be written: the folder {path.parent} doesn't exist.") from None
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InvalidInput(f"{path} can't be written: {why}. Name a file that can be.") from error
