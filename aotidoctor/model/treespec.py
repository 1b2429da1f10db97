r"""Serialised call specs (``torch.utils._pytree`` protocol 1) to trees, without torch.

A spec is JSON: ``[1, {"type": ..., "context": ..., "children_spec": [...]}]``; a leaf has a null type. Contexts of
dicts are JSON inside a string (``"[\"a\", 3]"``), that of a defaultdict is an object, that of a namedtuple is only its
registered name (field names are not recorded), that of a registered dataclass ``[[fields], [fields that are None]]``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from aotidoctor.model.errors import too_many
from aotidoctor.model.json_types import JsonValue
from aotidoctor.model.tree import Container, Leaf, Tree

MOST_LEAVES = 10_000
_TYPES = {
    "builtins.tuple": "tuple",
    "builtins.list": "list",
    "builtins.dict": "dict",
    "collections.OrderedDict": "ordereddict",
    "collections.defaultdict": "defaultdict",
    "collections.deque": "deque",
}
_SEQUENCES = frozenset(("tuple", "list", "deque"))


class SpecError(ValueError):
    """The text is not a call spec of protocol 1."""


def parse_spec(text: str, most: int = MOST_LEAVES) -> Tree[int]:
    """The tree of a serialised spec; leaves are numbered in flattening order. Raises SpecError, LimitReachedError."""
    try:
        document: JsonValue = json.loads(text)
        if not isinstance(document, list) or len(document) != 2 or document[0] != 1:
            raise SpecError("not a call spec of protocol 1")
        return _tree(document[1], _numbers(most))
    # Of an integer with more digits than Python reads json says ValueError.
    except (RecursionError, ValueError) as error:
        raise SpecError(str(error)) from error


def parse_call(text: str, most: int = MOST_LEAVES) -> tuple[Container[int], Container[int]]:
    """``(args, kwargs)`` of an input spec. Raises ``SpecError`` when it is not a pair of a sequence and a dict."""
    match parse_spec(text, most):
        case Container(type="tuple", children=(Container() as args, Container() as kwargs)):
            return args, kwargs
        case _:
            raise SpecError("the input spec is not (args, kwargs)")


def count_leaves(tree: Tree[int]) -> int:
    """Number of leaves below ``tree``."""
    return 1 if isinstance(tree, Leaf) else sum(count_leaves(child) for child in tree.children)


def _numbers(most: int) -> Iterator[int]:
    yield from range(most)
    raise too_many("leaves in the call spec", most)


def _tree(node: JsonValue, numbers: Iterator[int]) -> Tree[int]:
    if not isinstance(node, dict):
        raise SpecError("a node is not an object")
    kind, children = node.get("type"), node.get("children_spec")
    if not isinstance(children, list):
        raise SpecError("a node has no children_spec")
    if kind is None and not children:
        return Leaf(value=next(numbers))
    if not isinstance(kind, str):
        raise SpecError("a node has no type")
    below = tuple(_tree(child, numbers) for child in children)
    context = _context(node.get("context"))
    keys = _keys(_TYPES.get(kind, kind), context)
    return Container(type=_type(kind, context), children=below, keys=keys if len(keys) == len(below) else ())


def _context(context: JsonValue) -> JsonValue:
    """The context as a value: most are JSON inside a string, a namedtuple's is a bare name."""
    if not isinstance(context, str):
        return context
    try:
        value: JsonValue = json.loads(context)
    except ValueError:
        return context
    return value


def _type(kind: str, context: JsonValue) -> str:
    if kind == "collections.namedtuple":
        return f"namedtuple:{context}" if isinstance(context, str) else "namedtuple"
    return _TYPES.get(kind, kind)


def _keys(kind: str, context: JsonValue) -> tuple[str | int, ...]:
    if kind in _SEQUENCES:
        return ()
    if isinstance(context, dict):
        context = context.get("dict_context")
    if not isinstance(context, list):
        return ()
    if len(context) == 2 and isinstance(context[0], list):
        context = context[0]
    return tuple(_key(key) for key in context)


def _key(key: JsonValue) -> str | int:
    match key:
        case bool() | float() | None:
            return repr(key)
        case str() | int():
            return key
        case {"__enum__": _, "name": str(name)}:
            return name
        case _:
            return json.dumps(key)
