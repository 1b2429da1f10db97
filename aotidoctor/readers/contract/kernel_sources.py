"""What the bodies of kernels show: bound checks, accumulators per thread, random numbers, NaN constants.

A kernel with a reduction across threads keeps one accumulator per thread in ``tmp_acc0_arr[N]``, where N is the number
of threads of the machine that compiled it. Where N equals that machine's number of cores, the parallel region does not
say ``num_threads(N)``, so a machine with more cores writes past the end of the array. The attention template sizes its
buffers with ``num_thread`` in the same way. An array of that name which no ``[tid]`` indexes has another purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from aotidoctor.model.contract import BoundCheck, KernelBody
from aotidoctor.model.record import record
from aotidoctor.readers.contract.launch import Launch
from aotidoctor.readers.contract.parameters import cpp_body, triton_body

_FUNCTION = re.compile(r'extern "C"\s+(?:[A-Z_]+\s+)?void\s+(\w+)\(')
_BOUND = re.compile(r'"(index out of bounds: [^"\n]*)')
_RANDOM = re.compile(
    r"\b(normalized_rand_cpu|randn_cpu|randint64_cpu|tl\.randn?|triton_helpers\.randint64|tl\.randint)\("
)
_NAN = ("quiet_NaN()", 'float("nan")', "float('nan')")
_THREADS = re.compile(
    r"\b(?P<array>[a-z_]{0,40}acc\w{0,60}_arr)(?:\[|[^;\n]{0,200}\[\]>\()(?P<size>\d{1,6}|tid)[\])]"
    r"|#pragma omp parallel(?P<parallel>[^\n]*)"
    r"|int64_t num_thread = (?P<num_thread>\d{1,6});"
    r"|(?P<thread_number>at::get_thread_num\(\))"
)
_UPPER = re.compile(r"<=?([^<]+)$")
_SUFFIX = re.compile(r"\b(\d+)L\b")


@record
class KernelFacts:
    """Facts of all kernels. ``baked_threads`` maps a kernel to the thread count its buffers were sized for."""

    bounds: tuple[BoundCheck, ...]
    bodies: tuple[KernelBody, ...]
    baked_threads: Mapping[str, int]
    random: tuple[tuple[str, str], ...]
    nan: tuple[str, ...]


@record(kw_only=False, frozen=False)
class _Gathered:
    bounds: list[BoundCheck]
    bodies: list[KernelBody]
    baked: dict[str, int]
    random: dict[tuple[str, str], None]
    nan: dict[str, None]


def read_kernel_sources(
    sources: Mapping[str, str], launches: Mapping[str, Launch], wrapper_member: str | None
) -> KernelFacts:
    """Read the C++ kernels of ``sources`` (member to text) and the Triton kernels of ``launches``."""
    gathered = _Gathered([], [], {}, {}, {})
    for member, text in sources.items():
        for kernel, part, line in _functions(text):
            _read(gathered, kernel, part, line, member)
            gathered.bodies.append(cpp_body(kernel, part, line, member))
    for launch in launches.values():
        _read(gathered, launch.name, launch.source, launch.line, wrapper_member)
        if launch.source and wrapper_member is not None:
            gathered.bodies.append(triton_body(launch, wrapper_member))
    return KernelFacts(
        bounds=tuple(gathered.bounds),
        bodies=tuple(gathered.bodies),
        baked_threads=gathered.baked,
        random=tuple(gathered.random),
        nan=tuple(gathered.nan),
    )


def _functions(text: str) -> Iterator[tuple[str, str, int]]:
    """``(name, text, first line)`` of each ``extern "C"`` function that has a body."""
    starts = list(_FUNCTION.finditer(text))
    line, counted = 1, 0
    for at, start in enumerate(starts):
        end = starts[at + 1].start() if at + 1 < len(starts) else len(text)
        opened = text.find("{", start.end(), end)
        if opened < 0 or text.find(";", start.end(), opened) >= 0:
            continue
        line += text.count("\n", counted, start.start())
        counted = start.start()
        yield start[1], text[start.start() : end], line


def _read(gathered: _Gathered, kernel: str, text: str, line: int, member: str | None) -> None:
    """Read one kernel. Expressions are tried only where a word of theirs occurs: kernels are much of the text."""
    counted = 0
    for found in _BOUND.finditer(text):
        line += text.count("\n", counted, found.start())
        counted = found.start()
        gathered.bounds.append(_bound(kernel, found[1], line, member))
    if "rand" in text:
        gathered.random.update(dict.fromkeys((kernel, found[1]) for found in _RANDOM.finditer(text)))
    if any(mark in text for mark in _NAN):
        gathered.nan[kernel] = None
    if "_arr[tid]" in text or "int64_t num_thread" in text:
        threads = _Threads()
        for mark in _THREADS.finditer(text):
            threads.see(mark)
        if threads.baked is not None:
            gathered.baked[kernel] = threads.baked


def _bound(kernel: str, text: str, line: int, member: str | None) -> BoundCheck:
    upper = _UPPER.search(text)
    bound = _SUFFIX.sub(r"\1", upper[1].strip()) if upper is not None else ""
    return BoundCheck(kernel=kernel, text=text, bound=bound, line=line, member=member)


class _Threads:
    """Follows declarations, parallel regions and uses in the order in which they stand in one kernel."""

    def __init__(self) -> None:
        self.baked: int | None = None
        self._sizes: dict[str, int] = {}
        self._template: int | None = None
        self._open_region = False

    def see(self, mark: re.Match[str]) -> None:
        """Take note of one declaration, region or use."""
        if mark["parallel"] is not None:
            self._open_region = "num_threads" not in mark["parallel"]
        elif mark["num_thread"] is not None:
            self._template = int(mark["num_thread"])
        elif mark["thread_number"] is not None:
            self._bake(self._template)
        elif mark["size"] == "tid":
            self._bake(self._sizes.get(mark["array"]) if self._open_region else None)
        else:
            self._sizes.setdefault(mark["array"], int(mark["size"]))

    def _bake(self, threads: int | None) -> None:
        if threads is not None:
            self.baked = threads if self.baked is None else min(self.baked, threads)
