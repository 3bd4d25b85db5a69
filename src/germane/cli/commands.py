"""The list of all commands: the module of each and its line in the help.

To add a command, write a function with `@command` and the command's name in a module beside this one, and
add a line below. The module is imported only when the command runs. A command of two words belongs to the
group of its first word, which needs a line in `GROUPS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Command(NamedTuple):
    """The module that defines a command, and the command's line in the help."""

    module: str
    summary: str


_IN_MODULES: Mapping[str, Mapping[str, str]] = {
    "memories": {
        "remember": "Store a memory. Repeated text is counted, not stored twice.",
        "recall": "Find the memories that are most relevant to a question.",
        "memory list": "List memories, paginated.",
        "memory show": "Show a memory: its fields, texts and versions.",
        "memory history": "Show all versions of a memory and the changes between them.",
        "memory revise": "Store a new version of a memory.",
        "memory forget": "Hide a memory from all results until it is restored.",
        "memory restore": "Undo `forget`.",
        "memory purge": "Delete a memory permanently.",
        "memory confirm": "Record that a fact was confirmed.",
        "memory contradict": "Record that a fact was contradicted: its confidence falls by 0.2.",
        "memory review": "Record the outcome of a decision or of a procedure.",
        "memory record-trigger": "Record that a constraint was triggered.",
        "memory retire": "Take a fact, procedure or constraint out of use, or archive an episode.",
        "memory events": "List lifecycle events: what changed, by whom and why.",
        "db maintain": "Run due maintenance: age episodes, merge duplicates, apply counters.",
        "db stats": "Show how many memories an agent has, of which kinds, and their size.",
        "db doctor": "Check the store for damage, and suggest remedies.",
    },
    "provenance": {
        "memory trace-back": "Show where a memory comes from: its sources, and theirs in turn.",
        "memory revoke": "Delete all that comes from one source, permanently.",
        "quarantine list": "List the memories that are never shown, and why.",
        "quarantine release": "Let a memory out of quarantine, so that results show it.",
        "quarantine purge": "Delete one memory in quarantine, or all, permanently.",
    },
    "contexts": {
        "assemble": "Build the best context for a query within a token budget.",
        "context explain": "Show what `assemble` includes and leaves out, and why.",
        "context refresh": "Rebuild the context if it is stale; otherwise print nothing.",
        "context frames": "List the frames: purpose, budget and share of each section.",
        "context project": "Build the context of a project's task, for a prompt or for AGENTS.md.",
    },
    "imports": {
        "import": "Import files, chats, a project's folder or a repository's history.",
        "watch": "Import a folder, then each change in it, until interrupted.",
        "export": "Write all memories as JSON lines.",
    },
    "ledger": {
        "context feedback": "Record which memories of a context were used.",
        "context observe": "Detect which memories of a context an answer uses, and count them.",
        "context outcome": "Record how a task turned out, so that scoped plans learn from it.",
        "context learning": "Turn learning from feedback on or off, reset it, or show its state.",
        "ledger list": "List recorded assemblies, the latest first.",
        "ledger show": "Show a recorded assembly: its query and the fate of each candidate.",
        "ledger purge": "Delete recorded assemblies and their questions permanently.",
        "ledger diff": "Compare two recorded assemblies.",
        "ledger replay": "Repeat an assembly with the store as it was, and compare the bytes.",
        "ledger metrics": "Show seven quality metrics of recorded contexts.",
    },
    "working_sets": {
        "working add": "Add memories to a working set; others are evicted if necessary.",
        "working show": "Show the items of a working set, the latest last.",
        "working touch": "Record that an item was just used.",
        "working remove": "Remove an item; the memory stays stored.",
        "working pin": "Protect an item from eviction.",
        "working unpin": "Undo `pin`.",
        "working clear": "Remove all items; the memories stay stored.",
        "working evict": "Free tokens by evicting the least important items.",
        "working assemble": "Render a working set as one text, the best items first.",
        "working events": "List the changes of a working set.",
        "space create": "Create a space and become its first member.",
        "space list": "List the spaces that the agent belongs to.",
        "space members": "List the members of a space in the order of joining.",
        "space join": "Join a space, or add another agent.",
        "space leave": "Leave a space, or remove another agent; its memories stay.",
        "space promote": "Make a passive member active.",
        "space demote": "Make an active member passive.",
        "space fail-over": "Replace a failed active member by the first passive member.",
        "space share": "Copy one of the agent's own memories into a space.",
        "space events": "List the events of a space, the oldest first.",
        "space disband": "Delete a space and purge all memories in it.",
    },
    "chat": {
        "chat import": "Import transcripts as conversations.",
        "chat show": "Show the messages of a conversation, or list the conversations.",
        "chat summary": "Summarize a conversation, and store the summary.",
        "chat window": "Show the last groups of messages of a conversation.",
        "chat request": "Build the request to a model that fits its context window.",
    },
    "learn": {
        "learn from": "Learn facts with their sources from a conversation or a transcript.",
        "learn runs": "List what was learned from conversations, the latest run first.",
        "learn show": "Show a run: proposals, quotations, decisions and reasons.",
        "learn undo": "Undo a run: memories are as they were before it.",
        "learn same": "Decide that two names are one person or thing, or two.",
        "about": "Show what is known about a person or a thing, in order of time.",
        "consolidate": "Learn from every conversation that has messages which weren't read.",
    },
    "stores": {
        "embedder use": "Recompute the embeddings of all agents with another model, and use it.",
        "db status": "Show a store's database, schema version and size.",
        "db agents": "List the agents of a store, their memories and last writes.",
        "db users": "List the users of a store, and which agents know something of them.",
        "db migrate": "Create a store, or migrate it to this version's schema.",
        "db copy": "Copy a store, between files and PostgreSQL in either direction.",
        "db embed": "Compute missing embeddings.",
        "db reindex": "Rebuild the indexes of a store.",
        "db index": "Build or drop the vector index (HNSW) of an agent in PostgreSQL.",
        "db vacuum": "Free the space of deleted rows, or erase purged data.",
        "db rekey": "Change the key of an encrypted store.",
        "db remove": "Delete an agent and all its data permanently.",
        "db purge-user": "Delete all that any agent knows of a user permanently.",
        "db distribute": "Distribute the tables over a Citus cluster, by agent.",
        "bug-report": "Print what a bug report needs: versions and figures, but no stored text.",
    },
    "servers": {
        "mcp": "Serve the memory to hosts and agents by the Model Context Protocol.",
        "hook": "Add memory to a session of a host such as Claude Code, at its events.",
    },
    "serving": {
        "serve": "Serve the memory over HTTP: REST, MCP, metrics and the inspector in one process.",
        "inspect": "Open the inspector: a page that shows why a context is as it is.",
        "keys create": "Create a key for an agent, and print it once.",
        "keys list": "List the keys of a store.",
        "keys revoke": "Revoke a key permanently.",
    },
    "evaluation": {
        "eval run": "Measure how much of the evidence the contexts contain.",
        "eval kinds": "Compare the default call with peers on every data file of a folder.",
        "eval losses": "Show where evidence was lost, question by question.",
        "demo": "Load a demo memory, ask it a question and explain the answer.",
    },
}

