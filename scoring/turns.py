"""Labels a person's turn (asks, informs, confirms, complains and so on) by rules for English.

The rules read one turn and the agent's message before it. They are free, deterministic and offline.
``docs/labels.md`` gives the precision and recall of each class on labelled turns. To replace the
rules, pass your own ``Annotator``, for example one that asks a model.

For a text in a language that the rules do not know, ``annotate`` returns None. Measures that need
the labels are then missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, final

import msgspec

__all__ = ("LABELS", "WEAK", "Annotator", "Label", "Turn", "annotate", "is_english", "is_vague")

Label: TypeAlias = Literal[
    "complaint",
    "correction",
    "praise",
    "thanks",
    "vague",
    "clarify",
    "informs",
    "asks",
    "confirm",
    "deny",
    "halt",
    "repeat",
]
"""A label of a human's turn; a turn may have several. ``docs/measures.md`` defines each."""

LABELS: Final[tuple[Label, ...]] = (
    "complaint",
    "correction",
    "praise",
    "thanks",
    "vague",
    "clarify",
    "informs",
    "asks",
    "confirm",
    "deny",
    "halt",
    "repeat",
)
"""All labels, in the order in which tables show them."""


WEAK: Final[frozenset[Label]] = frozenset({"confirm", "deny", "vague"})
"""Labels for which the rules fall short of precision 0.8 and recall 0.6 on turns unseen when they
were written. Reports show measures based on them only in JSON."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a person, and the messages before it.

    Attributes:
        text: the message.
        before: the agent's last message before it; empty if the agent said nothing.
        said: the person's own last message; empty if there is none.
    """

    text: str
    before: str = ""
    said: str = ""


class Annotator(Protocol):
    """Labels the turns of people."""

    def __call__(self, turn: Turn, /) -> frozenset[Label] | None:
        """The labels of a turn; None if the annotator cannot read it."""
        ...


@final
class _Pattern:
    """A regular expression that is compiled when it is first used: all of those below take 30 ms, and
    most programs read no turn.

    Args:
        text: the expression.
        holds: what texts with a match hold, at least one of these. A slash separates them. It is many
            times as fast to look for them first, and most texts hold none.
    """

    __slots__ = ("_holds", "_text", "findall", "finditer", "match", "search", "split", "sub")

    findall: Callable[[str], list[str]]
    finditer: Callable[[str], Iterator[re.Match[str]]]
    match: Callable[[str], re.Match[str] | None]
    search: Callable[[str], re.Match[str] | None]
    split: Callable[[str], list[str]]
    sub: Callable[[str, str], str]

    def __init__(self, text: str, holds: str = "") -> None:
        self._text = text
        self._holds = holds.split("/")

    def occurs(self, text: str) -> bool:
        """Whether a text has a match."""
        return any(map(text.__contains__, self._holds)) and self.search(text) is not None

    if not TYPE_CHECKING:  # a name that is wrong is found by the checker

        def __getattr__(self, name: str) -> object:
            compiled = re.compile(self._text)
            for method in self.__slots__[2:]:
                setattr(self, method, getattr(compiled, method))
            return getattr(compiled, name)


def _any(*phrases: str, holds: str = "") -> _Pattern:
    return _Pattern(rf"(?<![\w'])(?:{'|'.join(phrases)})(?![\w'])", holds)


def _begins(*phrases: str) -> _Pattern:
    return _Pattern(rf"\W*(?:{'|'.join(phrases)})(?![\w'])")


_SENTENCE = _Pattern(r"\s(?:(?<=[.!?;]\s)\s*|(?<=\n)\n*)")
_MARK = _Pattern(r"#{2,}\w*#{2,}")  # how a simulated person of a benchmark says that it is done
_WORD = _Pattern(r"[^\W\d_]+(?:'[^\W\d_]+)?")

# English is told by its most frequent words, and by the scripts that it does not use.
_ENGLISH = frozenset(
    """
    a about after all also am an and any are as at be been but by can could did do does don't for from
    get go good had has have he hello help hi how i i'd i'll i'm if in into is it it's its just know
    let like make me more my need no not now of ok okay on one only or our out please she should so some
    sure take than thank thanks that that's the their them then there they this to too up us use want was
    we were what when where which who why will with without would yes you your great perfect wrong
    still again stop fine nothing never thing cool bye goodbye sorry right
    """.split()
)
_TELLING = frozenset(
    """
    nein nicht danke bitte falsch ich warum immer noch stimmt schlecht besser ist
    non oui merci faux c'est n'est pas encore toujours déjà ça pourquoi arrête mauvais
    gracias porque sí esto eso funciona incorrecto sigue mejor grazie perché sbagliato ancora obrigado não errado ainda
    nee niet fout verkeerd
    """.split()
)
"""One of them tells another language if a text has no more frequent words of English."""
_FOREIGN = (
    frozenset(
        """
    aber auch auf aus bei bitte da danke das dass dein dem den der des die doch ein eine einen er es für
    gut habe haben hat ich ihr im ist ja kann kein mehr mein mich mir mit nach nein nicht noch nur oder
    schon sehr sein sich sie sind so und uns von warum was wenn wie wir wird zu zum zur
    au avec bien ce cela ces cette c'est dans de des du elle en est et être faire il ils j'ai je la le les
    mais merci moi mon ne non nous oui par pas plus pour pourquoi quand que qui sans si sont sur très un
    une vous
    al como con cuando del el ella es eso esta este está gracias hay la las lo los me mi muy más no nos para
    pero por porque que qué se sin su también todo un una usted y ya yo
    che ci come con cosa da della di e gli grazie ho il io ma mi nel non per perché più questo sono
    alla bom com do dos ela ele em eu foi isso meu muito na não obrigado os ou para pelo por quero tudo uma
    você dat een en het ik is je maar met niet ook op te van voor wat zijn
    """.split()
    )
    | _TELLING
) - _ENGLISH
_TELLING_WORDS: Final = 6
"""So many words hold a frequent one if they are English."""
_OTHER_SCRIPT = _Pattern(r"[\u0370-\u1cff\u2c00-\u2dff\u3040-\ud7ff]")

