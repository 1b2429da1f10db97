"""Read one compiled function without unpickling it: who made it, its signature, its guards, its graph.

What the guards of ``aot_compile`` say of an argument is what a call must bring; they are the contract. A graph of
``standalone_compile`` has no guards: the text of the graph names its inputs, and the code asserts their sizes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from aotidoctor.kernels.expressions import parse_expr
from aotidoctor.model.contract import Dim, HostNeeds, LeafSpec, ModelContract
from aotidoctor.model.expr import Expr, Num, Opaque, whole
from aotidoctor.model.inputs import Container, InputSet, Leaf, Tree, walk_call, with_leaves
from aotidoctor.model.other_artifacts import CompiledFunction, Parameter, Precompiled
from aotidoctor.readers.inputs.describe_pickle import TensorReader, describe_tensor, plain_value
from aotidoctor.readers.inputs.pickle_machine import Entries, Items, PickleCall, PickleGlobal, Value, load_pickle
from aotidoctor.readers.inputs.tensor_values import FileStorage, MalformedError, device_name

MAX_STEPS = 300_000
MOST_NAMES, _MOST_NODES = 200, 10_000


# Values of a pickle.
def entries_of(value: Value) -> Mapping[str, Value]:
    """The entries of a dict, or of an object's state, whose keys are text."""
    if isinstance(value, PickleCall):
        value = value.state[1] if isinstance(value.state, tuple) and len(value.state) == 2 else value.state
    return {key: one for key, one in value.entries if isinstance(key, str)} if isinstance(value, Entries) else {}


def _text(value: Value) -> str | None:
    """A text, also one behind a class such as ``TorchVersion``; the parts of a tuple of numbers with dots."""
    if isinstance(value, PickleCall) and value.args:
        value = value.args[0]
    if isinstance(value, tuple) and value and all(isinstance(part, int) for part in value):
        return ".".join(str(part) for part in value[:8]) if any(value) else None
    return value[:200] if isinstance(value, str) else None


def bytes_of(value: Value) -> bytes:
    """The value where it is a byte string, also one of an old protocol; else an empty one."""
    if isinstance(value, PickleCall) and value.name == "_codecs.encode" and value.args:
        text = value.args[0]
        return text.encode("latin-1", "replace") if isinstance(text, str) else b""
    return value if isinstance(value, bytes) else b""


def aot_function(value: Value, external: tuple[str, ...]) -> CompiledFunction:
    """The function that a dict of ``aot_compile`` describes; ``external`` are the persistent ids in its pickle."""
    facts = entries_of(value)
    if "signature" not in facts or "guards_state" not in facts:
        return CompiledFunction(name="?", problem="the dict has no signature and guards")
    code, made = entries_of(facts.get("original_code")), entries_of(facts.get("system_info"))
    state = load_pickle(bytes_of(facts["guards_state"]), max_steps=MAX_STEPS)
    guards = _Guards.of(state.value)
    parameters = tuple(_parameters(facts["signature"], guards))
    compiled = facts.get("compiled_fn")
    packed = bytes_of(compiled[1]) if isinstance(compiled, tuple) and len(compiled) == 2 else b""
    graph = load_pickle(packed, max_steps=MAX_STEPS)
    file, line = _text(code.get("co_filename")), code.get("co_firstlineno")
    problem = f"the guards: {state.problem}" if state.problem else None
    return CompiledFunction(
        name=_text(code.get("co_qualname")) or _text(code.get("co_name")) or "?",
        source=f"{file}:{line}" if file and isinstance(line, int) else None,
        parameters=parameters,
        backend=_text(facts.get("backend_name")),
        device_type=_text(facts.get("device_type")),
        python=_text(made.get("python_version")),
        torch=_text(made.get("torch_version")),
        toolkit=_text(made.get("toolkit_version")),
        triton=_text(made.get("triton_version")),
        gpu=_text(made.get("gpu_name")),
        threads=int(threads) if (threads := guards.state.get("num_threads", "")).isdecimal() else None,
        grad_mode={"true": True, "false": False}.get(guards.state.get("grad_mode", "")),
        guards=tuple(guards.texts),
        baked=guards.baked,
        requires_grad=guards.grads,
        external=external,
        graph=next(graph_texts(graph.value), None),
        problem=problem or (f"the compiled code: {graph.problem}" if packed and graph.problem else None),
    )


