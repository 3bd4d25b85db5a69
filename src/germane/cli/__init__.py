"""The command line. `main` is its entry; everything heavier is imported when it is called.

Thin: each command translates one call of the public surface. A new command is registered in `commands`,
which says how.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from threading import Thread
from typing import NoReturn

from germane.cli.commands import COUNTING, name_in

__all__ = ["main"]

_SELDOM = 200_000
_USUAL_VOCABULARY = "o200k_base"


def main() -> NoReturn:
    """Run the command that the process was started with, and end the process with its exit code.

    0: done. 1: done, and something was found wrong or couldn't be read. 2: a mistake in what was
    asked. 3: the store couldn't do it. 130: interrupted. 141: nobody read the output any more.
    """
    missing = [
        name for name in ("typer", "rich") if sys.modules.get(name, ...) is None or not find_spec(name)
    ]
    if missing:
        print(  # noqa: T201 - The one line that can be said without the optional packages.
            f"germane: The command line needs {' and '.join(missing)}: pip install 'germane[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    # A short process makes much that stays and little that falls: to look for it often costs a tenth.
    gc.set_threshold(_SELDOM)
    # OpenBLAS would start a thread for each processor, which spin while there is nothing for them to do.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if _will_count(sys.argv[1:]):
        Thread(target=_load_vocabulary, daemon=True).start()
    from germane.cli.app import app  # noqa: PLC0415 - It imports typer, which may be missing.

    try:
        app()
    except SystemExit as ended:
        _end(ended.code if isinstance(ended.code, int) else 0)
    _end(0)


def _will_count(arguments: list[str]) -> bool:
    """Whether the command is one that counts tokens, by the counter that most use."""
    others = {"--counter", "--help", "-h"}
    return name_in(arguments) in COUNTING and not any(each.partition("=")[0] in others for each in arguments)


def _load_vocabulary() -> None:
    """Load what counts tokens beside all the other loading, which it doesn't keep from running.

    What goes wrong here goes wrong again where tokens are counted, and is told there.
    """
    from germane.tokens.counters import ExactCounter  # noqa: PLC0415 - Many commands don't need it.

    with suppress(Exception):
        ExactCounter("o200k", vocabulary=_USUAL_VOCABULARY).count("a")


def _end(code: int) -> NoReturn:
    """End the process as it would end by itself, but without freeing what the system frees at once.

    To take apart a vocabulary and the tables of the embedder piece by piece lasts longer than most commands.
    """
    atexit._run_exitfuncs()  # noqa: SLF001 - The one way to run them; what was registered must run.
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