COMMANDS: Mapping[str, Command] = {
    name: Command(module, summary)
    for module, commands in _IN_MODULES.items()
    for name, summary in commands.items()
}
"""Every command by its name, in the order of the help."""

GROUPS: Mapping[str, str] = {
    "memory": "List, read and change stored memories.",
    "quarantine": "Review what is stored and never shown.",
    "context": "Explain, refresh and learn from contexts.",
    "ledger": "Inspect, compare and measure recorded assemblies.",
    "working": "Manage working sets: what an agent has in mind.",
    "space": "Manage spaces: memories that agents share.",
    "chat": "Import conversations and build requests to models.",
    "learn": "Learn from conversations, and see and undo what was learned.",
    "embedder": "Choose the model that finds memories by meaning.",
    "keys": "Manage the keys of servers.",
    "db": "Operate a store, in a file or in PostgreSQL.",
    "eval": "Evaluate contexts with questions and evidence.",
}
"""The groups of commands by their first word, with their lines in the help."""

COUNTING = frozenset(
    {"remember", "assemble", "import", "demo", "memory revise", "memory review", "memory record-trigger"}
    | {"context explain", "context refresh", "context project", "ledger replay", "working assemble"}
    | {"chat request", "learn from", "consolidate", "eval run", "eval losses", "eval kinds"}
)
"""The commands that nearly always count tokens; the vocabulary is loaded in parallel for them."""


def name_in(arguments: Sequence[str]) -> str:
    """The name of the command with which the arguments begin, which has one word or two."""
    return " ".join(arguments[:2] if arguments and arguments[0] in GROUPS else arguments[:1])
