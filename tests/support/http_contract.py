"""What schemathesis loads before it runs: names that exist in half of the cases, and a check of our own."""

from __future__ import annotations

import itertools
import os
import re
from typing import Any

import schemathesis

NAMES = dict(each.split("=") for each in os.environ["GERMANE_NAMES"].split(","))
"""A known name for each parameter of a path."""


@schemathesis.hook
def map_path_parameters(_: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Known names in about half of the cases; without them all would end in 404."""
    if not path_parameters:
        return path_parameters
    return {
        name: NAMES.get(name, value) if len(str(value)) < MOST and sum(map(ord, str(value))) % 2 else value
        for name, value in path_parameters.items()
    }


MOST = 200
_numbers = itertools.count()


@schemathesis.hook
def map_headers(_: Any, headers: dict[str, Any] | None) -> dict[str, Any] | None:
    """Another Idempotency-Key in each case, since the same one with another request is refused."""
    key = None if headers is None else headers.get("Idempotency-Key")
    if headers is None or not re.fullmatch("[!-~]{1,1900}", str(key or "")):
        return headers
    return {**headers, "Idempotency-Key": f"{key}{next(_numbers)}"}


@schemathesis.check
def the_document_says_what_the_framework_refuses(_: Any, response: Any, case: Any) -> None:
    """What fits the document may be refused for its meaning, by an error of germane, and not for its form."""
    meta = case.meta
    if meta is None or not meta.generation.mode.is_positive or response.status_code not in (400, 422):
        return
    problem = response.json()
    assert problem["type"].startswith("germane:"), problem["detail"]
