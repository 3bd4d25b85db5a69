"""The command line. `main` is the entry point; everything else is imported when it is called.

Each command is a thin layer over one call of the public API. `commands` explains how to add one.
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

import germane
from germane.cli.commands import COUNTING, name_in
from germane.cli.hook_client import is_event, pass_event

_SELDOM = 200_000
_USUAL_VOCABULARY = "o200k_base"


def main() -> NoReturn:
    """Run the command of the process's arguments, and exit with its code.

    0: success. 1: done, but damage was found, a source was skipped or a requirement was missed. 2: invalid
    usage. 3: the store failed. 130: interrupted. 141: the reader of the output is gone.
    """
    arguments = sys.argv[1:]
    if is_event(arguments):
        pass_event(arguments)
        _end(0)
    missing = [
        name for name in ("typer", "rich") if sys.modules.get(name, ...) is None or not find_spec(name)
    ]
    if missing and arguments == ["--version"]:
        print(f"germane {germane.__version__}")  # noqa: T201 - As below.
        sys.exit(0)
    if missing:
        print(  # noqa: T201 - Nothing else can print without the optional packages.
            f"germane: The command line needs {' and '.join(missing)}: pip install 'germane[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    # A short process frees little: frequent collections cost a tenth of its time.
    gc.set_threshold(_SELDOM)
    # OpenBLAS would start a thread per processor, and idle threads spin.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    others = {"--counter", "--help", "-h"}.intersection(each.partition("=")[0] for each in arguments)
    if name_in(arguments) in COUNTING and not others:
        # The command counts tokens with the default counter.
        Thread(target=_load_vocabulary, daemon=True).start()
    from germane.cli.app import app  # noqa: PLC0415 - It imports typer, which may be missing.

    try:
        app()
    except SystemExit as ended:
        _end(ended.code if isinstance(ended.code, int) else 0)
    _end(0)


def _load_vocabulary() -> None:
    """Load the vocabulary of the default counter while the main thread imports the command.

    An error is ignored here: it is raised again when tokens are counted.
    """
    from germane.tokens.counters import ExactCounter  # noqa: PLC0415 - Many commands don't need it.

    with suppress(Exception):
        ExactCounter("o200k", vocabulary=_USUAL_VOCABULARY).count("a")


def _end(code: int) -> NoReturn:
    """Run the exit handlers, flush, and exit without freeing memory.

    Freeing a vocabulary and an embedder's tables object by object takes longer than most commands.
    """
    atexit._run_exitfuncs()  # noqa: SLF001 - The only way to run them; they must run.
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
