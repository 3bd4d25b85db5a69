"""Conversations and requests as JSON.

Level: integrations. Documented in docs/reference/json.md like the shapes of `shapes`, by the same rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from germane.integrations.shapes import Shape

if TYPE_CHECKING:
    from germane import ConversationInfo, LeftOut, Message, PartUse, Request

__all__ = ["conversation_shape", "left_out_shape", "message_shape", "part_shape", "request_shape"]


def conversation_shape(info: ConversationInfo) -> Shape:
    """A conversation at a glance."""
    return {
        "session": info.session,
        "messages": info.messages,
        "hidden": info.hidden,
        "first_at": info.first_at.isoformat() if info.first_at else None,
        "last_at": info.last_at.isoformat() if info.last_at else None,
    }


def message_shape(message: Message) -> Shape:
    """A message in words, with its calls and results."""
    return {
        "id": message.id,
        "seq": message.seq,
        "role": str(message.role),
        "group": message.group,
        "provider": str(message.provider),
        "created_at": message.created_at.isoformat() if message.created_at else None,
        "hidden": message.hidden,
        "text": message.text,
        "calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.calls],
        "results": [{"call_id": result.call_id, "text": result.text} for result in message.results],
    }


def left_out_shape(one: LeftOut) -> Shape:
    """A group that isn't shown, and why."""
    return {
        "group": one.group,
        "reason": str(one.reason),
        "tokens": one.tokens,
        "short_by": one.short_by,
    }


def part_shape(part: PartUse) -> Shape:
    """What became of one part of a request."""
    return {
        "name": part.name,
        "offered": part.offered,
        "share": part.share,
        "used": part.used,
        "shown": part.shown,
        "cut": part.cut,
        "left_out": part.left_out,
        "why": part.why,
    }


def request_shape(request: Request, *, cache: bool = False) -> Shape:
    """A request: what to send, with marks for a prompt cache if asked, and the account of it."""
    return {
        "provider": str(request.provider),
        "counter": request.counter,
        "window": request.window,
        "reserve": request.reserve,
        "limit": request.limit,
        "tokens": request.tokens,
        "parts": [part_shape(part) for part in request.parts],
        "left_out": [left_out_shape(one) for one in request.left_out],
        "notes": [{"code": note.code, "text": note.text} for note in request.notes],
        "arguments": request.arguments(cache=cache),
    }
