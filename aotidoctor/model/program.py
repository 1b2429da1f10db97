"""An exported program as its JSON says it: leaves, outputs, constants.

Sizes are texts of the compiler's own spelling (``4``, ``s77``, ``8*s40``); a symbol that begins with ``u`` is known at
run time only.
"""

from __future__ import annotations

from aotidoctor.model.record import record


@record
class ProgramTensor:
    """What the program takes for granted about a tensor; strides and sizes as texts, None where it does not say."""

    dtype: str | None = None
    shape: tuple[str, ...] | None = None
    stride: tuple[str, ...] | None = None
    device: str | None = None


@record
class ProgramLeaf:
    """One leaf of the call: ``kind`` is ``tensor``, ``constant`` (``value`` was baked in at export) or ``symbol``.

    ``path`` is the user's name of it, the name in the graph where the call spec does not tell.
    """

    name: str
    path: str
    kind: str
    tensor: ProgramTensor | None = None
    value: str | None = None


@record
class ProgramOutput:
    """One output of the graph. ``kind`` is as in the signature: ``user_output``, ``buffer_mutation``...

    ``name`` is None for a constant; ``target`` is what a mutation goes to.
    """

    kind: str
    name: str | None
    target: str | None = None
    tensor: ProgramTensor | None = None


@record
class ProgramConstant:
    """A ``parameter``, ``buffer``, ``tensor_constant`` or ``custom_obj``: ``name`` in the graph, ``fqn`` in the model.

    ``persistent`` is None for anything but a buffer. ``used`` tells whether a node of the graph reads it.
    """

    name: str
    fqn: str
    kind: str
    persistent: bool | None = None
    tensor: ProgramTensor | None = None
    used: bool = True


@record
class SizeRange:
    """Inclusive bounds of a size; None where there is none."""

    low: int | None = None
    high: int | None = None
