"""Arrange saved inputs as a call: by their form, or from the JSON inputs document.

A saved object may mean arguments, ``{"args", "kwargs"}``, ``(args, kwargs)``, a tensor or a dict. The result is a plan,
not a rearranged object: trees whose leaves are places in the saved object. The parent applies it to descriptions and
the worker to tensors, so both read the same call. Where two readings are possible, the one that fits the call spec
(``expected``) best wins, and a note says which it was; without a call spec, or when both fit equally, the first of
these: ``(args, kwargs)`` pair, ``{"args", "kwargs"}``, arguments, keyword arguments.

The JSON document is ``{"args": [...], "kwargs": {...}}``, a list of arguments, or an object of keyword arguments. A
tensor is ``{"tensor": {"dtype", "shape", "stride", "device", "data", "low", "high", "seed"}}``: its values, or a shape
to fill (``low`` and ``high`` are both included). A rectangular list of numbers is a tensor too: int64, float32 or bool.
``{"tuple": [...]}``, ``{"list": [...]}`` and ``{"dict": [[key, value], ...]}`` are containers for sure; other objects
are dicts, other lists are lists, and everything else is itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from aotidoctor.model.errors import too_many
from aotidoctor.model.inputs import MAPPINGS, Container, Leaf, Place, Tree, arrange_names, is_argument_name, with_leaves
from aotidoctor.model.record import JsonObject, JsonValue, record
from aotidoctor.model.torch_names import ITEMSIZE

# Forms of a saved object.
T = TypeVar("T")
U = TypeVar("U")

Expected = tuple[Container[int], Container[int]]


@record
class Arranged:
    """A reading. Leaves of ``args`` and ``kwargs`` are places: child indices from the root of the saved object."""

    form: str
    args: Container[Place]
    kwargs: Container[Place]
    notes: tuple[str, ...] = ()


def arrange(root: Tree[T], *, flat: bool = False, expected: Expected | None = None) -> Arranged:
    """Read ``root`` as a call; a leaf is the only argument.

    ``flat`` marks a container of names that cannot nest (.npz, .safetensors).
    """
    if isinstance(root, Leaf):
        return _call("tensor", [()], {})
    if (
        root.keys
        and root.type in MAPPINGS
        and (flat or all(isinstance(key, str) and is_argument_name(key) for key in root.keys))
    ):
        args, kwargs, notes = arrange_names(tuple(str(key) for key in root.keys), flat=flat, expected=expected)
        return Arranged(form="named", args=args, kwargs=kwargs, notes=notes)
    readings = list(_readings(root))
    if expected is None or len(readings) == 1:
        return readings[0]
    explicit = readings[0].form == "args-kwargs"
    # max keeps the first of equals
    return max(readings, key=lambda reading: _fit(reading, root, expected, explicit=explicit))


def _readings(root: Container[T]) -> Iterator[Arranged]:
    """All readings of ``root``, the likeliest first."""
    count = len(root.children)
    if root.type not in MAPPINGS:
        notes = () if root.type == "tuple" else (f"a {root.type} of arguments",)
        if count > 1 and not any(isinstance(one, Leaf) for one in root.children):
            notes = (f"a {root.type} of arguments: one call, not a list of calls",)
        if _is_pair(root):
            yield _split("pair", root, 0, 1, "read as a pair of (args, kwargs)")
            notes = ("read as two arguments, not as a pair of (args, kwargs)",)
        yield _call("args", [(index,) for index in range(count)], {}, *notes)
        return
    if _is_args_kwargs(root):
        keys = root.keys
        args = keys.index("args") if "args" in keys else None
        yield _split("args-kwargs", root, args, keys.index("kwargs") if "kwargs" in keys else None)
    if all(isinstance(key, str) for key in root.keys):
        yield _call("kwargs", [], {str(key): (index,) for index, key in enumerate(root.keys)})
    yield _call("args", [()], {}, "read as one argument that is a dict")


def _is_pair(root: Container[T]) -> bool:
    """``((x, y), {"scale": s})``: what ``torch.export`` calls example inputs."""
    return root.type == "tuple" and len(root.children) == 2 and _is_call(root.children, (0, 1))


def _is_args_kwargs(root: Container[T]) -> bool:
    """Keys ``args`` and ``kwargs`` (or one of them) that hold a sequence and a dict of names."""
    known = ("args", "kwargs")
    return bool(root.keys) and set(root.keys) <= {*known} and _is_call(root.children, map(known.index, root.keys))


def _is_call(children: Sequence[Tree[T]], roles: Iterable[int]) -> bool:
    """Whether what has the role 0 is a sequence, and what has the role 1 a dict of names."""
    return all(
        isinstance(child, Container)
        and (
            child.type in MAPPINGS and all(isinstance(key, str) for key in child.keys)
            if role
            else child.type in ("tuple", "list")
        )
        for role, child in zip(roles, children, strict=True)
    )


def _split(form: str, root: Container[T], args: int | None, kwargs: int | None, *notes: str) -> Arranged:
    inner = {at: child for at, child in enumerate(root.children) if isinstance(child, Container)}
    return _call(
        form,
        [(args, index) for index in range(len(inner[args].children))] if args in inner else [],
        {str(key): (kwargs, index) for index, key in enumerate(inner[kwargs].keys)} if kwargs in inner else {},
        *notes,
    )


def _call(form: str, args: list[Place], kwargs: dict[str, Place], *notes: str) -> Arranged:
    return Arranged(
        form=form,
        args=Container(type="tuple", children=tuple(Leaf(value=place) for place in args)),
        kwargs=Container(
            type="dict", children=tuple(Leaf(value=place) for place in kwargs.values()), keys=tuple(kwargs)
        ),
        notes=notes,
    )


def _fit(reading: Arranged, root: Tree[T], expected: Expected, *, explicit: bool) -> tuple[bool, int, bool]:
    """The fit of a reading to the call spec: the whole structure, most leaves in their places, the outer level.

    Against an object with the keys ``args`` and ``kwargs`` (``explicit``) only a whole fit counts: a call with a wrong
    keyword is still a call, and not a dict as an argument.
    """
    want_args, want_kwargs = expected
    names = set(reading.kwargs.keys) == set(want_kwargs.keys)
    counts = len(reading.args.children) == len(want_args.children)
    args, kwargs = graft(reading.args, root), graft(reading.kwargs, root)
    same = names and counts and shape_of(args) == shape_of(want_args)
    same = same and dict(_shapes(kwargs)) == dict(_shapes(want_kwargs))
    if explicit:
        return same, 0, False
    return same, -_misplaced(args, want_args) - _misplaced(kwargs, want_kwargs), names and counts


def fits_call(reading: Arranged, root: Tree[T], expected: Expected) -> bool:
    """Whether ``reading`` has the whole structure of the call spec."""
    return _fit(reading, root, expected, explicit=True)[0]


def _misplaced(given: Tree[T], wanted: Tree[int]) -> int:
    """Leaves of either tree without a leaf of the other in the same place; an empty container counts as one."""
    if isinstance(given, Leaf) and isinstance(wanted, Leaf):
        return 0
    if isinstance(given, Leaf) or isinstance(wanted, Leaf) or _family(given) != _family(wanted):
        return _leaves(given) + _leaves(wanted)
    ours = dict(zip(given.keys or range(len(given.children)), given.children, strict=True))
    theirs = dict(zip(wanted.keys or range(len(wanted.children)), wanted.children, strict=True))
    extra = sum(_leaves(ours[key]) for key in ours.keys() - theirs.keys())
    missing = sum(_leaves(theirs[key]) for key in theirs.keys() - ours.keys())
    return extra + missing + sum(_misplaced(ours[key], theirs[key]) for key in ours.keys() & theirs.keys())


def _leaves(tree: Tree[T]) -> int:
    return 1 if isinstance(tree, Leaf) else max(1, sum(map(_leaves, tree.children)))


def _shapes(tree: Container[T]) -> Iterator[tuple[str | int, str]]:
    for key, child in zip(tree.keys, tree.children, strict=True):
        yield key, shape_of(child)


def shape_of(tree: Tree[T]) -> str:
    """The nesting of a tree as text, without its leaves: ``tuple(*,dict['a':*])``. List and tuple are alike."""
    if isinstance(tree, Leaf):
        return "*"
    keys = tuple(f"{key!r}:" for key in tree.keys) or ("",) * len(tree.children)
    return f"{_family(tree)}({','.join(key + shape_of(child) for key, child in zip(keys, tree.children, strict=True))})"


def _family(tree: Container[T]) -> str:
    """Containers of one family flatten alike."""
    return "dict" if tree.type in MAPPINGS else "seq" if tree.type in ("tuple", "list") else tree.type


def graft(template: Container[Place], root: Tree[T]) -> Container[T]:
    """The tree that ``template`` describes, with the parts of ``root`` in their places."""

    def subtree(place: Place) -> Tree[T]:
        tree = root
        for index in place:
            if isinstance(tree, Leaf):
                raise TypeError("the template was made from another root")
            tree = tree.children[index]
        return tree

    return with_leaves(template, subtree)


def plan_to_json(arranged: Arranged) -> JsonObject:
    """The reading as JSON: ``{"form", "args", "kwargs"}``, leaves ``{"place": [0, 1]}``."""
    return {"form": arranged.form, "args": _to_json(arranged.args), "kwargs": _to_json(arranged.kwargs)}


def _to_json(tree: Tree[Place]) -> JsonValue:
    if isinstance(tree, Leaf):
        return {"place": list(tree.value)}
    children = [_to_json(child) for child in tree.children]
    if tree.type == "dict":
        return {"dict": [[key, child] for key, child in zip(tree.keys, children, strict=True)]}
    return {tree.type: children}


def build_plan(plan: JsonValue, make: Callable[[str, list[U], list[str | int]], U], pick: Callable[[Place], U]) -> U:
    """Apply ``plan_to_json``'s form of a tree: ``pick`` for a place, ``make(type, children, keys)`` for a container."""
    match plan:
        case {"place": list(place)}:
            return pick(tuple(index for index in place if isinstance(index, int)))
        case {"dict": list(entries)}:
            pairs = [(entry[0], entry[1]) for entry in entries if isinstance(entry, list)]
            keys = [key for key, _ in pairs if isinstance(key, (str, int))]
            return make("dict", [build_plan(child, make, pick) for _, child in pairs], keys)
        case {"tuple": list(children)}:
            return make("tuple", [build_plan(child, make, pick) for child in children], [])
        case {"list": list(children)}:
            return make("list", [build_plan(child, make, pick) for child in children], [])
    raise ValueError(f"not a plan: {plan!r}")


