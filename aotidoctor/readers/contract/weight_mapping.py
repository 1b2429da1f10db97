"""Where the constants of a model are: in the shared object, behind it, beside it, on disk, or nowhere.

The constructor says whether the weights are with the code (``include_weights``). When they are not, the members of the
package tell whether they lie beside it. When they are, the shared object either holds them between two symbols, or only
a marker, and they are appended to the file to be mapped.
"""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.contract import ConstantSpec

_ALIGNMENT = 64
_MARKER_ONLY = 64


def weights_location(model: ModelEntry, constants: Sequence[ConstantSpec], include_weights: bool | None) -> str:
    """``none``, ``so``, ``mmap``, ``blob``, ``disk``, ``external`` or ``unknown``.

    Constants that constant folding makes at load time (``from_folded``) need no place of their own.
    """
    own = [constant for constant in constants if not constant.from_folded]
    if not own:
        return "none"
    names = [member.name for member in model.members]
    if any(name.endswith("_weights.blob") for name in names):
        return "blob"
    if include_weights is False:
        return "disk" if any(name.endswith("weights_config.json") for name in names) else "external"
    if any(name.endswith("_serialized_weights.bin") for name in names):
        return "mmap"
    if include_weights is None:
        return model.weights_location
    return _beside_code(model, own, names)


def _beside_code(model: ModelEntry, own: Sequence[ConstantSpec], names: Sequence[str]) -> str:
    spans = [so.constants_span for so in model.shared_objects if so.constants_span is not None]
    sizes = [constant.data_size for constant in own if constant.data_size is not None]
    if not spans:
        return "so" if any(name.endswith(".weights.o") for name in names) else model.weights_location
    total = sum(sizes)
    if max(spans) >= total - _ALIGNMENT * len(sizes):
        return "so"
    return "mmap" if max(spans) <= _MARKER_ONLY else "unknown"
