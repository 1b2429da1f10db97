r"""Describe the inputs of a call by metadata: trees of arguments, names, tensors and plain values.

A tree has the same shape for the call spec (what is expected) and for the inputs file (what is given). Paths are the
user's: ``args[1]['a']``, ``kwargs['ids']``, ``args[0].field`` for a field of a namedtuple or dataclass. Flat names
are those of .npz and .safetensors: ``arr_0``, ``args[1]['a']``, ``kwargs.mask``. Shapes and strides are in elements.
Reading needs no torch and executes nothing.

A serialised call spec (``torch.utils._pytree`` protocol 1) is JSON: ``[1, {"type": ..., "context": ...,
"children_spec": [...]}]``; a leaf has a null type. Contexts of dicts are JSON inside a string (``"[\"a\", 3]"``), that
of a defaultdict is an object, that of a namedtuple is only its registered name (field names are not recorded), that of
a registered dataclass ``[[fields], [fields that are None]]``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from math import prod
from typing import Generic, TypeVar

from aotidoctor.model.errors import too_many
from aotidoctor.model.record import JsonObject, JsonValue, record

# Trees of arguments.
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
    """``tree`` with each leaf replaced by ``make`` of its value."""
    children = (make(child.value) if isinstance(child, Leaf) else with_leaves(child, make) for child in tree.children)
    return Container(type=tree.type, children=tuple(children), keys=tree.keys)


A_PACKAGE = "an AOTInductor package"
"""What is observed of an inputs file that is the package."""

# Serialised call specs.
MOST_LEAVES = 10_000
# Far above any real model, and few enough for a validator's source: Python reads no 200 parentheses within each other.
MOST_LEVELS = 64
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
        return _tree(document[1], _numbers(most), MOST_LEVELS)
    # json raises ValueError also for an integer with more digits than Python reads.
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


def _tree(node: JsonValue, numbers: Iterator[int], levels: int) -> Tree[int]:
    if not isinstance(node, dict):
        raise SpecError("a node is not an object")
    kind, children = node.get("type"), node.get("children_spec")
    if not isinstance(children, list):
        raise SpecError("a node has no children_spec")
    if kind is None and not children:
        return Leaf(value=next(numbers))
    if not isinstance(kind, str):
        raise SpecError("a node has no type")
    if not levels:
        raise SpecError(f"more than {MOST_LEVELS} containers within each other: not read beyond {MOST_LEVELS}")
    below = tuple(_tree(child, numbers, levels - 1) for child in children)
    context = _context(node.get("context"))
    name = _TYPES.get(kind, kind)
    keys = _keys(name, context)
    if kind == "collections.namedtuple":
        name = f"namedtuple:{context}" if isinstance(context, str) else "namedtuple"
    return Container(type=name, children=below, keys=keys if len(keys) == len(below) else ())


def _context(context: JsonValue) -> JsonValue:
    """The context as a value: most are JSON inside a string, a namedtuple's is a bare name."""
    if not isinstance(context, str):
        return context
    try:
        value: JsonValue = json.loads(context)
    except ValueError:
        return context
    return value


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


# Flat names: arr_0, args[1]['a'], kwargs.mask.
Place = tuple[int, ...]
Key = str | int
Steps = tuple[Key, ...]

_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]|\[(\w+)\]")
_ARRAY = re.compile(r"arr_(\d{1,6})|(\d{1,6})")


def is_argument_name(name: str) -> bool:
    """Whether a name says which argument it is: ``arr_0``, ``args[0]``, ``args.0``, ``kwargs['x']``, ``kwargs.x``."""
    return argument_steps(name) is not None


def argument_steps(name: str) -> tuple[str, Steps] | None:
    """``("args", (1, "a"))`` for ``args[1]['a']``; None for a name that is no path."""
    array = _ARRAY.fullmatch(name)
    if array is not None:
        return "args", (int(array[1] or array[2]),)
    head = next((word for word in ("args", "kwargs") if name.startswith((f"{word}.", f"{word}["))), None)
    steps = None if head is None else _steps(name[len(head) :])
    if head is None or not steps or isinstance(steps[0], int) != (head == "args"):
        return None
    return head, steps


def _steps(text: str) -> Steps | None:
    steps: list[Key] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            return None
        word = match[1] or match[2] or match[3] or match[4] or match[5] or ""
        quoted = match[3] is not None or match[4] is not None
        steps.append(int(word) if word.isdecimal() and len(word) < 7 and not quoted else word)
        position = match.end()
    return tuple(steps)


