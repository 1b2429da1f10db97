"""Build the blame chain: from the check that failed, through the kernel's text, back to an element of an input.

Everything is read from the package and the inputs; nothing is run. What cannot be followed is left out, not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from aotidoctor.kernels.expressions import broken_comparisons
from aotidoctor.kernels.value_trees import Computed, KernelCheck, Number, reads
from aotidoctor.localize.blame.failing_elements import (
    ASSERTION,
    DIVISION,
    INDEX,
    CheckQuery,
    FailingElement,
    Failure,
    bound_origin,
    constant_number,
    failing_element,
    out_of_range,
)
from aotidoctor.localize.blame.package_program import CallMemories, PackageProgram, program_of, sources_of
from aotidoctor.localize.call_timeline import origin_of, words_of
from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.case import Case
from aotidoctor.model.contract import KernelCall
from aotidoctor.model.inputs import TensorDesc
from aotidoctor.model.localization import Chain, Element
from aotidoctor.model.record import record
from aotidoctor.model.torch_names import index_at

# Operators and source lines behind a call: provenance, comments above the call, kernel names.
# Operators that take an index from data, or divide, as they stand in the names of kernels; the longest first.
_INDEXING = (
    "index_put_with_sort_quantized", "_embedding_bag_forward_only", "_unsafe_masked_index_put_accumulate",
    "_unsafe_masked_index", "_unsafe_index_put", "_unsafe_index", "nll_loss2d_forward", "nll_loss_forward",
    "embedding_dense_backward", "embedding_bag", "embedding", "scatter_reduce", "scatter_add", "scatter",
    "index_reduce", "index_select", "index_copy", "index_fill", "index_add", "index_put", "index", "take_along_dim",
    "take", "gather", "grid_sampler_2d", "grid_sampler_3d", "max_unpool2d", "max_unpool3d", "select_scatter", "select",
)  # fmt: skip
_DIVIDING = ("floor_divide", "remainder", "fmod", "div", "floordiv", "mod")
_OF_KIND: Mapping[str, tuple[str, ...]] = {INDEX: _INDEXING, DIVISION: _DIVIDING}
# Embeddings take no negative index; where one is counted from the end, it was another operator.
NEVER_WRAP = ("embedding", "embedding_bag", "_embedding_bag_forward_only", "gather")
# Operators that the functions of generated code cannot be from.
NOT_BY: Mapping[str, tuple[str, ...]] = {
    "remainder_integral": ("floor_divide", "div", "floordiv"),
    "floor_divide_integral": ("remainder", "fmod", "mod"),
    "mod": ("floor_divide", "div", "floordiv"),
}
_FRAME = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+), in [^\n]*(?:\n +(?!File)(?P<code>[^\n]*))?')
_LIBRARY = re.compile(r"/(?:site|dist)-packages/torch/|<eval_with_key>|/torch/nn/")
_MOST_LINES = 3


def operators(
    call: KernelCall, kind: str, information: Mapping[str, tuple[str, ...]], unlikely: Sequence[str] = ()
) -> tuple[str, ...]:
    """The ATen operators of a call that may have failed: those that take an index, or divide.

    ``unlikely`` are names that the check makes improbable: they are only given if there is no other.
    """
    nodes = [re.sub(r"_\d+$", "", node) for node in information.get("post_grad_nodes", ())]
    origins = [origin.removeprefix("aten.") for origin in call.origins]
    chosen = [name for name in origins if name.rstrip("_") in _OF_KIND[kind]]
    chosen = chosen or [name for name in nodes if name.rstrip("_") in _OF_KIND[kind]]
    chosen = chosen or [name for name in words_of(call.name, _OF_KIND[kind]) if name in _OF_KIND[kind]]
    likely = [name for name in chosen if name not in unlikely]
    return tuple(dict.fromkeys(f"aten.{name}" for name in likely or chosen))


def information_of(model: ModelEntry | None, call: KernelCall) -> Mapping[str, tuple[str, ...]]:
    """The entry of the kernel in ``kernel_information.json``; empty where several calls have that name."""
    if model is None:
        return {}
    found = [facts for key, facts in model.kernel_information.items() if key.rpartition(":")[0] == call.name]
    return found[0] if len(found) == 1 else {}


def source_lines(information: Mapping[str, tuple[str, ...]], chosen: Sequence[str]) -> tuple[str, ...]:
    """The user's lines (``model.py:12``): of the operator where the stack traces name it, else all of them."""
    names = "|".join(re.escape(name.removeprefix("aten.").strip("_")) for name in chosen)
    stacks = [list(_FRAME.finditer(trace)) for trace in information.get("stack_traces", ())]
    codes = [" ".join(frame["code"] or "" for frame in stack) for stack in stacks]
    telling = [
        stack for stack, code in zip(stacks, codes, strict=True) if names and re.search(rf"\b(?:{names})\b", code)
    ]
    lines: dict[str, None] = {}
    for stack in telling or stacks:
        # The innermost line outside of torch itself.
        own = [frame for frame in stack if _LIBRARY.search(frame["file"]) is None]
        if own:
            lines[f"{own[-1]['file'].rpartition('/')[2]}:{own[-1]['line']}"] = None
    return tuple(lines) if len(lines) <= _MOST_LINES else ()


