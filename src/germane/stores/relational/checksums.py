"""Checksums of what is stored, by which reading recognises bytes that something else than germane changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from zlib import crc32

REPAIR: Final = "let `germane db doctor --repair` set it right"
"""The remedy for what differs from its checksum."""

ENCRYPTION: Final = "encryption"
"""The setting of an encrypted store: something encrypted by its key, by which the right key is recognised."""

CHECKED: Final = (
    *("chain", "version", "kind", "scope", "scope_value", "subject", "importance", "outcome", "trust"),
    *("source", "pinned", "created_at", "content_hash", "session", "key", "valid_from", "content", "micro"),
    *("micro_tokens", "summary", "summary_tokens", "full_text", "full_tokens", "counter", "tags", "metadata"),
)
"""The columns of a memory that are in its checksum: those that stay while its version does."""


class Ciphertext(bytes):
    """Bytes of an encrypted store, to be sent as bytes whatever the column is for."""

    __slots__ = ()


def checksum_of(columns: tuple[Any, ...]) -> int:
    """The CRC-32 of a row's columns, written or read."""
    # Formatting takes half the time of joining.
    return crc32(("%s\x1f" * len(columns) % columns).encode())


def is_intact(packed: bytes, checksum: int | None) -> bool:
    """Whether a stored vector has its checksum; one that was stored without a checksum always passes."""
    return checksum is None or crc32(packed) == checksum


def check_intact(vectors: Iterable[tuple[bytes, int | None]]) -> None:
    """Raise ValueError if any of these vectors doesn't have its checksum."""
    if not all(is_intact(*each) for each in vectors):
        raise wrong_checksum()


def wrong_checksum() -> ValueError:
    """What to raise for a row that doesn't have its checksum."""
    return ValueError("it doesn't have the checksum stored with it")
