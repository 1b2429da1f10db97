"""How far into an input the generated C++ kernels read, where no check states its sizes.

Packages of torch 2.6 hold no input checks, and a size that follows from another one (``seq + 1``) stands in none before
2.13. The loops of a kernel tell a least size all the same: what runs over ``x0 < 10L*ks1`` and loads
``in_ptr0 + x0`` needs that many elements. Only what every call does is taken: accesses below a condition, through an
index that is computed, or in a loop that may be empty tell nothing. So a larger size is never wrong, a smaller one is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from aotidoctor.model.contract import Contract, KernelBody, Reads
from aotidoctor.model.expr import Expr, Num, Product, Sum, Sym, evaluate, parse_expr, product_of, substitute, sum_of
from aotidoctor.model.record import record

_ACCESS = re.compile(r"(?P<vector>\b(?:loadu|store)\()?\b(?P<name>\w{1,60})(?:\[| \+ )static_cast<int64_t>\(")
_HEADER = re.compile(r"(?:int64_t|long) (\w{1,60})\s?=")
_CONDITIONS = ("if", "else", "while", "switch", "do", "case")
_SPLITS = ("if(C10_LIKELY(", "if(C10_UNLIKELY(")
_LONGEST = 2000
_MOST_LINES = 20_000
_MOST = 8
_ONE = Num(1)


@record
class Loop:
    """A scope: the variable that it runs over, below ``trips``; none of both for another scope.

    ``sure`` tells that it is entered in every call, ``stepped`` that it goes by more than one, ``started`` that it does
    not begin at zero and is not the rest of another loop either. ``opened`` is its line, counted from 0.
    """

    depth: int
    sure: bool
    variable: str = ""
    trips: Expr = _ONE
    stepped: bool = False
    started: bool = False
    opened: int = 0


@record
class Access:
    """A place in a kernel that takes or stores ``pointer[offset]``; ``scopes`` are those around it, outermost first.

    ``sure`` tells that every call comes by it, ``vector`` that it loads a vector. ``loops`` are those around it.
    """

    pointer: str
    offset: Expr
    loops: Mapping[str, Loop]
    vector: bool
    sure: bool
    scopes: tuple[int, ...]


def with_implied_reads(contract: Contract, texts: Mapping[str, str]) -> Contract:
    """``contract`` with ``reads`` for each tensor of which a size is not known. ``texts`` maps members to sources."""
    wanted = {leaf.generated_name or "" for leaf in contract.tensor_leaves() if leaf.has_open_sizes}
    if not wanted:
        return contract
    found: dict[str, list[Reads]] = {}
    bodies = {body.name: body for body in contract.bodies if body.kind == "cpp"}
    for call in contract.kernels:
        body = bodies.get(call.name)
        if body is None or len(call.arguments) != len(body.parameters) or wanted.isdisjoint(call.arguments):
            continue
        given = dict(zip((one.name for one in body.parameters), call.arguments, strict=True))
        numbers = {one.name: parse_expr(given[one.name]) for one in body.parameters if not one.pointer}
        for access in accesses(lines_of(body, texts), numbers):
            name = given.get(access.pointer)
            if access.sure and name in wanted and (reads := _reads(access)) is not None:
                found.setdefault(name, []).append(reads)
    leaves = (
        replace(leaf, reads=_largest(found[leaf.generated_name])) if leaf.generated_name in found else leaf
        for leaf in contract.leaves
    )
    return replace(contract, leaves=tuple(leaves))


def lines_of(body: KernelBody, texts: Mapping[str, str]) -> Sequence[str]:
    """The kernel's lines; none of one that is too long."""
    if body.lines > _MOST_LINES:
        return ()
    return texts.get(body.member, "").split("\n", body.line + body.lines)[body.line - 1 : body.line - 1 + body.lines]


def _largest(found: Iterable[Reads]) -> tuple[Reads, ...]:
    """The furthest one of those that are numbers, and some of the others."""
    distinct = list(dict.fromkeys(found))
    numbers = [one for one in distinct if isinstance(one.extent, Num)]
    furthest = max(numbers, key=lambda one: evaluate(one.extent, {}) or 0, default=None)
    return tuple(one for one in distinct if one is furthest or not isinstance(one.extent, Num))[:_MOST]


