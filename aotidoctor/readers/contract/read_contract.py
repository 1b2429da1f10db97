"""Read a Contract from wrapper.cpp and the files beside it, with what the package needs of its host.

The generated wrapper is the only place that has everything that the compiled code expects of its caller.
It is read as text, section by section, and nothing is executed. Statements in the parts that hold the contract which
fit no rule are counted by the kind of fact that may be lost with them, so that a new version of the generator shows
up in the report instead of in a wrong answer. Not read, on purpose: the folding of constants, which runs when the
package is loaded, and the runtime's own code.

A statement may have the form of a known one and yet hold less than is needed: a call with unknown tensors, a kernel
without a launch, a check of an unknown input. These are noted together with the statements that fit no rule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from aotidoctor.model.artifact import Artifact, ModelEntry
from aotidoctor.model.contract import GENERATED, HostNeeds, KernelCall, LeafSpec, ModelContract, Reading, Symbol
from aotidoctor.model.inputs import SpecError, count_leaves, parse_call, walk_call
from aotidoctor.readers.contract.input_leaves import (
    LeafSources,
    SymbolTable,
    build_leaves,
    has_open_strides,
    infer_shared,
    is_described,
    known_expr,
    order_leaves,
    read_symbols,
    tensor_leaf,
    with_implied_dtypes,
)
from aotidoctor.readers.contract.kernel_calls import (
    KernelFacts,
    arguments_of,
    is_complete,
    kind_of,
    read_kernel_sources,
    read_kernels,
    triton_name,
    written_and_read,
)
from aotidoctor.readers.contract.output_leaves import build_outputs, output_paths, read_custom_calls, unwritten_reads
from aotidoctor.readers.contract.run_impl import Body, TritonLaunch, parse_body
from aotidoctor.readers.contract.wrapper_declarations import (
    Checks,
    Constructor,
    parse_checks,
    parse_constructor,
    weights_location,
)
from aotidoctor.readers.contract.wrapper_text import NotUnderstood, Wrapper, compile_command, find_sections

# Needs of the host, and operations that are not repeatable.
_INCLUDE_TORCH = re.compile(r"(?<![^\s'\"])-I(\S+?)/torch/include(?!\S)")
_INCLUDE_PYTHON = re.compile(r"(?<![^\s'\"])-I\S*/include/python(\d+\.\d+)")
_ABI = re.compile(r"-D ?_GLIBCXX_USE_CXX11_ABI=([01])")
_CUDA = re.compile(r"(?<![^\s'\"])-[IL]\S*/cuda-(\d+(?:\.\d+)?)/")
_TORCH_VERSION = re.compile(r"/torch[-_](\d+\.\d+\.\d+[\w.+]*)")
_FEATURE = re.compile(r"\s-m((?:avx|amx|fma|sse|f16c|bmi)[\w.-]*)")
_RANDOM = re.compile(
    r"(?:^|[._])(?:rand(?:n|int|perm)?(?:_like)?|native_dropout|dropout|bernoulli|multinomial|normal|poisson|exponential|"
    r"uniform|geometric|cauchy|log_normal|rrelu_with_noise|randint_low)(?:_|$|\.)"
)
_EMPTY = re.compile(r"aten\.(?:new_)?empty(?:_like|_strided|_permuted)?$")
# Operators that make a kernel hold a NaN because the model says so; they show in the kernel's name.
_DELIBERATE_NAN = re.compile(r"full|fill|where|nan|masked|scalar_tensor|lift|constant|pad|std|var|median|quantile|log")
_ISA_FEATURES: Mapping[str, tuple[str, ...]] = {
    "AVX2": ("avx2", "fma"),
    "AVX512": ("avx512f", "avx512dq", "avx512vl", "avx512bw", "fma"),
    "AVX512_VNNI": ("avx512_vnni",),
    "AMX_TILE": ("amx_tile", "amx_bf16", "amx_int8"),
    "AMX": ("amx_tile", "amx_bf16", "amx_int8"),
    "ASIMD": ("asimd",),
    "NEON": ("asimd",),
    "SVE256": ("sve",),
}
_SPELLING = {"avx512vnni": "avx512_vnni", "avx512bf16": "avx512_bf16", "avx512fp16": "avx512_fp16"}


def read_needs(
    model: ModelEntry,
    command: str,
    facts: KernelFacts,
    *,
    kernels: Sequence[KernelCall],
    launches: Mapping[str, TritonLaunch],
    unwritten: Sequence[str],
) -> HostNeeds:
    """Combine metadata, the compile command and facts from the kernels."""
    values = metadata_values(model)
    flags = [flag.replace("-", "_") for flag in _FEATURE.findall(command)]
    isa = tuple(dict.fromkeys(_SPELLING.get(flag, flag) for flag in flags))
    torch_home = _first(_INCLUDE_TORCH, command)
    # Device code that a kernel loads by name and that is no member. Its directory is the build host's and unused.
    present = {member.name.rpartition("/")[2] for member in model.members}
    loaded = dict.fromkeys(launch.device_code for launch in launches.values() if launch.device_code is not None)
    return HostNeeds(
        device_type=values.get("AOTI_DEVICE_KEY"),
        compute_capability=values.get("AOTI_COMPUTE_CAPABILITY") or None,
        gpu_code=model.gpu_code,
        missing_gpu_code=tuple(name for name in loaded if name not in present),
        isa=isa or isa_features(values.get("AOTI_CPU_ISA", "")),
        march_native="-march=native" in command,
        baked_threads=facts.baked_threads,
        torch_path=f"{torch_home}/torch" if torch_home is not None else None,
        torch_version=_first(_TORCH_VERSION, command),
        python_version=_first(_INCLUDE_PYTHON, command),
        cuda_version=_first(_CUDA, command),
        cxx11_abi={"0": False, "1": True}.get(_first(_ABI, command) or ""),
        random_ops=_random(facts, kernels),
        uninitialized_ops=_uninitialized_reads(facts, kernels, unwritten),
        nan_constants=tuple(facts.nan),
    )


def metadata_values(model: ModelEntry) -> dict[str, str]:
    """All metadata of the model in one table; the wrapper's wins over the kernel's, as the Python loader reads it."""
    values: dict[str, str] = {}
    for one in sorted(model.metadata, key=lambda one: "wrapper" in one.member):
        values.update(one.values)
    return values


def isa_features(text: str) -> tuple[str, ...]:
    """CPU features, as /proc/cpuinfo spells them, of ``AOTI_CPU_ISA`` metadata such as ``AVX512 AVX512_VNNI``."""
    return tuple(dict.fromkeys(name for word in text.upper().split() for name in _ISA_FEATURES.get(word, ())))


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1] if found is not None else None


def _random(facts: KernelFacts, kernels: Sequence[KernelCall]) -> tuple[str, ...]:
    found = {f"{function} in {kernel}": None for kernel, function in facts.random}
    for kernel in kernels:
        # `.rand_like` of `aoti_torch_cpu_rand_like`.
        names = (
            kernel.origins
            if kernel.kind != "extern"
            else (*kernel.origins, re.sub(r"^aoti_torch_(?:cpu|cuda|xpu|mps)?_?(?:inductor_)?", ".", kernel.name))
        )
        for name in names:
            if _RANDOM.search(name) is not None:
                found[name if name.startswith("aten.") else kernel.name] = None
    return tuple(found)


def _uninitialized_reads(
    facts: KernelFacts, kernels: Sequence[KernelCall], unwritten: Sequence[str]
) -> tuple[str, ...]:
    """Reads of memory that was never written: buffers, then kernels with a NaN constant that no operator explains.

    A comment that names ``aten.empty`` is no proof by itself: the buffer may be filled by the same kernel. With a NaN
    constant in the kernel's body it is.
    """
    found = [f"aten.empty ({text})" for text in unwritten]
    origins = {kernel.name: kernel.origins for kernel in kernels}
    for name in facts.nan:
        named = [origin for origin in origins.get(name, ()) if _EMPTY.match(origin) is not None]
        if named:
            found.append(f"{named[0]} ({name})")
        elif _DELIBERATE_NAN.search(name) is None:
            found.append(f"aten.empty? (NaN constant in {name})")
    return tuple(found)


# Statements that were read, but not in full.
def note_incomplete(
    wrapper: Wrapper,
    constructor: Constructor,
    checks: Checks,
    body: Body,
    *,
    symbols: SymbolTable,
    launches: Mapping[str, TritonLaunch],
) -> None:
    """Note statements that were read, but not in full, in the losses of their part."""
    if not wrapper.closed:
        body.losses.note("statement", wrapper.body.line, "the end of run_impl is not marked")
    # Each input has a name, a check where there are any, and is unpacked. Before 2.7 there are no checks.
    names = set(constructor.input_names)
    if len(constructor.input_names) != constructor.n_inputs:
        constructor.losses.note("input", 0, f"{len(names)} names for {constructor.n_inputs} inputs")
    checked = {name for name, check in checks.inputs.items() if check.line is not None}
    compiled = bool(checks.inputs) or "__check_inputs_outputs(" in wrapper.body.text
    for name in sorted(names ^ checked if compiled else ()):
        checks.losses.note("input-check", 0, f"{name}: its check and its name do not belong together")
    for name in sorted(names - body.unpacked.keys() if body.unpacked else ()):
        body.losses.note("input", 0, f"{name}: it is not unpacked")
    for call in body.calls:
        if not is_complete(call, launches):
            fact = "launch" if kind_of(call) == "triton" else "call"
            body.losses.note(fact, call.line, f"{call.function}({call.arguments})")
    for item in body.assertions:
        if item.operator == "input" and any(known_expr(symbols.read(size)) is None for size in item.sizes):
            body.losses.note("symbol", item.line, f"{item.name}: {{{', '.join(item.sizes)}}}")


def read_contract(artifact: Artifact, model: ModelEntry) -> ModelContract | None:
    """The contract of ``model``; None when it has no ``wrapper.cpp`` or none that can be recognised."""
    if model.wrapper_cpp is None:
        return None
    wrapper = find_sections(model.wrapper_cpp)
    constructor = parse_constructor(wrapper.constructor)
    if constructor is None:
        return None
    body = parse_body(wrapper.body, model)
    triton, triton_losses = _launches(wrapper)
    launches = {**triton, **body.launches}
    checks = parse_checks(wrapper.checks)
    symbols = read_symbols(body)
    note_incomplete(wrapper, constructor, checks, body, symbols=symbols, launches=launches)
    unread = tuple(
        item for part in (constructor.losses, checks.losses, triton_losses, body.losses) for item in part.items()
    )
    sources = LeafSources(
        names=constructor.input_names,
        checks=checks,
        body=body,
        symbols=symbols,
        mutated=_mutated_inputs(body, launches),
    )
    call = _call(artifact, model, constructor, sources)
    # With ``package_cpp_only`` the kernels are in the wrapper itself.
    texts = dict(model.kernel_sources)
    if model.wrapper_member is not None:
        texts[model.wrapper_member] = model.wrapper_cpp
    facts = read_kernel_sources(texts, launches, model.wrapper_member)
    kernels = tuple(read_kernels(body.calls, launches, model.extern_nodes, symbols.aliases))
    command = wrapper.command or next(filter(None, map(compile_command, texts.values())), "")
    contract = replace(
        call,
        outputs=tuple(
            build_outputs(
                output_paths(constructor.out_spec, constructor.n_outputs),
                body,
                symbols,
                call.leaves,
                constructor.constants,
            )
        ),
        symbols=list_symbols(call.leaves, symbols.definitions),
        constants=constructor.constants,
        kernels=kernels,
        bound_checks=tuple(facts.bounds),
        # The proxy executor must find these registered; the operators of ATen itself always are.
        custom_ops=tuple(
            target
            for target in dict.fromkeys(node.target for node in model.extern_nodes)
            if not target.startswith(("aten::", "torch.ops.aten."))
        ),
        custom_calls=tuple(read_custom_calls(body, model.extern_nodes)),
        needs=read_needs(
            model, command, facts, kernels=kernels, launches=launches, unwritten=unwritten_reads(body.events, launches)
        ),
        weights=weights_location(model, constructor.constants, constructor.include_weights),
        member=model.wrapper_member,
        unknown_lines=sum(item.count for item in unread),
        bodies=tuple(facts.bodies),
        renamed=body.renamed,
        views=frozenset(body.view_shapes),
        buffer_devices={name: buffer.device_type for name, buffer in body.buffers.items()},
        unread=unread,
    )
    return _add_implied_facts(contract, body, symbols, texts)


def _launches(wrapper: Wrapper) -> tuple[Mapping[str, TritonLaunch], NotUnderstood]:
    """The Triton or Metal kernels; their readers are imported only for models that have some."""
    if "MTL(" in wrapper.head:
        from aotidoctor.readers.contract.triton_launches import read_metal_kernels

        return read_metal_kernels(wrapper.head), NotUnderstood("launches")
    if "void call_" not in wrapper.launches.text:
        return {}, NotUnderstood("launches")
    from aotidoctor.readers.contract.triton_launches import read_triton_launches

    return read_triton_launches(wrapper.launches, wrapper.head)


def _add_implied_facts(
    contract: ModelContract, body: Body, symbols: SymbolTable, texts: Mapping[str, str]
) -> ModelContract:
    """Add what follows from the use of inputs that no check describes; the readers of that are imported when needed."""
    leaves = contract.tensor_leaves()
    described = all(map(is_described, leaves))
    open_form = any(leaf.has_open_sizes or has_open_strides(leaf) for leaf in leaves)
    if described and not open_form:
        return contract
    from aotidoctor.readers.contract import unchecked_inputs

    if not described:
        contract = with_implied_dtypes(unchecked_inputs.with_implied_products(contract, body, symbols))
    return unchecked_inputs.with_kernel_reads(contract, body, symbols, texts) if open_form else contract


def _mutated_inputs(body: Body, launches: Mapping[str, TritonLaunch]) -> frozenset[str]:
    """Inputs that a generated kernel may write to."""
    written: set[str] = set()
    for call in body.calls:
        kind = kind_of(call)
        if kind in ("triton", "metal") and triton_name(call) not in launches:
            # Before 2.7 a launch does not show what is only read; a tensor that is updated is passed twice.
            names = arguments_of(call)
            written |= {name for name in names if names.count(name) > 1}
        elif kind in GENERATED:
            written |= written_and_read(call, launches)[0]
    return frozenset(written & body.unpacked.keys())


def _call(artifact: Artifact, model: ModelEntry, constructor: Constructor, sources: LeafSources) -> ModelContract:
    """The call spec, and what of the call could not be read."""
    args = kwargs = None
    readings: tuple[Reading, ...] = ()
    spec = constructor.in_spec
    try:
        args, kwargs = parse_call(spec or "")
    except SpecError as error:
        leaves = [
            tensor_leaf(at, sources, index=at, path=f"args[{at}]", kind="tensor", triton_names=(f"INPUT__{at}",))
            for at in range(len(sources.names))
        ]
        problems = [f"the call spec cannot be read: {error}" if spec else "the package contains no call spec"]
    else:
        # Leaves that an exported program in the same archive, of the same name and spec, shows to be constants.
        same = (one for one in artifact.exported if one.in_spec == spec and one.name in (model.name, "model"))
        paths = next((one.constant_inputs for one in same if one.constant_inputs), None)
        known = None
        if paths is not None:
            known = frozenset(index for path, index in walk_call(args, kwargs) if path in paths)
        total = count_leaves(args) + count_leaves(kwargs)
        order = order_leaves(sources.names, total, constructor.constants, known)
        leaves = list(build_leaves(args, kwargs, order, sources))
        problems = [order.problem] if order.problem is not None else []
        readings = order.readings
    leaves = list(infer_shared(leaves))
    problems += [
        f"the rank of {leaf.path} is not certain: its checks show {len(leaf.dims or ())} dims"
        for leaf in leaves
        if leaf.input_index is not None and leaf.rank is None
    ]
    return ModelContract(
        model_name=model.name,
        source="wrapper.cpp",
        args=args,
        kwargs=kwargs,
        leaves=tuple(leaves),
        n_inputs=constructor.n_inputs,
        n_outputs=constructor.n_outputs,
        n_constants=constructor.n_constants,
        in_spec=spec,
        out_spec=constructor.out_spec,
        problems=tuple(problems),
        readings=readings,
        open_leaves=problems[0] if readings else None,
    )


def list_symbols(leaves: Sequence[LeafSpec], definitions: Mapping[str, str]) -> tuple[Symbol, ...]:
    """Symbols in the order of their definition, with the dims that show them."""
    places: dict[str, list[str]] = {}
    for leaf in leaves:
        for dim, size in enumerate(leaf.dims or ()):
            if size.expr is not None and size.static is None:
                for name in sorted(size.expr.symbols):
                    places.setdefault(name, []).append(f"{leaf.path}.shape[{dim}]")
    names = [*definitions, *(name for name in places if name not in definitions)]
    return tuple(
        Symbol(name=name, definition=definitions.get(name, ""), appears_in=tuple(places.get(name, ())))
        for name in names
    )
