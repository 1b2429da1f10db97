"""What a kernel was made of: the ATen operators, and the line of the user's source where the package tells it.

Best first: ``kernel_information.json`` (packages compiled with INDUCTOR_PROVENANCE=1), the comment "Original ATen"
above a call in wrapper.cpp, and the words in the name of a fused kernel, which are operator names joined by ``_``.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from aotidoctor.model.case import Case
from aotidoctor.model.record import record

_LINE = re.compile(r'File "([^"]+)", line (\d+)')
_FUSED = re.compile(r"(?:cpp|triton)_(?:\w{1,60}?_)?fused_(\w+?)_\d+")
# Operators of several words that fused kernels are often made of; the package's own comments tell more of them.
_COMPOUND = (
    "_to_copy", "_log_softmax", "_softmax", "log_softmax", "logsumexp", "log_sigmoid", "native_layer_norm",
    "native_group_norm", "native_batch_norm", "_native_batch_norm_legit_no_training", "_native_batch_norm_legit",
    "_native_batch_norm_legit_functional", "batch_norm", "layer_norm", "group_norm", "masked_fill", "index_put",
    "index_select", "index_add", "scatter_add", "scatter_reduce", "slice_scatter", "select_scatter", "constant_pad_nd",
    "avg_pool2d", "max_pool2d_with_indices", "_adaptive_avg_pool2d", "clamp_min", "clamp_max", "bitwise_and",
    "bitwise_or", "bitwise_not", "logical_and", "logical_or", "logical_not", "floor_divide", "true_divide", "new_zeros",
    "new_ones", "zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like", "native_dropout",
    "leaky_relu", "_unsafe_index", "_unsafe_view", "view_as_real", "linalg_vector_norm", "var_mean", "as_strided",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_flash_attention", "scaled_dot_product_attention", "grid_sampler_2d", "upsample_nearest2d",
    "split_with_sizes", "convert_element_type", "arange", "repeat_interleave", "unsqueeze", "expand_as",
    "_assert_async",
)  # fmt: skip


@record
class Origin:
    """``operators`` like ``aten.log``; ``where`` like ``model.py:12``; ``from_name`` when only the name told them."""

    operators: tuple[str, ...] = ()
    where: str | None = None
    from_name: bool = False


def origin_of(case: Case, kernel: str) -> Origin:
    """What ``kernel`` was made of; empty when nothing tells."""
    information = case.model.kernel_information if case.model is not None else {}
    entry = next((facts for key, facts in information.items() if key.rpartition(":")[0] == kernel), None)
    where = _where(entry.get("stack_traces", ())) if entry is not None else None
    calls = case.contract.kernels if case.contract is not None else ()
    origins = next((call.origins for call in calls if call.name == kernel and call.origins), ())
    if origins:
        return Origin(operators=tuple(dict.fromkeys(origins)), where=where)
    custom = _custom_words(case)
    known = {one.rpartition(".")[2] for call in calls for one in call.origins}
    words = [custom.get(word, f"aten.{word}") for word in words_of(kernel, known)]
    return Origin(operators=tuple(words), where=where, from_name=bool(words))


def _custom_words(case: Case) -> dict[str, str]:
    """``scale`` -> ``zoo::scale`` for the custom operators of the package."""
    targets = case.contract.custom_ops if case.contract is not None else ()
    return {target.partition("::")[2].partition(".")[0]: target for target in targets if "::" in target}


def words_of(kernel: str, known: Collection[str]) -> tuple[str, ...]:
    """Operator names in the name of a fused kernel: ``add`` and ``log`` of ``cpp_fused_add_log_0``.

    ``known`` are names that the package uses elsewhere, for those of several words.
    """
    found = _FUSED.fullmatch(kernel)
    if found is None:
        return ()
    compounds = sorted({*_COMPOUND, *(name for name in known if "_" in name)}, key=len, reverse=True)
    word = re.compile("|".join([*(rf"{re.escape(name)}(?=_|$)" for name in compounds), r"[a-z0-9]+"]))
    return tuple(dict.fromkeys(word.findall(found[1])))


def _where(traces: tuple[str, ...]) -> str | None:
    """The innermost line that is not PyTorch's own: ``model.py:12``."""
    lines = [(path, line) for trace in traces for path, line in _LINE.findall(trace)]
    own = [(path, line) for path, line in lines if "/torch/" not in path] or lines
    if not own:
        return None
    path, line = own[-1]
    return f"{path.rpartition('/')[2]}:{line}"
