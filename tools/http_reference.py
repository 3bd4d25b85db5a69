"""Write docs/reference/http.md and docs/reference/openapi.json from the routes of the server."""

from __future__ import annotations

import json
from pathlib import Path

from germane.servers.endpoints import PROBLEMS
from germane.servers.rest import openapi_document
from germane.servers.routes import all_routes

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
EVENTS = (
    "| `GET /v1/events` | read | Server-sent events: `stored`, `revised`, `forgotten`, `purged`, "
    "`changed`, `assembled`. |"
)


def document() -> str:
    """The OpenAPI document as it is checked in."""
    return json.dumps(openapi_document(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def page() -> str:
    """The page: each operation with the right that it needs, and the errors of all."""
    operations = openapi_document()["paths"]
    rows = [
        "# HTTP",
        "",
        "What `germane serve` answers. [openapi.json](openapi.json) has every field; results have the JSON",
        "of the [command line](json.md). [Serve over HTTP](../how-to/serve-over-http.md) shows its use.",
        "",
        "| operation | right | what it does |",
        "|---|---|---|",
    ]
    for route in all_routes():
        summary = operations[f"/v1{route.path}"][route.method.lower()]["summary"].replace("|", "\\|")
        rows.append(f"| `{route.method} /v1{route.path}` | {route.right} | {summary} |")
    rows += [
        EVENTS,
        "| `POST /mcp` | read | Model Context Protocol; tools that write need the right to write. |",
        "| `GET /metrics` | admin | Figures in Prometheus' text format. |",
        "| `GET /healthz` | none | Whether the process answers. |",
        "| `GET /readyz` | none | Whether the store can be read; 503 while the server ends. |",
        "| `GET /openapi.json` | none | The document of these operations. |",
        "",
        "## Pages",
        "",
        "A list has at most `limit` entries, 1,000 at most. `after` of the answer is that of the next page,",
        "null on the last one. Pages up to there have each entry once that was in the list at first, also",
        "while others are added. Logs, such as `/v1/changes`, go on from the number of their last entry.",
        "",
        "## Errors",
        "",
        "Each is `application/problem+json` with `type`, `title`, `status` and `detail`; errors of germane",
        "have `germane:` and [their name](errors.md) as the type, and their attributes as members.",
        "",
        "| status | meaning |",
        "|---|---|",
        *(f"| {status} | {meaning} |" for status, meaning in PROBLEMS.items()),
        "| 405 | The address has no such method. |",
        "| 421 | The Host header names another server. |",
    ]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    (FOLDER / "http.md").write_text(page(), encoding="utf-8")
    (FOLDER / "openapi.json").write_text(document(), encoding="utf-8")
    print("Wrote http.md and openapi.json.")
