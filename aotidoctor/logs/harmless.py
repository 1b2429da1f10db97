"""Decide whether a line reports a failure: harmless lines, severity, and signs of torch or of other programs.

A harmless line has the word of a failure and reports none; each kind is listed with its reason. A failure weighs less
as a warning that was handled, or as news, than as an error.

Compilers, linkers, loaders and memory fail everywhere in the same words. Beside a sign of torch such a message counts;
without one it is a low suspicion, and beside a sign of another program it is a lead and no diagnosis.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from aotidoctor.logs.lines import LogLine
from aotidoctor.logs.patterns import LogFailure
from aotidoctor.model.report import LogMatch

# Harmless lines. Words of harm, and the words beside them where none was done.
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
# Words that report no failure; the rest of the line counts.
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
            r"\b(?:errors?|failures?|timeouts?)[ _](?:threshold|budget|tolerance|allowance)s?\b",
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
# Lines that are calm at any level.
_CALM = (
    r"\bfake quantize mode doesn't use scale explicitly",
    r"\bNUMA node read from SysFS had negative value",
    # ExecuTorch: lookups with a second place to look in, and outputs that are no tensors.
    r"^Key \w{1,200} not found in named data maps",
    r"nothing to delete$|^Didn't find tensor 0x|output: \d{1,6} is not Tensor$|^Tensor meta doesn't exist for output",
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
    """Whether ``text`` is a line that its library logs as an error and that is none."""
    return _CALM_LINES.search(text) is not None


# Error, handled warning, or news. Autotuning leaves out a candidate.
_ROUTINE = re.compile(r"(?:for|of) benchmark choice|ignoring this choice")
# A search for an optional library found none, and the program goes on.
_PROBES = re.compile(
    r"\bNCCL INFO\b|(?i:\b(?:skipp(?:ing|ed)|skip) (?:the )?(?:import|load|regist)|\boptional\b|\bfall(?:ing|s)? back\b"
    r"|\b(?:ignor(?:ing|ed)|prob(?:ing|ed))\b|\bwill (?:be disabled|not be (?:available|used))\b)"
)
# What a runtime logs as news, and goes on with the wrong data.
_SILENT = "not found or update fn is null"
# A warning about something that the program may do without.
_OPTIONAL = "you can ignore this warning"
# The beginning of a line that is the failure itself, at any level.
_BEGINS = re.compile(
    r"(?:[\w.:]*(?:Error|Exception|Interrupt)\b|(?i:error|fatal|failed|terminate called)\b|[A-Z]{3,12} FAIL)"
)


# A record that says no more than that.
_BARE = re.compile(r"(?P<level>(?:ERROR|FATAL|CRITICAL):? )?[\w ]{1,40}\b(?:failed|aborting|giving up)\W{0,3}$")


def is_bare(found: LogFailure, head: LogLine) -> bool:
    """Whether a record says that something failed and nothing more, so that no cause can be read from it."""
    bare = _BARE.match(found.text) if found.form == "line" else None
    return bare is not None and (head.stamped or bare["level"] is not None)


def is_warning(found: LogFailure, head: LogLine) -> bool:
    """Whether the failure was handled: a candidate left out, an optional library, an exception logged as a warning."""
    if _ROUTINE.search(found.text) is not None:
        return True
    if is_probe(found, head):
        return True
    # An exception that was logged as a warning was handled.
    return head.level == "warning" and (found.form in ("line", "loader") or (found.form == "python" and head.stamped))


def is_probe(found: LogFailure, head: LogLine) -> bool:
    """Whether the failure is the search for a library that the program can do without."""
    return found.form == "loader" and (head.level == "info" or _PROBES.search(found.text) is not None)


def is_mention(found: LogFailure, head: LogLine) -> bool:
    """Whether the failure is only mentioned in news: expected, tried again, or a word of an option."""
    if (found.form == "loader" and "NCCL INFO" in found.text) or _OPTIONAL in found.text:
        return True
    is_news = head.level == "info" and found.form == "line" and _SILENT not in found.text
    return is_news and _BEGINS.match(found.text) is None


# Signs of torch and of other programs.
_MARK = re.compile(
    r"(?i:\bc?torch|libtorch|pytorch|inductor|\baoti|triton(?!server)|\.pt2\b|executorch|xformers|flash_?attn|fbgemm|vllm|torchrec)"
    r"|\bat::|\bc10\b|_Z\w{0,40}(?:3c10|2at\d|5torch)|\bTORCH_|Error in dlopen|FakeTensor|\baten\b"
    # Words that only torch uses.
    r"|\bmat[12]\b|non-singleton dim|is invalid for input of size|expects each tensor to be|probability tensor"
    r"|must be Tensor, not|got \(\w{0,12}Tensor|Dimension out of range \(expected|indices for tensor of dim"
    r"|of the active trace|\w{2,40}Backward\d|WorkNCCL|\bc10d\b|(?i:\bsglang)|gpu_memory_utilization|state_dict"
    r"|\d-dimensional (?:input|weight|tensor)|\bATen\b|vectorized ISA|\bDim\.(?:AUTO|DYNAMIC)|\bdynamic_shapes\b"
    r"|libc10|site-packages/nvidia/|Tensor(?:\[\])?\(a!\)|swap_constant|fold_state"
    r"|(?:Runtime|Index|Value|Type)Error: [a-z]\w{1,40}\(\w{0,20}\): |batch1 and batch2|running_(?:mean|var)\b"
    r"|split_with_sizes|symbolic sizes|SparseTensorImpl|channels_last|TORCH_LIBRARY|PytorchStream|CUBLAS_STATUS|CUDNN_"
    r"|Tensor as element|to be true, but got false|Tried to allocate \d"
    r"|ProcessGroup[A-Z]\w{2,8}\.[ch]pp|NCCL (?:WARN|error)"
    r"|#ttg\.|\btt\.func\b"
    r"|Compile package was created with|GuardManager check failed|\b(?:ViewAndMutationMeta|InputAliasInfo)\b"
    r"|missing value for argument|invalid combination of arg|input batch_size|scalar type \w+;? but (?:found|got)"
    # Operators that speak of their arguments, and the tracer of TorchScript.
    r"|RuntimeError: [a-z][a-z\d_]{2,40}(?:\(\))?:? (?:[Ee]xpect\w{0,6} |input )|\btraced functions\b"
    r"|\b(?:MPS|XPU|HPU|NPU|CUDA) (?:[Tt]ensors?|backend|framework)|AITemplate"
    # The sources of tch-rs, as cargo keeps them.
    r"|\btch-\d[\d.]{0,12}[/\\]src[/\\]"
)
# The words of every CUDA program: a sign in torch's form, if there is no sign of another program.
_ANY = re.compile(r"(?:^|Error:? |what\(\): {1,4}|\] |> |: E? {0,8})CUDA error", re.MULTILINE)
# Names of folders are the user's choice; a sign are those of installed packages, and files of torch.
_PATH = re.compile(r"(?<![\w:/\\.])(?:~|\.{1,2}|\$\w{1,40}|[A-Za-z]:)?(?:[/\\][\w.+@%-]{1,120}){1,40}")
_OF_PACKAGES = re.compile(
    r"(?:site|dist)-packages|\.(?:so|dll|dylib|pt2?|pte|cubin|ptx|a|lib)(?:[.\d]{0,12}|$)"
    r"|torch[/\\](?:_|csrc|lib|include|export|utils|nn|cuda|fx|onnx|jit|distributed|serialization|functional|autograd)"
    r"|(?:torchinductor_\w{1,40}|torch_compile_cache|triton[/\\]cache|torch_extensions)[/\\]"
    r"|pytorch[/\\](?:benchmarks|test|aten|third_party|tools|cmake)[/\\]"
    r"|[/\\]tch-\d[\d.]{0,12}[/\\]src[/\\]"
    r"|triton[/\\](?:compiler|language|runtime|backends|_C|ops)|(?:aten|c10|ATen)[/\\]"
    r"|(?:vllm|sglang|executorch|xformers|flash_attn|fbgemm\w{0,8}|torchrec|torch\w{2,12})[/\\][\w/\\.-]{0,200}\.(?:py|cpp|cc|cu|h)"
)
_OTHER = re.compile(
    r"(?i:tensorflow|\bjax|\bxla\b|paddle|mxnet|\bcargo\b|rustc|\bnpm\b|node_modules|gradle|\bmaven|gstreamer|"
    r"opencv|\bqt[56]\b|unity|unreal|minecraft|\bjulia\b|\bruby\b|go build|dotnet|\.csproj|\bswift|flutter|\bcobol|"
    r"\bpostgres|\bpsql\b|\bpg_hba|\bmysqld?\b|\bmariadb|\bredis\b|\belectron\b|\bopenssl|\blibcurl|"
    r"AndroidRuntime|\bjava\.lang|\bggml|llama\.cpp|llama_(?:cpp|model_lo|print_t)|whisper\.cpp)"
)
# Forms and causes that are not torch's alone.
_FORMS, _CAUSES = ("linker", "loader", "compiler"), (
    "out-of-memory", "missing-library", "toolchain-missing", "abi-mismatch", "platform-mismatch",
    "tmpdir", "killed", "isa-mismatch",
)  # fmt: skip
# Programs on ggml run models too: messages that only they print count as they are.
_OF_MODELS = ("ggml",)
# Causes that are the same in every program.
_EVERYWHERE = ("openmp-conflict",)
# The confidence without a sign of torch, and beside a sign of another program.
_UNMARKED, _OF_OTHERS = 0.45, 0.25
# Libraries that torch, its compilers and its kernels are linked with; errors about others say nothing.
_LINKED = re.compile(
    r"(?i:torch|c10|aten|aoti|python|cud|cublas|cufft|curand|cusp|nvrtc|nvtx|nccl|cupti|hip|roc|rccl|miopen|sycl|ze_|omp|mkl|dnnl|sleef|stdc\+\+"
    r"|atomic|blas|lapack|kineto|protobuf|triton|fbgemm|magma|shim|msvcrt|kernel32|ucrt|\bm$|\bdl$|pthread|\brt$)"
)
_NAMED = re.compile(r"LNK1(?:104|181)|cannot find -l|library not found for -l|library '[\w+.-]+' not found")


# Cached as every entry of the tables needs it for the same lines.
@lru_cache(maxsize=4)
def has_mark(text: str) -> bool:
    """Whether ``text`` has a sign of torch, of what it compiles or of a library that is built on it."""
    text = _PATH.sub(_without_folders, text)
    return _MARK.search(text) is not None or (_ANY.search(text) is not None and not _is_of_others(text))


def names_linked(text: str) -> bool:
    """Whether a tool misses a library that torch, its compilers and its kernels are linked with."""
    return _NAMED.search(text) is not None and _LINKED.search(text) is not None


def _without_folders(path: re.Match[str]) -> str:
    return path[0] if _OF_PACKAGES.search(path[0]) is not None else "/"


def _is_of_others(text: str) -> bool:
    return _OTHER.search(text) is not None


def adjust_confidence(match: LogMatch, around: str) -> LogMatch:
    """The match, with less confidence where the lines around it show no sign of torch."""
    if match.pattern.component in _OF_MODELS:
        return match
    is_anybodys = match.event.form in _FORMS or match.pattern.cause in _CAUSES
    if has_mark(around) or _MARK.search(_PATH.sub(_without_folders, match.event.text)) is not None:
        return match
    is_others = match.pattern.cause not in _EVERYWHERE and _is_of_others(around)
    if not (is_anybodys or is_others):
        return match
    is_others = is_others or (_NAMED.search(match.text) is not None and _LINKED.search(match.text) is None)
    return replace(
        match,
        confidence=min(match.confidence, _OF_OTHERS if is_others else _UNMARKED),
        facts={**match.facts, "unmarked": True},
        pattern=replace(match.pattern, is_suspect=True),
    )
