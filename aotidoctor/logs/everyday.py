"""The everyday words of failures, for ``complaints``: plain ones, any complaint, codes, other languages."""

from __future__ import annotations

import re
from collections.abc import Sequence

# The plain words: something was to be done, and was not.
FAILS = re.compile(
    "|".join(  # noqa: FLY002 - one kind a line
        (
            r"(?i:\bfail(?:s|ed|ing|ures?)?\b|\bunable to\b|\bcould(?: not|n[`']?t)\b)",
            r"(?i:\bcan(?:not|[`']t| not) (?:be )?(?:open|load|find|read|write|locate|connect|create|import|access))",
            r"(?i:\bcan(?:not|[`']t| not) (?:be )?(?:resolv|run|execut|start|get|use|set|determin|pars|convert))",
            r"(?i:\bcan(?:not|[`']t| not) (?:be )?(?:compil|allocat|build|fetch|verif|reach|bind|continue|proceed))",
            r"(?i:\btimed[ -]?out\b|\b(?:permission|access) (?:is )?denied\b)",
            r"(?i:\b(?:connection|operation) (?:refused|reset)|\bno such (?:file|host|device|process|module|command))",
            r"(?i:\bcommand not found\b|\bis not recogni[sz]ed as\b|\bout of (?:memory|space|range|bounds|disk)\b)",
            r"(?i:\bnot (?:implemented|permitted|enough (?:memory|space))\b|\bdead ?lock)",
            r"(?i:(?<![\w-])(?:hangs?|hung|stuck|frozen)(?![\w-])|\bkilled\b|\bcorrupt(?:ed|ion)?\b)",
            r"(?i:\bunreachable\b|\bbroken pipe\b|\bunhandled\b|\bunrecoverable\b)",
            # What stands between two tracebacks, and counts at the end.
            r"\bthe above exception(?:, another| was the direct)|\bERROR SUMMARY: [1-9]",
            # The end of what torch.compile raises.
            r"You can suppress this exception and fall back|\bTORCHDYNAMO_VERBOSE=1 for the internal",
            r"(?i:\bunexpected(?:ly)? (?:end|eof|token|exit|close|termin|stop))",
            r"\b(?:FAILURE|BROKEN|REJECTED|TIMEOUT|OOM)\b|\bE[A-Z]{4,12}\b(?=:)",
            r"[\u2717\u2718\u274c\u26d4\U0001f6a8\U0001f4a5]|\u00d7 \w",
        )
    )
)
# Any complaint.
_COMPLAINTS = (
    r"failed to|fail(?:s|ed)? with|unable to|could(?: not|n[`']?t)|can(?:not|[`']?t)|throws?|killed|timed out",
    r"not (?:supported|found|allowed|permitted|available|recogni[sz]ed|registered|defined|installed|initiali[sz]ed)",
    r"not (?:valid|exist|match|equal|close|loaded|running|responding|connected|accessible|callable|implemented)",
    r"undeclared|not (?:declared|compatible|working|resolved|enough|a valid|the same)",
    r"does(?:n[`']?t| not) (?:exist|match|support|work|have|contain|equal|agree|fit|compile|load)",
    r"no [\w' -]{1,40} (?:(?:is|was|were|are) )?(?:found|available|registered|supported|implemented|defined|installed)",
    r"do(?:n[`']?t| not) match|no matching|unsupported|mismatch(?:ed)?|incompatib\w+|no such|missing|undefined",
    r"unresolved|expected\b[^\n]{0,80}\b(?:got|found|but|actual|received|was)|no module named",
    r"(?:larger|greater|longer|bigger|smaller|more) than (?:the )?(?:max|limit|allowed|available)|not in \w+ format",
    r"refused|denied|rejected|forbidden|inconsistent|diverge[sd]?|incorrect|inconsistenc\w+|\w{0,60}(?-i:[a-z]Error|[a-z]Exception)|StopIteration",
    r"corrupt(?:ed)?|invalid|illegal|insufficient|exceed(?:s|ed)?|overflow|underflow|violat\w+|malformed",
    r"unrecogni[sz]ed|unreachable|unavailable|unreadable|unsatisf\w+|deadlock\w*|crash\w*|abort\w*|panic\w*",
)
# Of lines that somebody chose, words of everyday, too.
_SMALL_ONES = (
    r"differs?|but (?:\w+ ){0,2}different",
    r"(?:different|other) (?:numbers?|results?|outputs?|values?)|(?:is|are) (?:\w+ ){0,2}different",
    r"garbage|gibberish|nonsense|fatal|refus(?:es|ed|ing)|giv(?:es|en|ing) up|gave up",
    r"(?<!/)errors?(?!\.\w|=\w)",
    # What somebody tells who has nothing else to paste.
    r"slower than|(?:larger|smaller|higher|lower|more|fewer|less|longer) than expected|drop(?:s|ped)? from \d\S{0,12}",
    r"(?:take|took|taking|takes) (?:\w+ ){0,2}\d{1,6} ?(?:min\w*|hours?|h)",
    r"(?:exit|quit|stop|close|end|die|return)s? (?:silently|at once|immediately|without|with no|unexpectedly)",
    r"without (?:any |a )?(?:message|traceback|output|trace|warning|reason)|disappear\w*|zombie|defunct",
    r"nothing (?:is )?(?:printed|shown|returned|written)|(?:no|empty) (?:progress|response|output|reply|answer)",
    (
        r"(?:worker|process|container|child|engine|daemon|task|pod)s? (?:\S{1,20} )?(?:exited|terminated|gone)"
        r"(?! (?:with|normally|cleanly|success)|[:,]? \(?(?:exit )?(?:code|status|0))"
    ),
    r"drops the|disconnected|killing process|oom[-_]kill\w*|segv",
    r"exceptions? (?:in|at|while|when|during|from|after)|does nothing|all[- ]zeros?",
    r"(?:returns?|gives?) (?:only )?zeros?",
    r"no progress|outputs differ|impossible|prematurely|truncated|but (?:\S{1,40} ){1,2}expects?",
    r"(?:memory|ram|rss)\b[^\n]{0,30}\b(?:grow\w*|increas\w+|leak\w*|goes up|climbs?)",
    r"not (?:given back|freed|released)|(?:definitely|indirectly|possibly) lost",
    r"no speed-?up|waits? for (?:the other|each other)",
    r"(?:returns?|returned|is|was|gives?) False|nothing happens|expected (?:to be )?[<>]=?|trace trap",
    r"not (?:ready|ok|usable|possible|finished|done|complete)",
    r"bad[ _](?:alloc\w*|function_call|cast|optional_access|variant_access)",
    r"assert|(?:rc|ret|return value) ?= ?-?[1-9]\d{0,5}|returned (?:with )?-\d{1,5}",
    r"timeout|wrong|conflict(?:s|ing)?|unknown|unexpected(?:ly)?",
    r"no longer|(?:connection|contact) lost|lost (?:connection|contact)|dead|died|broken|oops|bug",
    r"interrupted|cancell?ed|halt(?:ed|ing)?|stopped|leak(?:s|ed|ing)?|out of (?!date)",
    r"never (?:returns?|finish\w*|exits?|ends?|terminates?|responds?)",
    r"too (?:large|small|many|few|long|old|new|short|big)|(?:must|should) (?:be|have|match|not)",
    r"do(?:es)?(?:n[`']?t| not) \w+|found \S+ but expected",
    r"requires?|need(?:s|ed)? (?:to|a|an)|only (?:support\w*|accept\w*|work\w*)",
)