# Guards.
_SOURCES = {
    "torch._dynamo.source.LocalSource": "L[{0!r}]",
    "torch._dynamo.source.GetItemSource": "{0}[{1!r}]",
    "torch._dynamo.source.DictGetItemSource": "{0}[{1!r}]",
    "torch._dynamo.source.AttrSource": "{0}.{1}",
}
_CONSTANT = ("CONSTANT_MATCH", "EQUALS_MATCH", "BOOL_MATCH", "NONE_MATCH", "ID_MATCH")
_NOISE = ("_dynamo_", "___check_type_id", "___check_obj_id", "top_saved_tensors_hooks", "utils_device")
_SIZE = re.compile(r"L(?:\[[^\[\]]{1,60}\]){1,8}\.(?:size|stride)\(\)\[\d{1,3}\]")
_EQUAL = re.compile(r"(S\d{1,4}) == (.{1,200})")
_LEAST = re.compile(r"(\d{1,18}) <= (S\d{1,4})(?: <= (\d{1,18}))?")
_MOST = re.compile(r"(S\d{1,4}) <= (\d{1,18})")
_STATE = re.compile(r'"(grad_mode|num_threads)":(\w{1,9})')


@dataclass(slots=True)
class _Guards:
    """What the guards say, by the source of a value: ``L['x']``, ``L['xs'][0]``."""

    local: Mapping[str, Value] = field(default_factory=dict)
    kinds: dict[str, set[str]] = field(default_factory=dict)
    sizes: dict[str, Mapping[str, Value]] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    baked: dict[str, str] = field(default_factory=dict)
    grads: dict[str, bool] = field(default_factory=dict)
    symbols: dict[str, str] = field(default_factory=dict)
    defined: dict[str, Expr] = field(default_factory=dict)
    bounds: dict[str, tuple[int | None, int | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Value) -> _Guards:
        """The guards of a ``GuardsState``; none where it is something else."""
        found, graph = cls(), entries_of(entries_of(value).get("output_graph"))
        found.local = entries_of(graph.get("local_scope"))
        known = graph.get("input_source_to_sizes_strides")
        for key, sizes in (known.entries if isinstance(known, Entries) else ())[:_MOST_NODES]:
            if (name := _source(key)) is not None:
                found.sizes[name] = entries_of(sizes)
        state = graph.get("global_state_guard")
        text = state.state if isinstance(state, PickleCall) and isinstance(state.state, str) else ""
        found.state = dict(_STATE.findall(text[:4000]))
        inner = entries_of(graph.get("_guards")).get("inner")
        listed = inner.args[0] if isinstance(inner, PickleCall) and inner.args else None
        for guard in (listed.items if isinstance(listed, Items) else ())[:_MOST_NODES]:
            found._add(entries_of(guard))
        return found

    def _add(self, guard: Mapping[str, Value]) -> None:
        made, name = guard.get("create_fn"), _source(guard.get("originating_source"))
        if isinstance(made, PickleCall) and made.args:
            made = made.args[0]
        if name is not None and isinstance(made, PickleGlobal):
            self.kinds.setdefault(name, set()).add(made.name.rpartition(".")[2])
        code = guard.get("code_list")
        for text in dict.fromkeys(code.items if isinstance(code, Items) else ()):
            if not isinstance(text, str) or any(word in text for word in _NOISE) or len(self.texts) >= MOST_NAMES:
                continue
            self.texts.append(text[:200])
            self._relate(_SIZE.sub(lambda hit: self.symbols.setdefault(hit[0], f"S{len(self.symbols)}"), text[:500]))

    def _relate(self, text: str) -> None:
        """Take in ``L['y'].size()[0] == L['x'].size()[1]`` and bounds, in which sizes have short names."""
        if (equal := _EQUAL.fullmatch(text)) is not None:
            found = parse_expr(equal[2])
            if not isinstance(found, Opaque):
                self.defined[equal[1]] = found
        elif (least := _LEAST.fullmatch(text)) is not None:
            high = self.bounds.get(least[2], (None, None))[1]
            self.bounds[least[2]] = (int(least[1]), int(least[3]) if least[3] else high)
        elif (most := _MOST.fullmatch(text)) is not None:
            self.bounds[most[1]] = (self.bounds.get(most[1], (None, None))[0], int(most[2]))

    def size(self, text: str) -> Expr:
        """The expression of a size or stride that may change; a symbol where no guard relates it to others."""
        name = self.symbols.setdefault(text, f"S{len(self.symbols)}")
        return self.defined.get(name) or parse_expr(name)

    def bound(self, text: str) -> tuple[int | None, int | None]:
        """The bounds of that size."""
        return self.bounds.get(self.symbols.get(text, ""), (None, None))


def _source(value: Value) -> str | None:
    parts: list[tuple[str, Value]] = []
    while isinstance(value, PickleCall) and (form := _SOURCES.get(value.name)) is not None and len(parts) < 16:
        if not value.args:
            return None
        if value.name.endswith("LocalSource"):
            text = form.format(value.args[0] if isinstance(value.args[0], str) else "?")
            for inner, index in reversed(parts):
                text = inner.format(text, index if isinstance(index, str | int) else "?")
            return text
        parts.append((form, value.args[1] if len(value.args) > 1 else None))
        value = value.args[0]
    return None


def _parameters(signature: Value, guards: _Guards) -> Iterator[Parameter]:
    listed = signature.args[0] if isinstance(signature, PickleCall) and signature.args else ()
    count = [0]
    for one in (listed if isinstance(listed, tuple) else ())[:MOST_NAMES]:
        if not isinstance(one, PickleCall) or not one.args or not isinstance(one.args[0], str):
            continue
        name, kind = one.args[0][:200], one.args[1] if len(one.args) > 1 else None
        number = kind.args[0] if isinstance(kind, PickleCall) and kind.args else 1
        default = entries_of(one).get("_default")
        has_default = not isinstance(default, PickleGlobal)
        tree = _tree(guards.local[name], f"L[{name!r}]", guards, count, 0) if name in guards.local else None
        yield Parameter(
            name=name,
            kind=number if isinstance(number, int) and 0 <= number <= 4 else 1,
            default=plain_value(default).text if has_default else None,
            tree=tree,
        )


def _tree(value: Value, source: str, guards: _Guards, count: list[int], depth: int) -> Tree[LeafSpec]:
    """The tree of what an argument was; ``kind`` of a value that no guard holds fast is ``unknown``."""
    count[0] += 1
    if depth < 32 and count[0] < _MOST_NODES:
        match value:
            case tuple() | Items(type="list"):
                kind, items = ("list", value.items) if isinstance(value, Items) else ("tuple", value)
                places = ((one, f"{source}[{at}]") for at, one in enumerate(items))
                children = tuple(_tree(one, place, guards, count, depth + 1) for one, place in places)
                return Container(type=kind, children=children)
            case Entries():
                pairs = [(key, one) for key, one in value.entries if isinstance(key, str | int)]
                children = tuple(_tree(one, f"{source}[{key!r}]", guards, count, depth + 1) for key, one in pairs)
                return Container(type="dict", children=children, keys=tuple(key for key, _ in pairs))
    kinds = guards.kinds.get(source, set())
    if isinstance(value, PickleCall) and value.args and isinstance(value.args[0], PickleCall):
        spec = _tensor(value, source, guards)
        if spec is not None:
            return Leaf(value=spec if "TENSOR_MATCH" in kinds else replace(spec, used=False, dims=None, dtype=None))
    if kinds & set(_CONSTANT):
        guards.baked[source] = plain_value(value).text
        return Leaf(value=LeafSpec(index=0, path=source, kind="constant", generated_name=source))
    return Leaf(value=LeafSpec(index=0, path=source, kind="unknown"))


def _no_storage(_: object) -> FileStorage:
    raise MalformedError("a tensor with a storage")


def _tensor(value: PickleCall, source: str, guards: _Guards) -> LeafSpec | None:
    """``_unpickle_tensor(meta tensor, device, type, keys, grad)``; None for anything else."""
    try:
        described = describe_tensor(TensorReader(_no_storage, _no_storage), value.args[0])  # type: ignore[arg-type]
    except MalformedError:
        return None
    guards.grads[source] = described.requires_grad
    stride = described.stride or ()
    known = guards.sizes.get(source, {})
    sizes, steps = known.get("size"), known.get("stride")
    open_sizes = [at for at, size in enumerate(sizes) if size is None] if isinstance(sizes, tuple) else []
    open_steps = [at for at, step in enumerate(steps) if step is None] if isinstance(steps, tuple) else []
    dims = []
    for at, size in enumerate(described.shape):
        text = f"{source}.size()[{at}]"
        low, high = guards.bound(text)
        dims.append(
            Dim(min=low, max=high, expr=guards.size(text)) if at in open_sizes else Dim(static=size, expr=Num(size))
        )
    exprs = [
        guards.size(f"{source}.stride()[{at}]") if at in open_steps else Num(step) for at, step in enumerate(stride)
    ]
    device = value.args[1] if len(value.args) > 1 else None
    return LeafSpec(
        index=0,
        path=source,
        kind="tensor",
        input_index=0,
        generated_name=source,
        dtype=described.dtype,
        rank=len(described.shape),
        dims=tuple(dims),
        strides=tuple(None if at in open_steps else step for at, step in enumerate(stride)),
        stride_exprs=tuple(exprs),
        device_type=device_name(device).partition(":")[0] if isinstance(device, PickleCall) else None,
    )


# Graphs: the text of a compiled graph names its inputs.
_HEAD = re.compile(r"def forward\(\s{0,20}self,?([^)]{0,60000})\)")
_INPUT = re.compile(
    r'(\w{1,80}): "(?:Sym\(([^")]{1,200})\)|(\w{1,12})\[([^\]"]{0,400})\]\[([^\]"]{0,400})\]([\w:]{0,20}))"'
)
_COMMENT = re.compile(r"#[^\n]{0,2000}")
_SHORT = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "c32": "complex32", "c64": "complex64",
    "c128": "complex128", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "b8": "bool", "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2",
}  # fmt: skip
_GRAPHS = ("inductor_post_grad_graph_str", "aot_forward_graph_str")