_QUESTION_WORD = r"(?:what|which|who|whom|whose|where|when|why|how)"
_AUXILIARY = (
    r"(?:is|are|was|were|do|does|did|have|has|had|can|could|will|would|shall|should|may|might|"
    r"isn't|aren't|wasn't|don't|doesn't|didn't|haven't|hasn't|can't|couldn't|won't|wouldn't|shouldn't)"
)
_QUESTION = _begins(
    rf"(?:(?:and|but|so|now|then|also|ok(?:ay)?|oh|well|hi|hello|interesting|good to know)\W+)*"
    rf"(?:{_QUESTION_WORD}(?:'s|'re)? (?!(?:a|an) )\w+|{_AUXILIARY} (?:i|you|we|they|he|she|it|there|the|this|that|"
    r"these|those|my|your|our|any|all)|what about|how about)"
)
_REQUEST = _begins(
    r"(?:(?:and|but|so|now|then|also|next|first|ok(?:ay)?|oh|well|yes|yeah|hi|hello|hey|great|perfect|cool|"
    r"thanks|thank you)\W+)*(?:please|kindly|let's|let us|tell me|show me|give me|send me|help me|remind me|"
    r"add|adjust|analy[sz]e|answer|apply|arrange|book|build|calculate|call|cancel|change|check|clean|combine|"
    r"commit|compare|compose|compute|continue with|convert|copy|count|create|debug|define|delete|deploy|describe|"
    r"design|determine|develop|discuss|display|do|draft|draw|edit|email|estimate|evaluate|examine|expand|explain|"
    r"export|express|extend|extract|fetch|fill|find|finish|fix|format|generate|get|guess|identify|illustrate|"
    r"implement|import|improve|include|increase|insert|install|introduce|investigate|list|log|look (?:at|for|up|into)|"
    r"make|merge|move|name|open|order|outline|paraphrase|plan|plot|print|propose|prove|provide|pull|push|put|"
    r"rank|read|recommend|reduce|refactor|refund|remove|rename|render|replace|reply|report|reschedule|research|reserve|"
    r"resolve|respond|review|revise|rewrite|run|say|schedule|search|select|set|shorten|simplify|solve|sort|specify|"
    r"split|start|store|submit|suggest|summari[sz]e|switch|test|track|transfer|transform|translate|try|turn|update|"
    r"upgrade|upload|verify|write)(?! to (?:me|us)\b)"
)
_WISH = _any(
    r"i(?:'m| am) (?:also |just )?(?:looking|trying|hoping|planning|calling|writing|reaching out)",
    r"i(?:'d| would)(?: also| really)? (?:like|love|appreciate|want)(?: for you)? to",
    r"i (?:also |just |really |would also )?(?:need|want|wanted|have)(?: you)? to",
    r"i (?:also )?(?:need|want) (?:help|some help|assistance|an?|some|the)",
    r"(?:can|could|would|will) you",
    r"i have (?:a|another|one more|some) questions?",
    r"(?:take|have) a look|look and see|let me know (?:what|whether|how)",
    r"what i (?:need|want) is",
    holds="looking/trying/hoping/planning/calling/writing/reaching/like/love/appreciate/want/need/"
    "have to/have you to/can you/could you/would you/will you/question/look/let me know",
)
_CHANGES = _begins(
    r"i(?:'d| would) (?:also )?like to (?:ask|book|cancel|change|modify|remove|return|update|upgrade)"
)
_NEW = _any(
    r"i (?:also |was |am |was also )?(?:wonder|wondering|curious)",
    r"i(?:'m| am) (?:also )?(?:wondering|curious)",
    r"i (?:also|would also like to|'d also like to) (?:need|want|have|wanted) to",
    holds="wonder/curious/also",
)
_CHOICE = _any(
    r"i(?:'ll| will) (?:go with|take|choose|pick|use|keep|have)",
    r"i(?:'d| would) (?:like|prefer) (?:to (?:go with|use|keep|have|switch to|choose|pay|fly|stay|stop))",
    r"i(?:'d| would) (?:rather|prefer)",
    r"let's (?:use|take|keep|say|make it|stick|call|name|title|aim)",
    r"the (?:first|second|third|fourth|last|later|earlier|cheaper|larger|smaller|other|former|latter) (?:one|option|flight)",
    r"(?:take|use|keep|choose|pick|go with|make it|stick (?:to|with)) (?:the|my|both|all|that|this|it|an?|one|\d)",
)
_CONSTRAINT = _Pattern(
    r"\W*(?:please )?(?:don't|do not|never|avoid|keep|stay|make sure|ensure|only|at (?:most|least)|no more than|take) "
    r"(?!asking|going|it\b|that\b|working)"
)
_GIVEN = _any(r"(?:my|our) [\w ]+? (?:is|are|was)")
_REASON = _any(r"as(?! (?:it is|they are|is))|since|because|before|after|until|only if|so that")
_BOOKS_IT = _begins(
    r"(?:can|could|would|will) you (?:please )?\w+ (?:it|that|this|them)(?: for me)?(?:,? please)?\W*$"
)
_OWN = _any(r"i|i'm|i've|i'd|i'll|we|we're|we've|we'd|we'll|my|our|me|us")
_STATEMENT = _any(
    r"i|i'm|i've|i'd|i'll|we|we're|we've|we'd|we'll|my|our|mine|ours|us|me|it|it's|its|this|that|there|"
    r"they|she|he|is|are|was|were|has|have|had|will|must|should|can|cannot|can't|won't|isn't|aren't|"
    r"matters?|needs?|wants?|costs?|means?"
)
_YES = _begins(
    r"(?:(?:ok(?:ay)?|oh|great|perfect|thanks?|thank you|sounds? good|alright|good|in that case)\W+)*(?:please go ahead|yes|yeah|yep|yup|yea|sure|"
    r"ok(?:ay)?|alright|all right|absolutely|definitely|certainly|of course|correct|exactly|agreed|"
    r"go ahead|go for it|please do|do it|sounds? (?:good|great|fine|right|perfect)|that works|works for me|"
    r"that(?:'s| is) (?:fine|right|correct|good|ok(?:ay)?|perfect)|fine(?: by| with)? me|"
    r"i (?:agree|approve|confirm|accept|authori[sz]e)|approved?|confirmed|accepted|please proceed|proceed|"
    r"(?:let's|let us) (?:do (?:it|that|this)|go(?: ahead| with| for)?|proceed|book|start)|"
    r"i(?:'ll| will) go ahead|i(?:'d| would) like (?:to (?:proceed|go ahead)|that)|you (?:can|may) (?:go ahead|proceed))"
)
_NO = _begins(
    r"(?:(?:ok(?:ay)?|oh|sorry|well|hmm+|uh+|thanks?|actually)\W+)*(?:no(?=\W*(?:$|[,.!;]|thanks?|i\b|it\b|that\b|we\b|please|don't|need|not))|nope|nah|not (?:now|yet|really|at the moment|"
    r"needed|necessary|for me)|never|neither|none of|(?:please )?(?:don't|do not)(?=\W*(?:$|[.!,;]))|"
    r"i(?:'d| would) rather not|i refuse|rejected|denied|declined?|that(?:'s| is) (?:all right|alright|ok(?:ay)?|fine)\W+(?:i(?:'ll| will)|let's|we(?:'ll| will)|never mind)\b)"
)
_REFUSES = _any(
    r"(?:i|we) (?:do not|don't|would not|wouldn't|will not|won't) (?:want|need|like|approve|agree|accept|allow)",
    r"no need(?: for| to)?",
    r"neither (?:of|one|option)",
    r"none of (?:those|these|them|the)",
    r"without (?:the|any) (?:travel )?(?:insurance|extra|add-?ons?)",
    r"(?:i(?:'ll| will)) (?:handle|do|manage|take care of) (?:it|this|that)(?: \w+)? ?(?:later|myself)?",
    r"i(?:'d| would) rather not",
    r"leave (?:it|that|this) (?:alone|as)",
    r"(?:is|are) fine as (?:it is|they are|is)",
    r"(?:i have |i've |we have )?no (?:wish|wishes|preference|preferences|interest|special \w+)",
    holds="n't/not/no /neither/none/without/'ll/will/leave/fine as",
)
_PROPOSAL = _any(
    r"would you (?:like|prefer|mind|agree|want|still|also)",
    r"do you (?:want|approve|agree|confirm|wish|still|also)",
    r"want me to",
    r"(?:shall|should|may|can|could) (?:i|we)",
    r"(?:please )?confirm",
    r"proceed",
    r"let me know if",
    r"if you(?:'d| would)? (?:want|like|prefer|wish|agree|are (?:ok|okay|happy|fine))",
    r"is (?:that|this|it|everything)",
    r"are you (?:ok|okay|happy|fine|sure|satisfied|ready|done)",
    r"does (?:that|this|it|the \w+)",
    r"(?:sounds?|looks?|work) (?:good|right|ok|okay|fine)\?",
    r"right\?|ok(?:ay)?\?|correct\?",
    r"have you|did you|are (?:there|you)|is there|(?<!what )(?<!which )(?<!when )(?<!where )(?<!how )do you",
)
_DATA_ASKED = _any(
    r"(?:could|can|would|may) (?:you|i) (?:please |kindly |also )*(?:provide|tell|give|share|specify|have|get|know|let)",
    r"please (?:provide|tell|give|share|specify|send|enter|let me know (?:which|what|how|when|where|who|the|your))",
    r"what(?:'s| is| are| was| do| type| kind| would)?",
    r"which|when|where|how (?:many|much|long|often|would|do|should|about)|who",
    r"i(?:'ll| will) need (?:your|the)",
)
_ASKING = _Pattern(r"\?|\bplease\b|\blet me know\b")
_THANKS = _any(
    r"thanks?",
    r"thank you",
    r"thx",
    r"ty",
    r"cheers",
    r"(?:good)?bye",
    r"good night",
    r"see you",
    r"have a (?:good|great|nice|wonderful) \w+",
    r"(?:much )?appreciated?",
    r"that(?:'s| is| was|'ll be| will be) (?:all|it|everything)(?: for (?:today|now)| i (?:need|needed|wanted))?(?=\W*(?:$|[.!]))",
    holds="thank/thx/ty/cheers/bye/night/see you/have a/appreciat/that's/"
    "that is/that was/that'll/that will",
)
_GOOD = (
    r"(?:great|perfect|excellent|amazing|awesome|wonderful|fantastic|brilliant|lovely|beautiful|superb|"
    r"impressive|nice|good|neat|very good|really good|very helpful|helpful|super|spot on|exactly right|well done)"
)
_PRAISE = _Pattern(
    rf"^\W*(?:(?:oh|ah|wow|ok(?:ay)?|yes|yeah|hi|so)\W+)*(?:{_GOOD}(?! (?:to (?:know|hear)|morning|evening|afternoon|day|night|luck|if|"
    r"question|for))|"
    r"(?:much|far|a lot) better|well done|love (?:it|this|that|how)|wow)(?=\W*(?:$|[,.!;:]|\w+ (?:job|work|idea|plan|start|answer|"
    r"explanation|suggestion|point)|(?:job|work|idea|plan|start|answer|explanation|catch|suggestion|one|stuff|thanks?|thank)\b))|"
    rf"\b(?:that|this|it|these|those|they|which|all|everything|plan|report|draft|proof|answer|list|trip|explanation|version)(?:'s| is| are| was| were)?"
    rf" (?:all |now )?(?:looks?|sounds?|seems?|reads?|works?|is|are|was)? ?(?:really |very |so |quite |much |absolutely |all )*(?:{_GOOD}|"
    r"better|perfectly|what i (?:wanted|needed|was looking for|had in mind)|exactly what i (?:wanted|needed|meant|asked for))(?! (?:if|to (?:know|hear)|for|idea to|time to|enough to|as)\b)(?=\W|$)|"
    r"\bi (?:really )?(?:love|like) (?:it|this|that|the (?:plan|report|draft|way|idea|proof|look|result)|how (?:you|it|this)|what you)|"
    r"\b(?:good|great|nice|excellent|amazing|awesome|fantastic|wonderful) (?:job|work|plan|stuff|catch|explanation)\b|"
    r"\bwell (?:done|explained|written|put)\b|\b(?:very|really|so|super) helpful\b|\byou(?:'re| are) (?:great|amazing|the best|awesome|"
    r"a (?:star|genius|lifesaver)|very helpful|right)\b|\b(?:works|worked|working) (?:great|perfectly|well|like a charm|now|fine)\b|"
    r"\b(?:i'm|i am|we're|we are) (?:very |so |really |quite )?(?:happy|satisfied|pleased|impressed|delighted) with\b|"
    r"\blooks? (?:good|great|fine|right|perfect|nice)\b|\bsounds? (?:good|great|perfect|nice|lovely)\b",
    holds="great/perfect/excellent/amazing/awesome/wonderful/fantastic/brilliant/lovely/beautiful/"
    "superb/impress/nice/good/neat/helpful/super/spot on/exactly/better/wow/what i /"
    "well done/well explained/well written/well put/love it/love this/love that/love how/love the/"
    "love what/like it/like this/like that/like the/like how/like what/the best/a star/genius/"
    "lifesaver/you're right/you are right/works /worked /working /happy with/satisfied with/"
    "pleased with/delighted with/looks fine/look fine/looks right/look right",
)
_WRONG = _any(
    r"(?:is|are|was|were|it's|that's|this is|looks?|seems?|still|is still|got it|all|quite|just|plain|be) (?:wrong|incorrect|not (?:right|correct|true|accurate)|"
    r"inaccurate|mistaken|off|broken|outdated|a mistake|an error|missing|buggy)",
    r"(?:isn't|aren't|wasn't|is not|are not|was not) (?:quite |really |what |the |at all )*(?:right|correct|true|accurate|it|what|the|how|my|that)",
    r"(?:is|are|comes? to|which is|that's|it's|still) (?:\w+ ){0,3}too (?:expensive|much|many|few|long|short|high|low|late|early|far|big|small|"
    r"dear|tight|busy|little|slow|vague|complicated|close)",
    r"(?<!what )(?:i|we) (?:meant|mean|asked for|said|wanted)(?! you to)",
    r"not (?:the|that|this|a|an|my) [\w '-]+?[.,;:] ?(?:but |it's |use |this |the |i meant )",
    r"(?:should|must|needs? to|has to|ought to) (?:be|have been|say|read|show|use|have)(?: \w+)? (?:instead|not)",
    r"should(?:n't| not) (?:be|have|say|show|use|include|contain)",
    r"you (?:forgot|missed|skipped|ignored|overlooked|left out|misunderstood|misread|confused|mixed up|got (?:it|that|this|the))",
    r"there(?:'s| is| are) (?:a|an|some|still|another) (?:\w+ )?(?:mistakes?|errors?|bugs?|typos?|problems?|issues?)",
    r"(?:a|one|your|another|two|the) mistakes?",
    r"(?:no|not a single) [\w ]+? (?:is|are) (?:loading|showing|working|appearing|there|displayed)",
    r"(?:does|do|did)(?:n't| not) (?:work|load|show|compile|run|match|add up|fit|appear|save|open|render|follow|hold)",
    r"(?:fails?|failed|crashe[sd]|broke) (?:at|on|with|when|for|again|the)",
    r"over (?:the|my|our) (?:budget|limit)",
    r"instead of",
    r"that(?:'s| is) not (?:what|how|it|the|my|a)",
    r"wrong (?:\w+)",
    r"actually,? (?:it|the|that|my|i|there|we)(?:'s| is| are| was| have| has| had)? (?!wanted|would|also|need|like|want)",
    r"correction",
    r"you (?:did not|didn't|have not|haven't) (?:\w+ )?(?:include|use|add|change|do|read|follow|count|fix|update|answer|check|consider|book|mention|say|put|take)",
    r"nothing (?:changed|happened|happens|works|loads|shows)",
    r"(?:still|again) (?:the same|has|have|have the|shows?|says?|not|no|is|are|doesn't|does not|isn't|get|getting|see)",
    holds="wrong/correct/not/n't/inaccurate/mistake/off/broke/outdated/error/missing/bug/too /mean/"
    "asked/said/wanted/instead/got/missed/skipped/ignored/overlooked/left out/misunderstood/"
    "misread/confused/mixed/typo/problem/issue/loading/showing/working/appearing/there/"
    "displayed/fail/crashe/over /actually/still/again",
)
_NOT_THIS = _begins(
    r"(?:no,? )?not (?:the|that|this|these|those) \w+",
    r"(?:no\W+|well\W+|hmm+\W+)*(?:not (?:quite|exactly|entirely)\b(?! (?:sure|yet|certain))|no,? (?:i|it|that|the) (?:mean|said|wanted|should))",
    r"(?:no\W+|but )*i(?:'m| am) (?:certain|positive|quite sure|pretty sure) (?:that|it|the|i)",
    r"(?:but )?the (?:issue|problem|trouble) is (?:still )?(?:that|with)\b",
)
_HYPOTHETICAL = _Pattern(
    r"\b(?:if|whether|in case|what if|could be|might be|when something is|why (?:is|are|was|were)|what is wrong with)\b"
)
_DISSATISFIED = _any(
    r"(?:disappoint|frustrat|annoy)(?:ed|ing|s)?",
    r"useless|pointless|ridiculous|nonsense|terrible|awful|horrible|unacceptable|unhelpful|garbage|rubbish|lousy|sloppy|crap",
    r"waste of (?:my |our )?time|wast(?:es?|ing) (?:my|our) time",
    r"(?:not|isn't|aren't|wasn't) (?:helpful|helping|good enough|acceptable|satisfied|happy|listening|what i (?:asked|wanted|meant|need|needed))",
    r"(?:does|did|do)(?:n't| not) (?:help|answer (?:my|the) question|listen|make sense|understand me)",
    r"makes? no sense",
    r"you (?:keep|never|always|still haven't|still have not|still don't|aren't|are not|don't|do not|didn't|did not|ignored|forgot|are ignoring|only)"
    r" (?:\w+ )?(?:asking|repeating|listen\w*|making|doing|read\w*|understand\w*|me|what|my|that|follow\w*|answer\w*|ask\w*|giving)",
    r"(?:how many times|once more for|for the (?:second|third|fourth|fifth|last|umpteenth) time|i(?:'ve| have)? already (?:said|told|asked|answered|mentioned|gave|explained))",
    r"why (?:did|do|does|are|is|was|were|can|could|have|has|would)(?:n't|n’t| not)? (?:you|it|this)(?: not| never| keep| still| always| even| only)",
    r"why (?:didn't|don't|haven't|can't|aren't|won't) you",
    r"(?:too|so) (?:slow|many questions|complicated|vague|generic|long-winded|verbose)",
    r"(?:this|that|it)(?: is|'s) (?:taking|getting|going) (?:too long|forever|nowhere|in circles|worse|old)",
    r"taking too long",
    r"going (?:nowhere|in circles|around in circles)",
    r"not (?:getting|going) (?:anywhere|any closer)",
    r"(?:still|again) (?:wrong|broken|not (?:working|fixed|right|done|what))",
    r"(?:i'm|i am) (?:not (?:happy|satisfied|pleased|convinced|impressed)|unhappy|fed up|tired of|sick of|losing|upset|confused by you)",
    r"(?:i'm|i am) not (?:so |really |too )?sure about (?:this|that|it|these)",
    r"(?:fed up|sick of|tired of|lost patience|out of patience|running out of patience)",
    r"expected (?:more|better)|not good enough|bad (?:job|work|answer|plan)|poor (?:job|work|answer)|what a (?:mess|joke)|a (?:mess|joke)",
    r"brings? (?:me|us) no(?:thing| further)|led nowhere|no use|of no (?:use|help)",
    r"worse than (?:before|the (?:last|first|previous))",
    r"(?:another|yet another) (?:question|round|one)\b(?=.*\b(?:really|seriously|still)\b)",
    r"nothing new|nothing (?:has )?(?:changed|happened|improved)",
    r"thanks for nothing|which is too much|that(?:'s| is) far too",
    holds="disappoint/frustrat/annoy/useless/pointless/ridiculous/sense/terrible/awful/horrible/"
    "unacceptable/unhelpful/garbage/rubbish/lousy/sloppy/crap/wast/not/n't/keep/never/always/"
    "ignor/forgot/only/time/once more/already/why/slow/questions/complicated/vague/generic/winded/"
    "verbose/taking/getting/going/still/again/unhappy/fed up/tired of/sick of/losing/upset/"
    "confused/patience/expected/bad /poor /mess/joke/bring/nowhere/no use/of no/worse/"
    "another/too much/far too",
)
_HALT = _Pattern(
    r"^\W*(?:(?:please|ok(?:ay)?|no|hey|oh|just|wait|stop|enough|then|and|but|so)\W+)*(?:"
    r"(?:stop|halt|abort)(?:\W*$|[.!,;]| (?:for (?:a|one) (?:second|moment|minute|bit)|a (?:second|moment|minute)|it|this|that|there|here|now|right|working|asking|doing|changing|making|editing|sending|please|everything|the (?:run|task|"
    r"work|search|process|build|edit\w*|changes?)|what you|all|immediately|at once|with))|"
    r"(?:wait|hold on|hold off|hang on|pause)(?:\W*$|[.!,;]| (?:a (?:moment|second|minute|bit)|there|until|before|with|for me|please|here|now))|"
    r"(?:undo|revert|roll back|take back)(?:\W*$|[.!,;]| (?:it|this|that|these|those|the|your|my|all|everything|what))|"
    r"(?:do not|don't|dont|never) (?:continue|proceed|go on|go any further|touch|change|do (?:it|that|this|anything)|send it|book (?:it|anything) yet|"
    r"ask (?:me|again|anything|any)|bother|commit|push|edit)(?:\W|$)|"
    r"no more (?:questions|changes|edits|of this)|enough(?:\W*$|[.!,;]| (?:of|with|now|questions|already))|"
    r"cancel (?:that|this|it|the (?:run|task|request|operation|job|last (?:step|change|edit)))(?=\W*$|[.!,;])|"
    r"leave it(?: there| at that| alone)|that's enough|that is enough|quit(?:\W*$| asking| it)|forget (?:it|that|about it|this)(?=\W*$|[.!,;]))|"
    r"\b(?:please|you (?:can|should|must|may|need to)) (?:stop|halt|abort|pause|undo|revert)(?! (?:at|by|in|on|over|to|for)\b)|"
    r"\bstop asking\b|\bi (?:want|need|asked|told|would like) you to (?:stop|pause|wait|undo|revert)|\bwill you stop\b",
    holds="stop/halt/abort/wait/hold/hang on/pause/undo/revert/roll back/take back/do not/don't/"
    "dont/never/no more/enough/cancel/leave it/quit/forget",
)
_REPEATED = _any(
    r"(?:i|we)(?:'ve| have)? already (?:said|told|mentioned|asked|answered|explained|gave|given|wrote|stated|specified|provided|sent)",
    r"(?:as|like) (?:i|we)(?:'ve| have)? (?:already |just )?(?:said|told|mentioned|asked|wrote|explained|stated)",
    r"(?:i|we) (?:just|already) (?:said|told|asked|mentioned|answered)",
    r"i (?:told|asked) you (?:that |this |already|before|twice|to)?",
    r"(?:for the )?(?:second|third|fourth|fifth|last|umpteenth) time",
    r"(?:once again|once more|again):?(?=[,:] )",
    r"i(?:'ll| will| have to| must) (?:say|repeat|ask)(?: it| that| this| myself)? again|to repeat|i repeat|let me repeat|repeating myself",
    r"same (?:question|request|answer|thing) (?:as|again)",
    r"how (?:many times|often) (?:do|must|should|have)",
    r"my (?:question|answer|request) (?:was|is still|remains)",
    r"you(?:'ve| have)? (?:already )?asked (?:me )?(?:that|this|already|before)",
    r"(?:i|we) said (?:that |so )?(?:before|already|earlier)",
    holds="already/said/told/mention/asked/wrote/explained/stated/answered/time/again/once/repeat/"
    "often/same /my question/my answer/my request",
)
_CLARIFIES = _any(
    r"what (?:do|did) you (?:mean|do|change|think|use|assume|base|have in mind)",
    r"what does (?:that|this|it|your|the \w+|\S+) (?:mean|do|refer to|stand for)",
    r"what(?:'s| is) (?:that|this|it) (?:supposed to|about|for)",
    r"what(?:'s| is| was) (?:changed|new|different|the difference between (?:your|the two|these|those))",
    r"what(?:'s| is) (?:your|the) (?:plan|reason\w*|status|progress|source|current \w+)",
    r"(?:do not|don't|did not|didn't|cannot|can't|could not|couldn't) (?:\w+ )?(?:understand|follow|get (?:that|it|this|what))",
    r"not sure (?:i|what you|how you|why you) (?:understand|follow|mean|meant|did|get)",
    r"(?:i am|i'm) (?:\w+ ){0,2}(?:confused|lost)",
    r"(?:can|could|would) you (?:please )?(?:clarify|rephrase|elaborate(?! on the history)|say (?:that|it) (?:again|differently))",
    r"(?:can|could|would) you (?:please )?explain (?:that|this|it|your|why you|how you|what you|the (?:plan|change|reason|result|answer|step))",
    r"please (?:clarify|rephrase)|please explain (?:that|this|it|your|why you|how you|what you)",
    r"which (?:one )?(?:do|did) you mean",
    r"why (?:did|do|have|are|were|would|can't|didn't|don't|is it that) you",
    r"how (?:did|do|have|can|could|will|would) you (?:get|know|come|arrive|decide|do (?:that|this|it)|find|calculate|compute|choose|reach|test)",
    r"(?:did|have|had) you (?:already |really |actually |also |just )?\w+",
    r"are you (?:sure|certain|saying|still|done|working|going to|using|finished|asking|referring|talking|suggesting|able to see|there)",
    r"do you (?:mean|understand|see (?:what|the|my)|have (?:everything|all|enough|what))",
    r"where (?:did|do|does|is|are) (?:you|that|this|it|these|those|the (?:number|figure|file|change|button))\b",
    r"(?:^\W*|(?<=[,;:] )|(?:and|but|so|or|then|ok|okay|well|yes|no)\W+)(?:is|are|was|were|does|do|did|has|have|isn't|aren't|doesn't|didn't|hasn't) (?:it|this|that|these|those|they|everything|all (?:of )?(?:this|that|it))",
    r"why (?:is|are|was|were|does|do|did|has|have|isn't|aren't|doesn't|won't) (?:it|this|that|these|those|they|there)",
    r"how (?:does|do|is|are|was) (?:it|this|that|these|those|they) ",
    r"(?:is that|is this|am i) (?:right|correct)(?=\W*\?)",
    r"so (?:i|you|we|it|this|that)(?:'s|'re| is| are)? [\w' ]+(?=\?)",
    r"^or (?:is|was|are|does|did|do) \w+",
    r"(?:sorry|pardon|huh|come again|what|like what|such as|meaning|how so|in what way|how come|why|really|which one|which)(?=\W*\?)",
)
_TAG = _Pattern(r", ?(?:right|correct|yes|no)\?\W*$")
_SUPPOSED = _begins(r"suppose|supposing|imagine|assume|assuming|let's say")
_ANNOUNCED = _Pattern(
    r"^\W*(?:(?:by the way|just so you know|oh,? and one thing|one thing|one more thing|also|note|fyi|for the record|"
    r"to be clear|in addition|besides|well|so|okay|ok|hmm+|sure|yes|no|thanks?|thank you|great|perfect|good|and|but)\b[,:.!]?\s*)+"
)
_GENERAL: Final = frozenset(
    """
    about again all am an and any anything are as be been best better but by can choose could did do does
    doing done either else ever everything few find fine for from get give go going good got great had has
    have having here hey hi how i'd i'll i'm i've if in into is it it's its itself just kind let let's like
    little look lot made make many maybe me mean might mind more most much must my need needs nice no not
    nothing now of off oh ok okay on one only or other our out over perhaps please pretty probably put quite
    rather really right said same say see seem seems should since so some somehow something somewhat somewhere
    sorry sort still such sure take tell than that that's the their them then there these they thing things
    think this those thought time to too try us very want was way we we'd we'll we're well were what whatever
    when where whether which while who why will with without won't work works would yes you you'd you'll
    you're you've your yours handy come comes useful remember recall know care decide pick call choice
    depends guess suppose difference preference idea whichever might quite different
    """.split()
)
_NEGATION = _Pattern(r"\bnot\b|n't\b")
_EXPLAINED = _Pattern(r"\b(?:how|why|when|where) (?:does|do|is|are|can) (?:it|they)\b")
_CLOSES = _Pattern(r"\b(?:all|it|everything|else|nothing)\b")
_YES_DO = _Pattern(r"\W*(?:yes|yeah|sure),? please\b")
_LOST: Final = ("understand", "follow", "confused", "lost", "explain", "clarify", "rephrase")
_FIGURE = _Pattern(r"[\d$€£%`]")
_LINK = _Pattern(r"https?:", "http")
_FILE = _Pattern(r"\.(?<=[\w-]\.)\w{2,4}\b")
# A slash separates alternatives. Phrases are looked up word by word: this runs on every human
# message, and a regular expression with so many alternatives would be slow.
_VAGUE = (
    # hands the decision back
    "up/leave/left to you",
    "that/it/this/all/everything/details to you",
    "your call/choice/hands/gut/decision/judgment/judgement",
    "your own/best judgment/judgement",
    "you decide/decided/choose/pick/prefer/know/want/like/think",
    "you can decide/choose/pick/do",
    "you see fit",
    "feel free",
    "pick/choose/take one/any/something/anything",
    "whatever",
    "whichever",
    "surprise me",
    "i trust you",
    "figure/sort/work it/this/that out",
    "sort/figure out",
    # does not know, or does not mind
    "anything/anywhere/anyone/either/any is/are/would/will/works fine/good/ok/okay/do/be",
    "anything/anywhere/anyone/either/any works",
    "any of them",
    "either one/way",
    "with/to any/anything/either/whatever",
    "anything you",
    "all is/are/the fine/good/ok/okay/same",
    "don't/dont/not know/mind/care/remember/recall",
    "don't/dont/not really/much know/mind/care/remember/recall",
    "can't/cannot/couldn't say/tell/remember/recall/put",
    "can't/cannot/couldn't really say/tell/remember/recall",
    "haven't thought/decided",
    "haven't really thought/decided",
    "no idea/preference/preferences/opinion/difference",
    "no strong opinion/preference/preferences/feelings",
    "not/isn't/don't/doesn't matter",
    "hard to say/tell",
    "who knows",
    "i'm easy/flexible/open",
    "i am easy/flexible/open",
    # is not content, and does not say with what
    "not/isn't/aren't/wasn't right/sure/happy/satisfied/convinced/great/it/there/what/good/ideal",
    "not/isn't/wasn't quite/really/fully/entirely/all/exactly/so",
    "not bad",
    "doesn't/don't/won't/didn't/does/do/not work/feel/do/like",
    "something/somehow/something's",
    "could/can/should/must be better/improved/nicer",
    "do/did better",
    "much/a/any/something better",
    "expected/hoped more/better/something/for",
    "hoping for",
    "had in mind",
    "off here",
    "lacking/missing something",
    "what's wrong",
    "needs/need some/more/a work",
    "needs/need some/a more/bit/little",
    # asks for more, and does not say of what
    "make/get it/this/that better/nicer/good/work/right",
    "improve/fix/redo/change/adjust/revise/refine/rework/polish/tweak it/this/that",
    "and/please improve/redo/adjust/revise/refine/rework/polish/tweak",
    "try/do again/better",
    "try/do it/that/this again/better",
    "another look/try/go/shot/pass/version/attempt/round",
    "once/one more",
    "something else/different/better/nice/good/about",
    "do your best",
    "do what",
    "what you can",
    "keep going/at",
    "go on/ahead",
    "carry/move on",
    "continue",
    "do it",
)
_UNSAID = _Pattern(
    r"\W*(?:(?:well|so|hm+|ok(?:ay)?|i guess)\b\W*)*(?:some \w+ (?:might|may|could|would) "
    r"(?:be|come in) (?:handy|useful|helpful|nice|good|fine)|"
    r"an? (?:bit|little)(?: of)?(?: \w+)? (?:is|would be) (?:fine|ok|okay|good)(?: (?:with|by) me)?)\W*$"
)
"""Names what it is about, and still not what is wanted."""
_PLAIN = frozenset(
    """
    a about actually afraid again ah all almost also alright am an and any anything anyway are as at
    be been being best better bit but by can could did do does doing done either else even ever
    everything exactly few find fine for from fully get give given go going good got great guess had
    has have having hello here hey hi hm hmm honest honestly how however i i'd i'll i'm i've if in
    into is it it's its itself just kind know let let's like little look lot made make makes maybe me mean
    meh might mind more most much must my myself need needs nice no nope nor not nothing now of off oh
    ok okay on once one ones only or other our ourselves out over perhaps please point prefer pretty
    probably put quite rather really right said same say see seem seems should since so some somehow
    someone something somewhat sorry sort still such suggest sure take than thank thanks that that'd
    that's the their them then there there's these they thing things think this those though thought
    thoughts through to too try us version very want was way we we'd we'll we're well were what what's
    whatever when where whether which while who why will wish with without won't work works worse would
    wrong yeah yes yet you you'd you'll you're you've your yours yourself expert finger details
    double-check double check hope hoping somewhere anybody anyone somebody everyone time day today
    moment entirely completely totally
    """.split()
)
"""Words without a subject."""
_VAGUE_WORDS = 20
_TOKEN = _Pattern(r"[^\W_]+(?:'[^\W_]+)?")
_LONGEST_VAGUE = 120


