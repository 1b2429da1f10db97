"""Triton kernels of a GPU package: launch settings, the file of their device code, what their source shows.

Each ``call_<kernel>`` function carries the Triton source in a comment. That source is read for facts (bound checks,
random numbers) and is kept away from the rules that read C++.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from aotidoctor.readers.contract.text import Section

_FUNCTION = re.compile(r"^static (?:__attribute__\(\(noinline\)\)|inline)? ?void call_(\w+)\(", re.MULTILINE)
_LOAD = re.compile(r'loadKernel\((?:"([^"]+)"|(\w+)),')
_LAUNCH = re.compile(r"launchKernel\([\w.]+, ([^,;\n]+), ([^,;\n]+), ([^,;\n]+), ([^,;\n]+), ([^,;\n]+), \w+, \w+\);")
_OLD_LOAD = re.compile(r'kernels\.(\w+) = loadKernel\("([^"]+)"')
_OLD_LAUNCH = re.compile(
    r"launchKernel\(\s*kernels\.(\w+),\s*([^,;]+),\s*([^,;]+),\s*([^,;]+),\s*([^,;]+),\s*([^,;]+),"
)
_GRID = re.compile(r"uint32_t (grid_[012]) = (.+);")
_GUARD = re.compile(r"if \(grid_0 == 0\b[^;\n]*\) return;")
_PARAMETERS = re.compile(r"^\s*(?:const )?[\w:]+&? (\w+),?$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A Triton kernel.

    ``inputs`` are the positions of parameters that are only read; ``source`` is the Triton source and ``line`` where it
    begins; ``embedded`` tells that the device code is inside the shared object, ``guarded`` that an empty grid is not
    launched.
    """

    name: str
    grid: tuple[str, ...]
    warps: str | None
    shared: str | None
    device_code: str | None
    embedded: bool
    guarded: bool
    inputs: frozenset[int]
    source: str
    line: int


def read_launches(section: Section) -> Mapping[str, Launch]:
    """All kernels of the section by name."""
    starts = list(_FUNCTION.finditer(section.text))
    launches = {}
    line, counted = section.line, 0
    for at, start in enumerate(starts):
        end = starts[at + 1].start() if at + 1 < len(starts) else len(section.text)
        line += section.text.count("\n", counted, start.start())
        counted = start.start()
        launches[start[1]] = _launch(start[1], section.text[start.end() : end], line)
    return launches


def _launch(name: str, text: str, line: int) -> Launch:
    opened = text.find("/*")
    closed = text.find("*/", opened) if opened >= 0 else -1
    source = text[opened:closed] if closed >= 0 else ""
    code = text[:opened] + text[closed:] if closed >= 0 else text
    parameters = code[: code.find("{")]
    load, launched = _LOAD.search(code), _LAUNCH.search(code)
    grid = {found[1]: found[2] for found in _GRID.finditer(code)}
    path = load[1] if load is not None else None
    return Launch(
        name=name,
        grid=tuple(grid.get(part, part) for part in launched.group(1, 2, 3)) if launched is not None else (),
        warps=launched[4] if launched is not None else None,
        shared=launched[5] if launched is not None else None,
        device_code=path.rpartition("/")[2] if path is not None else None,
        embedded=load is not None and load[1] is None,
        guarded=_GUARD.search(code) is not None,
        inputs=_inputs(parameters),
        source=source,
        line=line + text.count("\n", 0, max(opened, 0)),
    )


def _inputs(parameters: str) -> frozenset[int]:
    names = [found[1] for found in _PARAMETERS.finditer(parameters)]
    return frozenset(at for at, name in enumerate(names) if name.startswith("in_ptr"))


def read_old_launches(body: Section) -> Mapping[str, Launch]:
    """Kernels of packages before 2.7, which load and launch them inside ``run_impl``."""
    codes = {found[1]: found[2].rpartition("/")[2] for found in _OLD_LOAD.finditer(body.text)}
    return {
        found[1]: Launch(
            name=found[1],
            grid=found.group(2, 3, 4),
            warps=found[5],
            shared=found[6],
            device_code=codes.get(found[1]),
            embedded=False,
            guarded=False,
            inputs=frozenset(),
            source="",
            line=body.line,
        )
        for found in _OLD_LAUNCH.finditer(body.text)
    }