def graph_texts(value: Value) -> Iterator[str]:
    """The signatures of the compiled graphs in a value."""
    pending, seen, left = [value], set[int](), _MOST_NODES
    while pending and left:
        one, left = pending.pop(), left - 1
        if isinstance(one, PickleCall | Items | Entries):
            if id(one) in seen:
                continue
            seen.add(id(one))
        facts = entries_of(one) if isinstance(one, PickleCall) else {}
        text = next((facts[name] for name in _GRAPHS if isinstance(facts.get(name), str)), None)
        if isinstance(text, str) and (head := _HEAD.search(_COMMENT.sub("", text[:100_000]))) is not None:
            yield ", ".join(hit[0] for hit in _INPUT.finditer(head[1]))
            continue
        match one:
            case tuple():
                pending += reversed(one)
            case PickleCall():
                pending += reversed(list(facts.values()))
            case Items():
                pending += reversed(one.items)


def graph_parameters(graph: str) -> Iterator[Parameter]:
    """The inputs of a graph as parameters by position."""
    for hit in _INPUT.finditer(graph):
        name, symbol, short, sizes, steps, device = hit.groups()
        spec = LeafSpec(index=0, path=name, kind="unknown")
        if symbol is None:
            shape, stride = ([part.strip() for part in text.split(",") if part.strip()] for text in (sizes, steps))
            exprs = [parse_expr(text) for text in shape]
            strides = [parse_expr(text) for text in stride]
            spec = LeafSpec(
                index=0,
                path=name,
                kind="tensor",
                input_index=0,
                generated_name=name,
                dtype=_SHORT.get(short),
                rank=len(shape),
                dims=tuple(Dim(static=whole(expr), expr=None if isinstance(expr, Opaque) else expr) for expr in exprs),
                strides=tuple(map(whole, strides)),
                stride_exprs=tuple(None if isinstance(expr, Opaque) else expr for expr in strides),
                device_type=device.partition(":")[0] or None,
            )
        yield Parameter(name=name, kind=0, tree=Leaf(value=spec))


