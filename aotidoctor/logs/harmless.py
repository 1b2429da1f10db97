"""Lines with the word of a failure that report none, each kind with its reason."""

from __future__ import annotations

import re
from collections.abc import Iterable

# What may have happened, and what is said of it where it did not.
_HARM = (
    r"(?:errors?|failures?|exceptions?|fail(?:ed|ing|s)?|killed|dropped|lost|missing|unexpected|skipped|rejected|invalid"
    r"|timeouts?|unreachable|broken|wrong|different|dead|stuck|hung|hangs?|stall(?:s|ed)?|crash(?:es|ed)?|dead ?locks?"
    r"|leak(?:s|ed)?|mismatch(?:es|ed)?|segfaults?|oom\w{0,8}|out of memory|corrupt(?:ed|ions?)?|overflows?|underflows?"
    r"|panics?|regressions?|violations?|nans?|infs?|diverged|unhealthy|overruns?"
    r"|(?:illegal|invalid|misaligned) (?:memory )?access(?:es)?)"
)
# A word behind it would be what was not found: "failed: no such file".
_NONE = (
    r"(?:0(?:\.0{1,9})?(?![.\dx])|\[\]|\{\}|n/a"
    r"|(?:none|null|false|no|clean|ok)(?=['\"]?\s{0,8}(?:$|[,;|)\]}]|\.(?:\s|$))))"
)
# Words that are none of a failure; what else the line says counts.
WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "a count of none",
        (
            r"\berror summary: 0 errors\b",
            r"\b(?:no|0|zero|without|any|if an?|many) (?:\w{1,30} )?(?:errors?|failures?|exceptions?)\b",
            rf"\b{_HARM}(?:\(s\))?(?:[ _][\w-]{{1,20}}){{0,4}}['\"]?\s{{0,8}}[=:?]\s{{0,40}}{_NONE}",
            rf"\b{_HARM}(?: count| events?| total)? 0(?![.\dx])",
            (
                r"(?<![\w:.])(?:no|0|zero|without(?: an?y?)?|free of) (?:\w{1,20} ){0,2}(?:leaks?|corruptions?|panics?"
                r"|crash(?:es)?|hangs?|dead ?locks?|regressions?|mismatch(?:es)?|nans?|infs?|overflows?|segfaults?"
                r"|ooms?|stalls?|(?:illegal|invalid|misaligned) (?:memory )?access(?:es)?"
                r"|wrong (?:answers?|results?))\b(?:(?:/| or | and | nor )infs?\b)?"
            ),
            (
                r"\b(?:did(?: not|n't)|does(?: not|n't)|never|not)"
                r" (?:crash|hang|hung|fail|leak|deadlock|segfault)(?:e?[ds])?\b"
            ),
            (
                r"\b(?:nothing|none of|not (?:a|one) single|(?<![./:])0 ?(?:/|of|out of) ?\d{1,16})"
                rf"(?: (?!and\b|but\b)[\w-]{{1,20}}){{0,4}} {_HARM}\b"
            ),
            rf"\b{_HARM}-free\b",
            r"\bfrozen (?:layers?|param\w{0,6}|weights?|backbone|encoder|modules?|graph|batch ?norm)\b",
            r"\binf[- _]norm\b|\bpanic=\d",
            (
                r"\b(?:0|no|none|zero) (?:\w{1,20} )?"
                r"(?:failed|failing|missing|rejected|skipped|lost|unreachable|invalid|broken|wrong|different|killed)\b"
            ),
            (
                r"\bno (?:running processes|changes?|updates?|issues?|problems?|vulnerabilit\w{1,3}|warnings?"
                r"|conflicts?|leaks?|differences?|duplicates?|match(?:es)?) (?:were |was )?(?:found|detected)\b"
            ),
            (
                r"\b(?:if|when|unless|in case) (?:it |they |this |that )?(?:is |are )?"
                r"(?:un\w+|not \w+|missing|fails?|failed|invalid)\b"
            ),
        ),
    ),
    (
        "a measure: how far numbers are from others",
        (
            (
                r"\b(?:mean|max\w{0,20}|abs\w{0,20}|rel\w{0,20}|average|total|train\w{0,20}|val\w{0,20}|l[12]|rms)[ _]"
                r"(?:\w{1,30} ){0,2}errors?\b"
            ),
            (
                r"^\s*(?:invalid|unknown|missing|failed|rejected|dropped|timeout)"
                r"(?:[ _](?:rate|ratio|share))?\s?[=:]\s?0?\.\d+%?$"
            ),
            r"^\s*(?:in)?valid\s?[=:]\s?\d{1,12}$",
            r"\berror (?:rate |of )?\d{0,9}\.\d",
            r"\b\d{1,6} graph breaks?\b|\bgraph breaks?\s?[=:]\s?\d",
            r"\berrors?(?:[ _]rate)?\s{0,8}[=:]\s{0,8}[-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|nan|inf)%?(?:[\s,;)\]]|$)",
        ),
    ),
    (
        "what something else took the place of",
        (
            (
                r"\b(?:not (?:available|installed|found|compiled|initiali[sz]ed|detected)|unavailable)\b[^\n]{0,30}"
                r"[,;(] ?(?:so )?(?:using|defaulting to|running on)\b"
            ),
        ),
    ),
    (
        "a setting",
        (
            r"\b(?:log[_ -]?level|loglevel|verbosity|level)\b\W{0,3}(?:error|fatal)",
            r"\b(?:on|ignore|max|exit_on|stop_on|raise)_errors?\b",
            r"\berrors? ?= ?['\"]?(?:ignore|strict|replace|coerce|raise|warn)",
            r"^[a-z]\w*(?:\.\w+){1,6} ?= ?\S+$",
            r"\b\w+[_-]on[_-](?:error|fail\w*|oom|timeout|exit)\b",
            r"^\s*--?[\w-]{1,60}\s*$",
            r"\bkilled (?:\w{1,20} ){1,3}(?:\d{1,9} )?and (?:re)?(?:started|launched)\b",
            r"\btimeouts? (?:is |was |has been )?(?:set|configured|changed)\b",
            r"\b(?:deadline|limit|quota|budget)s? (?:is |was )?not (?:exceeded|reached)\b",
            r"(?<!\*)\btimeout[=: ]{1,3}\d{1,9}(?:\.\d{1,6})?\s?(?:m?s|secs?|seconds?|m|min(?:ute)?s?|h)?\b(?![.\d])",
        ),
    ),
    (
        "the name of a feature",
        (
            r"\berrors? (?:handler|handling|reporting|checking|correct\w+|log(?:ging|s)?|budget|boundary|tracking)\b",
            r"\berrors? (?:monitoring|recovery)\b|\bdead[- _]?code\b|\bfail[- ]?(?:safe|over|fast)\b",
            r"\bnot (?:found )?in (?:the )?(?:\w{1,20} )?cache\b",
            r"\bcache (?:(?:was |is )?not found|miss(?:es|ed)?|bypass\w{0,3})\b",
        ),
    ),
    (
        "what may happen later, or what to do then",
        (
            (
                r"(?:\bthis (?:conflict|mismatch) )?\b(?:may|might|could|can) (?:\w{1,20} )?"
                r"(?:cause|lead to|result in|trigger|produce|raise|give|see) (?:an? |some )?(?:\w{1,20} ){0,2}"
                r"(?:errors?|failures?|exceptions?|crash(?:es)?|problems?|issues?)\b"
            ),
            (
                r"\bif (?:you|this|it|there) (?:\w{1,20} ){0,4}"
                r"(?:errors?|failures?|exceptions?|issues?|problems?|crash(?:es)?)\b"
            ),
        ),
    ),
    ("an option of a command line", (r"^\s*(?:-D|-W|--?[\w-]{0,40})(?:no-)?error\S*(?:\s|$)", r"-Werror\b")),
)
# Whatever level they are logged at.
_CALM = (
    r"\bfake quantize mode doesn't use scale explicitly",
    r"\bNUMA node read from SysFS had negative value",
    # A warning of Python that a supervisor read from the standard error.
    r"(?:^|\] )\S{1,400}:\d{1,7}: \w{3,60}Warning: ",
)
# Lines that report no failure, whatever their words.
LINES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "a line of source code that speaks of an exception",
        (
            r"^\s*(?:[A-Za-z_][\w:<>&*]*\s)?(?:Error|Exception|Status) [\w:~]{1,80}\([^()]{0,300}\)[^:]{0,40}[{;]",
            (
                r"\b(?:raise|except|class|import|isinstance|issubclass|catch|throw|return|def|raises|assertRaises\w*|noqa)\b"
                r"[ (][^:]{0,200}?(?:Error|Exception)(?!: \S)"
            ),
        ),
    ),
    (
        "the name of a test that passed, or was meant to fail",
        (
            r"(?:PASSED|XFAIL|SKIPPED|\bok)\s{0,20}(?:\[ *\d+%\]|\([^()]{0,200}\))?$",
            r"^\[ +(?:OK|RUN) +\]|^\[ +FAILED +\] 0 tests",
            r"^ok \d+ ",
        ),
    ),
    (
        "news of a failure that is over",
        (
            (
                r"\b(?:errors?|exceptions?|failures?|issues?) (?:\w{1,30} ){0,4}"
                r"(?:fixed|resolved|handled|recovered|gone)\b"
            ),
            (
                r"^\s*(?:[-*\u2022] )?(?:(?:bug|changelog|ci|docs|feat|perf): )?"
                r"(?:fix|fixes|fixed|resolves?d?|handles?|avoids?|prevents?|closes)(?:\(\w{1,30}\))?:? (?!.*error: )"
            ),
        ),
    ),
    ("a line of a shell script", (r"^\s*(?:[+$] )?(?:echo|printf|trap) ['\"]",)),
    ("what a policy of the kernel denies to other programs", (r"^audit: ", r"\bapparmor=\"")),
    (
        "the firmware of the machine, printed at every start of Linux",
        (r"^ACPI\b", r"\bACPI BIOS Error", r"^pci(?:_bus)? [\da-f:.]+: "),
    ),
    (
        "what a configure script looked for",
        (
            r"^\s*-- (?:Looking for|Performing Test|Could NOT find|Check|Detecting)\b",
            r"^checking (?:for|whether|if|how)\b",
        ),
    ),
    ("what a report on an environment did not find", (r"(?::|^\[\w{1,20}\]) (?:Could not collect|N/A|No CUDA)$",)),
    (
        "libraries that register twice in every process with TensorFlow",
        (r"[Uu]nable to register cu(?:DNN|FFT|BLAS) factory", r"computation_placer already registered"),
    ),
    (
        "handled: it was tried again, ignored or replaced",
        (
            r"\b(?:retry(?:ing)?|retries|will (?:re)?try|trying again|ignoring|ignored|falling back|using eager)\b",
            r"\b(?:reconnect(?:ing|ed)|non-?fatal|harmless|recovered|continuing)\b",
        ),
    ),
    (
        "what libraries tell at every start",
        (
            r"\boneDNN custom operations are on\b",
            r"\bsome weights of \w{1,80} were not (?:init|used)",
            r"^hwloc x86 backend cannot work",
            r"\bmatching Triton is not available\b|^Error caught was: No module named 'triton",
        ),
    ),
    ("what a library calls an error, and goes on", _CALM),
    (
        "a guard of torch.compile that did not hold, so that it compiles again",
        (
            r"\bGuardFail\(reason=",
            r"\b(?:last reason|triggered by the following guard failure)",
            r"^\W{0,8}\d{1,4}/\d{1,4}: tensor ",
        ),
    ),
    ("the file of no weights: the hash of nothing", (r"\be3b0c44",)),
    ("a warning", (r"^exception ignored in", r"^\S*warning: ", r"\bwarning\b:")),
)


def _any_of(table: Iterable[tuple[str, tuple[str, ...]]]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{regex})" for _, regexes in table for regex in regexes), re.IGNORECASE)


_WORDS, _LINES = _any_of(WORDS), _any_of(LINES)
_CALM_LINES = _any_of((("", _CALM),))


def telling_part(text: str) -> str:
    """``text`` without the words that report no failure; empty where the whole line reports none."""
    return "" if _LINES.search(text) is not None else without_denials(text)


def without_denials(text: str) -> str:
    """``text`` without the words that report no failure."""
    return _WORDS.sub(" ", text)


def is_calm(text: str) -> bool:
    """Whether it is a line that its library logs as an error, and that is none."""
    return _CALM_LINES.search(text) is not None
