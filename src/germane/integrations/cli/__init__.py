"""The command line. `main` is its entry; everything heavier is imported when it is called.

Level: integrations. Thin: each command translates one call of the public surface.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
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
    from germane.integrations.cli.app import app  # noqa: PLC0415 - It imports typer, which may be missing.

    app()
