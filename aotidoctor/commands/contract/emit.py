"""Write the contract of a package as a Python module, a C++ header or a JSON Schema (``aotidoctor contract``).

Python: ``validate_inputs(args, kwargs)`` in one file, with the standard library only; the fast check first, then
``validator.py``, whose source is copied into it, and ``validator_end.txt``. C++: ``validate_inputs(inputs)`` over the
tensors that the loader's ``run`` takes, in their order, with ``validator.h``. JSON Schema: the calls as inputs
documents of ``--inputs``; a tensor is ``{"tensor": {"dtype", "shape", "stride", "device"}}``, contiguous without
``stride``; ``layout``, ``conj`` and ``neg`` may be added; relations between sizes, which a schema cannot state, are
listed in ``x-relations``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from aotidoctor.commands.contract.shippable import (
    ShippableContract,
    fast_check,
    needed_alignment,
    read_contract,
    root_of,
    size_text,
)
from aotidoctor.model.contract import Dim, LeafSpec
from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.expr import Expr, step_of
from aotidoctor.model.inputs import MAPPINGS, Container, Leaf, Tree
from aotidoctor.model.record import JsonObject, JsonValue
from aotidoctor.model.torch_names import SCALAR_NAMES
from aotidoctor.version import __version__

# JSON Schema.
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MASKS = ("bool", "int8", "uint8")
_NO_ELEMENT: JsonObject = {"properties": {"shape": {"contains": {"const": 0}}}}


def json_schema(wanted: ShippableContract) -> str:
    """Write the JSON Schema of the inputs."""
    args, kwargs = wanted.arguments()
    digest: JsonObject = {"x-sha256": wanted.sha256} if wanted.sha256 else {}
    # Which dims hold which size, for those that share a symbol.
    document: JsonObject = {
        "$schema": _DIALECT,
        "title": f"Inputs of {wanted.source}",
        "$comment": f"written by aotidoctor {__version__}",
        **digest,
        "type": "object",
        "properties": {
            "args": _json_sequence(wanted, args),
            "kwargs": {
                "type": "object",
                "properties": {
                    str(key): _json_tree(wanted, child) for key, child in zip(kwargs.keys, kwargs.children, strict=True)
                },
                "required": [str(key) for key in kwargs.keys],
                "additionalProperties": False,
            },
        },
        "required": [*(["args"] if args.children else []), *(["kwargs"] if kwargs.children else [])],
        "additionalProperties": False,
        "x-relations": [
            {"path": leaf.path, "dim": at, "size": str(dim.expr)}
            for leaf in wanted.contract.leaves
            for at, dim in enumerate(leaf.dims or ())
            if dim.static is None and dim.expr is not None
        ],
        "x-not-checked": list(wanted.unstated),
    }
    return json.dumps(document, indent=2) + "\n"


def _json_sequence(wanted: ShippableContract, node: Container[int]) -> JsonObject:
    count = len(node.children)
    items: JsonObject = {"prefixItems": [_json_tree(wanted, child) for child in node.children]} if count else {}
    return {"type": "array", **items, "minItems": count, "maxItems": count}


def _json_tree(wanted: ShippableContract, tree: Tree[int]) -> JsonObject:
    match tree:
        case Leaf(value=index):
            leaf = wanted.contract.leaves[index]
            if leaf.input_index is not None:
                tensor = _json_tensor(leaf)
                return {"type": "object", "properties": {"tensor": tensor}, "required": ["tensor"], "title": leaf.path}
            baked = {"x-baked": wanted.baked[leaf.path]} if leaf.path in wanted.baked else {}
            plain: JsonObject = {"not": {"type": "object", "required": ["tensor"]}} if leaf.kind == "constant" else {}
            return {**plain, **baked, "title": leaf.path}
        case Container(type=kind, children=children, keys=keys) if kind in MAPPINGS:
            names: list[JsonValue] = [str(key) for key in keys]
            return {
                "type": "object",
                "properties": {str(key): _json_tree(wanted, child) for key, child in zip(keys, children, strict=False)},
                "required": names,
                "additionalProperties": False,
                "$comment": f"in this order: {names}",
            }
        case Container(type=kind) if kind in ("tuple", "list", "structseq") or kind.startswith("namedtuple"):
            return _json_sequence(wanted, tree)
        case _:
            return {}


def _json_tensor(leaf: LeafSpec) -> JsonObject:
    properties: JsonObject = {"layout": {"const": "strided"}, "conj": {"const": False}, "neg": {"const": False}}
    if leaf.device_type is not None:
        properties["device"] = {"type": "string", "pattern": f"^{re.escape(leaf.device_type)}(:[0-9]+)?$"}
    elsewhere = [] if leaf.device_type in (None, "cpu") else ["device"]
    base: JsonObject = {"type": "object", "properties": properties, "required": ["dtype", "shape", *elsewhere]}
    if leaf.used is False:
        return base
    if leaf.dtype is not None:
        properties["dtype"] = {"enum": list(_MASKS)} if leaf.dtype in _MASKS else {"const": leaf.dtype}
    if leaf.dims is None:
        return base
    sizes: list[JsonValue] = [_json_size(dim) for dim in leaf.dims]
    shape: JsonObject = {"type": "array", "minItems": len(sizes), "maxItems": len(sizes)}
    form: JsonObject = {"properties": {"shape": {**shape, **({"prefixItems": sizes} if sizes else {})}}}
    steps: list[JsonValue] = [
        _json_step(leaf.dims, at, step) for at, step in enumerate(leaf.strides or ()) if step is not None
    ]
    compiled: JsonObject = {**form, "allOf": steps} if steps else form
    if all(dim.static == 1 for dim in leaf.dims):
        alone: JsonObject = {"properties": {"shape": {"items": {"const": 1}}}}
        compiled = {"anyOf": [compiled, alone]}
    return {**base, "allOf": [compiled]}


def _json_size(dim: Dim) -> JsonObject:
    if dim.static is not None:
        return {"const": dim.static}
    step = step_of(dim.expr) if dim.expr is not None else None
    whole: JsonObject = {"type": "integer", "minimum": 0}
    if step is not None and step[0] > 1 and step[1] % step[0] == 0:
        whole["multipleOf"] = step[0]
    low: JsonObject = {} if dim.min is None else {"x-compiled-minimum": dim.min}
    high: JsonObject = {} if dim.max is None else {"x-compiled-maximum": dim.max}
    return {**whole, **low, **high}


def _json_step(dims: Sequence[Dim], at: int, step: int) -> JsonObject:
    """The stride of one dim, which does not matter if the dim has one element, or the tensor has none."""
    inner = [dim.static for dim in dims[at + 1 :]]
    contiguous = math.prod(max(size or 1, 1) for size in inner) if None not in inner else None
    required: JsonObject = {} if contiguous in (None, step) else {"required": ["stride"]}
    before: list[JsonValue] = [{}] * at
    alone: JsonObject = {"properties": {"shape": {"prefixItems": [*before, {"const": 1}]}}}
    right: JsonObject = {"properties": {"stride": {"prefixItems": [*before, {"const": step}]}}, **required}
    return {"anyOf": [right, alone, _NO_ELEMENT]}


# C++ header.
_SCALARS = {dtype: name for name, dtype in SCALAR_NAMES.items()}
_CPP_DEVICES = ("cpu", "cuda", "hip", "xla", "xpu", "mps", "meta")
# Keywords of C++20 and C, and macros of compilers and of libc.
_TAKEN = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try
typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq
assert errno i386 linux stderr stdin stdout unix vector pixel
"""
_FURTHEST = "INT64_MAX"


