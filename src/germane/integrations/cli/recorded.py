"""The recorded assembly that a command line names.

Level: integrations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from germane import InvalidInput

if TYPE_CHECKING:
    from germane import Assembly, Engine

_SHORTEST = 4


def recorded(engine: Engine, text: str | None) -> Assembly:
    """The assembly that a text names, or the latest. Raises NotRecorded, or InvalidInput for none at all."""
    ledger = engine.ledger()
    if text is not None:
        return ledger.show(whole_assembly_id(engine, text))
    latest = ledger.list(limit=1)
    if not latest:
        raise InvalidInput(
            "Nothing is recorded, so nobody knows what was shown. Record it with `germane assemble "
            "--record`, or give --context what `germane assemble --json` printed."
        )
    return latest[0]


def whole_assembly_id(engine: Engine, text: str) -> str:
    """The whole id of the assembly that a text names. Raises InvalidInput for what names several."""
    wanted = text.strip().lower()
    found = [
        one.id
        for one in engine.ledger().list(limit=None)
        if len(wanted) >= _SHORTEST and (one.id.startswith(wanted) or one.id.endswith(wanted))
    ]
    if len(found) > 1:
        raise InvalidInput(f"{text!r} names {len(found)} assemblies. Give more of the id.")
    return found[0] if found else text