# Assertions about a number that the model takes out of a tensor.
_NAME = re.compile(r"\b[a-z]\w*\d\b")
_ITEM, _OPERATORS = "aoti_torch_item_", ("aten.item",)


def assertion_chain(program: PackageProgram, failure: Failure) -> Chain | None:
    """The chain of ``Expected u0 < s17 but received 3``; None when the number cannot be traced to a tensor.

    The number that is printed is that of one of the names, whichever comes first: of a size, it is not the model's.
    """
    condition = failure.condition or ""
    names = set(_NAME.findall(condition))
    sizes = {name: program.sizes[name] for name in sorted(names & program.sizes.keys())}
    own = names - sizes.keys()
    at = _item(program, min(own)) if len(own) == 1 else None
    if at is None or failure.value is None:
        return None
    symbol = own.pop()
    call = program.call(at)
    name = call.arguments[0]
    information = information_of(program.case.model, call)
    leaf = program.leaves.get(program.root(name))
    element = None
    if leaf is not None and program.writer(name, at) is None:
        element = _element(leaf.path, program.tensors.get(leaf.path), failure, symbol, sizes)
    sources, through = sources_of(program, at, [name])
    value = element.value if element is not None else failure.value if _printed(program, condition) == symbol else None
    got = f", got {value}" if value is not None else ""
    return Chain(
        kernel=None,
        what=f"expected {condition}{got}",
        origin=", ".join(f"{one} = {number}" for one, number in sizes.items()) or None,
        elements=() if element is None else (element,),
        count=0 if element is None else 1,
        sources=sources,
        through=() if element is not None else through,
        direct=element is not None,
        operators=_OPERATORS,
        where=source_lines(information, _OPERATORS),
    )


def _printed(program: PackageProgram, condition: str) -> str | None:
    """The name whose number the wrapper prints where ``condition`` does not hold."""
    text = (program.case.model.wrapper_cpp if program.case.model is not None else None) or ""
    _, found, rest = text.partition(f'"Expected {condition} but received " + std::to_string(')
    return rest.partition(")")[0] if found else None


def _item(program: PackageProgram, symbol: str) -> int | None:
    """The call that takes the number called ``symbol`` out of a tensor."""
    for at, call in enumerate(program.contract.kernels):
        if call.name.startswith(_ITEM) and {f"&{symbol}_raw", f"&{symbol}"} & set(call.arguments[1:]):
            return at
    return None


def _element(
    path: str, tensor: TensorDesc | None, failure: Failure, symbol: str, sizes: Mapping[str, int]
) -> Element | None:
    """The element that the condition is about: the only one that breaks it, or the only one with the printed value."""
    numbers = tensor.elements() if tensor is not None and tensor.elements is not None else None
    if tensor is None or numbers is None:
        return None
    values = [int(one) for one in numbers]
    condition = failure.condition or ""
    broken = [at for at, one in enumerate(values) if broken_comparisons(condition, {**sizes, symbol: one})]
    places = broken if sizes else [at for at, one in enumerate(values) if one == failure.value]
    if len(places) != 1:
        return None
    return Element(path=path, index=tuple(index_at(places[0], tensor.shape)), value=values[places[0]])


# The chain. Functions that count a division by zero; the operators of C++ end in a signal instead.
_COUNTED = frozenset(("remainder_integral", "mod", "floor_divide_integral"))
_SUFFIX = re.compile(r"\b(\d+)[Ll]+\b")


@record
class Suspect:
    """A check, an access or a division of one call that may have failed."""

    at: int
    question: CheckQuery
    check: KernelCheck | None = None
    function: str = ""


def chain_of(case: Case, failure: Failure) -> Chain | None:
    """The blame chain of ``failure``; None without a contract, or where nothing is known."""
    program = program_of(case)
    if program is None:
        return None
    if failure.kind == ASSERTION:
        return assertion_chain(program, failure)
    suspects = _suspects(program, failure)
    for suspect in suspects:
        found = failing_element(suspect.question, CallMemories(program, suspect.at))
        if found is not None:
            return chain_for(program, failure, suspect, found)
    # Without a guilty element there is a chain only for a single suspect, or for several that are alike.
    known: list[Chain] = []
    for one in suspects:
        arguments = program.arguments(one.at)
        parameters = dict.fromkeys(element.parameter for element in reads(one.question.value))
        # What is no argument has no source.
        names = [arguments[name][1] if name in arguments else "" for name in parameters]
        sources, through = sources_of(program, one.at, names)
        known.append(replace(_empty(program, failure, one), sources=sources, through=through))
    if len(known) > 1:
        # Checks of the same words on several lines cannot be told apart.
        known = list(dict.fromkeys(replace(one, member=None, line=None) for one in known))
    if len(known) == 1:
        return known[0]
    return _place(program, failure) if failure.kernel is not None else None


