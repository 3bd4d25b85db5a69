"""Every error that germane raises; docs/reference/errors.md shows them as a tree.

A message names the value, the limit and the remedy. What a caller may want to act on
is an attribute of the error as well.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "AssemblyNotFound",
    "BudgetTooSmall",
    "DuplicateMember",
    "EmbedderMismatch",
    "EmbeddingFailed",
    "GermaneError",
    "InvalidInput",
    "InvalidPlan",
    "LastActive",
    "MessageNotFound",
    "MissingExtra",
    "NotAMember",
    "NotAllowed",
    "NotFound",
    "NotInWorkingSet",
    "NotWorthKeeping",
    "PurgeNotConfirmed",
    "RequestTooLarge",
    "RerankingFailed",
    "RunNotFound",
    "SchemaTooNew",
    "SpaceError",
    "SpaceTaken",
    "StaleRevision",
    "StoreBusy",
    "StoreError",
    "StoreUnavailable",
    "UnknownKind",
    "UnknownSpace",
    "UnreadableSource",
]

_SHOWN = 60
"""Characters of a value that a message shows."""


def shown(value: object) -> str:
    """The value as a message names it: its representation, cut to 60 characters.

    A value that can't be represented (nested too deeply, too many digits) is named by its type.
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - The error about the value matters more than how it is shown.
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def owner(tenant: str) -> str:
    """How a message names an agent, one user of an agent, or a space, by its name in a store."""
    kind, _, rest = tenant.partition(":")
    if kind == "space" and rest:
        return f"space {shown(rest)}"
    user, colon, agent = rest.partition(":")
    if kind == "user" and colon:
        return f"user {shown(user.replace('%3A', ':').replace('%25', '%'))} of agent {shown(agent)}"
    return f"agent {shown(tenant)}"


class GermaneError(Exception):
    """The base of every error that germane raises."""


class InvalidInput(GermaneError, ValueError):
    """A value can't be accepted; nothing was stored."""


class UnknownKind(InvalidInput):
    """No kind of that name is registered; the message names the nearest that is."""

    def __init__(self, kind: str, known: tuple[str, ...]) -> None:
        from difflib import get_close_matches  # noqa: PLC0415 - Only a slip needs it.

        self.kind = kind
        self.known = known
        near = get_close_matches(str(kind).strip().casefold(), known, n=1, cutoff=0.7)
        own = f"germane.open(..., kinds=[germane.Kind(name={kind!r}, section='facts')])"
        remedy = f"Did you mean {near[0]!r}?" if near else f"Register your own: {own}."
        super().__init__(f"Unknown kind {kind!r}. Known kinds: {', '.join(known)}. {remedy}")


class NotWorthKeeping(InvalidInput):
    """A text says nothing that is worth remembering, and the caller wants such texts refused."""

    def __init__(self, text: str, reason: str) -> None:
        self.text = text
        self.reason = reason
        shown = text if len(text) <= 60 else text[:60] + "…"  # noqa: PLR2004 - enough to tell which.
        super().__init__(
            f"{shown!r} isn't worth keeping ({reason.replace('_', ' ')}), and nothing was stored. Remember "
            "it all the same with force=True (--force on the command line)."
        )


class InvalidPlan(InvalidInput):
    """A plan's sections, shares or levels don't add up."""


class NotFound(GermaneError, LookupError):
    """No memory of that id belongs to this agent."""

    def __init__(self, memory_id: str, agent: str) -> None:
        self.memory_id = memory_id
        self.agent = agent
        super().__init__(
            f"No memory {shown(memory_id)} belongs to {owner(agent)}. It was never stored, was purged, "
            "or belongs to another agent; open the store with that agent's name to reach it."
        )


class NotInWorkingSet(GermaneError, LookupError):
    """A working set doesn't hold that memory."""

    def __init__(self, memory_id: str, working_set: str, agent: str) -> None:
        self.memory_id = memory_id
        self.working_set = working_set
        self.owner = agent
        super().__init__(
            f"Working set {shown(working_set)} of {owner(agent)} doesn't hold memory {shown(memory_id)}: "
            "it was never added, or it has left since, which `changes` tells of. Add it first."
        )


