"""A Python module with ``validate_inputs(args, kwargs)``: one file, the standard library only.

A call that is right is seen by straight code, made for the package: some comparisons per tensor. Whatever it does not
see as right is judged by ``validator.py``, which knows what is harmless and says what is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from aotidoctor.commands.contract.expressions import root_of, size_text, step_of
from aotidoctor.commands.contract.fast import fast
from aotidoctor.commands.contract.read import Shippable
from aotidoctor.model.contract import Dim, LeafSpec
from aotidoctor.model.expr import Expr
from aotidoctor.model.tree import MAPPINGS, Container, Leaf, Tree
from aotidoctor.version import __version__

_COPIED = "# --- copied from here ---\n"
_FAMILIES = {"tuple": "sequence", "list": "sequence", "structseq": "sequence"}
_PUBLIC = '''
def find_problems(args=(), kwargs=None, *, strict=False):
    """All problems of a call, as a list of ContractError; empty if it is right. See validate_inputs."""
    return _problems(_LEAVES, _SPEC, args, kwargs or {}, strict=strict)


def validate_inputs(args=(), kwargs=None, *, strict=False):
    """Raise ContractError for a call that the compiled code would compute wrongly, or not at all.

    ``args`` and ``kwargs`` are those of the call: tensors of torch, or all of them arrays of numpy, which are judged as
    if they were tensors on the device of the package. ``strict`` also refuses sizes outside the compiled ranges,
    which are checked at run time only under AOTI_RUNTIME_CHECK_INPUTS=1.
    """
    if not strict:
        for seen_as_right in (_fast_torch, _fast_numpy):
            try:
                if seen_as_right(args, kwargs or {}):
                    return
            except Exception:  # whatever it is, the judgement below says what is wrong with the call
                continue
    found = find_problems(args, kwargs, strict=strict)
    if found:
        raise found[0]
'''


def python_module(wanted: Shippable) -> str:
    """The text of the module."""
    symbols = {name: f"v[{at}]" for at, name in enumerate(wanted.symbols)}
    common = Path(__file__).with_name("validator.py").read_text(encoding="utf-8").partition(_COPIED)[2]
    args, kwargs = wanted.contract.args, wanted.contract.kwargs
    assert args is not None  # noqa: S101 - told to the type checker; the reader looked
    assert kwargs is not None  # noqa: S101
    return "\n".join(
        [
            *_head(wanted),
            common.rstrip(),
            "",
            "",
            f"NOT_CHECKED = {wanted.untold!r}",
            "_LEAVES = (",
            *(f"    {_leaf(leaf, symbols, wanted.baked)}," for leaf in wanted.contract.leaves),
            ")",
            f"_SPEC = ({_node(args)}, {_node(kwargs)})",
            *("", "", *fast(wanted, "torch"), "", "", *fast(wanted, "numpy"), ""),
            _PUBLIC,
        ]
    )


def _head(wanted: Shippable) -> Iterator[str]:
    digest = f", sha256 {wanted.sha256}" if wanted.sha256 else ""
    yield f'"""What the compiled code of a package expects from its caller: {_doc(wanted.source)}{digest}.'
    yield ""
    yield f"Written by aotidoctor {__version__}; do not edit. ``validate_inputs`` raises ContractError for a"
    yield "call that the compiled code would compute wrongly; it needs only the standard library."
    if wanted.untold:
        yield ""
        yield "The package does not state everything: NOT_CHECKED lists what is not compared."
    yield '"""'
    yield ""
    yield "from __future__ import annotations"
    yield ""


def _doc(text: str) -> str:
    """A name within a docstring."""
    return ascii(text)[1:-1].replace('"', "'")


def _node(tree: Tree[int]) -> str:
    match tree:
        case Leaf(value=index):
            return str(index)
        case Container(type=kind, children=children, keys=keys):
            family = "mapping" if kind in MAPPINGS else "sequence" if kind.startswith("namedtuple") else kind
            shown = f"{kind} of {len(children)}"
            inner = "".join(f"{_node(child)}, " for child in children)
            return f"_Node({_FAMILIES.get(family, family)!r}, {shown!r}, {tuple(keys)!r}, ({inner}))"


def _leaf(leaf: LeafSpec, symbols: Mapping[str, str], baked: Mapping[str, str]) -> str:
    if leaf.input_index is None:
        kind = "constant" if leaf.kind == "constant" else "unknown"
        value = f", baked={baked[leaf.path]!r}" if leaf.path in baked else ""
        return f"_Leaf({leaf.path!r}, {kind!r}{value})"
    dims = None if leaf.dims is None else "(" + "".join(f"{_dim(dim, symbols)}, " for dim in leaf.dims) + ")"
    fields = {
        "dtype": repr(leaf.dtype),
        "rank": repr(leaf.rank),
        "dims": str(dims),
        "strides": repr(leaf.strides),
        "sizes_of_strides": _strides(leaf, symbols),
        "device": repr(leaf.device_type),
        "used": repr(leaf.used is not False),
    }
    return f"_Leaf({leaf.path!r}, 'tensor', {', '.join(f'{name}={text}' for name, text in fields.items())})"


def _dim(dim: Dim, symbols: Mapping[str, str]) -> str:
    if dim.static is not None:
        return f"_Dim({str(dim.static)!r}, static={dim.static})"
    fields = {"low": repr(dim.min), "high": repr(dim.max)}
    expr = dim.expr
    if expr is not None:
        fields["size"] = _function(expr, symbols)
        if len(expr.symbols) == 1:
            (name,) = expr.symbols
            fields |= {"symbol": symbols[name][2:-1], "solve": repr(root_of(expr)), "step": repr(step_of(expr))}
    text = str(expr) if expr is not None else "?"
    return f"_Dim({text!r}, {', '.join(f'{name}={value}' for name, value in fields.items())})"


def _function(expr: Expr, symbols: Mapping[str, str]) -> str:
    text = size_text(expr, symbols)
    # What cannot be computed agrees with every size.
    return f"_sizes(lambda v: {text})" if text is not None else "_sizes(lambda v: v['unknown'])"


def _strides(leaf: LeafSpec, symbols: Mapping[str, str]) -> str:
    exprs = leaf.stride_exprs
    if exprs is None or leaf.strides is None or len(exprs) != len(leaf.strides):
        return "None"
    inner = ("None" if expr is None else _function(expr, symbols) for expr in exprs)
    return "(" + "".join(f"{text}, " for text in inner) + ")"