def accesses(lines: Sequence[str], numbers: Mapping[str, Expr]) -> Iterator[Access]:
    """Each access of the kernel that is written in one of the usual forms, in order."""
    scopes: list[Loop] = []
    depth, pending = 0, Loop(depth=0, sure=True)
    for at, line in enumerate(map(str.strip, lines)):
        if line.startswith("for"):
            pending = _loop(line, numbers)
            continue
        if "[&]" in line or (line.startswith(_CONDITIONS) and not line.startswith(_SPLITS)):
            pending = Loop(depth=0, sure=False)
        elif "static_cast" in line:
            sure = "?" not in line and pending.sure and all(scope.sure for scope in scopes)
            inside = tuple(one.opened for one in scopes)
            yield from _of_line(line, {one.variable: one for one in scopes if one.variable}, numbers, sure, inside)
        opened, closed = line.count("{"), line.count("}")
        if opened > closed:
            depth += opened - closed
            scopes.append(replace(pending, depth=depth, opened=at))
            pending = Loop(depth=0, sure=True)
        elif closed > opened:
            depth -= closed - opened
            while scopes and scopes[-1].depth > depth:
                scopes.pop()


def _loop(line: str, numbers: Mapping[str, Expr]) -> Loop:
    """The loop that a header opens; one that is not certain to run where it is written in another form."""
    start, _, rest = line.partition(";")
    condition, _, step = rest.partition(";")
    named = _HEADER.search(start)
    variable, less, bound = (part.strip() for part in condition.partition("<"))
    trips = substitute(parse_expr(bound), numbers)
    if named is None or not less or variable != named[1] or not is_positive(trips):
        return Loop(depth=0, sure=False)
    by_one = step.strip().rstrip("{ ") in (f"{variable}++)", f"{variable}+=static_cast<int64_t>(1L))")
    started = "(0L)" not in start and "= 0" not in start and not variable.endswith("_tail")
    return Loop(depth=0, sure=True, variable=variable, trips=trips, stepped=not by_one, started=started)


def is_positive(expr: Expr) -> bool:
    """Whether it is at least one wherever the sizes in it are."""
    match expr:
        case Num(over=over, under=under):
            return over > 0 and under == 1
        case Sym():
            return True
        case Product() | Sum():
            return all(map(is_positive, expr.parts()))
        case _:
            return False


def _of_line(
    line: str, loops: Mapping[str, Loop], numbers: Mapping[str, Expr], sure: bool, inside: tuple[int, ...]
) -> Iterator[Access]:
    for found in _ACCESS.finditer(line):
        text = _inside(line, found.end())
        if text is not None:
            yield Access(
                pointer=found["name"],
                offset=substitute(parse_expr(text), numbers),
                loops=loops,
                vector=found["vector"] is not None,
                sure=sure,
                scopes=inside,
            )


def _inside(line: str, start: int) -> str | None:
    """What stands between the parenthesis before ``start`` and the one that closes it."""
    depth = 1
    for at in range(start, min(len(line), start + _LONGEST)):
        depth += {"(": 1, ")": -1}.get(line[at], 0)
        if depth == 0:
            return line[start:at]
    return None


def _reads(access: Access) -> Reads | None:
    """How far an access goes; None where anything but loops moves it.

    A loop that goes by more than one reaches its last element only with a vector along it, whose rest is read in a
    branch of its own; else its first turn alone is counted.
    """
    offset, loops, vector = access.offset, access.loops, access.vector
    furthest: list[Expr] = [_ONE]
    steps: dict[str, Expr] = {}
    for term in offset.terms if isinstance(offset, Sum) else (offset,):
        factors = term.factors if isinstance(term, Product) else (term,)
        moved = [factor for factor in factors if isinstance(factor, Sym) and factor.name in loops]
        step = product_of(tuple(factor for factor in factors if factor not in moved))
        if not moved:
            if not isinstance(term, Num):
                return None
            furthest.append(term)
            continue
        if len(moved) > 1 or not is_positive(step):
            return None
        loop = loops[moved[0].name]
        if loop.stepped and not (vector and step == _ONE):
            continue
        furthest.append(product_of((step, sum_of((loop.trips, Num(-1))))))
        steps[loop.variable] = step
    outermost = next((steps[name] for name in loops if name in steps), None)
    return Reads(extent=sum_of(tuple(furthest)), step=outermost if len(steps) > 1 else None)
