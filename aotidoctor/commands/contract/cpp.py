"""A C++ header with ``validate_inputs(inputs)`` over the tensors that the loader's ``run`` takes, in their order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from aotidoctor.commands.contract.expressions import root_of, size_text, step_of
from aotidoctor.commands.contract.read import Shippable
from aotidoctor.model.c10 import SCALAR_NAMES
from aotidoctor.model.contract import Dim, LeafSpec
from aotidoctor.model.expr import Expr
from aotidoctor.version import __version__

_SCALARS = {dtype: name for name, dtype in SCALAR_NAMES.items()}
_DEVICES = ("cpu", "cuda", "hip", "xla", "xpu", "mps", "meta")
_FURTHEST = "INT64_MAX"
_PUBLIC = """\
}  // namespace

// All problems of a call; empty if it is right. With strict, sizes outside the compiled ranges are also problems.
inline std::vector<Problem> find_problems(const std::vector<at::Tensor>& inputs, bool strict = false) {
  return judge(leaves(), inputs, strict);
}

// Throws std::invalid_argument for a call that the compiled code would compute wrongly, or not at all.
inline void validate_inputs(const std::vector<at::Tensor>& inputs, bool strict = false) {
  auto found = find_problems(inputs, strict);
  if (!found.empty()) throw std::invalid_argument(found.front().text());
}

}  // namespace aotidoctor_contract::@PACKAGE@
"""


def cpp_header(wanted: Shippable) -> str:
    """The text of the header."""
    symbols = {name: f"v.at({at})" for at, name in enumerate(wanted.symbols)}
    common = Path(__file__).with_name("validator.h").read_text(encoding="utf-8")
    leaves = wanted.contract.tensor_leaves()
    lines = "\n".join(
        [
            *(f"// {line}" for line in _head(wanted, leaves)),
            "",
            common,
            "",
            "inline const std::vector<Leaf>& leaves() {",
            "  static const std::vector<Leaf> all = {",
            *(f"      {_leaf(leaf, symbols)}," for leaf in leaves),
            "  };",
            "  return all;",
            "}",
            "",
            _PUBLIC,
        ]
    )
    return lines.replace("@PACKAGE@", _name(wanted.source))


def _name(source: str) -> str:
    """The file without its ending, as a name of C++; ``model`` where there is nothing left of it."""
    stem = re.sub(r"[^A-Za-z0-9]+", "_", source.partition(".")[0]).strip("_")
    return f"model_{stem}" if stem[:1].isdigit() else stem or "model"


def _head(wanted: Shippable, leaves: tuple[LeafSpec, ...]) -> Iterator[str]:
    yield f"What the compiled code of {wanted.source!a} expects from its caller."
    yield f"Written by aotidoctor {__version__}; do not edit."
    if wanted.sha256:
        yield f"The package has sha256 {wanted.sha256}."
    yield "The inputs of run(), in this order:"
    for index, leaf in enumerate(leaves):
        yield f"  {index}: {leaf.path!a}"
    for fact in wanted.untold:
        yield f"The package does not state, and nothing compares: {fact!a}"


def _leaf(leaf: LeafSpec, symbols: Mapping[str, str]) -> str:
    dims = ", ".join(_dim(dim, symbols) for dim in leaf.dims or ())
    strides = ", ".join("-1" if step is None else str(step) for step in leaf.strides or ())
    exprs = leaf.stride_exprs
    known = exprs if exprs is not None and leaf.strides is not None and len(exprs) == len(leaf.strides) else ()
    sizes = ", ".join("nullptr" if expr is None else _function(expr, symbols) for expr in known)
    rank, device = -1 if leaf.rank is None else leaf.rank, leaf.device_type or ""
    fields = [
        _quoted(leaf.path),
        f"static_cast<int>(c10::ScalarType::{_SCALARS[leaf.dtype]})" if leaf.dtype in _SCALARS else "-1",
        str(rank),
        f"{{{dims}}}",
        f"{{{strides}}}",
        f"{{{sizes}}}",
        f"static_cast<int>(c10::DeviceType::{device.upper()})" if device in _DEVICES else "-1",
        "false" if leaf.used is False else "true",
    ]
    return f"Leaf{{{', '.join(fields)}}}"


def _dim(dim: Dim, symbols: Mapping[str, str]) -> str:
    low = "INT64_MIN" if dim.min is None else str(dim.min)
    high = _FURTHEST if dim.max is None or dim.max >= 2**63 - 1 else str(dim.max)
    expr, symbol, line, step, size = dim.expr, -1, (0, 0, 0, 0), (0, 0), "nullptr"
    if dim.static is None and expr is not None:
        size = _function(expr, symbols)
        if len(expr.symbols) == 1:
            (name,) = expr.symbols
            symbol = int(symbols[name][5:-1])
            line, step = root_of(expr) or line, step_of(expr) or step
    text = _quoted(str(expr) if expr is not None else "?")
    fixed = -1 if dim.static is None else dim.static
    shown = ", ".join(map(str, line))
    solvable = "true" if line[0] else "false"
    return f"Dim{{{text}, {fixed}, {size}, {symbol}, {solvable}, {{{shown}}}, {step[0]}, {step[1]}, {low}, {high}}}"


def _function(expr: Expr, symbols: Mapping[str, str]) -> str:
    """A function of the symbols; without a value where one is not known."""
    text = size_text(expr, symbols)
    if text is None:
        return "[](const Symbols&) -> std::optional<int64_t> { return std::nullopt; }"
    known = [name.removeprefix("v.at(")[:-1] for name in sorted(symbols.values()) if name in text]
    if not known:
        return f"[](const Symbols&) -> std::optional<int64_t> {{ return {text}; }}"
    asked = " && ".join(f"v.count({at})" for at in known)
    return f"[](const Symbols& v) -> std::optional<int64_t> {{ if (!({asked})) return std::nullopt; return {text}; }}"


def _quoted(text: str) -> str:
    """A string of C++: what is not plain ASCII as octal bytes."""
    inner = re.sub(rb"[^ !#-\[\]-~]|\?", lambda found: b"\\%03o" % found[0][0], text.encode("utf-8", "surrogatepass"))
    return f'"{inner.decode("ascii")}"'
