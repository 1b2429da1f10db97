"""An input of the contract in a few words."""

from __future__ import annotations

from aotidoctor.model.contract import LeafSpec

# A dim that is known to be fixed is shown with the sizes that it may have, unless they are many.
MOST_SIZES = 6


def describe_spec(spec: LeafSpec) -> str:
    """What the compiled code expects of a leaf: ``float32[s0, 16]`` or ``a constant``."""
    if spec.input_index is None:
        return "a value fixed at export"
    if spec.dims is None:
        return f"a {spec.dtype or ''} tensor".replace("  ", " ")
    told = [_dim_text(spec, at) for at in range(len(spec.dims))]
    return f"{spec.dtype or 'tensor'}[{', '.join(told if spec.rank is not None else [*told, '…'])}]"


def _dim_text(spec: LeafSpec, at: int) -> str:
    dim = (spec.dims or ())[at]
    if dim.static is not None:
        return str(dim.static)
    if 0 < len(dim.among) <= MOST_SIZES:
        return "|".join(map(str, dim.among))
    return str(dim.expr) if dim.expr is not None else "?"
