"""What the failing kernel is handed, held against what was compiled: the caller's tensors and the constants behind it.

By name, from the wrapper: an argument is an input, a constant, or a buffer that an earlier call wrote, which is then
named. Nothing is run.
"""

from __future__ import annotations

from collections.abc import Iterator

from aotidoctor.localize.blame.program import Program, program_of
from aotidoctor.model.case import Case
from aotidoctor.model.contract import LeafSpec
from aotidoctor.model.inputs import TensorDesc
from aotidoctor.model.phrases import plural
from aotidoctor.model.record import record


@record
class KernelInput:
    """One tensor argument.

    ``differs`` says what of it does not fit the contract; ``source`` is ``input``, ``constant`` or ``buffer``, ``name``
    the user's name of it, or the call that wrote it; ``takes`` is the element type in the kernel's own signature.
    """

    parameter: str
    source: str
    name: str
    takes: str | None = None
    differs: tuple[str, ...] = ()

    def __str__(self) -> str:
        """``in_ptr0 (*i64) = args[0]``, with what does not fit."""
        kind = f" (*{self.takes})" if self.takes else ""
        wrong = f", which does not fit: {'; '.join(self.differs)}" if self.differs else ""
        return f"{self.parameter}{kind} = {self.name}{wrong}"


def kernel_inputs(case: Case, kernel: str) -> tuple[KernelInput, ...]:
    """The tensors that the first call of ``kernel`` is handed; empty where the package does not tell."""
    program = program_of(case)
    if program is None:
        return ()
    at = next(iter(program.calls(kernel)), None)
    return () if at is None else tuple(_inputs(program, at))


def _inputs(program: Program, at: int) -> Iterator[KernelInput]:
    pairs = [(one.name, one.type, text) for one, text in program.arguments(at).values() if one.pointer]
    if not pairs:
        # A shim names its tensors in order; an operator of ATen has no parameters that the package knows.
        pairs = [(f"argument {number}", "", text) for number, text in enumerate(program.call(at).arguments)]
    for parameter, takes, text in pairs:
        root = program.root(text)
        leaf, constant = program.leaves.get(root), program.constants.get(root)
        writer = program.writer(text, at)
        differs: tuple[str, ...] = ()
        if leaf is not None:
            source, name = "input", leaf.path
            differs = _differences(leaf, program.tensors.get(leaf.path), program)
        elif constant is not None:
            source, name = "constant", constant.fqn
        elif writer is not None:
            source, name = "buffer", f"what {program.call(writer).name} wrote"
        else:
            continue
        yield KernelInput(parameter=parameter, source=source, name=name, takes=takes or None, differs=differs)


def _differences(leaf: LeafSpec, tensor: TensorDesc | None, program: Program) -> tuple[str, ...]:
    if tensor is None:
        return ()
    found = []
    if leaf.dtype not in (None, tensor.dtype):
        found.append(f"dtype {tensor.dtype}, expected {leaf.dtype}")
    if leaf.device_type not in (None, tensor.device.partition(":")[0]):
        found.append(f"device {tensor.device}, expected {leaf.device_type}")
    if leaf.rank not in (None, len(tensor.shape)):
        return (*found, f"{plural(len(tensor.shape), 'dim')}, expected {leaf.rank}")
    for number, (dim, size) in enumerate(zip(leaf.dims or (), tensor.shape, strict=False)):
        wanted = dim.size(program.sizes)
        low, high = dim.min or 0, dim.max
        if wanted not in (None, size):
            found.append(f"shape[{number}] {size}, expected {wanted}")
        elif dim.static is None and (size < low or (high is not None and size > high)):
            found.append(f"shape[{number}] {size}, expected {low}..{'' if high is None else high}")
    pairs = zip(leaf.strides or (), tensor.stride or (), tensor.shape, strict=False)
    if any(wanted not in (None, step) and size > 1 for wanted, step, size in pairs):
        found.append(f"strides {tensor.stride}, expected {leaf.strides}")
    return tuple(found)
