"""The data exports of ChatGPT and Claude: conversations, custom instructions and memories."""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from germane.conversation.formats.parts import call_in_words, result_in_words
from germane.importers.foreign import LeaveOut, foreign_draft, objects_in, parsed_json, placed, text_in
from germane.importers.markdown import drafts_of_text
from germane.importers.sources import FieldError, as_stamp, unreadable
from germane.model.memory import Draft

Messages = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """The text of a file that was attached to the message at `index` of its conversation."""

    source: str
    name: str
    text: str
    index: int
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedConversation:
    """One conversation of an export; its messages are in OpenAI's or Anthropic's format, with times."""

    id: str
    title: str
    messages: Messages
    created_at: datetime | None = None
    attachments: Sequence[Attachment] = ()

    def with_attachments(self) -> Messages:
        """The messages, each after the texts that were attached to it, as messages of their own.

        These are in code blocks, since they aren't the user's words.
        """
        messages: list[Mapping[str, Any]] = []
        left = deque(self.attachments)
        for index in range(len(self.messages) + 1):
            while left and left[0].index == index:
                each = left.popleft()
                fence = "`" * (1 + max(map(len, _TICKS.findall(each.text)), default=2))
                text = f"[document: {each.name}]\n{fence}\n{each.text}\n{fence}"
                at = each.created_at.isoformat() if each.created_at else None
                messages.append({"role": "user", "content": text, "created_at": at})
            messages += self.messages[index : index + 1]
        return messages

    def notes(self) -> Iterator[Draft]:
        """The texts of attachments as notes of the conversation, long ones by heading."""
        for each in self.attachments:
            about = {"session": self.id, "title": self.title, "attachment": each.name}
            base = foreign_draft(
                each.text,
                each.source,
                created=each.created_at,
                metadata=about,
                kind="note",
                subject=each.name,
                scope=f"session:{self.id}",
            )
            yield from drafts_of_text(each.text, base, Path(each.name))


_TICKS = re.compile("```+")


def export_product(value: object) -> str | None:
    """The product whose data export a JSON value is: "chatgpt", "claude", or None."""
    first: Any = next(iter(objects_in(value)), value)
    if not isinstance(first, Mapping):
        return None
    if "mapping" in first and "current_node" in first:
        return "chatgpt"
    return "claude" if "chat_messages" in first or "conversations_memory" in first else None


def exported_conversations(value: Any, path: Path, leave_out: LeaveOut) -> Iterator[ExportedConversation]:
    """The conversations of a data export in their order. Raises UnreadableSource, naming the conversation."""
    for number, each in enumerate(objects_in(value) or [value], 1):
        title = text_in(each, "title") or text_in(each, "name")
        with placed(path, f"conversation {number} ({title or 'without a title'})"):
            name = each.get("conversation_id") or each.get("id") or each.get("uuid")
            if not isinstance(name, str):
                raise FieldError("it has no id")
            is_chatgpt = "mapping" in each
            attachments: list[Attachment] = []
            messages = (
                _of_chatgpt(each, leave_out) if is_chatgpt else _of_claude(each, attachments, leave_out)
            )
            created = each.get("create_time" if is_chatgpt else "created_at")
            if not messages and not attachments:
                leave_out("conversations without a message")
                continue
            yield ExportedConversation(
                id=name,
                title=title,
                messages=messages,
                created_at=as_stamp(created, name="created_at"),
                attachments=attachments,
            )


def is_claude_memory(value: object) -> bool:
    """Whether a JSON value is the file of Claude's memories."""
    first: Any = next(iter(objects_in(value)), value)
    return isinstance(first, Mapping) and "conversations_memory" in first


# The files of an export.

_CONVERSATIONS: Final = "conversations"


def is_chat_export(path: Path) -> bool:
    """Whether a folder or a zip file is a data export: it has `conversations.json`, in one or more parts."""
    return any(Path(name).name.startswith(_CONVERSATIONS) for name in _names(path))


def exported_values(path: Path) -> Iterator[tuple[str, Any]]:
    """The JSON files of an export by their names. Raises UnreadableSource."""
    names = _names(path)
    if not names:
        yield path.name, parsed_json(path)
    for name in names:
        yield name, parsed_json(path / name, None if path.is_dir() else _unzipped(path, name))


def _unzipped(path: Path, name: str) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read(name).decode("utf-8-sig")
    except (zipfile.BadZipFile, zlib.error, UnicodeDecodeError, RuntimeError, OSError) as error:
        raise unreadable(path, f"{name!r} in it is damaged ({error}). Download the export anew") from error


def _names(path: Path) -> list[str]:
    if path.is_dir():
        return sorted(each.relative_to(path).as_posix() for each in path.glob("*.json"))
    if not zipfile.is_zipfile(path):
        return []
    with zipfile.ZipFile(path) as archive:
        return sorted(name for name in archive.namelist() if name.endswith(".json"))


# ChatGPT: a tree of messages, of which the branch of the current node was the one in sight.

_TEXTS: Final = frozenset({"text", "multimodal_text", "code", "execution_output"})
_CUSTOM: Final = "user_editable_context"


