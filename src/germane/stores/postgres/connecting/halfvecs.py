"""Vectors between their two forms: float16 in little endian, as every store has them, and pgvector's own.

Level: stores (imports errors only). pgvector sends a halfvec as its length in 16 bits, 16 unused bits, and
each number as float16, all in big endian.
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.pq import Format

__all__ = ["HalfVector", "HalfVectorDumper", "HalfVectorLoader", "unpacked"]

_HEAD: Final = struct.Struct(">HH")


class HalfVector(bytes):
    """A vector's float16 in little endian, to be sent as a halfvec and not as bytes."""

    __slots__ = ()


class HalfVectorDumper(Dumper):
    """Sends a `HalfVector`. The server knows by the column what type it is."""

    format = Format.BINARY
    oid = 0

    def dump(self, obj: HalfVector) -> Buffer:
        """The bytes that pgvector receives."""
        return _HEAD.pack(len(obj) // 2, 0) + np.frombuffer(obj, dtype="<u2").byteswap().tobytes()


class HalfVectorLoader(Loader):
    """Makes bytes of a halfvec that comes in its binary form."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        """Float16 in little endian."""
        return np.frombuffer(data, dtype=">u2", offset=_HEAD.size).astype("<u2").tobytes()


def unpacked(sent: bytes, count: int) -> list[bytes]:
    """So many vectors of one length, sent one after another, each as float16 in little endian."""
    table = np.frombuffer(sent, dtype=">u2").reshape(count, -1)[:, _HEAD.size // 2 :].astype("<u2")
    return [row.tobytes() for row in table]
