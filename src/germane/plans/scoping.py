"""Reads the settings of the scoped plan from a mapping, as a configuration file holds them.

Level: plans. Pure: who reads the file is `germane.exchange`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from germane.errors import InvalidInput
from germane.plans.scoped import PLAN_SETTINGS, PROFILE_SETTINGS, Check, Profile, Scoped

__all__ = ["scoped_from"]

_GROUPS = ("boards", "columns", "task_types")


def scoped_from(settings: Mapping[str, Any], *, source: str) -> Scoped:
    """The plan that `settings`, the table `scoped` of a configuration file, describes.

    Raises InvalidInput for a setting that there isn't or a value that isn't of its sort, and InvalidPlan for
    shares that don't sum to one; `source` names the file in these.
    """
    groups = {name: settings[name] for name in _GROUPS if name in settings}
    own = {name: value for name, value in settings.items() if name not in groups}
    checked = _checked(own, PLAN_SETTINGS, where=f"[scoped] of {source}", more=_GROUPS)
    for name, group in groups.items():
        if not isinstance(group, Mapping) or not all(isinstance(each, Mapping) for each in group.values()):
            raise InvalidInput(
                f"[scoped.{name}] of {source} is no table of tables: write [scoped.{name}.NAME]."
            )
        checked[name] = {
            title: Profile(**_checked(each, PROFILE_SETTINGS, where=f"[scoped.{name}.{title}] of {source}"))
            for title, each in group.items()
        }
    return Scoped(**checked)


def _checked(
    settings: Mapping[str, Any], known: Mapping[str, Check], *, where: str, more: tuple[str, ...] = ()
) -> dict[str, Any]:
    for name, value in settings.items():
        if name not in known:
            named = ", ".join((*known, *more))
            raise InvalidInput(f"{where} has no setting {name!r}. There are: {named}.")
        passes, form = known[name]
        if not passes(value):
            raise InvalidInput(f"{name} = {value!r} in {where} can't be used: it has to be {form}.")
    return dict(settings)
