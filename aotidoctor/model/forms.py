"""The call that a saved object means: arguments, ``{"args", "kwargs"}``, ``(args, kwargs)``, a tensor, a dict.

The reading is a plan, not a rearranged object: trees whose leaves are places in the saved object. The parent applies it
to descriptions and the worker to tensors, so both see the same call.

Where two readings are possible the one that fits the call spec (``expected``) wins; without a call spec, or when both
fit equally, the first of these: ``(args, kwargs)`` pair, ``{"args", "kwargs"}``, arguments, keyword arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from aotidoctor.model.json_types import JsonObject, JsonValue
from aotidoctor.model.named import Place, arrange_names, is_argument_name
from aotidoctor.model.record import record
from aotidoctor.model.tree import MAPPINGS, Container, Leaf, Tree, with_leaves

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
    """The call that ``root`` means; a leaf is the only argument.

    ``flat`` marks a container of names that cannot nest (.npz, .safetensors).
    """
    if isinstance(root, Leaf):
        return _call("tensor", [()], {})
    if root.keys and root.type in MAPPINGS and (flat or _names_are_paths(root)):
        args, kwargs, notes = arrange_names(tuple(str(key) for key in root.keys), flat=flat, expected=expected)
        return Arranged(form="named", args=args, kwargs=kwargs, notes=notes)
    readings = list(_readings(root))
    if expected is None or len(readings) == 1:
        return readings[0]
    explicit = readings[0].form == "args-kwargs"
    # max keeps the first of equals
    return max(readings, key=lambda reading: _fit(reading, root, expected, explicit=explicit))


def _names_are_paths(root: Container[T]) -> bool:
    return all(isinstance(key, str) and is_argument_name(key) for key in root.keys)


def _readings(root: Container[T]) -> Iterator[Arranged]:
    """All readings of ``root``, the likeliest first."""
    count = len(root.children)
    if root.type not in MAPPINGS:
        if _is_pair(root):
            yield _split("pair", root, 0, 1, "read as a pair of (args, kwargs)")
        notes = () if root.type == "tuple" else (f"a {root.type} of arguments",)
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
    if root.type != "tuple" or len(root.children) != 2:
        return False
    args, kwargs = root.children
    return isinstance(args, Container) and args.type in ("tuple", "list") and _has_names(kwargs)


def _is_args_kwargs(root: Container[T]) -> bool:
    """Keys ``args`` and ``kwargs`` (or one of them) that hold a sequence and a dict of names."""
    if not root.keys or not set(root.keys) <= {"args", "kwargs"}:
        return False
    for key, child in zip(root.keys, root.children, strict=True):
        if key == "args" and not (isinstance(child, Container) and child.type in ("tuple", "list")):
            return False
        if key == "kwargs" and not _has_names(child):
            return False
    return True


def _has_names(tree: Tree[T]) -> bool:
    return isinstance(tree, Container) and tree.type in MAPPINGS and all(isinstance(key, str) for key in tree.keys)


def _split(form: str, root: Container[T], args: int | None, kwargs: int | None, *notes: str) -> Arranged:
    positional = _children(root, args)
    named = _children(root, kwargs)
    keys = () if named is None else named.keys
    return _call(
        form,
        [] if args is None or positional is None else [(args, index) for index in range(len(positional.children))],
        {} if kwargs is None else {str(key): (kwargs, index) for index, key in enumerate(keys)},
        *notes,
    )


def _children(root: Container[T], index: int | None) -> Container[T] | None:
    child = None if index is None else root.children[index]
    return child if isinstance(child, Container) else None


def _call(form: str, args: list[Place], kwargs: dict[str, Place], *notes: str) -> Arranged:
    return Arranged(
        form=form,
        args=Container(type="tuple", children=tuple(Leaf(value=place) for place in args)),
        kwargs=Container(
            type="dict", children=tuple(Leaf(value=place) for place in kwargs.values()), keys=tuple(kwargs)
        ),
        notes=notes,
    )


def _fit(reading: Arranged, root: Tree[T], expected: Expected, *, explicit: bool) -> tuple[bool, bool]:
    """How well a reading fits the call spec: the whole structure, else the outer level.

    Against an object that says ``{"args", "kwargs"}`` in so many words (``explicit``) only a whole fit counts: a call
    with a wrong keyword is still a call, and no dict that was meant as an argument.
    """
    want_args, want_kwargs = expected
    names = set(reading.kwargs.keys) == set(want_kwargs.keys)
    counts = len(reading.args.children) == len(want_args.children)
    args, kwargs = graft(reading.args, root), graft(reading.kwargs, root)
    same = names and counts and shape_of(args) == shape_of(want_args)
    same = same and dict(_shapes(kwargs)) == dict(_shapes(want_kwargs))
    return same, names and counts and not explicit


def _shapes(tree: Container[T]) -> Iterator[tuple[str | int, str]]:
    for key, child in zip(tree.keys, tree.children, strict=True):
        yield key, shape_of(child)


def shape_of(tree: Tree[T]) -> str:
    """The nesting of a tree as text, without its leaves: ``tuple(*,dict['a':*])``. List and tuple are alike."""
    if isinstance(tree, Leaf):
        return "*"
    kind = "dict" if tree.type in MAPPINGS else "seq" if tree.type in ("tuple", "list") else tree.type
    keys = tuple(f"{key!r}:" for key in tree.keys) or ("",) * len(tree.children)
    return f"{kind}({','.join(key + shape_of(child) for key, child in zip(keys, tree.children, strict=True))})"


def graft(template: Container[Place], root: Tree[T]) -> Container[T]:
    """The tree that ``template`` describes, with the parts of ``root`` in their places."""

    def subtree(place: Place) -> Tree[T]:
        tree = root
        for index in place:
            assert isinstance(tree, Container)  # noqa: S101 (the template was made from this root)
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
