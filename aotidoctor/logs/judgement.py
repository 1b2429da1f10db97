"""What the failures of a log are to each other: the first, its echoes, and those that cannot be trusted after it.

A failure is told many times: by the library, by the wrapper that passes it on, by the launcher that saw a process end.
Whoever says the same words later, or says nothing but that something failed, is an echo. After an error that leaves
the device unusable every further CUDA error of that process is tainted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from aotidoctor.logs.assembly import Draft
from aotidoctor.logs.keyword_filter import letters

# They pass a failure on, or notice that there was one.
_WRAPPERS = re.compile(
    r"API call failed at |CalledProcessError|CppCompileError|"
    r"C\+\+ compile error|ChildFailedError|ProcessRaisedException|"
    r"The following operation failed in the TorchScript interpreter|"
    r"Loading outdated pt2 file|Failed to (?:compile|link) files|background workers? (?:are|is) no longer alive|"
    r"terminate called (?:recursively|without)|Engine ?(?:Core)?.{0,200}(?:died|is dead)|See root cause above|"
    r"Worker failed with error|DataLoader worker .* (?:killed|exited)|exited unexpectedly|"
    r"returned non-zero exit status|remote process exited|Watchdog caught collective operation timeout|"
    r"Connection (?:closed|reset) by (?:remote )?peer|"
    r"^(?:Error: |ERROR: )?[\w ]{0,40}\b(?:failed(?: to start)?|aborting|giving up)\W*$"
)
# Who watches other processes, and whoever shared a connection with one: that one of them failed, and not why.
_SUPERVISORS = re.compile(
    r"EngineDeadError|(?i:root cause)|\b[Ww]orker\w*\b[^\n]{0,60}\b(?:died|is dead|was killed|crashed)\b|\bWorkerProc\b"
    r"|Received sigquit from a child|Got fatal signal from|\bis already dead\b|BrokenProcessPool"
    r"|Queue <[^\n]{1,200}> is closed|Ray(?:Actor|System|Task)?Error: The actor|ActorDiedError|WorkerCrashedError"
    r"|OwnerDiedError|actor died unexpectedly|NCCL error: (?:unhandled|remote)|nccl(?:Unhandled|Remote|System)\w*Error"
    r"|[Cc]onnection (?:closed|reset) by (?:remote )?peer|Connection(?:Reset|Aborted)Error|Broken(?:Pipe|Barrier)Error"
    r"|heartbeat monitor|(?:[Kk]illing|[Tt]erminating|[Ss]hutting down)[^\n]{0,60}(?:process|worker|server|engine)"
    r"|runner process has terminated|potential root causes|process (?:has )?(?:terminated|exited) unexpectedly"
    r"|Engine ?(?:Core)?(?: \w+)? (?:failed|died|is dead)"
)
_STICKY = re.compile(
    r"illegal memory access|device-side assert|misaligned address|unspecified launch failure|illegal instruction was|"
    r"uncorrectable ECC|hardware stack error|invalid program counter|address space conflict|cudaErrorIllegalAddress"
)
_CUDA = re.compile(
    r"CUDA (?:driver )?error|AcceleratorError|cudaError|CUBLAS_STATUS|CUDNN_STATUS|CUDNN_BACKEND|device-side assert|"
    r"NCCL (?:error|WARN Cuda)|Failed to free GPU memory|Triton Error \[CUDA\]|CUDA out of memory|CUDA kernel errors"
)
_TYPE = re.compile(r"^(?:what\(\): *|[\w.:]*(?:Error|Exception|Failure)?: +|terminate called.*)+")
# Shorter words may be the same by chance.
_TELLING = 14


@dataclass(slots=True)
class Judged:
    """A draft with the draft that it echoes, and whether it can be trusted."""

    draft: Draft
    root: Draft | None = None
    tainted: bool = False


def judge(drafts: Sequence[Draft]) -> list[Judged]:
    """Each failure in order, with what it follows from."""
    judged = [Judged(draft) for draft in drafts]
    words = [(_core(draft), letters(draft.found.text.encode("utf-8", "replace"))) for draft in drafts]
    failures = [at for at, draft in enumerate(drafts) if draft.level == "error" and not follows(draft)]
    broken: dict[str, Draft] = {}
    for at, one in enumerate(judged):
        draft = one.draft
        if draft.level == "error":
            one.root = (
                _chained(judged, at)
                or _asserted(judged, at)
                or _repeated(judged, words, at)
                or _noticed(judged, failures, at)
                or _titled(judged, at)
            )
        text = draft.found.text
        first = broken.get(draft.origin)
        one.tainted = first is not None and one.root is None and _CUDA.search(text) is not None
        if first is None and draft.level == "error" and _STICKY.search(text) is not None:
            broken[draft.origin] = draft
    _resolve(judged)
    return judged


def _resolve(judged: Sequence[Judged]) -> None:
    """What echoes an echo echoes what that one does."""
    roots = {id(one.draft): one.root for one in judged}
    for one in judged:
        passed = {id(one.draft)}
        while one.root is not None and id(one.root) not in passed and roots[id(one.root)] is not None:
            passed.add(id(one.root))
            one.root = roots[id(one.root)]


def follows(draft: Draft) -> bool:
    """Whether it only passes on, or notices, that something failed."""
    first = draft.found.text.partition("\n")[0]
    return draft.found.follows or _WRAPPERS.search(first) is not None or supervises(draft)


def supervises(draft: Draft) -> bool:
    """Whether it is said of another process: nothing in it tells the cause."""
    return _SUPERVISORS.search(draft.found.text.partition("\n")[0]) is not None


def _root_of(one: Judged) -> Draft:
    return one.root or one.draft


def _chained(judged: Sequence[Judged], at: int) -> Draft | None:
    """Raised because of, or while handling, the exception before it."""
    draft = judged[at].draft
    if not draft.found.chained:
        return None
    before = (
        one for one in reversed(judged[:at]) if one.draft.origin == draft.origin and one.draft.found.form == "python"
    )
    one = next(before, None)
    return None if one is None else _root_of(one)


def _asserted(judged: Sequence[Judged], at: int) -> Draft | None:
    """An assertion of the GPU, told once more by the first call that waits for it."""
    if "device-side assert" not in judged[at].draft.found.text:
        return None
    return next((_root_of(one) for one in judged[:at] if one.draft.found.kind == "device"), None)


def _repeated(judged: Sequence[Judged], words: Sequence[tuple[bytes, bytes]], at: int) -> Draft | None:
    """The same words said again by somebody else. ``words`` are the letters of each core and of the whole text."""
    own, text = words[at]
    for one, (core, whole) in zip(judged[:at], words[:at], strict=True):
        if one.draft.level == "warning" or len(core) < _TELLING:
            continue
        if core in text or (len(own) >= _TELLING and own in whole):
            return _root_of(one)
    return None


def _noticed(judged: Sequence[Judged], failures: Sequence[int], at: int) -> Draft | None:
    """What a wrapper or a launcher noticed: the failure of its process, or else of any; before it, or else after it.

    ``failures`` are the places of those who do more than notice.
    """
    draft = judged[at].draft
    if not follows(draft):
        return None
    if failures:
        first = min((place > at, judged[place].draft.origin != draft.origin, place) for place in failures)
        return judged[first[2]].draft
    # Of endings alone the first one tells.
    earlier = next((one for one in judged[:at] if one.draft.level == "error"), None)
    return None if earlier is None else _root_of(earlier)


def _titled(judged: Sequence[Judged], at: int) -> Draft | None:
    """What a logger says before it prints the exception itself."""
    draft = judged[at].draft
    if draft.found.form != "line" or at + 1 == len(judged):
        return None
    after = judged[at + 1].draft
    follows_at_once = after.origin == draft.origin and draft.last < after.at <= draft.last + 1
    return after if follows_at_once and after.found.form == "python" and draft.is_record else None


def _core(draft: Draft) -> bytes:
    """The letters of the message proper, without the types and names that callers put before it."""
    lines = [text for _, text in draft.found.said]
    first = lines[1] if len(lines) > 1 and lines[0].startswith("terminate called") else lines[0]
    return letters(_TYPE.sub("", first.strip())[:300].encode("utf-8", "replace"))
