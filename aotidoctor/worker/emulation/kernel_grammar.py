"""What the text of a Triton kernel may hold: an allow-list of node types, names and attributes.

The text is untrusted Python. ``check_text`` returns a tree that is compiled as it is; nothing else of the text is ever
executed. Every name in it is bound by the text itself (parameters, variables, functions, constants) or is on a list
below. A module has no object in the tree: ``tl.load`` becomes one name, which the interpreter's globals map to that
function, so there is nothing whose other attributes could be reached. Imports, decorators and constants are read and
dropped. Attributes of values are those of tensors and types.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from aotidoctor.model.record import record
from aotidoctor.worker.emulation.interpreter import LIBDEVICE

_LANGUAGE = """
    PropagateNan TRITON_MAX_TENSOR_NUMEL abs add advance arange argmax argmin associative_scan assume atomic_add
    atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg atomic_xor bfloat16 block_type broadcast
    broadcast_to cast cat cdiv ceil clamp constexpr cos cumprod cumsum debug_barrier device_assert device_print div_rn
    dot dtype erf exp exp2 expand_dims fdiv flip float16 float32 float64 float8e4b15 float8e4b8 float8e4nv float8e5
    float8e5b16 floor fma full gather histogram int1 int16 int32 int64 int8 interleave join load load_tensor_descriptor
    log log2 make_block_ptr make_tensor_descriptor max max_constancy max_contiguous maximum min minimum mul multiple_of
    num_programs pair_uniform_to_normal permute philox pi32_t pointer_type program_id rand rand4x randint randint4x
    randn randn4x range ravel reduce reduce_or reshape rsqrt sigmoid sin softmax sort split sqrt sqrt_rn squeeze
    static_assert static_print static_range store store_tensor_descriptor sub sum swizzle2d tensor topk trans uint16
    uint32 uint64 uint8 uint_to_uniform_float umulhi unsqueeze view void where xor_sum zeros zeros_like
    _argmax_combine_tie_break_fast _argmax_combine_tie_break_left _argmin_combine_tie_break_fast
    _argmin_combine_tie_break_left _elementwise_max _elementwise_min _or_combine _prod_combine _sum_combine _xor_combine
"""
_HELPERS = """
    any bucketize_binary_search constexpr_next_power_of_2 device_assert_then div_floor_integer exp fp8e4m3fn_to_float32
    frexp if_mask is_floating max2 max_with_index maximum maximum_with_index min2 min_with_index minimum
    minimum_with_index online_softmax_combine online_softmax_combine_with_sum online_softmax_reduce pow_integer prod
    promote_to_tensor rand4x rand_eager_kernel randint64 randn4x remainder_integer select_one sort_with_index welford
    welford_combine welford_reduce
"""
_MATH = "abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn umulhi"
NAMES: Mapping[str, frozenset[str]] = {
    "tl": frozenset(_LANGUAGE.split()),
    "triton_helpers": frozenset(_HELPERS.split()),
    "tl_math": frozenset(_MATH.split()),
    "libdevice": LIBDEVICE,
    "triton": frozenset(("cdiv", "next_power_of_2")),
}
"""Functions and constants by the module that has them."""


def _of_several(function: Callable[..., Any]) -> Callable[..., Any]:
    """``min`` or ``max`` of its arguments: that of a long range could not be interrupted."""

    def choose(first: Any, *others: Any) -> Any:
        if not others:
            raise RefusedKernel(f"its source takes the {function.__name__} of one thing")
        return function(first, *others)

    return choose


BUILTINS: Mapping[str, Any] = {
    **{one.__name__: one for one in (range, len, int, float, bool, abs, isinstance, zip, enumerate)},
    **{one.__name__: _of_several(one) for one in (min, max)},
    "print": lambda *_, **__: None,
}
# Of tensors, types and constants, whatever value they are read from.
_OF_VALUES = """
    ALL NONE T abs advance argmax argmin associative_scan atomic_add atomic_and atomic_cas atomic_max atomic_min
    atomic_or atomic_xchg atomic_xor broadcast_to cast cdiv ceil cos cumprod cumsum dtype element_ty erf exp exp2
    expand_dims flip floor gather histogram is_block is_bf16 is_floating is_fp16 is_fp32 is_fp64 is_int is_int_signed
    is_int_unsigned is_ptr load log log2 logical_and logical_or max min numel permute primitive_bitwidth ravel reduce
    reshape rsqrt scalar shape sigmoid sin softmax sort split sqrt sqrt_rn store sum to trans type value view xor_sum