class AssemblyNotFound(GermaneError, LookupError):
    """An agent's ledger has no assembly of that id."""

    def __init__(self, assembly_id: str, agent: str) -> None:
        self.assembly_id = assembly_id
        self.agent = agent
        super().__init__(
            f"The ledger of {owner(agent)} has no assembly {shown(assembly_id)}: it was never recorded, or "
            "so many were since that it left. `ledger().list()` names those that there are."
        )


class MessageNotFound(GermaneError, LookupError):
    """A conversation has no such message or group; `what` is which of the two, or the conversation itself."""

    def __init__(self, what: str, name: str, session: str) -> None:
        self.what = what
        self.name = name
        self.session = session
        super().__init__(
            f"There is no {what} {shown(name)} in conversation {shown(session)} of this agent. It was "
            "removed, or stands in another conversation; conversation.messages(hidden=True) lists what is "
            "there."
        )


class RunNotFound(GermaneError, LookupError):
    """An agent has no learning run of that id."""

    def __init__(self, run_id: str, agent: str) -> None:
        self.run_id = run_id
        self.agent = agent
        super().__init__(
            f"run_id={shown(run_id)} is no learning run of {owner(agent)}: it was never stored, or belongs "
            "to another agent or user. `learning_runs()` lists those that there are."
        )


class StaleRevision(GermaneError):
    """Somebody else revised the memory first; the error names the current version."""

    def __init__(self, memory_id: str, head_id: str) -> None:
        self.memory_id = memory_id
        self.head_id = head_id
        super().__init__(
            f"Version {shown(memory_id)} of the memory is no longer the current one: {shown(head_id)} is. "
            "Read that, merge your change into it, and revise again."
        )


class BudgetTooSmall(GermaneError):
    """What is required doesn't fit the budget, so no context was made.

    `needed` is the smallest budget in tokens that holds what is required; `shortfall` is what
    the given budget lacks of it; `required` names what was required, by id or section.
    """

    def __init__(self, *, budget: int, needed: int, required: tuple[str, ...]) -> None:
        self.budget = budget
        self.needed = needed
        self.shortfall = needed - budget
        self.required = required
        named = ", ".join(required[:5]) + (" …" if len(required) > 5 else "")  # noqa: PLR2004 - five names suffice.
        super().__init__(
            f"A budget of {budget} tokens can't hold what is required: {needed} tokens are needed, "
            f"{self.shortfall} more ({named}). Raise the budget, or require less."
        )


class RequestTooLarge(BudgetTooSmall):
    """The parts that a request can't do without don't fit its window, so none was made.

    `parts` are those parts by name, each with the fewest tokens that it can have; they sum to `needed`.
    `budget` is what the window leaves once the answer is reserved.
    """

    def __init__(self, *, budget: int, parts: Mapping[str, int]) -> None:
        self.parts = dict(sorted(parts.items(), key=lambda part: -part[1]))
        super().__init__(budget=budget, needed=sum(parts.values()), required=tuple(self.parts))
        named = ", ".join(f"{name}: {tokens:,}" for name, tokens in self.parts.items())
        longest = next(iter(self.parts), "it")
        super(BudgetTooSmall, self).__init__(
            f"The request doesn't fit: its window leaves {budget:,} tokens, and {self.needed:,} are needed, "
            f"{self.shortfall:,} more ({named}). Shorten {longest}, reserve less for the answer, or use a "
            "model with a larger window."
        )


class PurgeNotConfirmed(GermaneError):
    """A purge can't be undone, so it needs an explicit confirmation."""

    def __init__(
        self,
        *,
        space: str | None = None,
        agent: str | None = None,
        user: str | None = None,
        ledger: bool = False,
    ) -> None:
        what, instead = "A purge removes a memory from every form", "use forget, which can be undone"
        if ledger:
            what, instead = (
                "A purge of the ledger removes its records",
                "leave them: the oldest go by themselves",
            )
        if space is not None:
            what, instead = f"Disbanding space {space!r} purges every memory in it", "leave the space"
        elif agent is not None:
            what = f"Removing agent {agent!r} purges all that the store holds of it"
            instead = "copy it to another store first"
        elif user is not None:
            what = f"Purging user {user!r} removes all that any agent knows of that user"
            instead = "export it first"
        super().__init__(
            f"{what} and can't be undone. Pass confirm=True (--yes on the command line), or {instead}."
        )