def _of_chatgpt(conversation: Mapping[str, Any], leave_out: LeaveOut) -> Messages:
    branch = _branch(conversation)
    others = [node for node in _nodes(conversation).values() if isinstance(node.get("message"), Mapping)]
    leave_out(
        "messages of other branches: edited questions and regenerated answers", len(others) - len(branch)
    )
    messages = []
    for message in branch:
        author, content = message.get("author"), message.get("content")
        if not isinstance(content, Mapping) or not isinstance(author, Mapping):
            raise FieldError("a message has no 'author' or no 'content'")
        kind, role = str(content.get("content_type")), str(author.get("role"))
        text = "\n".join(part for part in _parts(content, leave_out) if part.strip())
        if kind == _CUSTOM or (kind in _TEXTS and not text.strip()):
            continue
        if kind not in _TEXTS or role == "system" or _is_hidden(message):
            leave_out("messages that ChatGPT hides: instructions of the system, thoughts, search results")
            continue
        if role == "tool":
            role, text = "assistant", result_in_words(str(author.get("name") or "tool"), text)
        elif message.get("recipient") not in (None, "all"):
            text = call_in_words(str(message["recipient"]), text)
        messages.append({"role": role, "content": text, "created_at": message.get("create_time")})
    return messages


def _nodes(conversation: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    nodes = conversation.get("mapping")
    if not isinstance(nodes, Mapping) or not all(isinstance(node, Mapping) for node in nodes.values()):
        raise FieldError("'mapping' must be an object of messages")
    return nodes


def _branch(conversation: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The messages from the first to the current one."""
    nodes, name = _nodes(conversation), conversation.get("current_node")
    branch: list[Mapping[str, Any]] = []
    seen: set[object] = set()
    while name is not None and name not in seen:
        if name not in nodes:
            raise FieldError(f"the message {name!r} is missing")
        seen.add(name)
        message = nodes[name].get("message")
        if isinstance(message, Mapping):
            branch.append(message)
        name = nodes[name].get("parent")
    return branch[::-1]


def _is_hidden(message: Mapping[str, Any]) -> bool:
    about = message.get("metadata")
    return isinstance(about, Mapping) and bool(about.get("is_visually_hidden_from_conversation"))


def _parts(content: Mapping[str, Any], leave_out: LeaveOut) -> Iterator[str]:
    if isinstance(content.get("text"), str):
        yield content["text"]
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            yield part["text"]  # The words of an audio part.
        else:
            leave_out("pictures and other files in messages")


def custom_instructions(value: Any) -> Iterator[Draft]:
    """What the user wrote once for all conversations of ChatGPT, which each of them repeats."""
    noted = set()
    nodes = (
        node
        for each in objects_in(value)
        if isinstance(each.get("mapping"), Mapping)
        for node in each["mapping"].values()
    )
    for message in (node["message"] for node in nodes if isinstance(node.get("message"), Mapping)):
        for name in ("user_profile", "user_instructions"):
            text = text_in(message.get("content") or {}, name)
            if text and text not in noted:
                noted.add(text)
                yield foreign_draft(text, f"chatgpt:{name}", kind="note", subject=name.replace("_", " "))


# Claude: a list of messages, and a file of memories.


def _of_claude(
    conversation: Mapping[str, Any], attachments: list[Attachment], leave_out: LeaveOut
) -> Messages:
    """The messages of a conversation; the texts of attached files are added to `attachments`."""
    given = conversation.get("chat_messages")
    if not isinstance(given, list):
        raise FieldError("'chat_messages' must be a list of messages")
    messages: list[Mapping[str, Any]] = []
    for number, message in enumerate(given):
        if not isinstance(message, Mapping):
            raise FieldError(f"a message must be an object, and is {json.dumps(message)[:40]}")
        place = f"claude:{conversation.get('uuid')}/{message.get('uuid') or number}"
        for file in objects_in(message, "attachments"):
            if not text_in(file, "extracted_content"):
                leave_out("attached files without their text")
                continue
            name = text_in(file, "file_name") or "pasted text"
            attachments.append(
                Attachment(
                    source=f"{place}/{name}",
                    name=name,
                    text=text_in(file, "extracted_content"),
                    index=len(messages),
                    created_at=as_stamp(message.get("created_at"), name="created_at"),
                )
            )
        leave_out("attached files without their text", len(objects_in(message, "files")))
        content = objects_in(message, "content")
        text = "\n".join(filter(None, (_words(part, leave_out) for part in content)))
        if text := text.strip() or text_in(message, "text"):
            sender = text_in(message, "sender")
            role = "user" if sender == "human" else sender
            messages.append({"role": role, "content": text, "created_at": message.get("created_at")})
    return messages


def _words(part: Mapping[str, Any], leave_out: LeaveOut) -> str:
    kind, name = part.get("type"), text_in(part, "name") or "tool"
    if kind == "tool_use":
        return call_in_words(name, json.dumps(part.get("input"), ensure_ascii=False))
    if kind == "tool_result":
        given = part.get("content")
        text = given if isinstance(given, str) else "\n".join(text_in(p, "text") for p in objects_in(given))
        return result_in_words(name, text, failed=bool(part.get("is_error")))
    if kind != "text":
        leave_out(f"parts of type {kind!r} in messages")
    return text_in(part, "text") if kind == "text" else ""


def claude_memories(value: Any, path: Path, leave_out: LeaveOut) -> Iterator[Draft]:
    """What Claude noted of all conversations and of each project, long texts by heading."""
    for each in objects_in(value) or [value]:
        several = {"conversations": each.get("conversations_memory")}
        projects = each.get("project_memories")
        several |= projects if isinstance(projects, Mapping) else {}
        for name, text in several.items():
            if isinstance(text, str) and text.strip():
                base = foreign_draft(text, f"claude:memory:{name}", kind="note", subject="Memory of Claude")
                yield from drafts_of_text(text, base, path)
        leave_out("files of Claude's memory", len(objects_in(each, "memory_files")))
