"""chat: conversations from transcripts, what stands in them, and the request that fits a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from germane import InvalidInput
from germane.cli import options
from germane.cli.options import Call, arg, command, opt
from germane.cli.output import print_table, print_text, to_json, warn
from germane.errors import MessageNotFound, UnreadableSource
from germane.model.text import cut, line_of

if TYPE_CHECKING:
    from germane import Conversation, Engine, Message

_LABEL = 90

SessionName = Annotated[str, arg("SESSION", "The name of the conversation.")]
CounterName = Annotated[str | None, opt("--counter NAME", "What counts tokens, a counter or a model's name.")]
Query = Annotated[str | None, opt("--query TEXT", "What to recall, instead of the last prompt's topic.")]
_System = Annotated[str | None, opt("--system TEXT", "What the system says.")]
_Tools = Annotated[Path | None, opt("--tools FILE", "A JSON list of the provider's tools.")]
_Memory = Annotated[str | None, opt("--memory PLAN", "Show memory by this plan, such as layered.")]
_Space = Annotated[str | None, opt("--space SPACE", "Show this space's memory instead of the agent's own.")]
_Cache = Annotated[bool, opt("--cache", "With --json: mark what Anthropic's prompt cache shall keep.")]


@command("chat import")
def _import(
    call: Call,
    sources: Annotated[
        list[Path],
        arg(
            "FILE...",
            "Transcripts: messages of OpenAI's or Anthropic's layout as JSON or JSON lines, or lines such"
            " as `user: text`.",
        ),
    ],
    *,
    session: Annotated[
        str | None, opt("--session NAME", "The conversation's name, instead of the file's.")
    ] = None,
    layout: Annotated[
        str | None, opt("--provider NAME", "Whose layout it is; it is found out without this option.")
    ] = None,
) -> None:
    """A transcript that was imported before and is longer now adds its new messages alone. One that
    says something else than the conversation of that name does is refused.
    """
    from germane.importers.dialogue import read_conversations  # noqa: PLC0415 - Only here.

    done = []
    with call.open(makes=True) as engine:
        for source in sources:
            read = list(read_conversations(source, layout))
            if session is not None and len(read) > 1:
                raise UnreadableSource(
                    f"{source} holds {len(read)} conversations, and --session names one. Leave it out: "
                    "each is then named after the file and its number there."
                )
            for name, messages in read:
                talk = engine.conversation(session or name)
                added = talk.extend(_new(talk, messages))
                done.append(
                    {"session": talk.session, "appended": len(added), "messages": len(talk.messages())}
                )
    if call.prints({"conversations": done}):
        return
    for one in done:
        print_text(f"{one['session']}: {one['appended']:,} messages added, {one['messages']:,} in all.")


@command("chat show")
def _show(
    call: Call,
    session: Annotated[
        str | None, arg("[SESSION]", "The conversation; without it, all of them are listed.")
    ] = None,
    *,
    hidden: Annotated[bool, opt("--hidden", "Hidden messages too.")] = False,
) -> None:
    with call.open() as engine:
        if session is None:
            found = engine.conversations()
            if call.prints({"conversations": found}):
                return
            if found:
                rows = [(each.session, f"{each.messages:,}", f"{each.hidden:,}") for each in found]
                print_table(("session", "messages", "hidden"), rows, right=(1, 2))
            else:
                warn("This agent has no conversations. `germane chat import` makes some.")
            return
        talk = _named(engine, session)
        messages, anchors = talk.messages(hidden=hidden), dict(talk.anchors())
    if not call.prints({"session": session, "anchors": anchors, "messages": messages}):
        _print_messages(messages)


@command("chat window")
def _window(
    call: Call,
    session: SessionName,
    *,
    groups: Annotated[int, opt("--groups N", "How many of the last groups; 0 all, -1 none.")] = 0,
    budget: Annotated[int | None, opt("--budget TOKENS", "At most so many tokens.")] = None,
    counter: CounterName = None,
) -> None:
    with call.open() as engine:
        found = _named(engine, session).window(groups, budget=budget, counter=counter)
    if call.prints({"session": session, **to_json(found)}):
        return
    _print_messages(found.messages)
    warn(f"Groups shown: {len(found.groups):,}, left out: {len(found.left_out):,}.")


@command("chat request")
def _request(
    call: Call,
    session: SessionName,
    *,
    provider: Annotated[str, opt("--provider NAME", "openai, openai-responses or anthropic.")] = "openai",
    window: Annotated[int, opt("--window TOKENS", "The model's window, the answer included.")] = 200_000,
    reserve: Annotated[int, opt("--reserve TOKENS", "What is kept free for the answer.")] = 8_000,
    system: _System = None,
    tools: _Tools = None,
    memory: _Memory = None,
    space: _Space = None,
    with_space: options.WithSpaces = None,
    query: Query = None,
    counter: CounterName = None,
    cache: _Cache = False,
    record: options.Record = False,
) -> None:
    """With --json, `arguments` are what the provider's client takes; without, the account for people."""
    beside = _beside(space, with_space)
    with call.open(writes=record) as engine:
        made = (engine if space is None else engine.space(space)).request(
            _named(engine, session),
            provider=provider,
            window=window,
            reserve=reserve,
            system=system,
            tools=[] if tools is None else _tools_in(tools),
            memory=memory,
            query=query,
            counter=counter,
            record=record or None,
            **beside,
        )
    value = {"session": session, **to_json(made), "arguments": made.arguments(cache=cache)}
    call.answer(value, made.explain)


def _beside(space: str | None, with_space: Sequence[str] | None) -> dict[str, Any]:
    """The spaces that take part, where an engine makes the request. A space takes none."""
    if space is not None and with_space:
        raise InvalidInput(
            f"--space {space} shows that space alone, and --with-space what the agent and others hold. Use "
            "one of them."
        )
    return {"spaces": with_space} if with_space else {}


def _named(engine: Engine, session: str) -> Conversation:
    """The conversation of that name, which must be there. Raises MessageNotFound."""
    if all(info.session != session for info in engine.conversations()):
        raise MessageNotFound("conversation", session, session)
    return engine.conversation(session)


def _new(talk: Conversation, messages: Sequence[Message]) -> Sequence[Message]:
    """The messages that the conversation doesn't have yet. Raises InvalidInput where it has others."""
    known = talk.messages(hidden=True)
    for place, (one, other) in enumerate(zip(known, messages, strict=False), start=1):
        if (one.role, one.parts) != (other.role, other.parts):
            raise InvalidInput(
                f"Conversation {talk.session!r} says something else from message {place} on than the "
                "transcript. Name another with --session."
            )
    return messages[len(known) :]


def _tools_in(path: Path) -> list[dict[str, Any]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UnreadableSource(f"{path} can't be read as a JSON list of tools: {error}.") from error
    if not isinstance(found, list):
        raise UnreadableSource(f"{path} is no JSON list of tools.")
    return found


def _print_messages(messages: Sequence[Message]) -> None:
    from germane.conversation.formats.parts import in_words, names_of_calls  # noqa: PLC0415 - Only text needs it.

    names: dict[str, str] = {}
    rows = []
    for message in messages:
        names |= names_of_calls(message)
        rows.append((f"{message.seq}", str(message.role), cut(line_of(in_words(message, names)), _LABEL)))
    if rows:
        print_table(("#", "role", "message"), rows, right=(0,))
