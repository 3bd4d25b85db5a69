"""The one tokenizer: the terms that a memory is indexed by and a question asks for.

Pure: the same text gives the same terms in every process.

A term is a stemmed word, a bigram of a script written without spaces, or a whole compound
(an identifier, a path, a version) beside its parts. The index and the question see the same
splits, so `getUserName`, `get_user_name` and "user name" find each other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import chain, pairwise
from threading import Lock
from typing import Any, NamedTuple, Protocol, TypeAlias
from unicodedata import normalize
from zlib import crc32

import numpy as np
import regex
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.forks import renewed
from germane.model.text import text_cache

# Finds the words of a text, and the forms that a word is known by.
#
# A word here is what stands between spaces and punctuation, compounds in one piece: `getUserName`,
# `src/auth/login.py`, `v1.2.3`, `don't`. Its forms are the compound whole and its parts, level by
# level: path, file name, hyphenated or underscored name, camel-cased name.


class WordForm(NamedTuple):
    """One form of a word, case folded.

    `stemmed` says whether it is a word of a language, to be stemmed. `index_only` marks a form
    that is indexed but not searched, since longer forms beside it match more exactly.
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


def forms(word: str) -> Iterator[WordForm]:
    """Every form of a word that `words` found. A word of underscores alone has none."""
    plain = _plain(word)
    if plain is not None:
        yield plain
        return
    if word.endswith(("++", "#")):
        # C++ and C# are names; the same marks behind a longer word are operators.
        name = word.rstrip("+#")
        if len(name) == 1:
            yield WordForm(word.lower())
        word = name
    yield from _of_path(word)


def _plain(word: str) -> WordForm | None:
    """The one form of a word that is all small ASCII letters, but for its first, or all ASCII digits.

    The levels below would find the same; nearly all words come this way, and nearly all parts of others.
    """
    if word.isascii():
        if word.isalpha() and (word.islower() or word.istitle()):
            return WordForm(word.lower(), stemmed=True)
        if word.isdecimal():
            return WordForm(word)
    return None


_BETWEEN_SEGMENTS = re.compile(r"[/\\@]")
_BETWEEN_PARTS = re.compile(r"[-_,]")
_VERSION = re.compile(r"v[0-9]+(?:\.[0-9]+)+")
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+")
_HYPHEN_OF_A_NAME = re.compile(r"(?<!\d)-|-(?!\d)")


def _of_path(word: str) -> Iterator[WordForm]:
    segments = [each for each in _BETWEEN_SEGMENTS.split(word) if each.strip("_")]
    if len(segments) > 1:
        yield WordForm(_fold("/".join(segments)) if "@" not in word else _fold(word))
    for segment in segments:
        yield from _of_dotted(segment)


def _of_dotted(word: str) -> Iterator[WordForm]:
    pieces = [each for each in word.split(".") if each.strip("_")]
    if len(pieces) > 1:
        whole = _fold(".".join(pieces))
        yield WordForm(whole)
        if all(len(each) == 1 and each.isalpha() for each in pieces):
            # An abbreviation: e.g, U.S.A, p.m; its letters alone mean nothing.
            yield WordForm(whole.replace(".", ""))
            return
        if _VERSION.fullmatch(whole):
            yield WordForm(whole[1:])
    for piece in pieces:
        yield from _of_hyphenated(piece)


def _of_hyphenated(word: str) -> Iterator[WordForm]:
    if "," in word and _THOUSANDS.fullmatch(word):
        word = word.replace(",", "")
    pieces = [each for each in _BETWEEN_PARTS.split(word) if each.strip("'")]
    if len(pieces) > 1:
        # All styles of one name share a whole form, but 2023-05 and 20-2305 must stay apart.
        joined = _HYPHEN_OF_A_NAME.sub("", "-".join(pieces)).replace("'", "")
        yield WordForm(_fold(joined), stemmed=joined.isalpha())
    for piece in pieces:
        plain = _plain(piece)
        if plain is not None:
            yield plain
        else:
            yield from _of_contracted(piece)


