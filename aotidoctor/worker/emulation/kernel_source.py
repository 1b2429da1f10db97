"""Parse, check and build the text of a Triton kernel as the package holds it.

The text is untrusted Python: ``kernel_grammar`` checks it. The tree that was checked is compiled, and Triton's
interpreter runs that; it reads no text again.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from aotidoctor.model.record import record
from aotidoctor.worker.emulation.kernel_grammar import (
    BOUNDED,
    BUILTINS,
    INTERPRETER_NAMES,
    CheckedText,
    RefusedKernel,
    check_text,
    parse_text,
)

# Element types by their names in signatures (``fp32``).
Interval = tuple[int, int]


class DtypeName(str):
    """A type as the value of a parameter, given by its name (``fp16``)."""

    __slots__ = ()


# From the narrowest on, as results are promoted; NumPy has no bfloat16.
_TABLE = (
    ("i1", 1, "bool", "int1"), ("i8", 1, "int8", "int8"), ("u8", 1, "uint8", "uint8"), ("i16", 2, "int16", "int16"),
    ("u16", 2, "uint16", "uint16"), ("i32", 4, "int32", "int32"), ("u32", 4, "uint32", "uint32"),
    ("i64", 8, "int64", "int64"), ("u64", 8, "uint64", "uint64"), ("fp16", 2, "float16", "float16"),
    ("bf16", 2, None, "bfloat16"), ("fp32", 4, "float32", "float32"), ("fp64", 8, "float64", "float64"),
)  # fmt: skip
SIZES: Mapping[str, int] = {name: size for name, size, _, _ in _TABLE}
NUMPY: Mapping[str, str] = {name: numpy for name, _, numpy, _ in _TABLE if numpy is not None}
BY_TEXT: Mapping[str, str] = {text: name for name, _, _, text in _TABLE}
ORDER = tuple(NUMPY)
INT32: Interval = (-(1 << 31), (1 << 31) - 1)


def integer_limits(dtype: str) -> Interval | None:
    """The least and the greatest number of an integer type of up to 32 bits; None for other types."""
    if dtype == "i1":
        return 0, 1
    bits = 8 * SIZES.get(dtype, 8)
    if dtype[0] not in "iu" or bits > 32:
        return None
    return (0, (1 << bits) - 1) if dtype[0] == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


_OPENING = re.compile(r"async_compile\.triton\('(\w+)', '''")
_ESCAPED = re.compile(r"\\([\\\"'])")
_END = "''', device_str="
_PLAIN = re.compile(
    r"^\s*([xyz])offset = tl\.program_id\((\d)\)(?:\.to\(tl\.int64\))? \* ([XYZ])BLOCK\s*$", re.MULTILINE
)
_INDEX = re.compile(r"tl\.(?:program_id|num_programs)\(")
# Far above any real kernel, which has some thousand lines.
_LONGEST = 2_000_000


@record
class KernelText:
    """One parsed kernel.

    ``signature`` maps its arguments to types (``*fp32``, ``i32``, ``constexpr``), ``constants`` the fixed ones to
    values: numbers, texts, None, ``DtypeName``. ``first_line`` is the line of the wrapper where the text begins.
    ``function`` is its definition as written, ``checked`` what is executed of the text. ``grid_type`` is Inductor's;
    None for other kernels. ``custom``: a kernel written by the user. ``waits``: the kernel uses the result of an
    atomic, so that its programs may wait for one another. ``tiles`` maps the block axes with an index of the plain form
    ``program_id * BLOCK + arange`` to their axis of the grid.
    """

    name: str
    text: str
    function: ast.FunctionDef
    checked: CheckedText
    signature: Mapping[str, str]
    constants: Mapping[str, Any]
    first_line: int
    grid_type: str | None
    template: bool
    custom: bool
    waits: bool
    tiles: Mapping[str, int]


def read_kernel(name: str, comment: str, line: int, grid: tuple[str, ...] = (), warps: int | None = None) -> KernelText:
    """Parse the comment of a ``call_<kernel>`` function that begins at ``line`` of the wrapper; or ``RefusedKernel``.

    ``grid``, as the function has it, and ``warps`` identify which of several configurations was compiled.
    """
    opening = _OPENING.search(comment)
    if opening is None:
        raise RefusedKernel("the package does not contain its source")
    end = comment.find(_END, opening.end())
    if end < 0 or end - opening.end() > _LONGEST:
        raise RefusedKernel("its source is cut off or longer than any kernel")
    # The text is in a Python string literal.
    raw = _ESCAPED.sub(r"\1", comment[opening.end() : end])
    text = textwrap.dedent(raw.lstrip("\n").expandtabs())
    first = line + comment.count("\n", 0, opening.end()) + len(raw) - len(raw.lstrip("\n"))
    module = parse_text(text)
    kernel = _kernel_of(module, (name, opening[1]))
    calls = [node for node in kernel.decorator_list if isinstance(node, ast.Call)]
    meta = {word.arg: word.value for call in calls for word in call.keywords if word.arg is not None}
    known = _literals(meta.get("triton_meta"))
    inductor = _literals(meta.get("inductor_meta"))
    template = bool(kernel.decorator_list) and "template" in ast.unparse(kernel.decorator_list[0])
    # Checking changes the tree.
    checked = check_text(parse_text(text))
    plain = [found for found in _PLAIN.finditer(text) if found[1].upper() == found[3]]
    return KernelText(
        name=kernel.name,
        text=text,
        function=kernel,
        checked=checked,
        signature={str(key): str(value) for key, value in dict(known.get("signature") or {}).items()},
        constants={**_common_config(meta.get("configs"), inductor, grid, warps), **(known.get("constants") or {})},
        first_line=first,
        grid_type=str(inductor["grid_type"]) if inductor.get("grid_type") else None,
        template=template,
        custom=isinstance(given := meta.get("custom_kernel"), ast.Constant) and given.value is True,
        waits=_waits(module),
        # Known where every use of the program's number is of the plain form.
        tiles={one[1]: int(one[2]) for one in plain} if len(plain) == len(_INDEX.findall(text)) else {},
    )


def _kernel_of(module: ast.Module, names: tuple[str, ...]) -> ast.FunctionDef:
    """The function with one of these names; the functions that a user's kernel calls come after it."""
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef)]
    found = [node for name in names for node in functions if node.name == name] or functions[-1:]
    if not found:
        raise RefusedKernel("its source contains no function")
    return found[0]


