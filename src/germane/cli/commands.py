"""The list of all commands: where each is found, and the line that says of it what it does.

To add a command, write it as a function in a module beside this one, with `@command` and its name, and
give it a line below, which begins its help. Its module is imported when the command runs and not before.
A command of two words belongs to the group that its first word names, which needs a line in `GROUPS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["COMMANDS", "COUNTING", "GROUPS", "Command", "name_in"]


class Command(NamedTuple):
    """A command: the module beside this one that holds it, and its line in the help."""

    module: str
    says: str


COMMANDS: Mapping[str, Command] = {
    "remember": Command(
        "memories",
        "Store a memory. The same one said again is counted, not doubled, and gets what is new.",
    ),
    "recall": Command("memories", "The memories that have most to do with a question, best first."),
    "assemble": Command("contexts", "The best context for a query, within a budget of tokens."),
    "explain": Command("contexts", "What `assemble` puts in and what it leaves out, and why."),
    "refresh": Command(
        "contexts", "A new context where the one before no longer serves what is said now, else nothing."
    ),
    "frames": Command("contexts", "The frames that there are: what each is for, its total and its shares."),
    "context": Command(
        "project",
        "What a project knows for a task and its paths, ready for an agent's prompt or its AGENTS.md.",
    ),
    "outcome": Command(
        "project",
        "Say how work turned out with what a context showed, so that the scoped plan learns from it.",
    ),
    "feedback": Command("lifecycle", "Say which memories of a context were used."),
    "observe": Command(
        "lifecycle", "Find out which memories of a context an answer draws on, and count their use."
    ),
    "learning": Command(
        "lifecycle", "Let the ranking learn from feedback, or not, or forget what it learned."
    ),
    "memories": Command("memories", "The memories that there are, a page at a time, and how many."),
    "show": Command("memories", "One memory: its fields, its texts and its versions."),
    "history": Command(
        "memories",
        "Every version of a memory, the first version first, and what changed from each to the next.",
    ),
    "revise": Command("memories", "Store the next version of a memory."),
    "forget": Command("memories", "Keep a memory out of every result until it is restored."),
    "restore": Command("memories", "Undo a forget."),
    "purge": Command("memories", "Remove a memory for good."),
    "confirm": Command("lifecycle", "Say that a fact was met again."),
    "contradict": Command(
        "lifecycle", "Say that something speaks against a fact: its confidence falls by 0.2."
    ),
    "review": Command("lifecycle", "Say how a decision turned out, or whether a procedure worked."),
    "record-trigger": Command("lifecycle", "Say that a constraint was triggered."),
    "retire": Command(
        "lifecycle", "Take a fact, a procedure or a constraint out of use, or archive an episode."
    ),
    "events": Command("lifecycle", "What moved a memory from stage to stage, by whom and why."),
    "maintain": Command(
        "lifecycle", "Age episodes, settle what was counted, merge duplicates, mark outdated quotations."
    ),
    "working add": Command(
        "working_sets", "Take memories into a working set; others make room if they must."
    ),
    "working show": Command("working_sets", "What a working set holds, the latest last."),
    "working touch": Command("working_sets", "Say that a held memory was used just now."),
    "working remove": Command("working_sets", "Take a memory out of a working set; it stays stored."),
    "working pin": Command("working_sets", "Keep a held memory from making room for others."),
    "working unpin": Command("working_sets", "Undo a pin."),
    "working clear": Command("working_sets", "Take everything out of a working set; it stays stored."),
    "working evict": Command("working_sets", "Make room: the least important leave first, and stay stored."),
    "working assemble": Command("working_sets", "What a working set holds as one text, the best first."),
    "working events": Command("working_sets", "What became of a working set, by whom and when."),
    "space create": Command("spaces", "Make a space, and be its first member."),
    "space list": Command("spaces", "The spaces that the agent is in."),
    "space members": Command("spaces", "Who is in a space, in the order of joining."),
    "space join": Command("spaces", "Be a member of a space, or let another agent in."),
    "space leave": Command(
        "spaces", "Be no member of a space any more, or put another one out; what it wrote stays."
    ),
    "space promote": Command("spaces", "Make a passive member of a space active."),
    "space demote": Command(
        "spaces",
        "Make an active member of a space passive; the first passive one follows where it was the last.",
    ),
    "space fail-over": Command(
        "spaces", "Let the first passive member take over from an active one that failed."
    ),
    "space remember": Command("spaces", "Store a memory in a space, for all its members."),
    "space share": Command("spaces", "Put a copy of one of the agent's own memories into a space."),
    "space recall": Command(
        "spaces", "The memories of a space that have most to do with a question, best first."
    ),
    "space forget": Command("spaces", "Keep a memory of a space out of every result until it is restored."),
    "space restore": Command("spaces", "Undo a forget in a space."),
    "space events": Command("spaces", "What happened in a space, by whom, oldest first."),
    "space disband": Command("spaces", "End a space, and purge every memory in it, for all its members."),
    "chat import": Command("chat", "Put the messages of transcripts into the logs of conversations."),
    "chat show": Command("chat", "The messages of a conversation, or the conversations that there are."),
    "chat window": Command("chat", "The last groups of a conversation, whole and unbroken."),
    "chat request": Command("chat", "What to send to a model so that it fits, and what was left out of it."),
    "import": Command("imports", "Remember what stands in files, chats or a repository."),
    "watch": Command("imports", "Import a folder, then whatever changes in it, until it is interrupted."),
    "export": Command(
        "imports",
        "Write every memory as a line of JSON, oldest first, then what was learned from its use.",
    ),
    "embed": Command("stores", "Make vectors for the memories that wait for one."),
    "reembed": Command(
        "stores", "Replace the vectors of every agent in the store by those of another model."
    ),
    "ledger list": Command("reports", "The assemblies that were recorded, the latest first."),
    "ledger show": Command("reports", "A recorded assembly: what was asked, and where each candidate went."),
    "ledger diff": Command("reports", "What differs between two recorded assemblies."),
    "ledger replay": Command(
        "reports",
        "Make an assembly again with the store as it was. Ends with 1 unless the bytes are the same.",
    ),
    "metrics": Command(
        "reports",
        "How well contexts do: seven figures of what was recorded, 30 days back unless --since is given.",
    ),
    "stats": Command("reports", "How many memories there are, of which kinds, in how much space."),
    "doctor": Command(
        "reports", "Look for damage in the store. Ends with 1 if there is any, and says what to do."
    ),
    "db status": Command("stores", "What a store is kept in, by which schema, and how much it holds."),
    "db agents": Command("stores", "Whose memories a store holds, how many, and when each last wrote one."),
    "db migrate": Command("stores", "Make a store, or bring it to the schema of this version."),
    "db copy": Command(
        "stores", "Copy a store to another one, in either direction between a file and PostgreSQL."
    ),
    "db reembed": Command(
        "stores", "Replace the vectors of every agent in the store by those of another model."
    ),
    "db reindex": Command(
        "stores",
        "Build the indexes of a store anew, and index words anew that an older tokenizer indexed.",
    ),
    "db index": Command("stores", "Give one agent's vectors in PostgreSQL an index (HNSW), or take it away."),
    "db vacuum": Command("stores", "Give back the room of what was deleted, or erase what was purged."),
    "db remove": Command("stores", "Remove an agent for good, with all that the store holds of it."),
    "db distribute": Command(
        "stores", "Spread the tables of a store over the servers of a Citus cluster, by agent."
    ),
    "eval": Command("evaluation", "Measure how much of the evidence stands in the context."),
    "demo": Command("evaluation", "Load an agent's memory, ask it a question, explain the answer."),
}
"""Every command by its name, in the order of the help."""

GROUPS: Mapping[str, str] = {
    "ledger": "What was assembled: list it, show it, compare it, make it again.",
    "working": "What an agent holds in mind: add to it, look at it, make room in it.",
    "chat": "Conversations: take in transcripts, look at them, make the request that fits.",
    "db": "A whole store, in a file or in PostgreSQL: schema, indexes, copies.",
    "space": "Memories that agents share: make a space, join it, put something in.",
}
"""The groups of commands by their first word, with their lines in the help."""


COUNTING = frozenset(
    {"remember", "assemble", "explain", "refresh", "context", "revise", "review", "record-trigger", "import"}
    | {"working assemble", "space remember", "chat request", "ledger replay", "eval", "demo"}
)
"""The commands of which nearly every call counts tokens, so that the counter may be loaded ahead."""


def name_in(arguments: Sequence[str]) -> str:
    """The name of a command as a command line begins with it, by one word or by two."""
    return " ".join(arguments[:2] if arguments and arguments[0] in GROUPS else arguments[:1])