def _of_contracted(word: str) -> Iterator[WordForm]:
    pieces = [each for each in word.split("'") if each]
    if len(pieces) == 2:  # noqa: PLR2004 - One apostrophe makes two pieces.
        before, after = pieces[0], pieces[1].lower()
        if after in {"s", "re", "ve", "ll", "d", "m"}:
            pieces = [before]
        elif after == "t" and before[-1] in "nN":
            # Written without the apostrophe as often as with it.
            pieces = [before + after]
    if len(pieces) > 1:
        yield WordForm(_fold("".join(pieces)), stemmed=True)
    for piece in pieces:
        yield from _of_scripts(piece)


_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_RUNS = (
    rf"(?P<unspaced>[{_UNSPACED}][{_UNSPACED}\p{{M}}]*)|(?P<hangul>\p{{Hangul}}+)|[^{_UNSPACED}\p{{Hangul}}]+"
)
_CHARACTER = r"\X"
_HAN = r"\p{Han}"


def _of_scripts(word: str) -> Iterator[WordForm]:
    if word.isascii():
        yield from _of_cased(word)
        return
    for run in _compiled(_RUNS).finditer(word):
        if run["unspaced"]:
            yield from _bigrams(run.group())
        elif run["hangul"]:
            # Particles are written onto Korean words; the bigrams find the word without them.
            if len(run.group()) > 2:  # noqa: PLR2004 - A run of two is its own bigram.
                yield WordForm(run.group())
            yield from _bigrams(run.group())
        else:
            yield from _of_cased(run.group())


def _bigrams(run: str) -> Iterator[WordForm]:
    characters = _compiled(_CHARACTER).findall(run)
    if len(characters) == 1:
        yield WordForm(run)
        return
    for first, second in pairwise(characters):
        yield WordForm(first + second)
    for character in characters:
        # One Han character is often a word, and somebody may ask for just that.
        if _compiled(_HAN).match(character):
            yield WordForm(character, index_only=True)


_ASCII_PARTS = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ANY_PARTS = (
    r"(?:\p{Lu}\p{M}*){2,}s(?!\p{Ll})|(?:\p{Lu}\p{M}*)+(?!\p{Ll})"
    r"|(?:[\p{Lu}\p{Lt}]\p{M}*)?(?:\p{Ll}\p{M}*)+|\p{N}+|(?:[\p{Lo}\p{Lm}\p{Lt}]\p{M}*)+"
)
_PLURAL_INITIALS = re.compile(r"[A-Z]{2,}s")
_MANY_PARTS = 4
_SHORT_PART = 2.5


def _of_cased(word: str) -> Iterator[WordForm]:
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


def _of_language(word: str) -> Iterator[WordForm]:
    folded = _fold(word)
    stemmed = not any(character.isdigit() for character in folded)
    yield WordForm(folded, stemmed=stemmed)
    if not folded.isascii() and _compiled(_FOLDABLE).search(folded):
        # Who types cafe or Zurich means café and Zürich; the exact spelling still ranks first.
        plain = regex.sub(r"\p{M}+", "", normalize("NFD", folded)).translate(_UNDECOMPOSED)
        if plain != folded:
            yield WordForm(plain, stemmed=stemmed)


def _fold(word: str) -> str:
    return word.lower() if word.isascii() else normalize("NFC", word.casefold())


@cache
def _compiled(pattern: str) -> regex.Pattern[str]:
    """A pattern for what isn't ASCII: they take long to compile, and many a process never meets such text."""
    return regex.compile(pattern)


def _tables() -> str:
    """The Unicode version of the `regex` module's tables, detected by letters that each version added."""
    added = {"17": "\U000323b0", "16": "\u1c89", "15": "\U00011f04"}
    known = (version for version, letter in added.items() if regex.match(r"\p{L}", letter))
    return f"unicode-{next(known, '14')}"


UNICODE = _tables()
"""Which letters and marks make a word; `regex` brings its own tables, whatever the Python."""


# Snowball stems, by PyStemmer where it is installed and by the pure implementation elsewhere.

SNOWBALL = "snowball-3"
"""The algorithms' major version. Stems are stored, so both implementations have to be of it."""

Stem: TypeAlias = Callable[[str], str]