"""
_ATTRIBUTES = frozenset(_OF_VALUES.split())
# Other paths to these modules.
_PATHS = (
    ("triton.language", "tl"), ("tl.extra.cuda.libdevice", "libdevice"), ("tl.extra.libdevice", "libdevice"),
    ("triton_helpers.libdevice", "libdevice"), ("triton_helpers.math", "tl_math"), ("tl.math", "tl_math"),
    ("tl.core", "tl"), ("tl.standard", "tl"), ("tl.random", "tl"),
)  # fmt: skip
# Imported names of modules; None: only decorators have a use for it, and these are not executed.
_IMPORTS: Mapping[tuple[str, str, str], str | None] = {
    ("", "triton", "triton"): "triton",
    ("", "triton.language", "tl"): "tl",
    ("torch._inductor.runtime", "triton_helpers", "triton_helpers"): "triton_helpers",
    ("torch._inductor.runtime", "triton_heuristics", "triton_heuristics"): None,
    ("torch._inductor.runtime.triton_helpers", "libdevice", "libdevice"): "libdevice",
    ("torch._inductor.runtime.triton_helpers", "math", "tl_math"): "tl_math",
    **{
        ("torch._inductor.runtime.hints", one, one): None
        for one in ("AutotuneHint", "ReductionHint", "TileHint", "DeviceProperties")
    },
}
_JIT, _CONSTEXPR = "triton.jit", ("triton.constexpr_function", "triton.language.constexpr_function")
# Names that the tree gets from Triton's interpreter, and those of modules: the text may not give them a meaning.
INTERPRETER_NAMES = ("interpreter_semantic", "_InterpreterComparison")
_RESERVED = {*NAMES, *INTERPRETER_NAMES, "triton_heuristics"}
_NODES = (
    ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While,
    ast.If, ast.Assert, ast.Expr, ast.Pass, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Compare, ast.Call,
    ast.keyword, ast.Constant, ast.Attribute, ast.Subscript, ast.Slice, ast.Name, ast.Tuple, ast.List, ast.boolop,
    ast.unaryop, ast.cmpop, ast.expr_context, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.BitAnd,
    ast.BitOr, ast.BitXor, ast.LShift, ast.RShift,
)  # fmt: skip
_DEEPEST = 200
_LARGEST = 1 << 64


class RefusedKernel(Exception):  # noqa: N818 - a verdict about a text, not an error of ours
    """The text is not that of a kernel that can be emulated; the message says why."""


@record
class CheckedText:
    """Definitions that may be executed, and what their names mean.

    ``names`` maps a name of the tree to one of the lists (``tl.load``), ``constants`` to a literal, and to the name
    that it is given to, if any (``tl.constexpr``). ``plain`` are functions of constants (``constexpr_function``).
    """

    functions: tuple[ast.FunctionDef, ...]
    names: Mapping[str, str]
    constants: Mapping[str, tuple[str | None, Any]]
    plain: frozenset[str]


def parse_text(text: str) -> ast.Module:
    """The tree of the text, of bounded depth. Raises ``RefusedKernel``."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RefusedKernel(f"its source does not parse: {error}") from error
    level: list[ast.AST] = [module]
    for _ in range(_DEEPEST):
        level = [inner for node in level for inner in ast.iter_child_nodes(node)]
        if not level:
            return module
    raise RefusedKernel(f"its source is nested more than {_DEEPEST} deep")


