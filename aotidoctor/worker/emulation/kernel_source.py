"""Parse, check and build the text of a Triton kernel as the package holds it.

The text is untrusted Python. It is parsed first, and only what a kernel needs is allowed: imports of Triton and of
Inductor's helpers, ``@triton.jit`` functions, constants; no attribute that begins with an underscore, and of Python's
builtins only a few harmless ones. What is left is executed in a namespace of its own, and is the function that
Triton's interpreter runs. No chain of attributes leads from an allowed module to one that is not allowed.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from aotidoctor.model.record import record

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
_MODULES = ("triton", "triton.language", "torch._inductor.runtime", "torch._inductor.runtime.triton_helpers")
_DECORATORS = ("triton.jit", "triton.constexpr_function")
# Modules of functions that a kernel may take one by one; those of libdevice have stand-ins.
SINGLE_LANE = re.compile(r"triton\.language\.(?:core|math|standard|random|extra\.(?:cuda\.)?libdevice)")
_IMPORTED = (
    "triton", "tl", "triton_helpers", "libdevice", "tl_math", "math", "triton_heuristics", "AutotuneHint",
    "ReductionHint", "TileHint", "DeviceProperties", "language",
)  # fmt: skip
BUILTINS = (
    "range", "min", "max", "len", "int", "float", "bool", "abs", "tuple", "list", "isinstance", "print", "zip", "sum",
    "enumerate", "True", "False", "None", "AssertionError", "ValueError",
)  # fmt: skip
_HOMES = ("triton.language", "triton.runtime.interpreter", __name__.rpartition(".")[0])
# Far above any real kernel, which has some thousand lines.
_LONGEST = 2_000_000


class RefusedKernel(Exception):  # noqa: N818 - a verdict about a text, not an error of ours
    """The text is not that of a kernel that can be emulated; the message says why."""


@record
class KernelText:
    """One parsed kernel.

    ``signature`` maps its arguments to types (``*fp32``, ``i32``, ``constexpr``), ``constants`` the fixed ones to
    values: numbers, texts, None, ``DtypeName``. ``first_line`` is the line of the wrapper where the text begins;
    ``executable`` has the same lines as ``text``. ``grid_type`` is Inductor's; None for other kernels. ``custom``: a
    kernel written by the user. ``waits``: the kernel uses the result of an atomic, so that its programs may wait for
    one another. ``tiles`` maps the block axes with an index of the plain form ``program_id * BLOCK + arange`` to their
    axis of the grid.
    """

    name: str
    text: str
    executable: str
    module: ast.Module
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
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RefusedKernel(f"its source does not parse: {error}") from error
    kernel = _kernel_of(module, (name, opening[1]))
    calls = [node for node in kernel.decorator_list if isinstance(node, ast.Call)]
    meta = {word.arg: word.value for call in calls for word in call.keywords if word.arg is not None}
    known = _literals(meta.get("triton_meta"))
    inductor = _literals(meta.get("inductor_meta"))
    template = bool(kernel.decorator_list) and "template" in ast.unparse(kernel.decorator_list[0])
    clean, blank = _strip_gpu_only(module)
    _check(clean)
    plain = [found for found in _PLAIN.finditer(text) if found[1].upper() == found[3]]
    lines = text.split("\n")
    return KernelText(
        name=kernel.name,
        text=text,
        executable="\n".join("" if at in blank else one for at, one in enumerate(lines, 1)) + "\n",
        module=clean,
        signature={str(key): str(value) for key, value in dict(known.get("signature") or {}).items()},
        constants={**_common_config(meta.get("configs"), inductor, grid, warps), **(known.get("constants") or {})},
        first_line=first,
        grid_type=str(inductor["grid_type"]) if inductor.get("grid_type") else None,
        template=template,
        custom=isinstance(given := meta.get("custom_kernel"), ast.Constant) and given.value is True,
        waits=_waits(clean),
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


def _strip_gpu_only(module: ast.Module) -> tuple[ast.Module, set[int]]:
    """The module without parts that only a GPU or the autotuner needs, and the lines of these parts."""
    body: list[ast.stmt] = []
    dropped: list[ast.stmt | ast.expr] = []
    for node in module.body:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="set_driver_to_gpu")) | ast.Constant()):
                dropped.append(node)
                continue
            case ast.FunctionDef():
                dropped += [one for one in node.decorator_list if ast.unparse(one) not in _DECORATORS]
                node.decorator_list = [one for one in node.decorator_list if ast.unparse(one) in _DECORATORS]
        body.append(node)
    lines = {line for one in dropped for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)}
    return ast.Module(body=body, type_ignores=[]), lines


def _waits(module: ast.Module) -> bool:
    """Whether an atomic is more than a sum, or its value is used: a lock, a flag, a count of finished programs."""
    nodes = list(ast.walk(module))
    dropped = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return any(
        node.func.attr in ("atomic_cas", "atomic_xchg") or id(node) not in dropped
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith("atomic_")
    )


def _check(module: ast.Module) -> None:
    for statement in module.body:
        if not isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.Assign | ast.AnnAssign):
            raise RefusedKernel(f"its source contains a {type(statement).__name__}, which no kernel needs")
    for node in ast.walk(module):
        match node:
            case ast.Import(names=names):
                allowed = all(one.name in ("triton", "triton.language", "math") for one in names)
            case ast.ImportFrom(module=source, names=names):
                allowed = (source or "").startswith(_MODULES) and all(one.name in _IMPORTED for one in names)
                single = SINGLE_LANE.fullmatch(source or "") and not any(one.name.startswith("__") for one in names)
                allowed = allowed or bool(single)
            case ast.Attribute(attr=attr):
                allowed = not attr.startswith("_") or attr == "_shape"
            case ast.Name(id=name):
                allowed = not name.startswith("__") and (name in BUILTINS or not hasattr(builtins, name))
            case ast.ClassDef() | ast.AsyncFunctionDef() | ast.Global() | ast.Nonlocal() | ast.Try() | ast.With():
                allowed = False
            case _:
                allowed = True
        if not allowed:
            raise RefusedKernel(f"its source contains {ast.unparse(node)[:60]!r}, which no kernel needs")


# Execution of the text.
def build_kernel(kernel: KernelText, folder: Path, libdevice: Any) -> Any:
    """Execute the definitions and return the kernel as Triton's interpreter has it. Raises ``RefusedKernel``."""
    import triton

    # The interpreter reads the source of a function from its file.
    path = folder / f"{kernel.name[:100]}.py"
    source = kernel.executable
    path.write_text(source, encoding="utf-8")
    names: dict[str, Any] = {"__builtins__": {name: getattr(builtins, name) for name in BUILTINS}}
    names["__builtins__"]["__import__"] = _import
    names["__name__"] = f"emulated_{kernel.name}"
    _check_reach(kernel.module, names)
    exec(compile(source, str(path), "exec"), names)  # noqa: S102 - in the child, after what was checked above
    if "libdevice" in names:
        names["libdevice"] = libdevice
    found = names.get(kernel.name)
    if not hasattr(found, "rewrite"):
        raise RefusedKernel(f"Triton {triton.__version__} does not interpret it: TRITON_INTERPRET has no effect here")
    for value in list(names.values()):
        if hasattr(value, "rewrite"):
            value.fn.__globals__["libdevice"] = libdevice
    return found