# No word of a language is this long, and the pure stemmer is slow on what is no word.
_LONGEST_WORD = 64
_NAME = re.compile(r"[a-z]+(?:_[a-z]+)*")
_OLDER = frozenset({"dutch_porter", "porter", "lovins", "german2", "kraaij_pohlmann"})


@cache
def languages() -> tuple[str, ...]:
    """The languages that have a stemmer, by their Snowball names; older algorithms of a language aside."""
    module: Any = import_module("snowballstemmer")
    return tuple(sorted(set(module.algorithms()) - _OLDER))


class _Stemmer(Protocol):
    def stemWord(self, word: str, /) -> str: ...  # noqa: N802 - Snowball's own name.


@cache
def stemmer(language: str) -> Stem:
    """The stemming function of a language, by its Snowball name. Threads may share it.

    Raises InvalidInput for a language that Snowball has no stemmer for.
    """
    native: _Stemmer = _stemmer_compiled(language) or _pure(language)
    lock = renewed(Lock())

    def stem(word: str) -> str:
        if len(word) > _LONGEST_WORD:
            return word
        # A stemmer keeps the word it works on, so two threads must not enter it together.
        with lock:
            return native.stemWord(word)

    return stem


def _stemmer_compiled(language: str) -> _Stemmer | None:
    try:
        library: Any = import_module("Stemmer")
    except ImportError:
        return None
    version = str(getattr(library, "version", lambda: "")())
    if version.partition(".")[0] != SNOWBALL.partition("-")[2]:
        return None
    try:
        # The memo of words stands above this, so the library's own cache would only cost.
        made: _Stemmer = library.Stemmer(language, 0)
    except KeyError:
        return None
    return made


def _pure(language: str) -> _Stemmer:
    module = _module(language)
    if module is None:
        raise InvalidInput(
            f"language={language!r} has no Snowball stemmer. Known: {', '.join(languages())}. For another "
            "language take 'english': only words that are written in ASCII are then stemmed."
        )
    name = "".join(part.title() for part in language.split("_")) + "Stemmer"
    made: _Stemmer = getattr(module, name)()
    return made


def _module(language: str) -> Any:
    """The pure stemmer's module, or None where there is none of that name."""
    try:
        return import_module(f"snowballstemmer.{language}_stemmer") if _NAME.fullmatch(language) else None
    except ImportError:
        return None


TOKENIZER = f"terms-1/{SNOWBALL}/{UNICODE}"
"""Names everything that a stored term depends on; an index made under another name is made anew.

Python's own Unicode tables are absent on purpose: Unicode guarantees that normalisation and case
folding of an assigned character never change, so two versions of Python may share a store.
"""

LONGEST = 0xFFFF
"""The longest length that a forward record can state; a longer text counts as this long."""

_MOST_FREQUENT = 0xFF
_REMEMBERED_WORDS = 1 << 17
_LONGEST_REMEMBERED = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forward:
    """What the index keeps of one memory.

    `hashes` are its distinct terms' hashes, ascending; `frequencies`, in the same order, say how
    often each occurs (at most 255); `length` is the number of all terms (at most 65,535).
    """

    hashes: NDArray[np.uint32]
    frequencies: NDArray[np.uint8]
    length: int

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Forward):
            return NotImplemented
        return (
            self.length == other.length
            and np.array_equal(self.hashes, other.hashes)
            and np.array_equal(self.frequencies, other.frequencies)
        )

    def __hash__(self) -> int:
        return hash((self.length, self.hashes.tobytes(), self.frequencies.tobytes()))


def index_terms(text: str, *, language: str = "english") -> Forward:
    """The forward record of a text. Any text has one, if only an empty one.

    `language` names a Snowball stemmer; raises InvalidInput if there is none of that name.
    """
    remembered = _hashes_of_words(language)
    hashes = list(chain.from_iterable(map(remembered.__getitem__, words(text))))
    counted = Counter(hashes)
    distinct = sorted(counted)
    often = [counted[each] for each in distinct]
    if len(hashes) > _MOST_FREQUENT:
        often = [min(each, _MOST_FREQUENT) for each in often]
    return Forward(
        hashes=np.array(distinct, dtype=np.uint32),
        frequencies=np.array(often, dtype=np.uint8),
        length=min(len(hashes), LONGEST),
    )


