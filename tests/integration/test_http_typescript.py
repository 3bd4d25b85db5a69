"""A typed client in TypeScript: types made from the running server's document, checked and run against it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from support.http_server import serving

SOURCE = Path(__file__).resolve().parents[1] / "typescript"


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("npm") is None, reason="needs Node.js with npm")
def test_a_typed_script_compiles_and_runs_against_the_server(tmp_path: Path) -> None:
    folder = tmp_path / "client"
    shutil.copytree(SOURCE, folder)
    try:
        run(folder, "npm", "install", "--no-audit", "--no-fund", "--silent")
    except AssertionError as error:
        pytest.skip(f"The packages can't be had: {error}"[:500])
    with serving(tmp_path / "m.db") as server:
        document, option = f"{server.address}/openapi.json", "--default-non-nullable=false"
        run(folder, "npx", "openapi-typescript", document, option, "-o", "germane.d.ts")
        run(folder, "npx", "tsc", "--project", ".")
        printed = json.loads(run(folder, "node", "client.js", server.address, str(server.token)))
    assert "PostgreSQL" in printed["text"]
    assert printed["tokens"] <= 300
    assert (printed["status"], printed["type"], printed["total"]) == (404, "germane:NotFound", 1)
    assert printed["id"]
