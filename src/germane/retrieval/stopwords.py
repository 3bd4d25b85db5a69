"""The words of an English question that say how it asks, not what about.

Level: retrieval (imports nothing of the package). Data only.
"""

from __future__ import annotations

__all__ = ["CARRYING_ON", "ENGLISH"]

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
