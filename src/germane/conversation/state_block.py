"""The block of a message in which a model keeps the state of its work. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import regex

from germane.errors import InvalidInput, shown
from germane.model.conversation import Message, MessageRole, TextPart

STATE = "state"
"""The anchor that has the state."""

DEFAULT_PATTERN = "### STATE\n{state}\n### END STATE"
"""How a message has the state, unless a caller says otherwise."""


@dataclass(frozen=True, slots=True)
class StateBlock:
    """Reads and writes the state in a message by a pattern, a text with `{state}` where the state stands.

    What stands before and after it in the pattern begins and ends the block; a block without its end ends
    with the text. Raises InvalidInput for a pattern without `{state}`, or with nothing before it.
    """

    pattern: str = DEFAULT_PATTERN

    def __post_init__(self) -> None:
        if self.pattern.count("{state}") != 1 or not self._ends[0]:
            raise InvalidInput(
                f"state_pattern={shown(self.pattern)} can't be used: write a text with {{state}} once and "
                f"something before it, such as {DEFAULT_PATTERN!r}."
            )

    @property
    def _ends(self) -> tuple[str, str]:
        before, _, after = self.pattern.partition("{state}")
        return before.strip(), after.strip()

    def read(self, message: Message) -> str | None:
        """The state in a message of the assistant; None where it has none. Of several blocks the last."""
        if message.role is not MessageRole.ASSISTANT:
            return None
        found = list(self._block.finditer(message.own_text))
        return found[-1][1].strip() if found else None

    def written(self, message: Message, state: str) -> Message:
        """The message with another state, in its block or after its text; an empty one removes it."""
        block = self.pattern.replace("{state}", state) if state else ""
        own = [
            (place, part)
            for place, part in enumerate(message.parts)
            if isinstance(part, TextPart) and not part.recalled
        ]
        with_block = [(place, part) for place, part in own if self._block.search(part.text)]
        if not (own if block else with_block):
            return message.evolve(parts=(*message.parts, TextPart(text=block))) if block else message
        place, part = (with_block or own)[-1]
        found = list(self._block.finditer(part.text))
        start, end = found[-1].span() if found else (len(part.text), len(part.text))
        gap = "" if found else "\n\n"
        text = f"{part.text[:start]}{gap}{block}{part.text[end:]}".strip()
        parts = (*message.parts[:place], replace(part, text=text), *message.parts[place + 1 :])
        return message.evolve(parts=parts)

    def without(self, message: Message) -> Message:
        """The message without its block, which stands outside any window; unchanged if nothing is left."""
        if message.role is not MessageRole.ASSISTANT or self._ends[0] not in message.text:
            return message
        left = self.written(message, "") if self.read(message) is not None else message
        return left if left.text or len(left.parts) > 1 else message

    @property
    def _block(self) -> regex.Pattern[str]:
        before, after = map(regex.escape, self._ends)
        return regex.compile(rf"{before}(.*?)(?:{after}|\Z)" if after else rf"{before}(.*)\Z", regex.DOTALL)