def _common_config(
    node: ast.expr | None, inductor: Mapping[str, Any], grid: tuple[str, ...], warps: int | None
) -> dict[str, Any]:
    """The settings that all fitting configurations of a user's kernel have in common."""
    configs = [_literals(one) for one in node.elts] if isinstance(node, ast.List) else []
    grids = inductor.get("precomputed_grids")
    if grids and len(configs) > 1:
        fitting = [one["config"] for one in grids if tuple(one["cpp"]) == grid]
        configs = [one for one in configs if one in fitting and one.get("num_warps", warps) == warps]
    return {
        name: value for name, value in (configs or [{}])[0].items() if all(one.get(name) == value for one in configs)
    }


def _literals(node: ast.expr | None) -> dict[str, Any]:
    """The entries of a dict display that are literals or types; others (``DeviceProperties(...)``) are left out."""
    found: dict[str, Any] = {}
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            with suppress(ValueError, TypeError, SyntaxError):
                name = str(ast.literal_eval(key or value))
                match value:
                    case ast.Dict():
                        found[name] = _literals(value)
                    case ast.Attribute(attr=attr):
                        found[name] = DtypeName(BY_TEXT.get(attr, attr))
                    case _:
                        found[name] = ast.literal_eval(value)
    return found


def _waits(module: ast.Module) -> bool:
    """Whether an atomic is more than a sum, or its value is used: a lock, a flag, a count of finished programs."""
    nodes = list(ast.walk(module))
    dropped = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return any(
        node.func.attr in ("atomic_cas", "atomic_xchg") or id(node) not in dropped
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith("atomic_")
    )


# Execution of the checked tree.
def build_kernel(kernel: KernelText, libdevice: Any) -> Any:
    """Compile the definitions and return the kernel as Triton's interpreter has it. Raises ``RefusedKernel``."""
    import triton
    from triton.runtime import interpreter

    checked = kernel.checked
    names: dict[str, Any] = {"__builtins__": {}, "__name__": f"emulated_{kernel.name}", **BUILTINS}
    names |= {f"bounded.{name}": function for name, function in BOUNDED.items()}
    names |= {name: getattr(interpreter, name) for name in INTERPRETER_NAMES if hasattr(interpreter, name)}
    names |= {name: _listed_value(path, libdevice) for name, path in checked.names.items()}
    for name, (path, value) in checked.constants.items():
        listed: Any = _listed_value(path, libdevice) if path is not None else value
        names[name] = listed(value) if path == "tl.constexpr" else listed
    for one in checked.functions:
        plain = one.name in checked.plain
        tree = ast.Module(
            body=[one if plain else interpreter.FunctionRewriter.ast_transformer.visit(one)], type_ignores=[]
        )
        code = compile(ast.fix_missing_locations(tree), f"<kernel {kernel.name}>", "exec")
        exec(code, names)  # noqa: S102 - the definition that was checked
        names[one.name] = _of_constants(names[one.name]) if plain else _interpreted(names[one.name])
    found = names[kernel.name]
    if not hasattr(found, "rewrite"):
        raise RefusedKernel(f"Triton {triton.__version__} does not interpret it: TRITON_INTERPRET has no effect here")
    return found


def _listed_value(path: str, libdevice: Any) -> Any:
    """The function or constant with this name on the lists of ``kernel_grammar``."""
    import triton
    from torch._inductor.runtime import triton_helpers

    if path in ("tl.static_print", "tl.device_print"):
        return BUILTINS["print"]
    tl = triton.language
    modules = {"triton": triton, "tl": tl, "tl_math": tl.math, "triton_helpers": triton_helpers, "libdevice": libdevice}
    base, _, name = path.partition(".")
    for place in (modules[base], tl.standard) if base == "tl" else (modules[base],):
        if hasattr(place, name):
            return getattr(place, name)
    raise RefusedKernel(f"Triton {triton.__version__} has no {path}")


def _interpreted(function: Any) -> Any:
    """The function as Triton's interpreter has it: compiled already."""
    import triton

    made = triton.jit(function)
    if hasattr(made, "rewriter"):
        made.rewriter.rewrite_ast = lambda: function
    return made


def _of_constants(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of constants, which the interpreter calls with their values."""

    def call(*given: Any, **named: Any) -> Any:
        bare = {name: getattr(one, "value", one) for name, one in named.items()}
        return function(*(getattr(one, "value", one) for one in given), **bare)

    return call
