"""Trees of arguments: the same shape for the call spec (what is expected) and for the inputs file (what is given).

Paths are the user's: ``args[1]['a']``, ``kwargs['ids']``, ``args[0].field`` for a field of a namedtuple or
dataclass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from aotidoctor.model.record import record

T = TypeVar("T")
U = TypeVar("U")

MAPPINGS = frozenset(("dict", "ordereddict", "defaultdict"))


@record
class Leaf(Generic[T]):
    """A leaf with its value: a ``LeafSpec`` index in a contract, a ``TensorDesc`` or ``PlainValue`` in inputs."""

    value: T


@record
class Container(Generic[T]):
    """A container.

    ``type`` is ``tuple``, ``list``, ``dict``, ``ordereddict``, ``defaultdict``, ``namedtuple:Name`` or the serialised
    type name of anything else. ``keys`` are dict keys or namedtuple fields as Python literals would compare them
    (str or int), in order; empty for sequences.
    """

    type: str
    children: tuple[Tree[T], ...]
    keys: tuple[str | int, ...] = ()


Tree = Leaf[T] | Container[T]


def child_path(parent: str, container: Container[T], index: int) -> str:
    """The user's path of child ``index``: ``parent[0]``, ``parent['key']`` or ``parent.field``."""
    if container.keys and container.type not in MAPPINGS:
        return f"{parent}.{container.keys[index]}"
    if container.keys:
        return f"{parent}[{container.keys[index]!r}]"
    return f"{parent}[{index}]"


def walk_leaves(tree: Tree[T], path: str) -> Iterator[tuple[str, T]]:
    """Yield ``(path, value)`` for each leaf, depth first, in flattening order."""
    match tree:
        case Leaf(value=value):
            yield path, value
        case Container(children=children):
            for index, child in enumerate(children):
                yield from walk_leaves(child, child_path(path, tree, index))


def walk_call(args: Tree[T], kwargs: Tree[T]) -> Iterator[tuple[str, T]]:
    """Yield the leaves of a call in flattening order: ``args[...]`` first, then ``kwargs[...]``."""
    yield from walk_leaves(args, "args")
    yield from walk_leaves(kwargs, "kwargs")


def with_leaves(tree: Container[T], make: Callable[[T], Tree[U]]) -> Container[U]:
    """``tree`` with what ``make`` makes of each leaf's value in its place."""
    children = (make(child.value) if isinstance(child, Leaf) else with_leaves(child, make) for child in tree.children)
    return Container(type=tree.type, children=tuple(children), keys=tree.keys)
