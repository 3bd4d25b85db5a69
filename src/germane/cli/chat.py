"""The commands `chat …`: conversations from transcripts, and requests to models."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from germane import InvalidInput
from germane.cli import options
from germane.cli.call import Call, command
from germane.cli.options import arg, opt
from germane.cli.output import columns_of_output, fitting, print_table, print_text, warn
from germane.encoding import to_json
from germane.errors import MessageNotFound, UnreadableSource
from germane.model.text import line_of

if TYPE_CHECKING:
    from germane import Conversation, Engine, Message

_LABEL = 90

_Session = Annotated[str, arg("SESSION", "Name of the conversation.")]


@command("chat import")
def _import(
    call: Call,
    sources: Annotated[
        list[Path],
        arg(
            "FILE...",
            "Transcripts: OpenAI or Anthropic messages as JSON or JSON lines, `user: text` lines, or data "
            "exports of ChatGPT and Claude.",
        ),
    ],
    *,
    session: Annotated[
        str | None, opt("--session NAME", "Name of the conversation; default: the file's.")
    ] = None,
    provider: Annotated[
        str | None, opt("--provider NAME", "Whose format it is; detected by default.")
    ] = None,
) -> None:
    """Importing a longer transcript again adds only its new messages. A transcript that differs from the
    conversation of that name is refused.
    """
    from germane.importers.dialogue import read_conversations  # noqa: PLC0415 - Only here.
    from germane.importers.foreign import counted  # noqa: PLC0415 - As above.

    done, taken = [], []
    with call.engine(makes=True) as engine:
        for source in sources:
            with counted(source, lambda part: warn(f"{part.source}: {part.reason}")) as leave_out:
                read = list(read_conversations(source, provider, leave_out=leave_out))
            if session is not None and len(read) > 1:
                raise UnreadableSource(
                    f"{source} holds {len(read)} conversations, and --session names one. Leave it out: "
                    "each is then named after the file and its number there."
                )
            taken += [(engine.conversation(session or name), messages) for name, messages in read]
        # Nothing is stored if a file can't be read or one of the conversations differs.
        for conversation, messages in taken:
            _new(conversation, messages)
        # Again, since an earlier file may have been of the same conversation.
        for conversation, messages in taken:
            added = conversation.extend(_new(conversation, messages))
            figures = {"appended": len(added), "messages": len(conversation.messages())}
            done.append({"session": conversation.session, **figures})
    if call.prints({"conversations": done}):
        return
    for each in done:
        plural = "s"[: each["appended"] != 1]
        appended = f"{each['appended']:,} message{plural} added"
        print_text(f"{each['session']}: {appended}, {each['messages']:,} in all.")


@command("chat show")
def _show(
    call: Call,
    session: Annotated[str | None, arg("[SESSION]", "Name of the conversation; default: list all.")] = None,
    *,
    hidden: Annotated[bool, opt("--hidden", "Include hidden messages.")] = False,
    since: Annotated[
        str | None, opt("--since TIME", "List only conversations with a message from then on.")
    ] = None,
) -> None:
    with call.engine() as engine:
        if session is None:
            infos = engine.sessions(since=since)
            if call.prints({"conversations": infos}):
                return
            if infos:
                named = any(each.title for each in infos)
                headings = ("session", "messages", "hidden", *(("title",) if named else ()))
                rows = [
                    (each.session, f"{each.messages:,}", f"{each.hidden:,}", each.title or "")
                    for each in infos
                ]
                print_table(headings, [row[: len(headings)] for row in rows], right=(1, 2))
            else:
                warn("This agent has no conversations. `germane chat import` makes some.")
            return
        conversation = _named(engine, session)
        messages, anchors = conversation.messages(hidden=hidden), dict(conversation.anchors())
    if not call.prints({"session": session, "anchors": anchors, "messages": messages}):
        _print_messages(messages)


@command("chat summary")
def _summary(call: Call, session: _Session) -> None:
    """The summary is stored as a memory, which is found by its words, and made anew when the conversation
    has changed.
    """
    with call.engine(writes=True) as engine:
        found = _named(engine, session).summary()
    if not call.prints(found):
        print_text(found.summary)


@command("chat window")
def _window(
    call: Call,
    session: _Session,
    *,
    groups: Annotated[int, opt("--groups N", "The number of groups; 0: all, -1: none.")] = 0,
    budget: Annotated[int | None, opt("--budget TOKENS", "Maximum tokens.")] = None,
    counter: options.CounterName = None,
) -> None:
    """Groups are never split: a tool call stays with its result."""
    with call.engine() as engine:
        selection = _named(engine, session).window(groups, budget=budget, counter=counter)
    if call.prints({"session": session, **to_json(selection)}):
        return
    _print_messages(selection.messages)
    warn(f"Groups shown: {len(selection.groups):,}, left out: {len(selection.left_out):,}.")


@command("chat request", space=True)
def _request(
    call: Call,
    session: _Session,
    *,
    provider: Annotated[str, opt("--provider NAME", "openai, openai-responses or anthropic.")] = "openai",
    window: Annotated[int, opt("--window TOKENS", "The model's context window, answer included.")] = 200_000,
    reserve: Annotated[int, opt("--reserve TOKENS", "Tokens reserved for the answer.")] = 8_000,
    system: Annotated[str | None, opt("--system TEXT", "The system prompt.")] = None,
    tools: Annotated[
        Path | None, opt("--tools FILE", "A JSON list of tools in the provider's format.")
    ] = None,
    memory: Annotated[
        str | None, opt("--memory PLAN", "Include memories by this plan, such as layered.")
    ] = None,
    with_space: options.WithSpaces = None,
    query: Annotated[
        str | None, opt("--query TEXT", "What to recall; default: the topic of the last prompt.")
    ] = None,
    counter: options.CounterName = None,
    cache: Annotated[
        bool, opt("--cache", "With --json: set cache breakpoints for Anthropic's prompt cache.")
    ] = False,
    record: options.Record = False,
) -> None:
    """With --json, `arguments` are those of the provider's client; otherwise an account is printed."""
    spaces = call.spaces(with_space)
    with call.engine(writes=record) as engine:
        owner = engine if call.space is None else engine.space(call.space)
        request = owner.request(
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
            spaces=spaces,
        )
    value = {"session": session, **to_json(request), "arguments": request.arguments(cache=cache)}
    call.answer(value, lambda: request.explain(columns=columns_of_output()))


