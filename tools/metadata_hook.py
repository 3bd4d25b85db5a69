"""What hatchling adds to the package's metadata: README for readers elsewhere, and the project's addresses.

The address of the repository is `address` in `[tool.hatch.metadata.hooks.custom]` of pyproject.toml, or the
environment variable GERMANE_ADDRESS (`make dist ADDRESS=https://…`). Relative links then lead to the files of
the release's tag there. Without an address they are plain text, so that no link is dead.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

__all__ = ["AddressHook", "addresses", "linked"]

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_ELSEWHERE = re.compile(r"[a-z]+:|#")


class AddressHook(MetadataHookInterface):
    """Sets the fields `readme` and `urls`, which pyproject.toml declares as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add what a source archive has already. Raises ValueError for an address without https."""
        if "readme" in metadata:
            return
        address = (os.environ.get("GERMANE_ADDRESS") or self.config.get("address", "")).rstrip("/")
        if address and not address.startswith("https://"):
            raise ValueError(f"The address {address!r} of the project doesn't begin with https://.")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = linked(text, address, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        if address:
            metadata["urls"] = addresses(address, metadata["version"])


def addresses(address: str, version: str) -> dict[str, str]:
    """The addresses of the project's parts, by the names that package indexes know."""
    files = f"{address}/blob/v{version}"
    return {
        "Homepage": address,
        "Documentation": f"{files}/docs/index.md",
        "Source": address,
        "Issues": f"{address}/issues",
        "Changelog": f"{files}/CHANGELOG.md",
    }


def linked(text: str, address: str, version: str) -> str:
    """Markdown with absolute links instead of relative ones, or with their texts alone without an address."""

    def whole(link: re.Match[str]) -> str:
        image, words, target = link.groups()
        if _ELSEWHERE.match(target):
            return link[0]
        if not address:
            return "" if image else words
        return f"{image}[{words}]({address}/{'raw' if image else 'blob'}/v{version}/{target})"

    return _LINK.sub(whole, text)