def cpp_header(wanted: ShippableContract) -> str:
    """Write the C++ header."""
    symbols = {name: f"v.at({at})" for at, name in enumerate(wanted.symbols)}
    common = Path(__file__).with_name("validator.h").read_text(encoding="utf-8")
    leaves = wanted.contract.tensor_leaves()
    head = [
        f"What the compiled code of {wanted.source!a} expects from its caller.",
        f"Written by aotidoctor {__version__}; do not edit.",
        *([f"The package has sha256 {wanted.sha256}."] if wanted.sha256 else []),
        "The inputs of run(), in this order:",
        *(f"  {index}: {leaf.path!a}" for index, leaf in enumerate(leaves)),
        *(f"The package does not state, and nothing compares: {fact!a}" for fact in wanted.unstated),
    ]
    rows = "".join(f"      {_cpp_leaf(leaf, symbols)},\n" for leaf in leaves)
    lines = "\n".join([*(f"// {line}" for line in head), "", common.replace("@LEAVES@", rows)])
    return lines.replace("@PACKAGE@", _namespace(wanted.source, lines))


def _namespace(source: str, header: str) -> str:
    """The file's name without its suffix, as a name in C++ that means nothing else; `model` if it is empty."""
    stem = re.sub(r"[^A-Za-z0-9]+", "_", source.partition(".")[0]).strip("_") or "model"
    code = re.sub(r"//.*", "", header)
    # In capitals it may be a macro, and so may a few others.
    taken = stem[0].isdigit() or stem.isupper() or stem in _TAKEN.split() or re.search(rf"\b{stem}\b", code)
    return f"model_{stem}" if taken else stem