def check_text(module: ast.Module) -> CheckedText:
    """What may be executed of a tree, which is changed for it. Raises ``RefusedKernel``."""
    modules: dict[str, str] = {}
    names: dict[str, str] = {}
    functions: dict[str, ast.FunctionDef] = {}
    assigned: dict[str, ast.expr] = {}
    plain: set[str] = set()
    bound: list[str] = []
    for node in module.body:
        match node:
            case ast.Import() | ast.ImportFrom():
                for local, name, is_module in _imported(node):
                    (modules if is_module else names)[local] = name
                    bound += [] if is_module else [_free(local, node)]
            case ast.FunctionDef(name=name):
                bound.append(_free(name, node))
                functions[name] = node
                if _is_plain(node):
                    plain.add(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                bound.append(_free(name, node))
                assigned[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                bound.append(_free(name, node))
                assigned[name] = value
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.Expr(value=ast.Call(args=[], keywords=[]) as call) if (
                ast.unparse(call.func) == "triton_helpers.set_driver_to_gpu"
            ):
                pass
            case _:
                _refuse(node)
    if any(count > 1 for count in Counter(bound).values()):
        raise RefusedKernel("its source gives one name two meanings")
    constants = {name: _constant(value, modules) for name, value in assigned.items()}
    outside = {*bound, *BUILTINS}
    for function in functions.values():
        own = {
            node.arg if isinstance(node, ast.arg) else node.id
            for node in ast.walk(function)
            if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        }
        function.decorator_list = []
        _Checker(names=names, modules=modules, known=outside | own).visit(function)
    made = tuple(ast.fix_missing_locations(one) for one in functions.values())
    return CheckedText(functions=made, names=names, constants=constants, plain=frozenset(plain))


def _refuse(node: ast.AST) -> NoReturn:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        raise RefusedKernel("its source contains a number of more than 64 bits")
    raise RefusedKernel(f"its source contains {ast.unparse(node)[:60]!r}, which no kernel needs")


def _free(name: str, node: ast.AST) -> str:
    """``name``, if a text may give it a meaning."""
    if name.startswith("__") or name in _RESERVED:
        _refuse(node)
    return name


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, bool]]:
    """``(name in the text, name on the lists, whether it is a module)`` for each import."""
    source = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
    if isinstance(node, ast.ImportFrom) and (node.level or not source):
        _refuse(node)
    for one in node.names:
        local = one.asname or one.name
        if (source, one.name, local) in _IMPORTS:
            name = _IMPORTS[source, one.name, local]
            if name is not None:
                yield local, name, True
            continue
        listed = _listed(f"{source}.{one.name}") if source.startswith("triton.language") else None
        if listed is None or listed.partition(".")[2] not in NAMES[listed.partition(".")[0]]:
            _refuse(node)
        yield local, listed, False


def _is_plain(node: ast.FunctionDef) -> bool:
    """Whether it is a function of constants. Raises ``RefusedKernel`` for decorators that no kernel has."""
    given = [ast.unparse(one.func if isinstance(one, ast.Call) else one) for one in node.decorator_list]
    bare = [ast.unparse(one) for one in node.decorator_list if not isinstance(one, ast.Call)]
    if any(one not in (_JIT, *_CONSTEXPR) and not one.startswith("triton_heuristics.") for one in given) or not bare:
        raise RefusedKernel(f"its source contains {node.name} with the decorators {given}, which no kernel needs"[:200])
    return any(one in _CONSTEXPR for one in bare)


def _constant(node: ast.expr, modules: Mapping[str, str]) -> tuple[str | None, Any]:
    """A literal, one that is given to ``tl.constexpr``, or a type."""
    match node:
        case ast.Attribute() if (found := _path(node, modules)) is not None and not found[1]:
            return found[0], None
        case ast.Call(func=ast.Attribute() as called, args=[inner], keywords=[]):
            if _path(called, modules) == ("tl.constexpr", ()):
                return "tl.constexpr", _constant(inner, modules)[1]
            _refuse(node)
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        _refuse(node)
    if not _is_literal(value):
        _refuse(node)
    return None, value


def _is_literal(value: Any) -> bool:
    """Whether a kernel may have this constant."""
    if isinstance(value, tuple):
        return all(map(_is_literal, value))
    if isinstance(value, int):
        return abs(value) < _LARGEST
    return value is None or isinstance(value, float | str)


def _listed(path: str) -> str | None:
    """``base.rest`` of a path, with the shortest name of its module; None where there is no such module."""
    changed = True
    while changed:
        changed = False
        for long, short in _PATHS:
            if path.startswith(f"{long}."):
                path, changed = f"{short}{path[len(long) :]}", True
    return path if path.partition(".")[0] in NAMES else None


def _path(node: ast.Attribute, modules: Mapping[str, str]) -> tuple[str, tuple[str, ...]] | None:
    """``(name on the lists, attributes of its value)`` of a chain that begins at a module; None for other chains.

    Raises ``RefusedKernel`` where the list of the module has no such name.
    """
    parts: list[str] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    if not isinstance(inner, ast.Name) or inner.id not in modules:
        return None
    found = _listed(".".join((modules[inner.id], *reversed(parts))))
    base, *rest = (found or "").split(".")
    if not rest or rest[0] not in NAMES[base]:
        _refuse(node)
    return f"{base}.{rest[0]}", tuple(rest[1:])


