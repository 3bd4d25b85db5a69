"""What the address sets, said again inside each transaction where a pooler keeps nothing of a session."""

from __future__ import annotations

import pytest

from germane import InvalidInput
from germane.stores.postgres.pool import local, refuses_options, settings_of


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("", {}),
        ("-cstatement_timeout=9s", {"statement_timeout": "9s"}),
        ("-c a=1  --b-c=2", {"a": "1", "b_c": "2"}),
        (r"-c search_path=a\ b,c", {"search_path": "a b,c"}),
        (r"-c application_name=back\\slash", {"application_name": "back\\slash"}),
        ("-c a=1 -c a=2", {"a": "2"}),
        ("-c hnsw.ef_search=40", {"hnsw.ef_search": "40"}),
    ],
)
def test_settings_are_read_as_libpq_writes_them(options: str, settings: dict[str, str]) -> None:
    assert settings_of(options) == settings


@pytest.mark.parametrize("options", ["-e", "-c", "-c a", "a=1", "-fs"])
def test_what_is_no_setting_is_refused(options: str) -> None:
    with pytest.raises(InvalidInput, match="can't go through a pooler"):
        settings_of(options)


def test_they_are_set_until_the_transaction_ends() -> None:
    settings = {"search_path": 'a, "b"', "hnsw.ef_search": "40", "work_mem": "a'b"}
    assert local(settings).decode().split(";") == [
        "SET LOCAL \"search_path\" = 'a', 'b'",
        'SET LOCAL "hnsw"."ef_search" = \'40\'',
        "SET LOCAL \"work_mem\" = 'a''b'",
    ]
    # By then a transaction has begun, which the default doesn't change any more.
    assert local({"default_transaction_read_only": "on"}) == b"SET LOCAL \"transaction_read_only\" = 'on'"


def test_a_pooler_that_refuses_settings_is_known_by_its_words() -> None:
    assert refuses_options(Exception("FATAL: unsupported startup parameter: options"))
    assert not refuses_options(Exception("FATAL: password authentication failed"))