class SpaceError(GermaneError):
    """A space's rules don't allow the request; nothing changed."""


class UnknownSpace(SpaceError, LookupError):
    """No space of that name is in the store."""

    def __init__(self, space: str) -> None:
        self.space = space
        super().__init__(
            f"There is no space {shown(space)} in this store. "
            f"Create it: engine.space({space!r}, create=True) (`germane space create {space}`)."
        )


class SpaceTaken(SpaceError):
    """A space of that name is there already, and the agent is no member of it."""

    def __init__(self, space: str) -> None:
        self.space = space
        super().__init__(
            f"The name {shown(space)} is taken by a space that is there already. "
            f"Join it: engine.space({space!r}).join() (`germane space join {space}`), or choose another name."
        )


class NotAllowed(SpaceError):
    """An agent has no right to do this in a space. `wants` is what it wanted to do."""

    def __init__(self, *, space: str, agent: str, wants: str, why: str, remedy: str) -> None:
        self.space = space
        self.agent = agent
        self.wants = str(wants)
        super().__init__(
            f"Agent {shown(agent)} wants to {wants} in space {shown(space)}, but {why}. {remedy}"
        )


class NotAMember(SpaceError, LookupError):
    """Whom it is about is no member of the space."""

    def __init__(self, *, space: str, agent: str) -> None:
        self.space = space
        self.agent = agent
        super().__init__(
            f"Agent {shown(agent)} is no member of space {shown(space)}. "
            "space.members() (`germane space members`) names those who are."
        )


class DuplicateMember(SpaceError):
    """The agent is a member of the space already."""

    def __init__(self, *, space: str, agent: str) -> None:
        self.space = space
        self.agent = agent
        super().__init__(
            f"Agent {shown(agent)} is a member of space {shown(space)} already. To change its rights, let "
            "it leave and join anew; to change its role, promote or demote it."
        )


class LastActive(SpaceError):
    """The agent is the last active member that may write, and no passive one can take over."""

    def __init__(self, *, space: str, agent: str, wanted: str) -> None:
        self.space = space
        self.agent = agent
        super().__init__(
            f"Agent {shown(agent)} can't {wanted}: it is the last active member of space {shown(space)} that "
            "may write, and no passive one can take over. Let another one join with rights='write' first, "
            "or disband the space."
        )


class StoreError(GermaneError):
    """The store can't do what was requested; nothing was half written."""


class StoreUnavailable(StoreError):
    """The store can't be opened, read or written where it is; the message says what to do.

    Repeating the call helps only where the server was unreachable. Where a right, a password or a table is
    missing, somebody has to correct that first. StoreBusy is for what others use: repeat such a call.
    """


class StoreBusy(StoreError):
    """Other writers locked the store for longer than the timeout."""


class SchemaTooNew(StoreError):
    """A newer germane wrote this store."""

    def __init__(self, *, found: int, supported: int, location: str = "") -> None:
        self.found = found
        self.supported = supported
        store = f"The store {location}" if location else "This store"
        super().__init__(
            f"{store} has schema version {found}; this germane knows versions up to {supported}. "
            "Upgrade germane to open it."
        )


class EmbedderMismatch(StoreError):
    """The stored vectors were made by another model, and vectors of two models can't be compared."""

    def __init__(self, *, stored: str, given: str) -> None:
        self.stored = stored
        self.given = given
        super().__init__(
            f"The vectors in this store were made by {stored}, and this engine embeds with {given}. "
            "Open it with the first, or replace all vectors by those of the second: "
            "germane.stores.reembed(path, embedder=...), or `germane embedder use` with bundled or minilm."
        )


class EmbeddingFailed(GermaneError):
    """The embedder raised, or returned what is no embedding."""


class RerankingFailed(GermaneError):
    """The reranker raised, took too long, or returned what isn't one finite score per text."""


class MissingExtra(GermaneError, ImportError):
    """An optional dependency isn't installed."""

    def __init__(self, *, feature: str, extra: str) -> None:
        self.feature = feature
        self.extra = extra
        super().__init__(f"{feature} needs an optional dependency: pip install 'germane[{extra}]'.")


class UnreadableSource(GermaneError):
    """A file to import can't be read as what it claims to be."""