def arrange_names(
    names: Sequence[str], *, flat: bool, expected: tuple[Container[int], Container[int]] | None
) -> tuple[Container[Place], Container[Place], tuple[str, ...]]:
    """Args, kwargs (leaves: ``(index of the name,)``) and notes. ``flat`` as in ``forms.arrange``."""
    args: dict[Steps, Place] = {}
    kwargs: dict[Steps, Place] = {}
    rest: list[int] = []
    for index, name in enumerate(names):
        path = argument_steps(name)
        if path is None:
            rest.append(index)
        else:
            (args if path[0] == "args" else kwargs)[path[1]] = (index,)
    keywords, positional, notes = _assign(names, rest, len({steps[0] for steps in args}), expected)
    start = 1 + max((steps[0] for steps in args if isinstance(steps[0], int)), default=-1)
    args.update({(start + offset,): (index,) for offset, index in enumerate(positional)})
    kwargs.update({(names[index],): (index,) for index in keywords})
    want_args, want_kwargs = expected or (None, None)
    indices = sorted({steps[0] for steps in args if isinstance(steps[0], int)})
    if flat and indices != list(range(len(indices))):
        first = ", ".join(map(str, indices[:10]))
        notes = (*notes, f"positions without a gap were assumed: the file names {first}")
    return _nest(args, "tuple", want_args), _nest(kwargs, "dict", want_kwargs), notes


def _assign(
    names: Sequence[str], rest: list[int], given: int, expected: tuple[Container[int], Container[int]] | None
) -> tuple[list[int], list[int], tuple[str, ...]]:
    """Which of the names without a path are keywords and which are positional, and what was assumed."""
    if expected is None or not rest:
        return rest, [], ()
    known = set(expected[1].keys)
    keywords = [index for index in rest if names[index] in known]
    others = [index for index in rest if names[index] not in known]
    open_places = len(expected[0].children) - given
    if not others or open_places <= 0:
        return rest, [], ()
    if not known:
        positional, surplus = others, []
    else:
        positional, surplus = others[:open_places], others[open_places:]
    if len(others) == 1 and open_places == 1:
        return keywords, positional, (f"{names[others[0]]!r} taken as the one positional argument",)
    order = ", ".join(names[index] for index in positional)
    note = f"positional arguments taken in file order: {order}; name them args[0], args[1]... to be sure"
    return keywords + surplus, positional, (note,)


def _nest(entries: dict[Steps, Place], kind: str, expected: Tree[int] | None) -> Container[Place]:
    """The container of ``entries``; inner ones are of the expected type, else a list for numbers and a dict for names.

    A name that is both a leaf and a prefix of another (``args[0]``, ``args[0]['a']``) keeps its leaf.
    """
    groups: dict[Key, dict[Steps, Place]] = {}
    for steps, place in entries.items():
        groups.setdefault(steps[0], {})[steps[1:]] = place
    order: list[Key] = [*groups] if kind == "dict" else sorted(groups, key=lambda key: (isinstance(key, str), key))
    children = tuple(_child(groups[key], _expected_child(expected, key)) for key in order)
    return Container(type=kind, children=children, keys=tuple(order) if kind == "dict" else ())


def _child(group: dict[Steps, Place], expected: Tree[int] | None) -> Tree[Place]:
    if () in group:
        return Leaf(value=group[()])
    kind = "list" if all(isinstance(steps[0], int) for steps in group) else "dict"
    if kind == "list" and isinstance(expected, Container) and expected.type in ("tuple", "dict"):
        kind = expected.type
    return _nest(group, kind, expected)


def _expected_child(expected: Tree[int] | None, key: Key) -> Tree[int] | None:
    if not isinstance(expected, Container):
        return None
    if expected.keys:
        return expected.children[expected.keys.index(key)] if key in expected.keys else None
    return expected.children[key] if isinstance(key, int) and key < len(expected.children) else None


@record
class ValueStats:
    """Values of a small or integer tensor. ``low`` and ``high`` ignore NaN; ``first_nonfinite`` is a flat index."""

    low: float | int | None
    high: float | int | None
    nan: int
    inf: int
    zeros: int
    first_nonfinite: int | None = None
    all_zero_or_one: bool = False