def _cpp_leaf(leaf: LeafSpec, symbols: Mapping[str, str]) -> str:
    dims = ", ".join(_cpp_dim(dim, symbols) for dim in leaf.dims or ())
    strides = ", ".join("-1" if step is None else str(step) for step in leaf.strides or ())
    exprs = leaf.stride_exprs
    known = exprs if exprs is not None and leaf.strides is not None and len(exprs) == len(leaf.strides) else ()
    sizes = ", ".join("nullptr" if expr is None else _cpp_function(expr, symbols) for expr in known)
    rank, device = -1 if leaf.rank is None else leaf.rank, leaf.device_type or ""
    fields = [
        _cpp_quoted(leaf.path),
        f"static_cast<int>(c10::ScalarType::{_SCALARS[leaf.dtype]})" if leaf.dtype in _SCALARS else "-1",
        str(rank),
        f"{{{dims}}}",
        f"{{{strides}}}",
        f"{{{sizes}}}",
        f"static_cast<int>(c10::DeviceType::{device.upper()})" if device in _CPP_DEVICES else "-1",
        "false" if leaf.used is False else "true",
        str(needed_alignment(leaf) or 0),
    ]
    return f"Leaf{{{', '.join(fields)}}}"


def _cpp_dim(dim: Dim, symbols: Mapping[str, str]) -> str:
    low = "INT64_MIN" if dim.min is None else str(dim.min)
    high = _FURTHEST if dim.max is None or dim.max >= 2**63 - 1 else str(dim.max)
    expr, symbol, line, step, size = dim.expr, -1, (0, 0, 0, 0), (0, 0), "nullptr"
    if dim.static is None and expr is not None:
        size = _cpp_function(expr, symbols)
        if len(expr.symbols) == 1:
            (name,) = expr.symbols
            symbol = int(symbols[name][5:-1])
            line, step = root_of(expr) or line, step_of(expr) or step
    text = _cpp_quoted(str(expr) if expr is not None else "?")
    fixed = -1 if dim.static is None else dim.static
    root = ", ".join(map(str, line))
    solvable = "true" if line[0] else "false"
    return f"Dim{{{text}, {fixed}, {size}, {symbol}, {solvable}, {{{root}}}, {step[0]}, {step[1]}, {low}, {high}}}"


def _cpp_function(expr: Expr, symbols: Mapping[str, str]) -> str:
    """A C++ function of the symbols, which returns no value if one of them is unknown."""
    text = size_text(expr, symbols)
    if text is None:
        return "[](const Symbols&) -> std::optional<int64_t> { return std::nullopt; }"
    known = [name.removeprefix("v.at(")[:-1] for name in sorted(symbols.values()) if name in text]
    if not known:
        return f"[](const Symbols&) -> std::optional<int64_t> {{ return {text}; }}"
    bound = " && ".join(f"v.count({at})" for at in known)
    return f"[](const Symbols& v) -> std::optional<int64_t> {{ if (!({bound})) return std::nullopt; return {text}; }}"


def _cpp_quoted(text: str) -> str:
    """A string literal of C++, with octal bytes for all but plain ASCII."""
    inner = re.sub(rb"[^ !#-\[\]-~]|\?", lambda found: b"\\%03o" % found[0][0], text.encode("utf-8", "surrogatepass"))
    return f'"{inner.decode("ascii")}"'


# Python module.
_COPIED = "# --- copied from here ---\n"
_FAMILIES = {"tuple": "sequence", "list": "sequence", "structseq": "sequence"}


def python_module(wanted: ShippableContract) -> str:
    """Write the Python module."""
    symbols = {name: f"v[{at}]" for at, name in enumerate(wanted.symbols)}
    common = Path(__file__).with_name("validator.py").read_text(encoding="utf-8").partition(_COPIED)[2]
    args, kwargs = wanted.arguments()
    digest = f", sha256 {wanted.sha256}" if wanted.sha256 else ""
    # A name within a docstring.
    source = ascii(wanted.source)[1:-1].replace('"', "'")
    unstated = ["", "The package does not state everything: NOT_CHECKED lists what is not compared."]
    return "\n".join(
        [
            f'"""What the compiled code of a package expects from its caller: {source}{digest}.',
            "",
            f"Written by aotidoctor {__version__}; do not edit. ``validate_inputs`` raises ContractError for a",
            "call that the compiled code would compute wrongly; it needs only the standard library.",
            *(unstated if wanted.unstated else []),
            '"""',
            "",
            "from __future__ import annotations",
            "",
            common.rstrip(),
            "",
            "",
            f"NOT_CHECKED = {wanted.unstated!r}",
            "_LEAVES = (",
            *(f"    {_python_leaf(leaf, symbols, wanted.baked)}," for leaf in wanted.contract.leaves),
            ")",
            f"_SPEC = ({_python_node(args)}, {_python_node(kwargs)})",
            *("", "", *fast_check(wanted, "torch"), "", "", *fast_check(wanted, "numpy"), ""),
            Path(__file__).with_name("validator_end.txt").read_text(encoding="utf-8"),
        ]
    )


