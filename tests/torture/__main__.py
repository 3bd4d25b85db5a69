"""Run the sections of the torture, show the progress, and print a table; the exit status is 1 on a finding.

    python -m torture [SECTION...] [--seconds 360] [--rounds N] [--seed 1]

The seconds and the rounds are those of each section. Without a section all run, one after the other.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import Final

from rich.console import Console
from rich.table import Table

from torture import arguments, commands, contexts, damage, files, kills, lasting
from torture.task import Task

SECTIONS: Final[Mapping[str, Callable[[Task], None]]] = {
    "kills": kills.of_writers,
    "server": kills.of_servers,
    "contexts": contexts.run,
    "verbs": arguments.of_verbs,
    "routes": arguments.of_routes,
    "tools": arguments.of_tools,
    "commands": commands.run_commands,
    "damage": damage.run,
    "full": files.full,
    "unwritable": files.unwritable,
    "gone": files.gone,
    "forks": files.forks,
    "crowd": lasting.crowd,
    "clock": lasting.clock,
    "tenants": lasting.tenants,
    "tenants-postgres": lasting.tenants_on_a_server,
    "growth": lasting.growth,
    "opening": lasting.opening,
}
"""Each section by its name, in the order in which they run."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__.partition("\n")[0])
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--seconds", type=float, default=300.0, help="of each section")
    parser.add_argument("--rounds", type=int, help="of each section; without it as many as the seconds allow")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if unknown := [each for each in given.sections if each not in SECTIONS]:
        parser.error(f"there is no section {unknown[0]!r}: {', '.join(SECTIONS)}")
    console = Console()
    done = {}
    for name in given.sections or SECTIONS:
        done[name] = _run(name, Task(given.seed, given.seconds, given.rounds), console)
    console.print(_table(done))
    findings = [f"{name}: {each}" for name, task in done.items() for each in task.findings]
    for each in findings:
        console.print(each, markup=False, soft_wrap=True)
    return 1 if findings else 0


def _run(name: str, task: Task, console: Console) -> Task:
    if console.is_terminal:
        with console.status(name) as status:
            task.show = lambda text: status.update(f"{name}: {text}")
            SECTIONS[name](task)
    else:
        task.show = lambda text: console.print(f"{name}: {text}", markup=False, soft_wrap=True)
        task.pause = 30.0
        SECTIONS[name](task)
        task.show(task.summary())
    return task


def _table(done: Mapping[str, Task]) -> Table:
    table = Table("section", "what was done", "seconds", "findings")
    for name, task in done.items():
        figures = "\n".join(f"{count:,} {what}" for what, count in task.figures.items())
        table.add_row(name, figures, f"{task.taken:.0f}", str(len(task.findings)))
    return table


if __name__ == "__main__":
    sys.exit(main())
