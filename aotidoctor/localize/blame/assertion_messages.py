"""Failed checks in the words of a log: the line that a GPU prints for an assertion, the exception of a CPU kernel.

Pure text in, failures out: it serves a run's stderr as well as a log that somebody sent. The runtime prints one line
for each thread that failed, so equal ones are counted, not repeated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from aotidoctor.localize.blame.chain import chain_of
from aotidoctor.localize.blame.failure import INDEX, Failure
from aotidoctor.model.case import Case
from aotidoctor.model.localization import Chain
from aotidoctor.model.record import record

_ASSERTION = re.compile(
    r"(?<![^\s:])(?P<file>[^\s:]+):(?P<line>\d{1,9}): [^\n`]{0,400}?block: \[(?P<block>\d+,\d+,\d+)\], "
    r"thread: \[(?P<thread>\d+,\d+,\d+)\] Assertion `(?P<text>[^`\n]{1,1000}?)` failed"
)
OUT_OF_BOUNDS = re.compile(
    r"index out of bounds: (?:0 <= )?(?P<variable>\w+) < (?P<bound>[^\s`\"]+(?: [-+] [^\s`\"]+)*)"
)
_FROM = re.compile(r"Exception raised from (?P<kernel>(?:cpp|triton)_\w+) at [^\s:]+:(?P<line>\d+)")
# A grid of a million threads may print as many lines.
_MOST = 100_000


@record
class DeviceAssert:
    """An assertion that failed on the GPU.

    ``file`` and ``line`` are those of the kernel's source on the machine that compiled it; ``block`` and ``thread`` the
    first that failed, ``count`` how many threads said so.
    """

    text: str
    file: str
    line: int
    block: tuple[int, ...]
    thread: tuple[int, ...]
    count: int = 1

    @property
    def failure(self) -> Failure | None:
        """The check in the kernel's text; None for an assertion of other code (ATen has its own)."""
        found = OUT_OF_BOUNDS.match(self.text)
        if found is None:
            return None
        return Failure(kind=INDEX, variable=found["variable"], bound=found["bound"], source_line=self.line)


def device_asserts(text: str) -> tuple[DeviceAssert, ...]:
    """Every assertion once, in the order of the log."""
    found: dict[tuple[str, str, str], list[re.Match[str]]] = {}
    for one in islice(_ASSERTION.finditer(text), _MOST):
        found.setdefault((one["file"], one["line"], one["text"]), []).append(one)
    return tuple(
        DeviceAssert(
            text=first["text"],
            file=first["file"],
            line=int(first["line"]),
            block=_numbers(first["block"]),
            thread=_numbers(first["thread"]),
            count=len(several),
        )
        for several in found.values()
        for first in several[:1]
    )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def failures_in(text: str) -> tuple[Failure, ...]:
    """What failed, by the words of a log, assertions of the GPU first."""
    on_device = [failure for one in device_asserts(text) if (failure := one.failure) is not None]
    rest = _ASSERTION.sub("", text)
    place = _FROM.search(rest)
    raised = [
        Failure(
            kind=INDEX,
            variable=one["variable"],
            bound=one["bound"],
            kernel=place["kernel"] if place is not None else None,
            line=int(place["line"]) if place is not None else None,
        )
        for one in OUT_OF_BOUNDS.finditer(rest)
    ]
    return tuple(dict.fromkeys((*on_device, *raised)))


def chains_in(case: Case, text: str) -> Sequence[Chain]:
    """The blame chain of each failed check in a log: nothing is run, the package and the words are all it takes."""
    found = (chain_of(case, failure) for failure in failures_in(text))
    return tuple(dict.fromkeys(chain for chain in found if chain is not None))
