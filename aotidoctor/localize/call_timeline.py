"""Read the call trace as a timeline of computing calls, named by operators and source lines of the package.

A package's trace holds much bookkeeping (allocations, reads of handles); a call of that kind matters only where the run
ended in it. A computing call has returned when another call was entered after it; of the last one nobody knows.

The origin of a kernel is, best first: ``kernel_information.json`` (packages compiled with INDUCTOR_PROVENANCE=1), the
comment "Original ATen" above a call in wrapper.cpp, and the words in the name of a fused kernel, which are operator
names joined by ``_``. A buffer that is reused in place is named ``in_out_ptr0`` whether the kernel reads what is there
or only its memory is taken: in the second case its first use is a store, and what it held before does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.case import Case
from aotidoctor.model.contract import KernelBody, KernelCall
from aotidoctor.model.localization import TimelineEntry
from aotidoctor.model.record import record
from aotidoctor.model.run import CallKind, Trace, TracedCall
from aotidoctor.model.torch_names import qualified_name

# The source text of a kernel, and the first use of a parameter.
_ALIAS = r"\bauto\s*\*?\s*(\w+)\s*=\s*{name}\s*;"


def text_of(model: ModelEntry | None, body: KernelBody) -> str | None:
    """The lines of ``body``; None where the package does not bring that source."""
    if model is None:
        return None
    whole = model.wrapper_cpp if body.member == model.wrapper_member else model.kernel_sources.get(body.member)
    if whole is None:
        return None
    return "\n".join(_lines(whole)[body.line - 1 : body.line - 1 + body.lines])


@lru_cache(maxsize=4)
def _lines(source: str) -> list[str]:
    """The lines of a file of generated code, split once for its hundreds of kernels."""
    return source.split("\n")


def is_overwritten(case: Case, kernel: str, parameter: str) -> bool:
    """True when the kernel stores to ``parameter`` before it reads it; False where the source does not tell."""
    bodies = case.contract.bodies if case.contract is not None else ()
    body = next((one for one in bodies if one.name == kernel), None)
    text = text_of(case.model, body) if body is not None else None
    return body is not None and text is not None and stores_first(text, parameter, triton=body.kind == "triton")


def stores_first(text: str, parameter: str, *, triton: bool) -> bool:
    """True when the first use of ``parameter`` in the kernel ``text`` is a store."""
    code = text.partition("\ndef ")[2].partition("):")[2] if triton else text.partition("{")[2]
    alias = re.compile(_ALIAS.format(name=re.escape(parameter)))
    names = "|".join(map(re.escape, (parameter, *alias.findall(code))))
    used = re.compile(rf"\b(?:{names})\b")
    line = next((one for one in code.split("\n") if used.search(one) and not alias.search(one)), "")
    store = rf"^\s*(?:{names})\[.*\]\s*=(?!=)|\.store\(\s*(?:{names})\b|\btl\.store\(\s*(?:{names})\b"
    return re.search(store, line) is not None


# Operators and source lines of a kernel.
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
class KernelOrigin:
    """The origin of a kernel: ``operators`` like ``aten.log``, ``where`` like ``model.py:12``.

    ``from_name``: the operators are known from the kernel's name only.
    """

    operators: tuple[str, ...] = ()
    where: str | None = None
    from_name: bool = False


def origin_of(case: Case, kernel: str, made: KernelCall | None = None) -> KernelOrigin:
    """What ``kernel`` was made of, in its call ``made``; without it what is true of all its calls, perhaps nothing."""
    calls = case.contract.kernels if case.contract is not None else ()
    alike = [call for call in calls if call.name == kernel]
    information = case.model.kernel_information if case.model is not None else {}
    entries = [facts for key, facts in information.items() if key.rpartition(":")[0] == kernel]
    at = next((at for at, call in enumerate(alike) if call is made), None)
    if at is not None and len(entries) == len(alike):
        entries = [entries[at]]
    places = {_where(facts.get("stack_traces", ())) for facts in entries}
    where = places.pop() if len(places) == 1 else None
    origins = {made.origins} if made is not None else {call.origins for call in alike}
    operators = origins.pop() if len(origins) == 1 else ()
    if operators:
        return KernelOrigin(operators=tuple(dict.fromkeys(operators)), where=where)
    # `scale` -> `zoo::scale` for the custom operators of the package.
    targets = case.contract.custom_ops if case.contract is not None else ()
    custom = {target.partition("::")[2].partition(".")[0]: target for target in targets if "::" in target}
    known = {one.rpartition(".")[2] for call in calls for one in call.origins}
    words = [custom.get(word, f"aten.{word}") for word in words_of(kernel, known)]
    return KernelOrigin(operators=tuple(words), where=where, from_name=bool(words))


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


def static_calls(case: Case, names: Sequence[str]) -> tuple[KernelCall | None, ...]:
    """The calls of the wrapper that the traced calls ``names`` of one run are, in order.

    None for a call that the wrapper does not name; for all where the two have another order: a branch, or a loop.
    """
    calls = [
        (qualified_name(call.name) if call.kind == CallKind.CUSTOM.value else call.name, call)
        for call in (case.contract.kernels if case.contract is not None else ())
    ]
    known, traced = {name for name, _ in calls}, set(names)
    static = [(name, call) for name, call in calls if name in traced]
    ran = [name for name in names if name in known]
    if len(ran) > len(static) or any(name != one for name, (one, _) in zip(ran, static, strict=False)):
        return (None,) * len(names)
    following = iter(static)
    return tuple(next(following)[1] if name in known else None for name in names)


# The timeline.
RETURNED, ENTERED = "returned", "entered"
_UNWINDING = ("aoti_torch_delete_tensor_object", "aoti_torch_grad_mode_set_enabled")


@record
class LastCall:
    """Where a run ended: the call entered last.

    ``name`` is the kernel, the shim or the operator; ``run`` the call of the model (from 1, 0 before the first);
    ``after`` the computing call before it, None where it is the first.
    """

    call: TracedCall
    name: str
    run: int
    after: str | None
    origin: KernelOrigin


def timeline(case: Case, trace: Trace, *, ended: bool) -> tuple[TimelineEntry, ...]:
    """The computing calls. ``ended``: the run came to its end, so that its last call has returned."""
    entries: list[TimelineEntry] = []
    for number in range(1, len(trace.marks) + 1):
        made = trace.of_run(number)
        computing = [index for index, call in enumerate(made) if call.kind is not CallKind.RUNTIME]
        names = [launched_name(case, made, index) for index in computing]
        static = static_calls(case, names)
        for place, index in enumerate(computing):
            following = made[computing[place + 1]] if place + 1 < len(computing) else None
            last = index + 1 == len(made) and number == len(trace.marks) and not ended
            name, call = names[place], made[index]
            origin = origin_of(case, name, static[place])
            # The comment above an operator's call also names the nodes fused around it; a name is not repeated.
            is_named = call.kind is CallKind.CUSTOM or origin.from_name
            entry = TimelineEntry(
                name=name,
                kind=call.kind.value,
                call=number,
                state=ENTERED if last else RETURNED,
                seconds=None if following is None else max(0.0, following.at - call.at),
                origins=() if is_named else origin.operators,
                where=origin.where,
            )
            entries.append(entry)
    return tuple(entries)


def last_call(case: Case, trace: Trace, *, raised: bool) -> LastCall | None:
    """Where the run ended; None when no call was traced in a call of the model.

    ``raised``: it ended by an exception, which on its way out makes calls that give tensors back.
    """
    run = len(trace.marks)
    made = trace.of_run(run)
    while raised and made and made[-1].symbol in _UNWINDING:
        made = made[:-1]
    if not made:
        return None
    before = [name_of(case, call) for call in made[:-1] if call.kind is not CallKind.RUNTIME]
    name = name_of(case, made[-1])
    return LastCall(
        call=made[-1],
        name=name,
        run=run,
        after=before[-1] if before else None,
        origin=origin_of(case, name, static_calls(case, [*before, name])[-1]),
    )


def name_of(case: Case, call: TracedCall) -> str:
    """The operator of a proxy-executor call; the symbol of any other."""
    if call.kind is not CallKind.CUSTOM or case.model is None:
        return call.symbol
    nodes = case.model.extern_nodes
    return qualified_name(nodes[call.argument].target) if 0 <= call.argument < len(nodes) else call.symbol


def launched_name(case: Case, made: Sequence[TracedCall], index: int) -> str:
    """The kernel of launch ``index`` of one call of the model; the symbol where the wrapper does not tell.

    The trace sees ``cuLaunchKernel`` only: the n-th of a call is the n-th kernel of the wrapper. One whose calls are
    under conditions has no fixed order: then launches and kernels differ.
    """
    call = made[index]
    if call.kind is not CallKind.LAUNCH:
        return name_of(case, call)
    static = [(one.kind, one.name) for one in (case.contract.kernels if case.contract is not None else ())]
    launched = [one for one in made[: index + 1] if one.kind in (CallKind.LAUNCH, CallKind.EXTERN)]
    is_alike = all(
        kind == "triton" if one.kind is CallKind.LAUNCH else name == one.symbol
        for one, (kind, name) in zip(launched, static, strict=False)
    )
    return static[len(launched) - 1][1] if is_alike and len(launched) <= len(static) else call.symbol
