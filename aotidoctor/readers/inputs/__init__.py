"""What the caller passes, by metadata: .pt, .npz, .safetensors, .json, a plain pickle, made-up or live values.

Nothing of an inputs file is executed, and torch and numpy are not needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotidoctor.model.on_demand import names_of

if TYPE_CHECKING:
    from aotidoctor.readers.inputs.generate import generate_inputs
    from aotidoctor.readers.inputs.live import describe_live
    from aotidoctor.readers.inputs.read import read_inputs
    from aotidoctor.readers.inputs.saved_state import read_saved_state

__all__ = ["describe_live", "generate_inputs", "read_inputs", "read_saved_state"]

_PLACES = {
    "describe_live": "live",
    "generate_inputs": "generate",
    "read_inputs": "read",
    "read_saved_state": "saved_state",
}
__getattr__ = names_of(__name__, _PLACES)