@text_cache(8)
def query_terms(text: str, *, language: str = "english") -> tuple[str, ...]:
    """The distinct terms that a question asks the index for, in order of appearance.

    Every one of them is a term of the same text when indexed. The stop list (English only; other
    languages rely on the index's own statistics) is applied here and nowhere else, so a question
    of stop words alone has no terms. Nor has one that only carries the conversation on ("go on").
    """
    stem = stemmer(language)
    stop = ENGLISH if language == "english" else frozenset()
    # Each word once: a query may be a whole file, and stems are dear.
    candidates = [form for word in dict.fromkeys(words(text)) for form in forms(word) if not form.index_only]
    selected = [form for form in candidates if form.text not in stop]
    if language == "english" and all(form.text in CARRYING_ON for form in selected):
        return ()
    return tuple(dict.fromkeys(_term(form, stem, language) for form in selected))


def term_hash(term: str) -> int:
    """The 32-bit hash (CRC-32 of UTF-8) by which the index knows a term. Two terms may share one."""
    return crc32(term.encode("utf-8", "surrogatepass"))


class _HashesOfWords(dict[str, tuple[int, ...]]):
    """Remembers the hashes of each word seen. Threads may share it: at worst a word is done twice."""

    __slots__ = ("_language", "_stem")

    def __init__(self, language: str) -> None:
        super().__init__()
        self._language = language
        self._stem = stemmer(language)

    def __missing__(self, word: str) -> tuple[int, ...]:
        hashes = tuple(self._compute(word))
        if len(word) <= _LONGEST_REMEMBERED:
            if len(self) >= _REMEMBERED_WORDS:
                # Starting over is cheaper than keeping track of use, and needs no lock.
                self.clear()
            self[word] = hashes
        return hashes

    def _compute(self, word: str) -> Iterator[int]:
        for form in forms(word):
            yield term_hash(_term(form, self._stem, self._language))


@text_cache(None)
def _hashes_of_words(language: str) -> _HashesOfWords:
    return _HashesOfWords(language)


def _term(form: WordForm, stem: Stem, language: str) -> str:
    # The English stemmer knows ASCII only; on other words it would cut endings that aren't English.
    if form.stemmed and (language != "english" or form.text.isascii()):
        return stem(form.text)
    return form.text


# The words of an English question that say how it asks, not what about.
#
# Data only.

_WORDS = """
    a an the this that these those such same own other another each every either neither both all any
    some few more most much many several enough no none not nor only just too very quite rather so than
    then there here now ever never always often also again already still yet even once maybe perhaps
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she
    her hers herself it its itself they them their theirs themselves one ones someone somebody something
    anyone anybody anything everyone everybody everything nobody nothing
    who whom whose which what when where why how whoever whatever whichever whenever wherever however
    am is are was were be been being do does did done doing have has had having can could will would
    shall should may might must ought cannot get gets got getting
    isnt arent wasnt werent dont doesnt didnt hasnt havent hadnt cant couldnt wont wouldnt shant shouldnt
    mightnt mustnt neednt aint im ive id youre youve theyre theyve whats whos wheres hows thats
    and or but if because as until while although though unless whether since
    of at by for with about against between among into onto through during before after above below to from
    up in out on off over under within without toward towards upon per via along around across
    s t d m ll re ve o eg ie e.g i.e etc
    please tell know let lets okay ok yes hi hello mention mentioned
    happen happens happened happening
"""

ENGLISH = frozenset(_WORDS.split())
"""Left out of questions, never out of what is indexed, so that the list may change without a reindex.

Words as they are written, lower case, contractions without their apostrophe.
"""

_REPLIES = """
    go goes going on continue continues proceed next keep thanks thank you sure good great fine nice cool
    perfect sounds right else well done agreed yep yeah yup nope alright
"""

CARRYING_ON = frozenset(_REPLIES.split())
"""Words that carry a conversation on: alone they ask for nothing, beside others they may mean something."""