class _Checker(ast.NodeTransformer):
    """Check one function, and turn it into what is executed."""

    def __init__(self, *, names: dict[str, str], modules: Mapping[str, str], known: set[str]) -> None:
        self._names = names
        self._modules = modules
        self._known = known
        self._outermost = True

    def visit(self, node: ast.AST) -> Any:
        """Refuse what is not on the list."""
        if not isinstance(node, _NODES):
            _refuse(node)
        return super().visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """One function, and none inside it."""
        if not self._outermost:
            _refuse(node)
        self._outermost = False
        node.returns = None
        return self.generic_visit(node)

    def visit_arguments(self, node: ast.arguments) -> Any:
        """Parameters, each with a name of its own."""
        if node.vararg is not None or node.kwarg is not None:
            _refuse(node)
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> Any:
        """A parameter; the interpreter needs no annotation."""
        _free(node.arg, node)
        node.annotation = None
        return node

    def visit_keyword(self, node: ast.keyword) -> Any:
        """A keyword of a call; those with an underscore are Triton's own."""
        if node.arg is None or node.arg.startswith("_"):
            _refuse(node.value)
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        """One target: a variable, or several in a tuple."""
        if len(node.targets) != 1:
            _refuse(node)
        self._target(node.targets[0])
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> Any:
        """A loop."""
        self._target(node.target)
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        """A constant of the kernel."""
        if node.value is None:
            _refuse(node)
        return self._raw(node, node.target, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """``a += b`` as ``a = a + b``."""
        self._target(node.target)
        before = ast.Name(id=ast.unparse(node.target), ctx=ast.Load())
        return self._raw(
            node, node.target, ast.copy_location(ast.BinOp(left=before, op=node.op, right=node.value), node)
        )

    def _raw(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> ast.AnnAssign:
        """An assignment that the interpreter does not make a tensor of."""
        if not isinstance(target, ast.Name):
            _refuse(node)
        self.visit(target)
        made = ast.AnnAssign(target=target, annotation=ast.Constant(None), value=self.visit(value), simple=1)
        return ast.copy_location(made, node)

    def _target(self, node: ast.expr) -> None:
        elements = node.elts if isinstance(node, ast.Tuple) else [node]
        if not all(isinstance(one, ast.Name) for one in elements):
            _refuse(node)

    def visit_Name(self, node: ast.Name) -> Any:
        """A name that the text binds, or a listed one."""
        if isinstance(node.ctx, ast.Store):
            _free(node.id, node)
        elif not isinstance(node.ctx, ast.Load) or node.id not in self._known:
            _refuse(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """``tl.load`` as one name; attributes of values."""
        if not isinstance(node.ctx, ast.Load):
            _refuse(node)
        found = _path(node, self._modules)
        if found is None:
            if node.attr not in _ATTRIBUTES:
                _refuse(node)
            return self.generic_visit(node)
        name, attributes = found
        self._names[name] = name
        made: ast.expr = ast.Name(id=name, ctx=ast.Load())
        for one in attributes:
            if one not in _ATTRIBUTES:
                _refuse(node)
            made = ast.copy_location(ast.Attribute(value=made, attr=one, ctx=ast.Load()), node)
        return ast.copy_location(made, node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """An element or a view, which is only read."""
        if not isinstance(node.ctx, ast.Load):
            _refuse(node)
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> Any:
        """A number of at most 64 bits, a text, None."""
        if not _is_literal(node.value):
            _refuse(node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """Operations whose result may be of any size are calls of ``BOUNDED``."""
        self.generic_visit(node)
        name = type(node.op).__name__
        if name not in BOUNDED:
            return node
        called = ast.copy_location(ast.Name(id=f"bounded.{name}", ctx=ast.Load()), node)
        return ast.copy_location(ast.Call(func=called, args=[node.left, node.right], keywords=[]), node)


def _bounded(operation: Callable[[Any, Any], Any], bits: Callable[[int, int], int]) -> Callable[[Any, Any], Any]:
    """The operation; of Python's own values only numbers, whose result has so many ``bits`` at most."""

    def apply(left: Any, right: Any) -> Any:
        a, b = (getattr(one, "value", one) for one in (left, right))
        if isinstance(a, str | tuple | list) or isinstance(b, str | tuple | list):
            raise RefusedKernel("its source computes with texts or tuples")
        if isinstance(a, int) and isinstance(b, int) and bits(a, b) > 66:
            raise RefusedKernel("its source computes a constant of more than 64 bits")
        return operation(left, right)

    return apply


BOUNDED: Mapping[str, Callable[[Any, Any], Any]] = {
    "Add": _bounded(lambda a, b: a + b, lambda a, b: max(a.bit_length(), b.bit_length()) + 1),
    "Mult": _bounded(lambda a, b: a * b, lambda a, b: a.bit_length() + b.bit_length()),
    "LShift": _bounded(lambda a, b: a << b, lambda a, b: a.bit_length() + b),
    "Mod": _bounded(lambda a, b: a % b, lambda _a, _b: 0),
}
"""By the name of the operation in the tree."""
