"""Finds the words of a text, and the forms that a word is known by.

Level: retrieval (imports nothing of the package). Pure.

A word here is what stands between spaces and punctuation, compounds in one piece: `getUserName`,
`src/auth/login.py`, `v1.2.3`, `don't`. Its forms are the compound whole and its parts, level by
level: path, file name, hyphenated or underscored name, camel-cased name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple
from unicodedata import normalize

import regex

__all__ = ["UNICODE", "Form", "forms", "words"]


class Form(NamedTuple):
    """One form of a word, case folded.

    `stemmed` says whether it is a word of a language, to be stemmed. `index_only` marks a form
    that is indexed but not asked for, since longer forms beside it ask the same more exactly.
    """

    text: str
    stemmed: bool = False
    index_only: bool = False


# Each word ends with a try of this, so the comma comes first, and what looks around it after.
_CONNECTED = r"(?:[-'./\\@]|,(?<=[0-9],)(?=[0-9]{3}(?![0-9])))"
_ENDING = r"(?:\+\+|\#(?![0-9A-Za-z]))?"
_ASCII_WORD = re.compile(rf"[0-9A-Za-z_]++(?:{_CONNECTED}[0-9A-Za-z_]++)*+{_ENDING}")
_ANY_WORD = rf"[\p{{L}}\p{{N}}_][\p{{L}}\p{{M}}\p{{N}}_]*(?:{_CONNECTED}[\p{{L}}\p{{M}}\p{{N}}_]+)*{_ENDING}"

# Typography that stands for ASCII, or for nothing. Trade marks would otherwise become letters.
_TYPOGRAPHY = str.maketrans(
    dict.fromkeys("\u2018\u2019\u02bc\u2032\u201b", "'")
    | dict.fromkeys("\u2010\u2011", "-")
    | dict.fromkeys(
        "\u2012\u2013\u2014\u2015\u2026\u00a0\u201c\u201d\u201e\u00ab\u00bb\u2022\u2122\u2120\u00ae\u00a9",
        " ",
    )
    | dict.fromkeys("\u00ad\u200c\u200d\ufeff\u2060")
)
# Marks that writers of Arabic and Hebrew add or leave out at will, the Arabic stretching stroke,
# and the Russian letter that is mostly printed without its dots.
_OPTIONAL_MARKS = str.maketrans(
    dict.fromkeys([0x0640, 0x0670, *range(0x064B, 0x0653), *range(0x0591, 0x05BE), *range(0x05BF, 0x05C8)])
    | {"ё": "е", "Ё": "Е"}
)


def words(text: str) -> list[str]:
    """The words of a text in order, each as it is written but for Unicode normalisation (NFKC)."""
    if not text.isascii():
        text = text.translate(_TYPOGRAPHY)
        if not text.isascii():
            text = normalize("NFKC", text).translate(_OPTIONAL_MARKS)
            found: list[str] = _compiled(_ANY_WORD).findall(text)
            return found
    return _ASCII_WORD.findall(text)


def forms(word: str) -> Iterator[Form]:
    """Every form of a word that `words` found. A word of underscores alone has none."""
    plain = _plain(word)
    if plain is not None:
        yield plain
        return
    if word.endswith(("++", "#")):
        # C++ and C# are names; the same marks behind a longer word are operators.
        name = word.rstrip("+#")
        if len(name) == 1:
            yield Form(word.lower())
        word = name
    yield from _of_path(word)


def _plain(word: str) -> Form | None:
    """The one form of a word that is all small ASCII letters, but for its first, or all ASCII digits.

    The levels below would find the same; nearly all words come this way, and nearly all parts of others.
    """
    if word.isascii():
        if word.isalpha() and (word.islower() or word.istitle()):
            return Form(word.lower(), stemmed=True)
        if word.isdecimal():
            return Form(word)
    return None


_BETWEEN_SEGMENTS = re.compile(r"[/\\@]")
_BETWEEN_PARTS = re.compile(r"[-_,]")
_VERSION = re.compile(r"v[0-9]+(?:\.[0-9]+)+")
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+")
_HYPHEN_OF_A_NAME = re.compile(r"(?<!\d)-|-(?!\d)")


def _of_path(word: str) -> Iterator[Form]:
    segments = [each for each in _BETWEEN_SEGMENTS.split(word) if each.strip("_")]
    if len(segments) > 1:
        yield Form(_fold("/".join(segments)) if "@" not in word else _fold(word))
    for segment in segments:
        yield from _of_dotted(segment)


def _of_dotted(word: str) -> Iterator[Form]:
    pieces = [each for each in word.split(".") if each.strip("_")]
    if len(pieces) > 1:
        whole = _fold(".".join(pieces))
        yield Form(whole)
        if all(len(each) == 1 and each.isalpha() for each in pieces):
            # An abbreviation: e.g, U.S.A, p.m; its letters alone mean nothing.
            yield Form(whole.replace(".", ""))
            return
        if _VERSION.fullmatch(whole):
            yield Form(whole[1:])
    for piece in pieces:
        yield from _of_hyphenated(piece)


def _of_hyphenated(word: str) -> Iterator[Form]:
    if "," in word and _THOUSANDS.fullmatch(word):
        word = word.replace(",", "")
    pieces = [each for each in _BETWEEN_PARTS.split(word) if each.strip("'")]
    if len(pieces) > 1:
        # All styles of one name share a whole form, but 2023-05 and 20-2305 must stay apart.
        joined = _HYPHEN_OF_A_NAME.sub("", "-".join(pieces)).replace("'", "")
        yield Form(_fold(joined), stemmed=joined.isalpha())
    for piece in pieces:
        plain = _plain(piece)
        if plain is not None:
            yield plain
        else:
            yield from _of_contracted(piece)


def _of_contracted(word: str) -> Iterator[Form]:
    pieces = [each for each in word.split("'") if each]
    if len(pieces) == 2:  # noqa: PLR2004 - One apostrophe makes two pieces.
        before, after = pieces[0], pieces[1].lower()
        if after in {"s", "re", "ve", "ll", "d", "m"}:
            pieces = [before]
        elif after == "t" and before[-1] in "nN":
            # Written without the apostrophe as often as with it.
            pieces = [before + after]
    if len(pieces) > 1:
        yield Form(_fold("".join(pieces)), stemmed=True)
    for piece in pieces:
        yield from _of_scripts(piece)


_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_RUNS = (
    rf"(?P<unspaced>[{_UNSPACED}][{_UNSPACED}\p{{M}}]*)|(?P<hangul>\p{{Hangul}}+)|[^{_UNSPACED}\p{{Hangul}}]+"
)
_CHARACTER = r"\X"
_HAN = r"\p{Han}"


def _of_scripts(word: str) -> Iterator[Form]:
    if word.isascii():
        yield from _of_cased(word)
        return
    for run in _compiled(_RUNS).finditer(word):
        if run["unspaced"]:
            yield from _bigrams(run.group())
        elif run["hangul"]:
            # Particles are written onto Korean words; the bigrams find the word without them.
            if len(run.group()) > 2:  # noqa: PLR2004 - A run of two is its own bigram.
                yield Form(run.group())
            yield from _bigrams(run.group())
        else:
            yield from _of_cased(run.group())


def _bigrams(run: str) -> Iterator[Form]:
    characters = _compiled(_CHARACTER).findall(run)
    if len(characters) == 1:
        yield Form(run)
        return
    for first, second in pairwise(characters):
        yield Form(first + second)
    for character in characters:
        # One Han character is often a word, and somebody may ask for just that.
        if _compiled(_HAN).match(character):
            yield Form(character, index_only=True)


_ASCII_PARTS = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ANY_PARTS = (
    r"(?:\p{Lu}\p{M}*){2,}s(?!\p{Ll})|(?:\p{Lu}\p{M}*)+(?!\p{Ll})"
    r"|(?:[\p{Lu}\p{Lt}]\p{M}*)?(?:\p{Ll}\p{M}*)+|\p{N}+|(?:[\p{Lo}\p{Lm}\p{Lt}]\p{M}*)+"
)
_PLURAL_INITIALS = re.compile(r"[A-Z]{2,}s")
_MANY_PARTS = 4
_SHORT_PART = 2.5


def _of_cased(word: str) -> Iterator[Form]:
    if word.isdecimal():
        yield from _of_language(word)
        return
    if _PLURAL_INITIALS.fullmatch(word):
        # The stemmer leaves an s where no vowel stands before it.
        word = word[:-1]
    parts = (_ASCII_PARTS if word.isascii() else _compiled(_ANY_PARTS)).findall(word)
    if len(parts) != 1:
        yield from _of_language(word)
        if len(parts) > _MANY_PARTS and len(word) < _SHORT_PART * len(parts):
            # A hash or a key: its parts are noise.
            return
    for part in parts:
        yield from _of_language(part)


_FOLDABLE = r"[\p{Latin}\p{Greek}]"
_UNDECOMPOSED = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "ð": "d"})


def _of_language(word: str) -> Iterator[Form]:
    folded = _fold(word)
    stemmed = not any(character.isdigit() for character in folded)
    yield Form(folded, stemmed=stemmed)
    if not folded.isascii() and _compiled(_FOLDABLE).search(folded):
        # Who types cafe or Zurich means café and Zürich; the exact spelling still ranks first.
        plain = regex.sub(r"\p{M}+", "", normalize("NFD", folded)).translate(_UNDECOMPOSED)
        if plain != folded:
            yield Form(plain, stemmed=stemmed)


def _fold(word: str) -> str:
    return word.lower() if word.isascii() else normalize("NFC", word.casefold())


@cache
def _compiled(pattern: str) -> regex.Pattern[str]:
    """A pattern for what isn't ASCII: they take long to compile, and many a process never meets such text."""
    return regex.compile(pattern)


def _tables() -> str:
    """The Unicode version of the `regex` module's tables, told by letters that each version added."""
    added = {"17": "\U000323b0", "16": "\u1c89", "15": "\U00011f04"}
    known = (version for version, letter in added.items() if regex.match(r"\p{L}", letter))
    return f"unicode-{next(known, '14')}"


UNICODE = _tables()
"""Which letters and marks make a word; `regex` brings its own tables, whatever the Python."""
