"""What a provider's own counts say of ours.

Level: model (imports errors only). Pure: a calibration is a value, and learning returns another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Self

from germane.errors import InvalidInput
from germane.model.forms import checked_fields

__all__ = ["Calibration", "reported_tokens"]

_KEPT: Final = 32
_ENOUGH: Final = 4
_HEADROOM: Final = Fraction("1.03")
_LOWEST, _HIGHEST = Fraction("0.5"), Fraction(4)
_OF_ANTHROPIC = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
@checked_fields()
class Calibration:
    """How many tokens the provider reported for each that we counted, for the latest 32 requests.

    The largest of these ratios counts, and 3 % more, so that one text of another kind doesn't break the
    bound at once; below 4 requests the counter's own margin stands if it is larger. The factor stays
    between 0.5 and 4. It holds for the counter and provider that it was learned by, and no others.
    Store `ratios` to keep it, and give them back to go on.
    """

    counter: str
    provider: str
    ratios: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not all(0 < ratio < float("inf") for ratio in self.ratios):
            raise InvalidInput(f"ratios={self.ratios!r} can't be used: each is a finite number above 0.")

    def learn(self, counted: int, usage: object) -> Self:
        """The calibration after one more request that was counted here and used there.

        `usage` is the provider's: a number of tokens, or the `usage` of its answer as an object or a
        mapping. Raises InvalidInput for none.
        """
        reported = reported_tokens(usage)
        if counted < 1:
            raise InvalidInput(f"counted={counted} can't be compared: a request has 1 token or more.")
        ratios = (*self.ratios, reported / counted)[-_KEPT:]
        return type(self)(counter=self.counter, provider=self.provider, ratios=ratios)

    def factor(self, margin: float) -> Fraction:
        """What to multiply a count by, so that the true one is no larger; `margin` is the counter's."""
        stated = 1 + Fraction(str(margin))
        if not self.ratios:
            return stated
        learned = min(max(Fraction(str(max(self.ratios))) * _HEADROOM, _LOWEST), _HIGHEST)
        return learned if len(self.ratios) >= _ENOUGH else max(learned, stated)


def reported_tokens(usage: object) -> int:
    """The tokens of the prompt by a provider's usage, what came from its cache included.

    Raises InvalidInput for what names none.
    """
    if isinstance(usage, int) and not isinstance(usage, bool):
        tokens = usage
    else:
        tokens = _of(usage, "prompt_tokens") or sum(_of(usage, name) for name in _OF_ANTHROPIC)
    if tokens < 1:
        raise InvalidInput(
            f"usage={usage!r} names no tokens of a prompt: give the number, or the `usage` of the answer, "
            "which has prompt_tokens or input_tokens."
        )
    return tokens


def _of(usage: Any, name: str) -> int:
    value = usage.get(name) if isinstance(usage, Mapping) else getattr(usage, name, None)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