# The JSON inputs document.
Number = int | float | bool

MAX_DEPTH = 64
# Containers and leaves; the values of tensors do not count.
MOST_PLACES = 50_000
_WORDS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class DocumentError(ValueError):
    """The document is not an inputs document; the message names the place."""


@record
class TensorSpec:
    """A tensor to make. ``data`` holds its values row-major, None when they are to be generated from ``seed``."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None = None
    device: str = "cpu"
    data: tuple[Number, ...] | None = None
    low: float | None = None
    high: float | None = None
    seed: int = 0


@record(kw_only=False)
class _Makers(Generic[T]):
    tensor: Callable[[TensorSpec], T]
    plain: Callable[[str | int | float | bool | None], T]
    room: Iterator[int]


def decode(
    document: JsonValue, tensor: Callable[[TensorSpec], T], plain: Callable[[str | int | float | bool | None], T]
) -> Tree[T]:
    """The document as a tree, to be given to ``forms.arrange``. Raises ``DocumentError``, LimitReachedError."""
    makers = _Makers(tensor, plain, iter(range(MOST_PLACES)))
    match document:
        case {"tensor": dict(spec)} if _is_tensor(spec):
            return _tree(makers, document, "document", 0)
        case dict() if document and set(document) <= {"args", "kwargs"}:
            children = tuple(_part(makers, key, child) for key, child in document.items())
            return Container(type="dict", children=children, keys=tuple(document))
    return _part(makers, "args" if isinstance(document, list) else "kwargs", document)


def _part(makers: _Makers[T], name: str, value: JsonValue) -> Tree[T]:
    """Arguments, or keyword arguments: their own level is a container, whatever it looks like."""
    match value:
        case list():
            children = tuple(_tree(makers, item, f"{name}[{index}]", 1) for index, item in enumerate(value))
            return Container(type="list", children=children)
        case {"tuple": list(), **rest} | {"list": list(), **rest} | {"dict": list(), **rest} if not rest:
            return _tree(makers, value, name, 0)
        case dict():
            children = tuple(_tree(makers, item, f"{name}[{key!r}]", 1) for key, item in value.items())
            return Container(type="dict", children=children, keys=tuple(value))
    raise DocumentError(f"{name}: observed {type(value).__name__}, expected a list or an object")


def _tree(makers: _Makers[T], value: JsonValue, path: str, depth: int) -> Tree[T]:
    if depth > MAX_DEPTH:
        raise DocumentError(f"{path[:80]}: nested more than {MAX_DEPTH} deep")
    if next(makers.room, None) is None:
        raise too_many("values outside tensors", MOST_PLACES)
    match value:
        case {"tensor": dict(spec), **rest} if not rest and _is_tensor(spec):
            return Leaf(value=makers.tensor(tensor_spec(spec, path)))
        case {"tuple": list(items), **rest} if not rest:
            return _sequence(makers, "tuple", items, path, depth)
        case {"list": list(items), **rest} if not rest:
            return _sequence(makers, "list", items, path, depth)
        case {"dict": list(items), **rest} if not rest:
            return _entries(makers, [_entry(item, path) for item in items], path, depth)
        case dict():
            return _entries(makers, list(value.items()), path, depth)
        case list() if value and _is_numbers(value):
            return Leaf(value=makers.tensor(tensor_spec({"data": value}, path)))
        case list():
            return _sequence(makers, "list", value, path, depth)
    return Leaf(value=makers.plain(value))


def _sequence(makers: _Makers[T], kind: str, items: list[JsonValue], path: str, depth: int) -> Tree[T]:
    children = tuple(_tree(makers, item, f"{path}[{index}]", depth + 1) for index, item in enumerate(items))
    return Container(type=kind, children=children)


def _entries(makers: _Makers[T], items: Sequence[tuple[str | int, JsonValue]], path: str, depth: int) -> Tree[T]:
    children = tuple(_tree(makers, item, f"{path}[{key!r}]", depth + 1) for key, item in items)
    return Container(type="dict", children=children, keys=tuple(key for key, _ in items))


def _entry(item: JsonValue, path: str) -> tuple[str | int, JsonValue]:
    match item:
        case [str() | int() as key, value]:
            return key, value
    raise DocumentError(f"{path}: observed {str(item)[:40]}, expected [key, value] pairs")


def _is_tensor(spec: JsonObject) -> bool:
    return "shape" in spec or "data" in spec


def _is_numbers(value: JsonValue) -> bool:
    """Whether the first innermost element is a number; ``tensor_spec`` checks the rest."""
    while isinstance(value, list) and value:
        value = value[0]
    return isinstance(value, (int, float)) or (isinstance(value, str) and value in _WORDS)


def tensor_spec(spec: JsonObject, path: str) -> TensorSpec:
    """The tensor that ``spec`` describes. Raises ``DocumentError``."""
    unknown = set(spec) - {"dtype", "shape", "stride", "device", "data", "low", "high", "seed"}
    if unknown:
        raise DocumentError(f"{path}: unknown keys {sorted(unknown)[:5]}")
    flat: list[Number] | None = None
    shape = _integers(spec.get("shape"), f"{path}.shape")
    if spec.get("data") is not None:
        flat = []
        seen = _flatten(spec["data"], flat, f"{path}.data", 0)
        shape = seen if shape is None else shape
        if math.prod(shape) != len(flat):
            raise DocumentError(
                f"{path}.data: observed {len(flat)} values, expected {math.prod(shape)} for shape {shape}"
            )
    stride = _integers(spec.get("stride"), f"{path}.stride")
    if stride is not None and len(stride) != len(shape or ()):
        raise DocumentError(f"{path}.stride: observed {len(stride)} strides, expected {len(shape or ())}")
    seed, device = spec.get("seed", 0), spec.get("device", "cpu")
    return TensorSpec(
        dtype=_dtype(spec.get("dtype"), flat, path),
        shape=shape or (),
        stride=stride,
        device=device if isinstance(device, str) else "cpu",
        data=None if flat is None else tuple(flat),
        low=_number(spec.get("low"), f"{path}.low"),
        high=_number(spec.get("high"), f"{path}.high"),
        seed=seed if isinstance(seed, int) else 0,
    )


def _dtype(value: JsonValue, flat: list[Number] | None, path: str) -> str:
    if value is None:
        kinds = {type(item) for item in flat or ()}
        # As torch.tensor infers it: an empty list is float32, and bool beside int is int64.
        return "float32" if not kinds or float in kinds else "int64" if int in kinds else "bool"
    name = str(value).removeprefix("torch.")
    if name not in ITEMSIZE:
        raise DocumentError(f"{path}.dtype: observed {name[:40]!r}, expected the name of a torch dtype")
    return name


def _integers(value: JsonValue, path: str) -> tuple[int, ...] | None:
    if value is None:
        return None
    good = (
        isinstance(value, list)
        and len(value) <= MAX_DEPTH
        and all((isinstance(item, int) and not isinstance(item, bool) and 0 <= item < 1 << 48) for item in value)
    )
    if not good:
        raise DocumentError(f"{path}: observed {str(value)[:40]}, expected a list of sizes")
    return tuple(item for item in value if isinstance(item, int)) if isinstance(value, list) else ()


def _number(value: JsonValue, path: str) -> float | None:
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    raise DocumentError(f"{path}: observed {str(value)[:40]}, expected a number")


def _flatten(value: JsonValue, flat: list[Number], path: str, depth: int) -> tuple[int, ...]:
    """Append the numbers of ``value`` to ``flat``; its shape."""
    if isinstance(value, str) and value in _WORDS:
        value = _WORDS[value]
    if isinstance(value, (int, float)):
        flat.append(value)
        return ()
    if not isinstance(value, list) or depth > MAX_DEPTH:
        raise DocumentError(f"{path}: observed {str(value)[:40]}, expected numbers in a rectangular list")
    shapes = {_flatten(item, flat, path, depth + 1) for item in value}
    if len(shapes) > 1:
        raise DocumentError(f"{path}: observed rows of different sizes, expected a rectangular list")
    return (len(value), *(shapes.pop() if shapes else ()))