def _import(name: str, namespace: Any = None, local: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    """Import a module that a kernel needs: ``__import__`` of the namespace."""
    known = name in ("triton", "triton.language", "math") or name.startswith("torch._inductor.runtime")
    if level or not (known or SINGLE_LANE.fullmatch(name)):
        raise RefusedKernel(f"its source imports {name}")
    module = __import__(name, {}, {}, tuple(fromlist or ()), 0)
    for one in () if known else fromlist or ():
        value = getattr(module, one, None)
        home = getattr(value, "__module__", None) or type(value).__module__
        # Triton's own functions and types and the stand-ins for them, but no module that one of these imports.
        if inspect.ismodule(value) or not home.startswith(_HOMES):
            raise RefusedKernel(f"its source imports {one} of {name}")
    return module


def _check_reach(module: ast.Module, names: Mapping[str, Any]) -> None:
    """Refuse chains of attributes that lead from an allowed module to one that is not allowed."""
    import triton
    import triton.language as tl
    from torch._inductor.runtime import triton_helpers

    roots = {"triton": triton, "tl": tl, "triton_helpers": triton_helpers, "tl_math": tl.math}
    for node in ast.walk(module):
        parts: list[str] = []
        inner = node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        chain = [inner.id, *reversed(parts)] if parts and isinstance(inner, ast.Name) else None
        if chain is None or chain[0] not in roots:
            continue
        value = roots[chain[0]]
        for attribute in chain[1:]:
            value = getattr(value, attribute, None)
            if inspect.ismodule(value) and not value.__name__.startswith(("triton.language", "triton.tools")):
                raise RefusedKernel(f"its source reaches for {'.'.join(chain)}")
