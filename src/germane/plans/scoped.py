"""The scoped plan: what a project knows, what is known of a task, and of the paths it touches.

Pure data.

Shares, order of kinds and roll-over are those of the decision record on context budgets; `ESTIMATE` is that
record to the letter. `SCOPED` adds what it left for later: relevance between kind and recency, a
last pass over what was skipped, summaries for what doesn't fit whole, and what may be out of date.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fractions import Fraction
from functools import lru_cache
from itertools import chain
from typing import Any, Self

from germane.errors import InvalidInput, InvalidPlan, shown
from germane.kinds import COMMIT, Kinds
from germane.model.memory import GLOBAL, Level, Scope
from germane.model.plan import KindPriority, Overflow, Plan, RollOver, Section, Share, TaskInput
from germane.model.query import CandidateTable, Filter, SearchResult
from germane.model.validation import checked_text, checked_words
from germane.plans.layered import HEADING, HISTORY, guarded
from germane.scopes import checked_path

DEFAULT_SHARES: Mapping[str, float] = {"global": 0.5, "task": 0.3, "path": 0.2}
RECORDED_PRIORITIES: Mapping[str, int] = {
    "adr": 1,
    "pattern": 2,
    "iplan": 3,
    "module": 4,
    "decision": 5,
    "dependency": 6,
    "changelog": 7,
}
"""The order of kinds in the decision record; it knows no others, so they come after these."""

_HEADINGS = {
    "global": "## What the Project Knows",
    "task": "## About This Task",
    "path": "## About These Paths",
}
_WHOLE = 10**9
"""Shares are weights of so many parts, so that a share of 0.3 of 8,000 is 2,400 and no float less."""
_NEAR_ONE = Fraction(1, 10**6)
_DAYS = 180


def _numbers(value: object) -> bool:
    return isinstance(value, Mapping) and all(map(_number, value.values()))


def _whole_numbers(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(each, int) and not isinstance(each, bool) for each in value.values()
    )


def _number(value: object) -> bool:
    # Of a size that every sum of them has as a float. The check of the shares reports that NaN makes no sum.
    return isinstance(value, int | float) and not isinstance(value, bool) and not abs(value) >= _WHOLE


def _not_negative(value: object) -> bool:
    return _number(value) and 0 <= value <= timedelta.max.days  # type: ignore[operator] # A number.


def _flag(value: object) -> bool:
    return isinstance(value, bool)


Check = tuple[Callable[[object], bool], str]
PROFILE_SETTINGS: Mapping[str, Check] = {
    "shares": (
        _numbers,
        "a table of numbers that sum to 1, such as { global = 0.5, task = 0.3, path = 0.2 }",
    ),
    "priorities": (_whole_numbers, "a table of whole numbers by kind, such as { adr = 1, decision = 2 }"),
    "roll_over": (_flag, "true or false"),
    "backfill": (_flag, "true or false"),
    "stale_after_days": (_not_negative, "a number of days, or 0 for never"),
}
PLAN_SETTINGS: Mapping[str, Check] = {
    **PROFILE_SETTINGS,
    "degrade": (_flag, "true or false"),
    "relevance": (_flag, "true or false"),
}
"""What each setting of a plan or a profile has to be: what checks it, and what an error says it is."""
_NOT_IN_A_FILE: Mapping[str, Check] = {
    "name": (lambda value: isinstance(value, str), "a text"),
    "estimate": (_flag, "true or false"),
}


def _check_values(value: Profile | ScopedPlan, known: Mapping[str, Check], *, optional: bool) -> None:
    """Raise InvalidInput for a field of another sort, such as `priorities={"adr": "first"}`."""
    for name, (passes, form) in known.items():
        given = getattr(value, name)
        if not (passes(given) or (optional and given is None)):
            raise InvalidInput(f"{name}={shown(given)} can't be used: it has to be {form}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What one type of task, column or board does otherwise; None leaves a setting as it is.

    `shares` replaces all shares; `priorities` changes only those of the kinds that it names.
    """

    shares: Mapping[str, float] | None = None
    priorities: Mapping[str, int] = field(default_factory=dict)
    roll_over: bool | None = None
    backfill: bool | None = None
    stale_after_days: float | None = None

    def __post_init__(self) -> None:
        _check_values(self, PROFILE_SETTINGS, optional=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedPlan:
    """How the budget is split over scopes, and in which order kinds come.

    `shares` are parts of one by the name of a scope, in the order of the output; a scope that has no share
    of its own still gets what rolls over. `priorities` are those of kinds, 1 before 2, where they differ from
    the kinds' own. With `roll_over` what a scope leaves goes to the next, with `backfill` what all leave
    goes to what was skipped, in the order of kinds across all scopes. With `degrade` what doesn't
    fit whole is shown as its summary. `relevance` ranks what has to do with the task first within a
    kind; what wasn't updated for `stale_after_days` ranks lower there, 0 leaves that out. `boards`,
    `columns` and `task_types` change settings by name; `of` chooses among them. With `estimate` the budget is
    one of contents, estimated in bytes by four as the decision record does, in that record's order of kinds:
    the whole text may be longer than the budget.

    Raises InvalidPlan for shares that don't sum to one, and InvalidInput for a setting of another sort.
    """

    name: str = "scoped"
    shares: Mapping[str, float] = field(default_factory=lambda: DEFAULT_SHARES)
    priorities: Mapping[str, int] = field(default_factory=dict)
    roll_over: bool = True
    backfill: bool = True
    degrade: bool = True
    relevance: bool = True
    stale_after_days: float = _DAYS
    estimate: bool = False
    boards: Mapping[str, Profile] = field(default_factory=dict)
    columns: Mapping[str, Profile] = field(default_factory=dict)
    task_types: Mapping[str, Profile] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_values(self, {**PLAN_SETTINGS, **_NOT_IN_A_FILE}, optional=False)
        _check_shares(self.shares, where=f"plan {self.name!r}")
        for what in ("boards", "columns", "task_types"):
            profiles = getattr(self, what)
            if not isinstance(profiles, Mapping) or not all(
                isinstance(each, Profile) for each in profiles.values()
            ):
                raise InvalidInput(
                    f"{what}={shown(profiles)} can't be used: map names to germane.plans.Profile."
                )
            for name, profile in profiles.items():
                if profile.shares is not None:
                    _check_shares(profile.shares, where=f"{what} {name!r} of plan {self.name!r}")

    def of(
        self, *, board: str | None = None, column: str | None = None, task_type: str | None = None
    ) -> Self:
        """The settings for a board, a column and a type of task; each goes over what the one before says.

        Raises InvalidInput for a name that has no settings.
        """
        found = self
        for what, name in (("boards", board), ("columns", column), ("task_types", task_type)):
            if name is not None:
                found = found._with(_profile(getattr(self, what), name, what=what))
        return found

    def _with(self, profile: Profile) -> Self:
        days = profile.stale_after_days
        return replace(
            self,
            shares=self.shares if profile.shares is None else profile.shares,
            priorities={**self.priorities, **profile.priorities},
            roll_over=self.roll_over if profile.roll_over is None else profile.roll_over,
            backfill=self.backfill if profile.backfill is None else profile.backfill,
            stale_after_days=self.stale_after_days if days is None else days,
        )


def scoped(how: ScopedPlan, kinds: Kinds, places: Mapping[str, tuple[Scope, ...]], *, where: Filter) -> Plan:
    """The plan for these kinds, and for the scopes that stand for each name of `how.shares`.

    `where` is the filter that holds in every section besides. Raises UnknownKind for a priority of a
    kind that isn't registered, and InvalidInput for scopes that have no share.
    """
    unknown = [name for name in places if name not in how.shares]
    if unknown:
        raise InvalidInput(
            f"The scope {unknown[0]!r} has no share in plan {how.name!r}, which splits its budget over "
            f"{', '.join(how.shares)}. Give it a share: "
            f"germane.plans.ScopedPlan(shares={{..., {unknown[0]!r}: 0.2}})."
        )
    shares, found = tuple(how.shares.items()), tuple((name, tuple(each)) for name, each in places.items())
    return Plan(
        name=how.name,
        roll_over=RollOver.NEXT if how.roll_over else RollOver.NONE,
        gate=True,
        backfill=how.backfill,
        counts_content=how.estimate,
        repeats="always" if how.estimate else "never" if how.roll_over else "across",
        kinds_first=_kinds_first(how, kinds),
        sections=_sections(kinds, shares, found, where, degrade=how.degrade),
    )


@lru_cache(maxsize=64)
def _sections(
    kinds: Kinds,
    shares: tuple[tuple[str, float], ...],
    places: tuple[tuple[str, tuple[Scope, ...]], ...],
    where: Filter,
    *,
    degrade: bool,
) -> tuple[Section, ...]:
    """The sections of a plan; cached, since the questions of one task have the same."""
    scopes = dict(places)
    return guarded(
        kinds,
        *(
            Section(
                name=name,
                heading=_HEADINGS.get(name, f"## {name.replace('_', ' ').replace('-', ' ').title()}"),
                share=Share(weight=int(Fraction(str(share)) * _WHOLE)),
                # A scope that nobody named has no memories, which isn't the same as all scopes.
                where=replace(where, scopes=(), applies_to=scopes[name]) if name in scopes else None,
                levels=(Level.FULL, Level.SUMMARY) if degrade else (Level.FULL,),
                overflow=Overflow.DEGRADE if degrade else Overflow.SKIP,
            )
            for name, share in shares
        ),
        where=replace(where, scopes=(), applies_to=tuple(chain.from_iterable(scopes.values()))),
    )


def with_history(plan: Plan, found: SearchResult, how: ScopedPlan) -> tuple[Plan, SearchResult]:
    """The plan and what was found for it, with a section for commits behind the others where any were found.

    There may be thousands of commits, so they never take a token from what is known of another kind: their
    section gets what all others leave.
    """
    tables = [CandidateTable.of(part) for part in found.slices]
    are_commits = [[memory.kind == COMMIT for memory in table.memories] for table in tables]
    if not any(map(any, are_commits)):
        return plan, found

    def split(*, commits: bool) -> list[CandidateTable]:
        return [
            table.at([place for place, is_commit in enumerate(each) if is_commit is commits])
            for table, each in zip(tables, are_commits, strict=True)
        ]

    history = Section(
        name=HISTORY,
        heading=HEADING,
        kinds=(COMMIT,),
        share=Share(weight=0),
        levels=(Level.FULL, Level.SUMMARY) if how.degrade else (Level.FULL,),
        overflow=Overflow.DEGRADE if how.degrade else Overflow.SKIP,
        leftover=True,
        ids=any(section.ids for section in plan.sections),
    )
    parts = (*split(commits=False), CandidateTable.united(split(commits=True)))
    return replace(plan, sections=(*plan.sections, history)), replace(found, slices=parts)


def _kinds_first(how: ScopedPlan, kinds: Kinds) -> KindPriority:
    own = RECORDED_PRIORITIES if how.estimate else {kind.name: kind.priority for kind in kinds}
    for name in how.priorities:
        kinds.require(name)
    priorities = {**own, **how.priorities}
    # Commits stand in a section of their own, so that unknown kinds come next after all others.
    ranked = [priority for name, priority in priorities.items() if name != COMMIT]
    days = how.stale_after_days
    return KindPriority(
        priorities=priorities,
        others=max(ranked, default=0) + 1,
        relevance=how.relevance,
        stale_after=timedelta(days=days) if days > 0 and not how.estimate else None,
        obsolete_last=not how.estimate,
    )


def _check_shares(shares: Mapping[str, float], *, where: str) -> None:
    wrong = {name: share for name, share in shares.items() if not 0 <= share <= 1}
    total = sum((Fraction(str(share)) for share in shares.values() if 0 <= share <= 1), Fraction(0))
    if wrong or abs(total - 1) > _NEAR_ONE:
        stated = ", ".join(f"{name}={share}" for name, share in shares.items())
        raise InvalidPlan(
            f"The shares of {where} ({stated}) sum to {float(sum(shares.values())):g}. Each has to be from 0 "
            "to 1, and all together 1: such as global=0.5, task=0.3, path=0.2."
        )
    for name in shares:
        Scope(name=name)


def _profile(profiles: Mapping[str, Profile], name: str, *, what: str) -> Profile:
    if name not in profiles:
        known = ", ".join(profiles) or "none"
        raise InvalidInput(
            f"No settings for {name!r} among the {what.replace('_', ' ')} of the plan; known: {known}. Add "
            f"[scoped.{what}.{name}] to germane.toml, or ScopedPlan({what}={{{name!r}: Profile(...)}})."
        )
    return profiles[name]


SCOPED = ScopedPlan()
"""The scoped plan as it is unless somebody says otherwise."""

ESTIMATE = ScopedPlan(
    name="scoped_estimate",
    backfill=False,
    degrade=False,
    relevance=False,
    stale_after_days=0,
    estimate=True,
)
"""The decision record to the letter: contents alone are estimated, and recency is the only tie-break."""


def scoped_named(plan: object) -> ScopedPlan | None:
    """The settings that a plan's name stands for, or that are given themselves; None for another plan."""
    if isinstance(plan, ScopedPlan):
        return plan
    return next((how for how in (SCOPED, ESTIMATE) if how.name == plan), None)


def places_of(
    how: ScopedPlan, work: TaskInput, scopes: Sequence[Scope]
) -> tuple[Mapping[str, tuple[Scope, ...]], str]:
    """The scopes of the work by their names, and what the task says in words.

    Raises InvalidInput where none is named.
    """
    places: dict[str, tuple[Scope, ...]] = {"global": (GLOBAL,)} if "global" in how.shares else {}
    task = "" if work.task is None else checked_text(work.task, name="task").strip()
    described = task if any(map(str.isspace, task)) else ""
    if task and not described:
        places["task"] = (Scope.parse(task if task.startswith("task:") else f"task:{task}"),)
    paths = dict.fromkeys(map(checked_path, checked_words(work.paths, name="paths")))
    if paths:
        places["path"] = tuple(Scope(name="path", value=path) for path in paths)
    for scope in scopes:
        if scope.name == "path":
            scope = Scope(name="path", value=checked_path(scope.value))  # noqa: PLW2901 - The same, checked.
        places[scope.name] = tuple(dict.fromkeys((*places.get(scope.name, ()), scope)))
    if not places:
        raise InvalidInput(
            f"Plan {how.name!r} splits its budget over {', '.join(how.shares)}, and none of them is named. "
            "Pass task=..., paths=[...], or scopes=['NAME:VALUE']."
        )
    return places, described


# Reads the settings of the scoped plan from a mapping, as a configuration file holds them.
#
# Pure: who reads the file is `germane.importers`.

_GROUPS = ("boards", "columns", "task_types")


def scoped_from(settings: Mapping[str, Any], *, source: str) -> ScopedPlan:
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
    return ScopedPlan(**checked)


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