# The contract.
def sort_functions(found: Precompiled, inputs: InputSet | None) -> Precompiled:
    """The functions of a module, without the module itself, and that first which fits most of ``inputs``."""
    if found.form != "aot-compile-module":
        return found
    functions = [replace(one, parameters=one.parameters[1:]) for one in found.functions]
    given = dict(inputs.tensors()) if inputs is not None else {}

    def misfits(function: CompiledFunction) -> int:
        contract = function_contract(function, inputs)
        specs = contract.tensor_leaves() if contract is not None else ()
        return sum(
            (spec.dtype != one.dtype) + (spec.rank != len(one.shape))
            + sum(dim.static not in (None, size) for dim, size in zip(spec.dims or (), one.shape, strict=False))
            for spec in specs
            if spec.used is not False and (one := given.get(spec.path)) is not None
        )  # fmt: skip

    return replace(found, functions=tuple(sorted(functions, key=misfits)))


def function_contract(function: CompiledFunction, inputs: InputSet | None) -> ModelContract | None:
    """What a call of the function must bring, laid out as ``inputs`` call it; None where the file does not tell.

    A Python function takes an argument by position or by name, so the caller's way is the right one.
    """
    given = len(inputs.args.children) if inputs is not None else None
    named = frozenset(inputs.kwargs.keys) if inputs is not None else frozenset[str | int]()
    args: list[Tree[LeafSpec]] = []
    kwargs: dict[str | int, Tree[LeafSpec]] = {}
    for one in function.parameters:
        tree = one.tree or Leaf(value=LeafSpec(index=0, path=one.name, kind="unknown"))
        children = tree.children if isinstance(tree, Container) else ()
        if one.kind == 2:
            args += children
        elif one.kind == 4 and isinstance(tree, Container):
            kwargs |= dict(zip(tree.keys, children, strict=False))
        elif one.kind == 3 or one.name in named:
            if one.default is None or inputs is None or one.name in named:
                kwargs[one.name] = tree
        elif one.default is None or given is None or len(args) < given:
            args.append(tree)
    if not args and not kwargs:
        return None
    leaves: list[LeafSpec] = []

    def number(spec: LeafSpec) -> Tree[int]:
        leaves.append(replace(spec, index=len(leaves)))
        return Leaf(value=len(leaves) - 1)

    trees = [
        with_leaves(Container(type="tuple", children=tuple(args)), number),
        with_leaves(Container(type="dict", children=tuple(kwargs.values()), keys=tuple(kwargs)), number),
    ]
    paths = dict(walk_call(*trees))
    named_leaves = [replace(leaves[index], path=path) for path, index in paths.items()]
    tensors = iter(range(len(leaves)))
    placed = tuple(replace(leaf, input_index=next(tensors)) if leaf.kind == "tensor" else leaf for leaf in named_leaves)
    return ModelContract(
        model_name=function.name,
        source="guards" if function.guards else "graph",
        args=trees[0],
        kwargs=trees[1],
        leaves=placed,
        n_inputs=sum(leaf.kind == "tensor" for leaf in placed),
        needs=HostNeeds(
            device_type=function.device_type,
            torch_version=function.torch,
            python_version=function.python,
            cuda_version=function.toolkit,
        ),
        weights="none",
    )
