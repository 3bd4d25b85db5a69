"""What is hardly worth remembering: empty talk, reports of a passing state, answers that answer nothing.

Level: retrieval (imports model). Pure, by patterns of English; the page
`docs/explanation/lives.md` says how well they do on labelled texts. A text that says anything else besides is
left alone.
"""

from __future__ import annotations

from typing import Final

import regex

from germane.model.draft import Doubt

__all__ = ["doubt_about"]


_LONGEST: Final = 600
"""Characters; what is longer says something."""
_FLAGS = regex.IGNORECASE

_FILLER = regex.compile(
    r"""\b(?:
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
    )\b""",
    flags=_FLAGS | regex.VERBOSE,
)
# A filler by itself is a frame; one of these makes it talk, so that "This is it" in a fact isn't.
_TALK = regex.compile(
    r"""^\W*(?:h[ae]llo|hi|hey|hiya|yo|greetings|good|bye|goodbye|see|thanks?|thx|ty|cheers|much|no|you
         |welcome|ok(?:ay)?
    |k|kk|yes|yep|yeah|yup|nope|sure|of|absolutely|definitely|right|exactly|indeed|correct|great|nice
         |cool|perfect
    |awesome|excellent|wonderful|fantastic|amazing|lovely|brilliant|super|fine|got|understood|i|makes
         |sounds?|noted
    |roger|will|done|agreed|go|continue|please|carry|proceed|next|let|lets|hmm+|uh+|um+|ah+|oh+|wow|haha+
         |lol|well|so
    |that|looks?|all|alright|how|what|anything|maybe|perhaps|whatever|never|nevermind|not|have|talk|speak
         |catch)\b""",
    flags=_FLAGS | regex.VERBOSE,
)
_SAYING = regex.compile(r"[^\p{P}\p{S}\s\d]")

_META = regex.compile(
    r"""^\W*(?:sorry,?\ (?:but\ )?|i(?:'|’)?m\ sorry,?\ (?:but\ )?|unfortunately,?[ ]
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
         (?:provided|given|empty|missing|blank|found|summari[sz]e|extract|included|attached)?)""",
    flags=_FLAGS | regex.VERBOSE,
)

_NOW = (
    r"(?:right\ now|currently|at\ the\ moment|for\ now|now|today|so\ far|as\ of\ now"
    r"|this\ (?:morning|afternoon|week))"
)
_DOING = r"""(?:working\ on|looking\ (?:at|into)|checking|running|waiting|reading|thinking|trying
         |continuing|starting|still
    |reviewing|processing|investigating|debugging|testing|building|compiling|installing|going\ to
         |about\ to|in\ progress)"""
_STATUS = regex.compile(
    rf"""^\W*(?:{_NOW},?\ )?(?:
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
    )""",
    flags=_FLAGS | regex.VERBOSE,
)
# Whoever gives a reason, a rule or a lesson says what can be asked about later.
_LASTING = regex.compile(
    r"""\b(?:because|since|so\ that|due\ to|caused?|always|never|must|prefers?|decided|chose|learn(?:ed
         |t)|lesson|instead\ of
    |root\ cause|turned\ out|requires?|means\ that|fix(?:ed)?\ by|policy|rule|whenever|remember|deadline
         |agreed\ (?:to|on|that|with))\b""",
    flags=_FLAGS | regex.VERBOSE,
)


def doubt_about(text: str) -> Doubt | None:
    """Why a text may not be worth keeping, by what it says alone; None where nothing speaks against it."""
    if len(text) > _LONGEST:
        return None
    words = text.strip()
    if not _SAYING.search(words) or _is_empty_talk(words):
        return Doubt.EMPTY_TALK
    if _META.match(words):
        return Doubt.META_ANSWER
    if _STATUS.match(words) and not _LASTING.search(words):
        return Doubt.STATUS_DUMP
    return None


def _is_empty_talk(text: str) -> bool:
    return _TALK.match(text) is not None and not _SAYING.search(_FILLER.sub(" ", text))