def _python_node(tree: Tree[int]) -> str:
    match tree:
        case Leaf(value=index):
            return str(index)
        case Container(type=kind, children=children, keys=keys):
            family = "mapping" if kind in MAPPINGS else "sequence" if kind.startswith("namedtuple") else kind
            title = f"{kind} of {len(children)}"
            inner = "".join(f"{_python_node(child)}, " for child in children)
            return f"_Node({_FAMILIES.get(family, family)!r}, {title!r}, {tuple(keys)!r}, ({inner}))"


def _python_leaf(leaf: LeafSpec, symbols: Mapping[str, str], baked: Mapping[str, str]) -> str:
    if leaf.input_index is None:
        kind = "constant" if leaf.kind == "constant" else "unknown"
        value = f", baked={baked[leaf.path]!r}" if leaf.path in baked else ""
        return f"_Leaf({leaf.path!r}, {kind!r}{value})"
    dims = None if leaf.dims is None else "(" + "".join(f"{_python_dim(dim, symbols)}, " for dim in leaf.dims) + ")"
    exprs = leaf.stride_exprs
    sizes = "None"
    if exprs is not None and leaf.strides is not None and len(exprs) == len(leaf.strides):
        texts = ("None" if expr is None else _python_function(expr, symbols) for expr in exprs)
        sizes = "(" + "".join(f"{text}, " for text in texts) + ")"
    fields = {
        "dtype": repr(leaf.dtype),
        "rank": repr(leaf.rank),
        "dims": str(dims),
        "strides": repr(leaf.strides),
        "sizes_of_strides": sizes,
        "device": repr(leaf.device_type),
        "used": repr(leaf.used is not False),
        **({"alignment": repr(alignment)} if (alignment := needed_alignment(leaf)) is not None else {}),
    }
    return f"_Leaf({leaf.path!r}, 'tensor', {', '.join(f'{name}={text}' for name, text in fields.items())})"


def _python_dim(dim: Dim, symbols: Mapping[str, str]) -> str:
    if dim.static is not None:
        return f"_Dim({str(dim.static)!r}, static={dim.static})"
    fields = {"low": repr(dim.min), "high": repr(dim.max)}
    expr = dim.expr
    if expr is not None:
        fields["size"] = _python_function(expr, symbols)
        if len(expr.symbols) == 1:
            (name,) = expr.symbols
            fields |= {"symbol": symbols[name][2:-1], "solve": repr(root_of(expr)), "step": repr(step_of(expr))}
    text = str(expr) if expr is not None else "?"
    return f"_Dim({text!r}, {', '.join(f'{name}={value}' for name, value in fields.items())})"


def _python_function(expr: Expr, symbols: Mapping[str, str]) -> str:
    text = size_text(expr, symbols)
    # A size that cannot be computed agrees with every size.
    return f"_sizes(lambda v: {text})" if text is not None else "_sizes(lambda v: v['unknown'])"


# The forms by name.
PBTXT = "pbtxt"
FORMS: Mapping[str, Callable[[ShippableContract], str]] = {
    "python": python_module,
    "json": json_schema,
    "cpp": cpp_header,
}


def emit(
    form: str,
    path: str,
    *,
    inputs: str | None = None,
    reference: str | None = None,
    model_name: str | None = None,
    environ: Mapping[str, str],
) -> str:
    """Write the contract of the package at ``path`` in one of ``FORMS``, or as Triton's configuration (``pbtxt``).

    Raises:
        CannotExamineError: there is no package, or it does not contain what is to be written.
    """
    if form == PBTXT:
        from aotidoctor.commands.triton import draw_config
        from aotidoctor.triton.servable import ConfigOptions

        draft = draw_config(path, ConfigOptions(), triton=None, argv=(), environ=environ)
        if draft.text is None:
            raise CannotExamineError(f"{path}: no config.pbtxt can serve it: {'; '.join(draft.reasons)}")
        return draft.text
    wanted = read_contract(path, inputs=inputs, reference=reference, model_name=model_name, environ=environ)
    return FORMS[form](wanted)
