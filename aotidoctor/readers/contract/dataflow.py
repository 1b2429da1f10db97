"""Buffers that are read before anything has written to them.

``torch.empty`` compiles to an allocation and nothing else, and so do the results of all kernels; what tells them apart
is whether a write comes before the first read. Pointers to const are reads, other pointers are writes. Where a call
does not tell (custom operators, in-place shims), its arguments count as written, so a finding is never a guess; a
buffer that is written in part counts as written. A pointwise read of ``torch.empty`` leaves no buffer: the compiler
puts a NaN constant in its place, see ``nan_constants``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aotidoctor.readers.contract.body_records import Event
from aotidoctor.readers.contract.kernels import kind_of, triton_name, written_and_read
from aotidoctor.readers.contract.launch import Launch


def unwritten_reads(events: Iterable[Event], launches: Mapping[str, Launch]) -> tuple[str, ...]:
    """One text per buffer: ``buf0 read by aoti_torch_cpu_mm_out``, ``buf2 returned``."""
    fresh: dict[str, str] = {}
    roots: dict[str, str] = {}
    found: dict[str, str] = {}
    for event in events:
        match event.kind:
            case "allocate":
                fresh[event.name] = event.name
                roots[event.name] = event.name
            case "reuse" | "view":
                roots[event.name] = roots.get(event.other, event.other)
            case "output":
                root = roots.get(event.name, event.name)
                if fresh.pop(root, None) is not None:
                    found[root] = f"{root} returned"
            case _:
                _call(event, launches, fresh, roots, found)
    return tuple(found.values())


def _call(
    event: Event,
    launches: Mapping[str, Launch],
    fresh: dict[str, str],
    roots: Mapping[str, str],
    found: dict[str, str],
) -> None:
    if event.call is None:
        return
    written, read = written_and_read(event.call, launches)
    shown = triton_name(event.call) if kind_of(event.call) == "triton" else event.call.function
    written_roots = {roots.get(name, name) for name in written}
    read_roots = {roots.get(name, name) for name in read}
    for root in sorted(read_roots - written_roots):
        if root in fresh:
            found.setdefault(root, f"{root} read by {shown}")
    for root in written_roots | read_roots:
        fresh.pop(root, None)