def _as_words(table: Sequence[str]) -> re.Pattern[str]:
    return re.compile(rf"(?i:(?<![\w.-])(?:{'|'.join(table)})(?![\w-]))")


COMPLAINS, TOLD = _as_words(_COMPLAINTS), _as_words(_SMALL_ONES)
# What is no word, or is one of another language: statuses of servers, what C++ throws, stacks of Go.
CODES = re.compile(
    r"\b(?:INTERNAL|UNAVAILABLE|ABORTED|DEADLINE_EXCEEDED|RESOURCE_EXHAUSTED|FAILED_PRECONDITION|UNIMPLEMENTED)\b"
    r"|\b(?:GET|POST|PUT|PATCH|DELETE) \S{1,400} (?:HTTP/[\d.]{1,3}\"? )?[45]\d\d\b"
    r"|\bHTTP(?:/[\d.]{1,3}\"?)? [45]\d\d\b|\bSTATUS_(?!SUCCESS|OK|CODE)[A-Z]{3}[A-Z_]{1,40}\b"
    r"|^\W{0,4}(?:(?:status|signal|rc|ret|code)\W{0,3}-?[1-9]\d{0,9}|-[1-9]\d{2,9}|EOF|Assertion)\W{0,4}$"
    r"|\b(?:Exited|Restarting) \([1-9]\d{0,9}\)|\b(?:unhealthy|NotReady|Evicted|ErrImage\w{1,20}|DeadlineExceeded)\b"
    r"|\bE(?:CONN(?:RESET|REFUSED|ABORTED)|NO(?:ENT|MEM|SPC|SYS|DEV|TCONN|TDIR)|ACCES|PIPE|TIMEDOUT|INVAL|PERM|EXIST"
    r"|BUSY|MFILE|NFILE|ADDRINUSE|HOSTUNREACH|ISDIR)\b|\bBadZipFile\b|\b(?:pc|lr) ?: ?0x|>>> referenced by"
    r"|\bstd::\w{0,30}(?:error|exception|alloc|range|argument|cast|call)\b|\bgoroutine \d{1,9} \["
    r"|^\W{0,4}(?:what\(\):\s{0,4})?(?:sto[ildf]{1,3}|(?:unordered_)?map::at|vector::\S{1,40}|basic_string\S{0,60})"
    r"(?:$|[ :])"
)
# "Error", "failed", "cannot" of users who speak Chinese, Japanese, Korean, Russian, German, French, and so on.
FOREIGN = re.compile(
    r"\u9519\u8bef|\u62a5\u9519|\u5931\u8d25|\u65e0\u6cd5|\u5f02\u5e38|\u5d29\u6e83|\u627e\u4e0d\u5230"
    r"|\u4e0d\u652f\u6301|\u932f\u8aa4|\u5931\u6557|\u7121\u6cd5|\u30a8\u30e9\u30fc"
    r"|\u3067\u304d\u307e\u305b\u3093|\u4f8b\u5916|\uc624\ub958|\uc2e4\ud328|\uc218 \uc5c6"
    r"|(?i:\u043e\u0448\u0438\u0431\u043a|\u043d\u0435 \u0443\u0434\u0430\u043b\u043e\u0441\u044c"
    r"|\u0441\u0431\u043e\u0439\b"
    r"|fehler|fehlgeschlagen|konnte nicht|\berreurs?\b|\b\u00e9chec|\b(?:introuvable|inexistant)"
    r"|\berros?\b|\bfalhou?\b|\bfalha\b"
    r"|n\u00e3o foi poss\u00edvel|\bfallo\b|\bfall\u00f3\b|no se pudo|\berrore\b|\bimpossibile|\bfout\b|b\u0142\u0105d)"
)
