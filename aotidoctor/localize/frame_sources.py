"""From a frame's file to the member of the package that is that file, and the lines around the frame's.

The debug information names the files where the package was compiled; the same files, under the same base names, are in
the package.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from aotidoctor.localize.culprit import base
from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.localization import Frame, SourceLine

AROUND = 3
MAX_LINE = 400
_PROXY_CALL = re.compile(r"\baoti_torch_proxy_executor_call_function\(\s*proxy_executor,\s*(\d+)\b")
_DISPATCHER_CALL = re.compile(r"\baoti_torch_call_dispatcher\(\s*\"([^\"]+)\"")
# A call that spans lines may be recorded under any of them.
_CALL_LINES = 3


def with_sources(frames: Iterable[Frame], model: ModelEntry | None) -> tuple[Frame, ...]:
    """The frames, those in the package's own sources with member and excerpt."""
    members = _members(model)
    return tuple(_with_source(frame, members) for frame in frames)


def package_files(model: ModelEntry | None) -> frozenset[str]:
    """Base names of the package's own sources and libraries."""
    libraries = model.shared_objects if model is not None else ()
    return frozenset(_members(model)) | {base(library.member) for library in libraries}


def called_operator(frames: Iterable[Frame], model: ModelEntry | None) -> str | None:
    """The custom operator that the wrapper's innermost frame was calling (``zoo::misbehave``)."""
    if model is None or model.wrapper_cpp is None or model.wrapper_member is None:
        return None
    wrapper = base(model.wrapper_member)
    frame = next((one for one in frames if base(one.file or "") == wrapper), None)
    if frame is None or frame.line is None:
        return None
    lines = model.wrapper_cpp.splitlines()
    numbers = range(min(frame.line, len(lines)), max(0, frame.line - _CALL_LINES), -1)
    return next((named for number in numbers if (named := _named(lines[number - 1], model))), None)


def _named(line: str, model: ModelEntry) -> str | None:
    dispatched = _DISPATCHER_CALL.search(line)
    if dispatched:
        return dispatched[1]
    proxied = _PROXY_CALL.search(line)
    if proxied and int(proxied[1]) < len(model.extern_nodes):
        return model.extern_nodes[int(proxied[1])].target
    return None


def _members(model: ModelEntry | None) -> Mapping[str, tuple[str, str]]:
    """Base name to (member, text) of the package's C++ sources."""
    if model is None:
        return {}
    texts = dict(model.kernel_sources)
    if model.wrapper_member is not None and model.wrapper_cpp is not None:
        texts[model.wrapper_member] = model.wrapper_cpp
    return {base(member): (member, text) for member, text in texts.items()}


def _with_source(frame: Frame, members: Mapping[str, tuple[str, str]]) -> Frame:
    if base(frame.file or "") not in members:
        return frame
    member, text = members[base(frame.file or "")]
    return replace(frame, member=member, lines=_excerpt(text, frame.line) if frame.line is not None else ())


def _excerpt(text: str, line: int) -> tuple[SourceLine, ...]:
    """The lines around ``line``, which is marked; empty when the text has no such line."""
    lines = text.splitlines()
    if not 1 <= line <= len(lines):
        return ()
    numbers = range(max(1, line - AROUND), min(len(lines), line + AROUND) + 1)
    return tuple(SourceLine(number=n, text=lines[n - 1][:MAX_LINE], marked=n == line) for n in numbers)