# The values of a tensor, row-major; None where they are too many or of a dtype that is not read.
Elements = Callable[[], Sequence[int] | Sequence[float] | None]


@record
class TensorDesc:
    """A tensor as the file describes it. Shape and strides in elements, ``storage_offset`` in elements.

    ``storage`` names the storage (two tensors with one name share memory), ``storage_nbytes`` its size in bytes.
    ``device`` is the tag (``cpu``, ``cuda:0``, ``meta``). ``layout`` is ``strided``, ``sparse_coo``, ``sparse_csr``,
    ``sparse_csc``, ``sparse_bsr``, ``sparse_bsc``, ``nested`` or ``mkldnn``. ``subclass`` is the name of a tensor
    subclass (``Parameter`` included), None for a plain tensor. ``stats`` is None when the values were not looked at.
    ``elements`` looks at the values themselves when it is called, None where the file holds none.
    """

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None
    storage_offset: int = 0
    storage: str | None = None
    storage_nbytes: int | None = None
    device: str = "cpu"
    requires_grad: bool = False
    conj: bool = False
    neg: bool = False
    layout: str = "strided"
    quantized: bool = False
    subclass: str | None = None
    stats: ValueStats | None = None
    elements: Elements | None = field(default=None, compare=False, repr=False)

    @property
    def device_type(self) -> str:
        """``cuda`` of ``cuda:1``."""
        return self.device.partition(":")[0]

    @property
    def numel(self) -> int:
        """Number of elements; 1 for a 0-d tensor."""
        return prod(self.shape)


@record
class PlainValue:
    """A leaf that is not a tensor.

    ``type`` is ``int``, ``float``, ``bool``, ``str``, ``None``, ``ndarray``, ``device``, ``dtype`` or the name of
    another type; ``text`` is its repr, cut to 80 characters. ``shape`` and ``dtype`` are set for ``ndarray``.
    """

    type: str
    text: str
    shape: tuple[int, ...] | None = None
    dtype: str | None = None


LeafValue = TensorDesc | PlainValue


@record
class InputSet:
    """The inputs that the caller passes.

    ``form`` says how the file was read: ``args`` (tuple or list), ``args-kwargs`` (dict of both), ``pair``
    (``(args, kwargs)``), ``tensor``, ``kwargs``, ``named`` (flat names, as in .npz and .safetensors), ``generated`` or
    ``live``. ``format`` is ``pt``, ``pt-legacy``, ``npz``, ``npy``, ``safetensors``, ``json``, ``generated`` or
    ``live``. ``globals`` are the foreign globals of a pickle that was read under ``--trust-pickle``. ``notes`` say
    what was assumed. ``plan`` is the reading as JSON (``forms.plan_to_json``): the worker follows it, so that it makes
    the same call of the file.
    """

    path: str | None
    format: str
    form: str
    args: Container[LeafValue]
    kwargs: Container[LeafValue]
    sha256: str | None = None
    trusted: bool = False
    globals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    plan: JsonObject | None = None

    def leaves(self) -> tuple[tuple[str, LeafValue], ...]:
        """``(path, value)`` of every leaf in flattening order."""
        args: Tree[LeafValue] = self.args
        kwargs: Tree[LeafValue] = self.kwargs
        return tuple(walk_call(args, kwargs))

    def tensors(self) -> tuple[tuple[str, TensorDesc], ...]:
        """``(path, tensor)`` of the tensor leaves in flattening order: what the runtime will be handed."""
        return tuple((path, value) for path, value in self.leaves() if isinstance(value, TensorDesc))

    def with_tensors(self, change: Callable[[TensorDesc], TensorDesc]) -> InputSet:
        """The description with ``change`` applied to each tensor."""
        return replace(self, args=_with_tensors(self.args, change), kwargs=_with_tensors(self.kwargs, change))

    def without_elements(self) -> InputSet:
        """The description without the functions that look at values: they hold the tensors."""
        return self.with_tensors(lambda tensor: replace(tensor, elements=None))


def _with_tensors(tree: Container[LeafValue], change: Callable[[TensorDesc], TensorDesc]) -> Container[LeafValue]:
    def changed(value: LeafValue) -> Tree[LeafValue]:
        return Leaf(value=change(value) if isinstance(value, TensorDesc) else value)

    return with_leaves(tree, changed)
