"""Lets frozen values be copied and pickled although they hold mappings that nobody can change.

Level: model (imports nothing of the package). `types.MappingProxyType` can be neither, so a state has a plain
copy of each, which is made unchangeable again.
"""

from __future__ import annotations

from dataclasses import fields
from types import MappingProxyType
from typing import Any, TypeAlias

__all__ = ["State", "restore", "state_of"]

State: TypeAlias = tuple[dict[str, Any], dict[str, dict[str, Any]]]
"""The fields of a value by name, and apart those that are unchangeable mappings."""


def state_of(value: Any) -> State:
    """The state of a dataclass, for its `__getstate__`."""
    held = {field.name: getattr(value, field.name) for field in fields(value)}
    mappings = {name: dict(each) for name, each in held.items() if isinstance(each, MappingProxyType)}
    return {name: each for name, each in held.items() if name not in mappings}, mappings


def restore(value: Any, state: State) -> None:
    """Fill a frozen dataclass with such a state, for its `__setstate__`."""
    plain, mappings = state
    proxies = {name: MappingProxyType(each) for name, each in mappings.items()}
    for name, each in {**plain, **proxies}.items():
        object.__setattr__(value, name, each)
