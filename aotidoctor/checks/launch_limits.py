"""A kernel cannot be launched: its grid, its block or its shared memory exceeds what the GPU allows.

What it does
    Computes the grid of every Triton kernel from the sizes of the inputs, with the formula in the wrapper, and compares
    it, the warps and the shared memory with what CUDA and the host's GPU allow.

Why it matters
    The launch is refused with "CUDA driver error: invalid argument", which names neither kernel nor size. An empty dim
    makes a grid of 0 blocks, a huge one more than 65535 in y.

Example:
    triton_poi_fused_add_0: observed a grid of (1, 98304, 1), expected at most 65535 blocks in y

When it is wrong
    Grids that depend on data are not computed. The limit of shared memory is that of the newest known GPU of its kind;
    other GPUs are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.kernel_reads import SymbolReading, agreed_values, readings
from aotidoctor.checks.matching.leaves import overlay_of, tensor_pairs
from aotidoctor.checks.matching.package_facts import at_call, device_of
from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.case import Case
from aotidoctor.model.contract import KernelCall, ModelContract
from aotidoctor.model.evidence import Evidence
from aotidoctor.model.expr import Expr, evaluate, substitute

FIND = Finder("AD-HOST-014", "launch_limits")
LARGEST_GRID = (2**31 - 1, 65535, 65535)
LARGEST_BLOCK = 1024
WARP = 32
# Bytes of shared memory that one block may ask for, by compute capability (CUDA programming guide).
SHARED = {
    "70": 98304, "72": 98304, "75": 65536, "80": 166912, "86": 101376, "87": 166912, "89": 101376, "90": 232448,
    "100": 232448, "103": 232448, "120": 101376,
}  # fmt: skip
AXES = "xyz"


def run(case: Case) -> Findings:
    """At most one finding per kernel."""
    device = device_of(case)
    if case.contract is None or device == "cpu" or not any(_is_launch(call) for call in case.contract.kernels):
        if device == "cuda":
            return FIND.unchecked("the package contains no readable launches")
        return []
    found = list(readings(tensor_pairs(case, "stride"))) if overlay_of(case) is not None else []
    symbols = agreed_values(found)
    seen: dict[str, Evidence] = {}
    for call, grid in grids_of(case.contract):
        for item in _of_launch(case, call, grid, symbols, found):
            seen.setdefault(call.name, item)
    return list(seen.values())


def _of_launch(
    case: Case, call: KernelCall, grid: Sequence[Expr], symbols: Mapping[str, int], found: Sequence[SymbolReading]
) -> Iterator[Evidence]:
    sizes = sizes_of(grid, symbols)
    for at, (size, largest) in enumerate(zip(sizes, LARGEST_GRID, strict=False)):
        text = f"a grid of ({', '.join('?' if one is None else str(one) for one in sizes)})"
        if size == 0 and not call.guarded:
            facts = _reason(grid[at], symbols, found, 0)
            yield _finding(case, call, "grid-empty", (text, f"at least one block in {AXES[at]}"), facts)
        elif size is not None and size > largest:
            facts = _reason(grid[at], symbols, found, largest)
            yield _finding(case, call, "grid-large", (text, f"at most {largest} blocks in {AXES[at]}"), facts)
    threads = _number(call.warps) * WARP
    if threads > LARGEST_BLOCK:
        yield _finding(case, call, "block", (f"{threads} threads in a block", f"at most {LARGEST_BLOCK}"), {})
    shared = _number(call.shared)
    known = ((SHARED.get(gpu.compute_capability or ""), gpu.name) for gpu in case.host.gpus)
    allowed, gpu = next(((most, name) for most, name in known if most is not None), (None, ""))
    if allowed is not None and shared > allowed:
        texts = (f"{shared} bytes of shared memory in a block", f"at most {allowed} on {gpu}")
        yield _finding(case, call, "shared", texts, {})


def _finding(
    case: Case, call: KernelCall, kind: str, texts: tuple[str, str], facts: Mapping[str, str | int | None]
) -> Evidence:
    size, high = facts.get("place"), facts.get("high")
    fitting = f" to at most {high}" if high else ""
    advice = {
        "grid-empty": f"Skip the call if {size or 'a size'} is 0, or compile with a newer torch, whose code skips it.",
        "grid-large": f"Reduce {size or 'the size behind the grid'}{fitting}, or call the model in parts.",
    }.get(kind, "Compile on the GPU that runs it.")
    return FIND.error(
        kind,
        call.name,
        observed=texts[0] + (f" ({size} = {facts['size']})" if size else ""),
        expected=texts[1],
        source=at_call(case, call),
        facts={"kernel": call.name, "advice": advice, **facts},
    )


def _reason(
    part: Expr, symbols: Mapping[str, int], found: Sequence[SymbolReading], largest: int
) -> Mapping[str, str | int | None]:
    """The dim that makes the grid impossible, if it is a single one, and the largest size that fits."""
    names = sorted(part.symbols)
    reading = next((one for one in found if names == [one.symbol] and str(one.expr) == one.symbol), None)
    if reading is None or reading.value is None:
        return {}
    place = f"{reading.pair.path}.shape[{reading.dim}]"
    low, high = 0, reading.size if largest else 0
    while high - low > 1:
        middle = (low + high) // 2
        (blocks,) = sizes_of((part,), {**symbols, names[0]: middle})
        low, high = (middle, high) if blocks is not None and blocks <= largest else (low, middle)
    return {"path": reading.pair.path, "dim": reading.dim, "size": reading.size, "place": place, "high": low or None}


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else 0


CHECK = FIND.check(
    run,
    cause="cuda-launch",
    needs=("artifact_missing", "artifact_wrong_kind", "artifact_bad_metadata"),
    facts=("launch", "symbol"),
)


def _is_launch(call: KernelCall) -> bool:
    """Whether it is launched with blocks; the grid of a Metal kernel is its threads."""
    return call.kind == "triton" and bool(call.grid)


def grids_of(contract: ModelContract) -> Iterator[tuple[KernelCall, tuple[Expr, ...]]]:
    """Each launch with its grid in terms of the sizes of the inputs.

    Sizes are never negative, so that the division of C++ rounds like the one of Python.
    """
    bodies = {body.name: body for body in contract.bodies}
    for call in filter(_is_launch, contract.kernels):
        body, names = bodies.get(call.name), {}
        if body is not None and len(call.arguments) >= len(body.parameters):
            pairs = zip(body.parameters, call.arguments, strict=False)
            names = {one.name: parse_expr(text) for one, text in pairs if not one.pointer}
        yield (call, tuple(substitute(parse_expr(part.replace("/", "//")), names) for part in call.grid))


def sizes_of(grid: Sequence[Expr], symbols: Mapping[str, int]) -> tuple[int | None, ...]:
    """The grid as numbers; None for a part with an unknown symbol."""
    return tuple(evaluate(part, symbols) for part in grid)