def _suspects(program: PackageProgram, failure: Failure) -> list[Suspect]:
    """Suspects in the order of execution: the first that fails is the one that ended the run."""
    # The kernel that is named; else those whose text has the check.
    if failure.kernel is not None:
        kernels = {failure.kernel}
    elif failure.kind == DIVISION:
        kernels = set(program.bodies)
    else:
        check = f" {failure.variable} < {failure.bound}"
        kernels = {one.kernel for one in program.contract.bound_checks if one.text.endswith(check)}
    calls = [at for at, call in enumerate(program.contract.kernels) if call.name in kernels]
    found = [one for at in calls for one in _of_call(program, failure, at)]
    if failure.source_line is None:
        return found
    # Several kernels may have a check of these words; where one has it on that very line, it is that one.
    firsts = {at: program.first_source_line(program.call(at).name) for at in calls}
    exact = [
        one
        for one in found
        if one.check is not None
        and (first := firsts[one.at]) is not None
        and one.check.line == first + failure.source_line - 1
    ]
    return exact or found


def _of_call(program: PackageProgram, failure: Failure, at: int) -> list[Suspect]:
    flow = program.flow(program.call(at).name)
    if flow is None:
        return []
    if failure.kind == DIVISION:
        return [
            Suspect(
                at=at,
                question=CheckQuery(
                    value=one.divisor, limit=Number(0), mask=None, loops=one.loops, bad=lambda value, _: value == 0
                ),
                function=one.function,
            )
            for one in flow.divisions
            if one.function in _COUNTED
        ]
    # `100L` and `100` are the same bound.
    checks = [
        one
        for one in flow.checks
        if one.variable == failure.variable
        and (failure.bound is not None and _SUFFIX.sub(r"\1", one.bound) == _SUFFIX.sub(r"\1", failure.bound))
    ]
    exact = [one for one in checks if one.line == failure.line]
    return [
        Suspect(
            at=at,
            question=CheckQuery(value=one.value, limit=one.limit, mask=one.mask, loops=one.loops, bad=out_of_range),
            check=one,
        )
        for one in exact or checks
    ]


def chain_for(program: PackageProgram, failure: Failure, suspect: Suspect, found: FailingElement) -> Chain:
    """The chain of a suspect that was found guilty."""
    index = failure.kind == INDEX
    # One element, and the kernel did nothing to it but count a negative one from the end.
    is_direct = len(found.elements) == 1 and not found.through
    # Where the inputs show the size that a position runs along: ``kwargs['ids'].shape[1]``.
    arguments = program.arguments(suspect.at)
    names = {arguments[name][1] for name in found.sizes if name in arguments} | set(found.sizes)
    symbols = [symbol for symbol in program.contract.symbols if symbol.name in names]
    return replace(
        _empty(program, failure, suspect),
        what=f"index {found.value} of {found.limit}" if index else "division by zero",
        elements=found.elements,
        count=found.count,
        through=found.through,
        direct=is_direct and found.elements[0].value in (found.value, found.value - found.limit),
        index=found.value if index else None,
        bound=found.limit if index else None,
        sizes=tuple(dict.fromkeys(place for symbol in symbols for place in symbol.appears_in)),
        most=found.position,
    )


def _empty(program: PackageProgram, failure: Failure, suspect: Suspect) -> Chain:
    """The chain without the element: kernel, bound, operators and source lines."""
    call = program.call(suspect.at)
    memories = CallMemories(program, suspect.at)
    flow, check = program.flow(call.name), suspect.check
    information = information_of(program.case.model, call)
    unlikely = NOT_BY.get(suspect.function, ()) if check is None else NEVER_WRAP if _wraps(check) else ()
    names = operators(call, failure.kind, information, unlikely)
    bound = constant_number(check.limit, memories) if check is not None else None
    body = program.bodies.get(call.name) if check is not None else None
    origin = None
    if check is not None and flow is not None:
        origin = bound_origin(program, suspect.at, flow, check, memories)
    return Chain(
        kernel=call.name,
        what=f"index out of 0..{bound - 1}" if bound else _plainly(failure),
        bound=bound,
        origin=origin,
        operators=names,
        where=source_lines(information, names),
        member=body.member if body is not None else None,
        line=check.line if check is not None and body is not None else None,
    )


def _wraps(check: KernelCheck) -> bool:
    """Whether a negative index is counted from the end: ``index < 0 ? index + bound : index``."""
    match check.value:
        case Computed(operation="where", operands=(_, Computed(operation="+", operands=(inner, added)), plain)):
            return inner == plain and added == check.limit
        case _:
            return False


def _plainly(failure: Failure) -> str:
    return "division by zero" if failure.kind == DIVISION else f"index not below {failure.bound or 'its bound'}"


def _place(program: PackageProgram, failure: Failure) -> Chain | None:
    """Operators and source lines of the kernel that is named."""
    calls = program.calls(failure.kernel) if failure.kernel is not None else ()
    if not calls:
        return None
    made_of = origin_of(program.case, program.call(calls[0]).name)
    return Chain(
        kernel=failure.kernel,
        what=_plainly(failure),
        operators=made_of.operators,
        where=() if made_of.where is None else (made_of.where,),
    )