def _by_first_word(phrases: tuple[str, ...]) -> dict[str, list[list[str]]]:
    """What may follow a word so that the two make a phrase."""
    index: dict[str, list[list[str]]] = {}
    for phrase in phrases:
        for first, *rest in product(*(slot.split("/") for slot in phrase.split())):
            index.setdefault(first, []).append(rest)
    return index


_VAGUE_INDEX = _by_first_word(_VAGUE)
_UNSPECIFIC = _PLAIN.union(*(slot.split("/") for phrase in _VAGUE for slot in phrase.split()))
_LONGEST: Final = 4000
"""Characters of a message that are read."""
_BEFORE: Final = 1000
"""Characters of the agent's message that are read."""
_ENDING: Final = 400
"""Characters of the agent's message that a turn is likely to answer."""
_NEW_WORDS: Final = 3
"""Words that an agreement needs beyond those of the proposal, to ask for more."""
_ENOUGH: Final = 2
"""Words that a sentence needs to inform."""


def annotate(turn: Turn) -> frozenset[Label] | None:
    """The labels of a turn of a person, by rules; an ``Annotator``.

    In a text with more than 4,000 characters, the rules read only the beginning and the end.

    Args:
        turn: the message, and what came before it.

    Returns:
        The labels; none if the turn does nothing that the labels name. None if the text is in a
        language that the rules do not know.
    """
    text = turn.text
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]}\n{text[-_LONGEST // 2 :]}"
    if not is_english(text):
        return None
    text = text.replace("’", "'").lower()
    text = (_MARK.sub(" ", text) if "##" in text else text).strip()
    place = _placed(turn, text)
    found: set[Label] = {"vague"} if is_vague(text) else set()
    if _REPEATED.occurs(text) or (turn.said and _says_again(turn.said, text)):
        found.add("repeat")
    sentences = [part for part in _SENTENCE.split(text) if _WORD.search(part) or "?" in part]
    for at, sentence in enumerate(sentences):
        first = at == 0
        question = "?" in sentence or (first and _is_question(sentence))
        thanks = _THANKS.occurs(sentence)
        praise = not question and _PRAISE.occurs(sentence)
        if thanks:
            found.add("thanks")
        if praise and not _NEGATION.search(sentence[:60]):
            found.add("praise")
        if place.begun and _judges(sentence, found, first=first, question=question):
            continue
        plain = _ANNOUNCED.sub("", sentence)
        if not question:
            found |= _tells(sentence, plain, place, first=first, polite=thanks or praise)
        elif not (place.proposed and _BOOKS_IT.match(plain)):
            found.add("asks")
    if place.before and sentences:
        _answers(text, sentences, place, found)
    if "vague" in found:
        found -= {"asks", "informs"}
    return frozenset(found)


def is_vague(text: str) -> bool:
    """Whether a message defers the work: asks vaguely, or hands back the decision.

    People who find an answer too hard to judge move the conversation on with an unspecific ask
    (paper, section 3). Vague is a message of at most 20 words and 120 characters that says ``up to
    you``, ``I don't mind``, ``make it better``, ``not quite right`` or the like, and no word of what
    it is about. A test holds precision and recall on labelled texts.
    """
    if len(text) > _LONGEST_VAGUE:
        return False
    text = text.lower().replace("’", "'")
    if _UNSAID.match(text):
        return True
    for plain in text.split():
        if plain not in _UNSPECIFIC and plain.isalnum():
            return False  # most texts: this is quicker than to look for words
    words: list[str] = []
    for found in _TOKEN.finditer(text):
        if found[0] not in _UNSPECIFIC:
            return False
        words.append(found[0])
    if len(words) > _VAGUE_WORDS:
        return False
    for at, word in enumerate(words, start=1):
        for rest in _VAGUE_INDEX.get(word, ()):
            if words[at : at + len(rest)] == rest:
                return True
    return False


def is_english(text: str) -> bool:
    """Whether the rules can read a text: it is in English, or too short to tell its language.

    Letters of another script, or more frequent words of another language than of English, tell
    that it is not.
    """
    words = [word.lower() for word in _WORD.findall(text.replace("’", "'"))]
    if not words:
        return True
    if not text.isascii() and len(_OTHER_SCRIPT.findall(text)) * 3 > sum(map(len, words)):
        return False
    english = sum(map(_ENGLISH.__contains__, words))
    foreign = sum(map(_FOREIGN.__contains__, words))
    told = not _TELLING.isdisjoint(words)
    if foreign <= english - told:
        return english > 0 or len(words) < _TELLING_WORDS
    return foreign < 2 and not told


class _Place(msgspec.Struct, frozen=True):
    """Where in a conversation a turn is.

    Attributes:
        before: the end of the agent's last message, in lower case.
        ending: the part of it that the turn is likely to answer.
        asked: whether the agent asked something.
        proposed: whether the agent proposed something, or asked for a yes or no.
        posed: whether the turn asks something.
        begun: whether the turn does not open the conversation.
    """

    before: str
    ending: str
    asked: bool
    proposed: bool
    posed: bool
    begun: bool


def _placed(turn: Turn, text: str) -> _Place:
    before = turn.before[-_BEFORE:].replace("’", "'").lower()
    ending = before[-_ENDING:]
    return _Place(
        before=before,
        ending=ending,
        asked="?" in ending or _DATA_ASKED.search(ending) is not None,
        proposed=_PROPOSAL.search(ending) is not None,
        posed="?" in text,
        begun=bool(before or turn.said),
    )


def _judges(sentence: str, found: set[Label], *, first: bool, question: bool) -> bool:
    """Adds what a sentence says of the agent's work, and whether it does no more than ask about it."""
    if _HALT.occurs(sentence):
        found.add("halt")
    dissatisfied = _DISSATISFIED.occurs(sentence)
    if dissatisfied:
        found.add("complaint")
    against = _NOT_THIS.match(sentence)
    wrong = (against or _WRONG.occurs(sentence)) and not _HYPOTHETICAL.search(sentence)
    if wrong and (against or not question):
        found.add("correction")
    if not question and (dissatisfied or not any(map(sentence.__contains__, _LOST))):
        return False
    of_the_world = not first and _EXPLAINED.search(sentence)
    if of_the_world or not (_TAG.search(sentence) or _CLARIFIES.search(sentence)):
        return False
    found.add("clarify")
    return True


def _tells(sentence: str, plain: str, place: _Place, *, first: bool, polite: bool) -> set[Label]:
    """Whether a sentence that is not a question asks for something, or informs.

    Args:
        sentence: in lower case.
        plain: the sentence without words that announce it.
        place: where in the conversation it is.
        first: whether it is the first sentence of its turn.
        polite: whether it thanks or praises.
    """
    if place.posed and _SUPPOSED.match(plain):
        return set()
    task = bool(_FIGURE.search(plain) or _FILE.search(plain) or _LINK.occurs(plain))
    answers = place.asked or place.proposed
    agrees = place.proposed and (_YES.match(sentence) or _YES.match(plain))
    new = _content(plain).difference(_WORD.findall(place.before)) if agrees else set()
    if agrees and len(new) < 2 and not task:
        return set()
    if answers and _REFUSES.occurs(plain):
        return {"informs"} if _REASON.search(plain) else set()
    if _NEW.occurs(plain):
        return {"asks"}
    if place.before and (_CONSTRAINT.match(plain) or (answers and _CHOICE.search(plain))):
        return {"informs"}
    picked = plain.strip(" .!")
    if place.asked and f" {picked}" in place.before and _content(plain):
        return {"informs"}  # one of the choices that the agent gave
    requests = _REQUEST.match(plain) or _CHANGES.match(plain)
    if requests or ((first or not place.asked) and _WISH.occurs(plain)):
        if agrees and len(new) < _NEW_WORDS:
            return set()
        told: set[Label] = {"asks" if requests or not place.asked else "informs"}
        if task and (_OWN if place.before else _GIVEN).search(plain):
            told.add("informs")
        return told
    if not (_WORD.search(plain) if task else _says_enough(plain)):
        return set()
    if polite or _HALT.occurs(sentence):
        return set()
    own = place.before or not place.posed or _OWN.search(plain)
    return {"informs"} if answers or (own and _STATEMENT.search(plain)) else set()


def _content(text: str) -> set[str]:
    """The words of a text that are about something."""
    return set(_WORD.findall(text)) - _GENERAL


def _says_enough(text: str) -> bool:
    """Whether a text without a figure or a name of a file informs."""
    words = _WORD.findall(text)
    return len(words) >= _ENOUGH and not _GENERAL.issuperset(words)


def _answers(text: str, sentences: Sequence[str], place: _Place, found: set[Label]) -> None:
    """Adds labels if a turn accepts or refuses the agent's proposal."""
    refused = _NO.match(text)
    answers = place.asked or place.proposed
    if refused or (answers and _REFUSES.occurs(text)):
        closes = "thanks" in found and _CLOSES.search(sentences[0])
        if not closes and (answers or "correction" not in found):
            found.add("deny")
    if place.proposed and not refused and any(map(_YES.match, sentences[:2])):
        questions = [part for part in _SENTENCE.split(place.ending) if _ASKING.search(part)]
        last = questions[-1] if questions else ""
        gives = "informs" in found and not _PROPOSAL.search(last) and _DATA_ASKED.search(last)
        if not gives or _YES_DO.match(text):
            found.add("confirm")


def _is_question(sentence: str) -> bool:
    """Whether a sentence without a question mark asks."""
    return _QUESTION.match(sentence) is not None and len(sentence.split()) > 2


def _says_again(said: str, text: str) -> bool:
    """Whether more than half of the longer words of a text are in the person's message before it."""
    words = [word for word in _WORD.findall(text) if len(word) > 3]
    said = said.lower()
    if len(words) < 2 or sum(map(said.__contains__, words)) * 2 <= len(words):
        return False
    earlier = set(_WORD.findall(said))
    return sum(word in earlier for word in words) * 2 > len(words)