def _named(engine: Engine, session: str) -> Conversation:
    """The existing conversation of that name. Raises MessageNotFound."""
    conversation = engine.conversation(session)
    if not conversation.exists():
        raise MessageNotFound("conversation", session, session)
    return conversation


def _new(conversation: Conversation, messages: Sequence[Message]) -> Sequence[Message]:
    """The messages that the conversation doesn't have yet. Raises InvalidInput if earlier ones differ."""
    known = conversation.messages(hidden=True)
    for place, (before, now) in enumerate(zip(known, messages, strict=False), start=1):
        if (before.role, before.parts) != (now.role, now.parts):
            raise InvalidInput(
                f"Conversation {conversation.session!r} differs from the transcript from message {place} on. "
                "Name another with --session."
            )
    return messages[len(known) :]


def _tools_in(path: Path) -> list[dict[str, Any]]:
    try:
        tools = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UnreadableSource(f"{path} can't be read as a JSON list of tools: {error}.") from error
    if not isinstance(tools, list):
        raise UnreadableSource(f"{path} is no JSON list of tools.")
    return tools


def _print_messages(messages: Sequence[Message]) -> None:
    from germane.conversation.formats.parts import in_words, names_of_calls  # noqa: PLC0415 - Only text needs it.

    names: dict[str, str] = {}
    rows = []
    for message in messages:
        names |= names_of_calls(message)
        rows.append((f"{message.seq}", str(message.role), fitting(line_of(in_words(message, names)), _LABEL)))
    if rows:
        print_table(("#", "role", "message"), rows, right=(0,))
