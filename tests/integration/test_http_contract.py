"""All operations of the HTTP server against its own document, by cases that schemathesis makes up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import germane
from germane.servers import openapi_document
from support.http_server import serving

SEED = 1
CONFIGURATION = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", "401", "403", "404", "409", "412", "422", "429"]
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "408", "409", "412", "413", "415", "422", "431"]
"""


def names_in(database: Path) -> dict[str, str]:
    """A store with something under each name that a path may have, and these names."""
    with germane.connect(database, embedder=None) as handle:
        engine = handle.agent("newton")
        memory = engine.remember("We chose PostgreSQL for billing.", kind="decision")
        messages = engine.conversation("monday").extend(
            [{"role": "user", "content": "Hello there."}, {"role": "assistant", "content": "Hello."}]
        )
        ref = engine.assemble("billing", record=True).ref
        engine.space("team", create=True)
        engine.for_user("ann").remember("Ann prefers tea.")
        engine.working_set("default").add(memory)
        return {
            "memory_id": memory.id,
            "session": "monday",
            "message_id": messages[0].id,
            "group": str(messages[0].group),
            **dict.fromkeys(("assembly_id", "first", "second"), str(ref)),
            "space": "team",
            "name": "default",
            "user": "ann",
        }


@pytest.mark.long
@pytest.mark.timeout(400)
def test_every_operation_answers_as_the_document_says(tmp_path: Path) -> None:
    names = names_in(tmp_path / "m.db")
    configuration = tmp_path / "schemathesis.toml"
    configuration.write_text(CONFIGURATION, encoding="utf-8")
    hooks = {
        "SCHEMATHESIS_HOOKS": "support.http_contract",
        "GERMANE_NAMES": ",".join(f"{name}={value}" for name, value in names.items()),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
    }
    with serving(tmp_path / "m.db") as server:
        command = [str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(configuration)]
        command += ["run", f"{server.address}/openapi.json", "--seed", str(SEED), "--max-examples", "5"]
        command += ["--header", f"Authorization: Bearer {server.token}", "--no-color"]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, **hooks}
        )
    report = done.stdout + done.stderr
    assert done.returncode == 0, report[report.find("= FAILURES =") :][:20_000]
    assert "Stateful (in" in report
    operations = sum(len(methods) for methods in openapi_document()["paths"].values())
    assert f"Tested: {operations}" in report
