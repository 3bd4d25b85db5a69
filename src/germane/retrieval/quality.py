"""How informative a word is, and whether a text is worth remembering at all.

Pure, by patterns of English; the page `docs/explanation/lifecycle.md` says how well they do on labelled
texts. A text that says anything else besides is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

import numpy as np
import regex
from numpy.typing import NDArray

from germane.errors import InvalidInput
from germane.model.memory import QualityFlag
from germane.retrieval.tokenizer import query_terms, term_hash

_LONGEST: Final = 600
"""Characters; what is longer says something."""
_FILLER = r"""\b(?:
      h[ae]llo|hi|hey|hiya|yo|greetings|good\ (?:morning|afternoon|evening|night|day)|bye|goodbye
         |see\ (?:you|ya)
    | thanks?|thank\ you|thx|ty|cheers|much\ appreciated|no\ (?:problem|worries)|you(?:'|’)?re\ welcome
         |welcome
    | ok(?:ay)?|k|kk|yes|yep|yeah|yup|no|nope|sure|of\ course|absolutely|definitely|right|exactly|indeed
         |correct
    | great|good|nice|cool|perfect|awesome|excellent|wonderful|fantastic|amazing|lovely|brilliant|super|fine
    | got\ it|understood|i\ see|makes\ sense|sounds?\ (?:good|great|fine|like\ a\ plan)|noted|roger
         |will\ do|done
    | agreed|go\ ahead|go\ on|continue|please|carry\ on|proceed|next|let(?:'|’)?s\ go|lets\ go
         |let\ me\ (?:think|see|check)
    | hmm+|uh+|um+|ah+|oh+|wow|haha+|lol|well|so|and|but|then|just|all|that(?:'|’)?s|thats|that|this
         |it(?:'|’)?s|it|is
    | very|really|much|a\ lot|again|there|everyone|team|guys|folks|all\ right|alright|for\ (?:now|that
         |this|your\ help)
    | the\ help|your\ help|help|your|for|to\ me|looks?|sounds?|work|job|have\ a|weekend|day|one|today
         |later|tomorrow|soon
    | how\ are\ you(?:\ doing)?|i(?:'|’)?m\ (?:fine|good|here|ready)|what(?:'|’)?s\ up|talk|speak|you|to
         |too|will|catch|up
    | anything\ else|no\ idea|i\ don(?:'|’)?t\ know|maybe|perhaps|whatever|never\ mind|nevermind|not\ sure
    )\b"""
# A filler by itself is a frame; one of these makes it talk, so that "This is it" in a fact isn't.
_SMALL_TALK = r"""^\W*(?:h[ae]llo|hi|hey|hiya|yo|greetings|good|bye|goodbye|see|thanks?|thx|ty|cheers|much|no
         |you|welcome|ok(?:ay)?
    |k|kk|yes|yep|yeah|yup|nope|sure|of|absolutely|definitely|right|exactly|indeed|correct|great|nice
         |cool|perfect
    |awesome|excellent|wonderful|fantastic|amazing|lovely|brilliant|super|fine|got|understood|i|makes
         |sounds?|noted
    |roger|will|done|agreed|go|continue|please|carry|proceed|next|let|lets|hmm+|uh+|um+|ah+|oh+|wow|haha+
         |lol|well|so
    |that|looks?|all|alright|how|what|anything|maybe|perhaps|whatever|never|nevermind|not|have|talk|speak
         |catch)\b"""
_SAYING = regex.compile(r"[^\p{P}\p{S}\s\d]")

_META = r"""^\W*(?:sorry,?\ (?:but\ )?|i(?:'|’)?m\ sorry,?\ (?:but\ )?|unfortunately,?[ ]
         |i\ apologi[sz]e,?\ (?:but\ )?
        |certainly!?\ |sure!?,?\ |of\ course!?,?\ |it\ (?:seems|looks|appears)\ (?:like|that)\ )*
    (?:(?:could|can|would)\ you\ (?:please\ )?(?:provide|share|paste|send|give|specify|clarify
         |tell\ me\ (?:more|what))
      |please\ (?:provide|share|paste|send|supply|specify|clarify|give\ me|let\ me\ know|upload|enter
         |tell\ me)\b
      |as\ an?\ (?:ai|large\ language\ model|language\ model|assistant)\b
      |i\ (?:can(?:'|’)?t|cannot|can\ not|am\ unable\ to|(?:'|’)?m\ unable\ to|do\ not\ have|don(?:'
         |’)?t\ have|did\ not\ receive
         |didn(?:'|’)?t\ receive|don(?:'|’)?t\ see|do\ not\ see|could\ not\ find|couldn(?:'|’)?t\ find
         |need\ (?:more|the)
         |would\ need|(?:'|’)?d\ need)\ [^.]*\b(?:text|content|information|context|document|file|message
         |transcript|input
         |access|details|conversation|image|assist|help|browse|summar(?:y|ize|ise)|request|question
         |attachment|link)\b
      |i(?:'|’)?m\ (?:unable\ to|ready\ to|happy\ to|here\ to)\b
      |i(?:'|’)?ll\ (?:need|be\ happy|be\ glad)\b
      |(?:here\ is|here(?:'|’)?s|below\ is)\ (?:the|a|your)\ (?:summary|revised|rewritten|list|text
         |answer|response)\b[^.:]*[.:]?\s*$
      |(?:how|what)\ (?:can|may|else\ can)\ i\ (?:help|assist|do)
      |i\ hope\ (?:this|that)\ helps
      |let\ me\ know\ (?:if|when|how|what|whether)\b
      |is\ there\ anything\ else
      |feel\ free\ to\b
      |(?:no|there\ (?:is|was)\ no|there\ (?:are|were)\ no|there(?:'|’)?s\ no|the)\ (?:text|content
         |message|transcript|document|conversation|input|propositions?|facts?)
         \ (?:you\ (?:provided|sent|shared)\ )?(?:was\ |were\ |is\ |to\ |found|provided|has\ been[ ]
         |you(?:'|’)?d\ )[^.]*
         (?:provided|given|empty|missing|blank|found|summari[sz]e|extract|included|attached)?)"""

_NOW = (
    r"(?:right\ now|currently|at\ the\ moment|for\ now|now|today|so\ far|as\ of\ now"
    r"|this\ (?:morning|afternoon|week))"
)
_DOING = r"""(?:working\ on|looking\ (?:at|into)|checking|running|waiting|reading|thinking|trying
         |continuing|starting|still
    |reviewing|processing|investigating|debugging|testing|building|compiling|installing|going\ to
         |about\ to|in\ progress)"""
_STATUS = rf"""^\W*(?:{_NOW},?\ )?(?:
      (?:i(?:'|’)?m|i\ am|we(?:'|’)?re|we\ are|am|agent\ is|the\ agent\ is)\ (?:{_NOW}\ )?{_DOING}\b
    | (?:i(?:'|’)?ll|i\ will|we(?:'|’)?ll|let\ me|let(?:'|’)?s|now\ (?:i(?:'|’)?ll|i\ will|let\ me)
         |next,?\ i(?:'|’)?ll|next,?\ i\ will)
         \ (?:now\ )?(?:check|look|read|run|start|continue|try|open|update|fix|search|see|take|proceed
         |begin|test|go)\b
    | (?:{_NOW}\ )?(?:{_DOING})\b(?!.*\b(?:because|since|so\ that|always|never|must|requires?|means
         |causes?)\b)
    | (?:status(?:\ update|\ report|\ check)?|progress(?:\ update|\ report)?|heartbeat|standup|update
         |current\ (?:state|status))\s*[:\-–—]
    | (?:all\ )?(?:\d+\s*(?:/|of|out\ of)\s*\d+\ )?(?:tests?|checks?|builds?|jobs?|tasks?|steps?
         |files?)(?:\ \w+)?\ (?:are\ |is\ |have\ |has\ )?(?:all\ )?
         (?:pass(?:ed|ing)?|green|fail(?:ed|ing)?|red|done|complete[d]?|finished|running|succeeded
         |processed|updated|left|remaining|to\ go)\b\W*$
    | \d+\s*(?:/|of|out\ of)\s*\d+\s+\w+
    | \d{{1,3}}(?:\.\d+)?\s?%\s*(?:done|complete[d]?|finished|of|through|progress)?
    | step\ \d+\ (?:is\ )?(?:done|complete[d]?|finished)
    | (?:session|task|step|phase|job|run|build|deploy(?:ment)?|sync|backup|import|export)\ (?:\#?\d+\ )?
         (?:has\ |was\ |is\ )?(?:started|completed?|finished|ended|resumed|running|succeeded|done
         |initiali[sz]ed|in\ progress|queued|pending)\b\W*(?:successfully|{_NOW}|with\ no\ errors)?\W*$
    | (?:everything|all|it|things?|system|service|server|all\ (?:systems|services))(?:\ is|\ are|\ looks?
         |\ seems?|(?:'|’)?s)?\ (?:running\ |working\ )?(?:ok(?:ay)?|fine|good|up|normally|smoothly
         |running|working|healthy|nominal|green|on\ track|normal)\b
         (?:\ (?:{_NOW}|and\ \w+))?\W*$
    | (?:no|nothing)\ (?:new\ )?(?:changes?|updates?|news|progress|to\ report|blockers|errors?|new)\b
    | (?:cpu|memory|mem|ram|disk|load|uptime|temp(?:erature)?|queue|latency)\s*(?:usage|size|depth|length
         |avg|average)?\s*(?:is\ |at\ |[:=])\s*[\d.]+
    | (?:done|finished|completed)\ (?:with\ )?(?:the\ )?(?:step|task|part|item|phase|all|everything
         |reading|running|checking|\d)
    )"""
# Whoever gives a reason, a rule or a lesson says what a later question can be about.
_LASTING = r"""\b(?:because|since|so\ that|due\ to|caused?|always|never|must|prefers?|decided|chose|learn(?:ed
         |t)|lesson|instead\ of
    |root\ cause|turned\ out|requires?|means\ that|fix(?:ed)?\ by|policy|rule|whenever|remember|deadline
         |agreed\ (?:to|on|that|with))\b"""


@cache
def _compiled(pattern: str) -> regex.Pattern[str]:
    """Compiled when the first text is written: a process that only reads starts 20 ms earlier."""
    return regex.compile(pattern, flags=regex.IGNORECASE | regex.VERBOSE)


def quality_flag_of(text: str) -> QualityFlag | None:
    """Why a text may not be worth keeping, by what it says alone; None where nothing speaks against it."""
    if len(text) > _LONGEST:
        return None
    words = text.strip()
    if not _SAYING.search(words) or _is_small_talk(words):
        return QualityFlag.SMALL_TALK
    if _compiled(_META).match(words):
        return QualityFlag.META_ANSWER
    if _compiled(_STATUS).match(words) and not _compiled(_LASTING).search(words):
        return QualityFlag.STATUS_DUMP
    return None


def _is_small_talk(text: str) -> bool:
    return _compiled(_SMALL_TALK).match(text) is not None and not _SAYING.search(
        _compiled(_FILLER).sub(" ", text)
    )


# How much of what a question is about a memory has, by how rare each word is in English at large.
#
# Pure: it reads nothing but a table that the package carries.
#
# The weights are those of a fixed table, never of the store: an agent with three memories has no
# statistics to speak of, and the same memory must count the same in every store.

_FILE = "idf-1.bin"
_FORMAT = b"germane idf 1\n"
_STEP = 0.05


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IdfTable:
    """Inverse document frequencies of terms: ln((texts + 1) / (texts with the term + 0.5)).

    `hashes` are uint32, ascending; `levels`, in the same order, are the frequencies in steps of
    0.05; a term that isn't listed has `rarest`.
    """

    hashes: NDArray[np.uint32]
    levels: NDArray[np.uint8]
    rarest: int

    def of(self, hashes: NDArray[np.uint32]) -> NDArray[np.float64]:
        """The inverse document frequency of each term, in the order given."""
        places = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        listed = self.hashes[places] == hashes
        return np.where(listed, self.levels[places], self.rarest) * _STEP

    @classmethod
    def from_bytes(cls, data: bytes) -> IdfTable:
        """The table of a file: a line that names the format, the rarest level, the hashes, the levels.

        Raises InvalidInput for anything else.
        """
        start = len(_FORMAT) + 1
        count, odd = divmod(len(data) - start, 5)
        if not data.startswith(_FORMAT) or count < 1 or odd:
            raise InvalidInput(f"No table of idf: {len(data)} bytes that begin with {data[:16]!r}.")
        return cls(
            hashes=np.frombuffer(data, dtype="<u4", count=count, offset=start),
            levels=np.frombuffer(data, dtype=np.uint8, count=count, offset=start + 4 * count),
            rarest=data[start - 1],
        )


def coverages(terms: Sequence[str], memories: Sequence[NDArray[np.uint32]]) -> NDArray[np.float64]:
    """The share, from 0 to 1, of the question's information that stands in each of several memories.

    `terms` are those of `query_terms`, and each memory has the hashes of its forward record. A term weighs
    its inverse document frequency in English; a question without terms is covered by nothing.
    """
    if not terms or not memories:
        return np.zeros(len(memories))
    sought = np.array(sorted({term_hash(term) for term in terms}), dtype=np.uint32)
    shares = shares_of(sought)
    joined = np.concatenate(memories)
    places = np.minimum(np.searchsorted(sought, joined), len(sought) - 1)
    matched = np.where(sought[places] == joined, shares[places], 0.0)
    # A memory without terms has no place in the joined array, so it stays out of the sums.
    sizes = np.array([len(hashes) for hashes in memories])
    covered = np.zeros(len(memories))
    having = np.flatnonzero(sizes)
    if len(having):
        covered[having] = np.add.reduceat(matched, (np.cumsum(sizes) - sizes)[having])
    return covered


def information(terms: Sequence[str]) -> float:
    """What a question's distinct terms say together, in nats: the sum of their idf in English.

    As if words came independently, a text of English at large has all of them by chance once in e to
    this power.
    """
    hashes = np.array(sorted({term_hash(term) for term in terms}), dtype=np.uint32)
    return float(english_idf().of(hashes).sum())


def shares_of(hashes: NDArray[np.uint32]) -> NDArray[np.float64]:
    """How much of a question's information each of its distinct terms holds; they sum to 1."""
    weights = english_idf().of(hashes)
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def least_share(names: Sequence[str], terms: Sequence[str], *, language: str) -> float:
    """The least share, from 0 to 1, of a question's information that any of these names in it has.

    `terms` are the question's. A text that holds a name verbatim, in either case, has a coverage of at least
    this: whatever stands around the name, its runs of ASCII letters and digits are indexed. Runs of one or
    two and an n at the end aren't counted, which a contraction or an abbreviation may swallow.
    """
    if not names or not terms:
        return 0.0
    hashes = np.array(sorted({term_hash(term) for term in terms}), dtype=np.uint32)
    share = dict(zip(hashes.tolist(), shares_of(hashes).tolist(), strict=True))
    return max(0.0, min(_share_of(name, share, language) for name in names) - _ROUNDING)


_RUN: Final = re.compile(r"(?<![^\W_])[0-9A-Za-z]{3,}(?![^\W_])(?<![nN]\Z)")
_ROUNDING: Final = 1e-9


def _share_of(name: str, share: Mapping[int, float], language: str) -> float:
    # The first term of a run is the whole run. PRs is indexed without its s, and prs with it.
    runs = [query_terms(run.lower(), language=language)[:1] for run in _RUN.findall(name)]
    words = {term for run in runs for term in run if not term.endswith("s")}
    return sum(share.get(term_hash(word), 0.0) for word in words)


@cache
def english_idf() -> IdfTable:
    """The table that the package carries: 40,000 stems of some 280,000 sentences."""
    return IdfTable.from_bytes(files("germane.retrieval").joinpath("data", _FILE).read_bytes())
