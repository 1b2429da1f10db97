"""Lay the observed call over the call spec: pairs of leaves, differences of the trees, swapped arguments.

The runtime itself never compares trees: it sorts top-level keywords by name, flattens, drops what is not a tensor and
counts. So a difference here is either harmless (a list for a tuple flattens alike) or silently shifts tensors into
other slots (dict keys in another order, a missing element).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import combinations, islice

from aotidoctor.model.contract import LeafSpec, ModelContract, describe_spec
from aotidoctor.model.evidence import plural
from aotidoctor.model.inputs import (
    MAPPINGS,
    Container,
    InputSet,
    Leaf,
    LeafValue,
    PlainValue,
    TensorDesc,
    Tree,
    child_path,
    walk_call,
)
from aotidoctor.model.record import record

SEQUENCES = ("tuple", "list", "namedtuple", "structseq")
# The most keys in a text.
MOST_LISTED = 20
# The source of a contract that comes from the guards of a compiled function.
GUARDS = "guards"
# Certainly no instances of a class registered with pytree; any other leaf may hold tensors that are not seen here.
PLAIN_TYPES = frozenset({"None", "NoneType", "bool", "int", "float", "complex", "str", "bytes", "ndarray", "set"})


@record
class Pair:
    """A leaf of the call spec and what was given for it, at the user's ``path``."""

    spec: LeafSpec
    path: str
    value: LeafValue


@record(kw_only=False)
class TreeDifference:
    """One place where the trees differ. ``part``: ``tree``, ``kwargs``, ``count``; ``harmless``: it flattens alike."""

    part: str
    kind: str
    path: str
    observed: str
    expected: str
    harmless: bool = field(default=False, kw_only=True)
    # The observed and the expected ones.
    keys: tuple[tuple[str, ...], tuple[str, ...]] = field(default=((), ()), kw_only=True)


@record
class Overlay:
    """Pairs in call-spec order and differences in reading order."""

    pairs: list[Pair]
    differences: list[TreeDifference]

    def of(self, part: str) -> list[TreeDifference]:
        """The differences of one part."""
        return [difference for difference in self.differences if difference.part == part]


def overlay_call(contract: ModelContract, inputs: InputSet) -> Overlay:
    """The overlay of ``inputs`` on the call spec of ``contract``; empty if it has none."""
    found = list(_compare_calls(contract, inputs))
    differences = [item for item in found if isinstance(item, TreeDifference)]
    first = next((difference for difference in differences if not difference.harmless), None)
    if first is None or (pairs := _pairs_in_order(contract, inputs)) is None:
        return Overlay(pairs=[item for item in found if isinstance(item, Pair)], differences=differences)
    alike = TreeDifference("tree", "nested-alike", first.path, first.observed, first.expected, harmless=True)
    return Overlay(pairs=pairs, differences=[alike])


def _compare_calls(contract: ModelContract, inputs: InputSet) -> Iterator[Pair | TreeDifference]:
    if contract.args is None or contract.kwargs is None:
        return
    yield from _compare_signatures(contract.args, contract.kwargs, inputs)
    for index, (spec, given) in enumerate(zip(contract.args.children, inputs.args.children, strict=False)):
        yield from _compare_trees(contract, spec, given, child_path("args", inputs.args, index))
    given_kwargs = dict(zip(inputs.kwargs.keys, inputs.kwargs.children, strict=True))
    for name, spec in zip(contract.kwargs.keys, contract.kwargs.children, strict=True):
        if name in given_kwargs:
            yield from _compare_trees(contract, spec, given_kwargs[name], f"kwargs[{name!r}]")


def _pairs_in_order(contract: ModelContract, inputs: InputSet) -> list[Pair] | None:
    """Pairs by the order of the tensors, which is all that the runtime goes by; None where it may be another call.

    Sequences that are nested in another way change nothing as long as every tensor fits the place that it gets. The
    keys of a mapping may stand for another order.
    """
    wanted, given = contract.kwargs, inputs.kwargs
    if contract.args is None or wanted is None or set(wanted.keys) != set(given.keys):
        return None
    ordered = Container(
        type="dict", keys=wanted.keys, children=tuple(given.children[given.keys.index(key)] for key in wanted.keys)
    )
    trees: list[Tree[int] | Tree[LeafValue]] = [contract.args, inputs.args, *wanted.children, *ordered.children]
    found = list(walk_call(inputs.args, ordered))
    if len(found) != len(contract.leaves) or not all(map(_is_of_sequences, trees)):
        return None
    pairs = [
        Pair(spec=spec, path=path, value=value)
        for spec, (path, value) in zip(contract.leaves, found, strict=True)
        if isinstance(value, TensorDesc) and fits(spec, value)
    ]
    return pairs if len(pairs) == len(found) else None


def _is_of_sequences(tree: Tree[int] | Tree[LeafValue]) -> bool:
    return isinstance(tree, Leaf) or (_family(tree.type) == "sequence" and all(map(_is_of_sequences, tree.children)))


def _compare_signatures(args: Container[int], kwargs: Container[int], inputs: InputSet) -> Iterator[TreeDifference]:
    """Positional and keyword arguments: which are missing, extra, renamed or given the other way."""
    wanted, given = kwargs.keys, inputs.kwargs.keys
    keys = (tuple(map(str, given)), tuple(map(str, wanted)))
    missing = [name for name in wanted if name not in given]
    extra = [name for name in given if name not in wanted]
    surplus = len(inputs.args.children) - len(args.children)
    while extra and surplus < 0:
        name, surplus = extra.pop(0), surplus + 1
        yield TreeDifference(
            "kwargs", "positional-as-keyword", f"kwargs[{name!r}]", "given by keyword", "by position", keys=keys
        )
    if missing and surplus >= len(missing):
        names = ", ".join(map(str, missing[:MOST_LISTED]))
        yield TreeDifference(
            "kwargs", "keyword-as-positional", "args", "given by position", f"by keyword: {names}", keys=keys
        )
        surplus, missing = surplus - len(missing), []
    for _ in range(min(len(missing), len(extra))):
        old, new = missing.pop(0), extra.pop(0)
        yield TreeDifference("kwargs", "renamed", f"kwargs[{new!r}]", f"keyword {new!r}", f"keyword {old!r}", keys=keys)
    for name in missing:
        yield TreeDifference("kwargs", "missing", f"kwargs[{name!r}]", "not given", "a keyword argument", keys=keys)
    for name in extra:
        yield TreeDifference(
            "kwargs", "extra", f"kwargs[{name!r}]", "given", f"keywords {_list_keys(wanted)}", keys=keys
        )
    if surplus == 0:
        return
    count, expected = len(inputs.args.children), len(args.children)
    kind, first = ("many", expected) if surplus > 0 else ("few", count)
    yield TreeDifference("count", kind, f"args[{first}]", plural(count, "positional argument"), f"{expected}")


def _compare_trees(
    contract: ModelContract, spec: Tree[int], given: Tree[LeafValue], path: str
) -> Iterator[Pair | TreeDifference]:
    # An object in place of a registered class: only the process that flattens it sees its content.
    match spec, given:
        case Leaf(value=index), Leaf(value=value):
            yield Pair(spec=contract.leaves[index], path=path, value=value)
        case Leaf(value=index), Container():
            yield TreeDifference("tree", "nesting", path, describe(given), describe_spec(contract.leaves[index]))
        case Container(), Leaf(value=PlainValue() as value) if (
            _family(spec.type) not in ("sequence", "mapping") and value.type not in PLAIN_TYPES
        ):
            yield TreeDifference("tree", "object", path, describe(given), _container_text(spec), harmless=True)
        case Container(), Leaf():
            yield TreeDifference("tree", "nesting", path, describe(given), _container_text(spec))
        case Container(), Container():
            yield from _compare_containers(contract, spec, given, path)


def _compare_containers(
    contract: ModelContract, spec: Container[int], given: Container[LeafValue], path: str
) -> Iterator[Pair | TreeDifference]:
    wanted, got = _family(spec.type), _family(given.type)
    if wanted != got:
        yield TreeDifference("tree", "type", path, _container_text(given), _container_text(spec))
    elif spec.type != given.type and not (spec.type.startswith("namedtuple") and given.type.startswith("namedtuple")):
        if contract.source == GUARDS:
            yield TreeDifference("tree", "type", path, given.type, spec.type)
        else:
            yield TreeDifference("tree", "list-for-tuple", path, given.type, spec.type, harmless=True)
    if wanted == got == "mapping":
        keys = (tuple(map(str, given.keys)), tuple(map(str, spec.keys)))
        texts = (f"keys {_list_keys(given.keys)}", f"keys {_list_keys(spec.keys)}")
        if contract.source == GUARDS and set(spec.keys) <= set(given.keys):
            pass  # the compiled function looks at the keys that it reads
        elif set(spec.keys) != set(given.keys):
            yield TreeDifference("tree", "keys", path, *texts, keys=keys)
        elif spec.keys != given.keys:
            yield TreeDifference("tree", "key-order", path, *texts, keys=keys)
        children = dict(zip(given.keys, given.children, strict=True))
        for key, child in zip(spec.keys, spec.children, strict=True):
            if key in children:
                yield from _compare_trees(contract, child, children[key], f"{path}[{key!r}]")
        return
    if len(spec.children) != len(given.children) and wanted == got:
        yield TreeDifference(
            "tree", "length", path, f"{len(given.children)} elements", f"{len(spec.children)} elements"
        )
    for index, (child, given_child) in enumerate(zip(spec.children, given.children, strict=False)):
        yield from _compare_trees(contract, child, given_child, child_path(path, given, index))


def _list_keys(keys: Sequence[object]) -> str:
    """``['a', 'b']``; of many the first ones."""
    more = f", … {len(keys) - MOST_LISTED} more]" if len(keys) > MOST_LISTED else "]"
    return f"[{', '.join(map(repr, keys[:MOST_LISTED]))}{more}"


def _family(kind: str) -> str:
    """``sequence`` and ``mapping`` flatten alike within themselves; any other container is its own family."""
    if kind.startswith(SEQUENCES):
        return "sequence"
    return "mapping" if kind in MAPPINGS else kind


def _container_text(container: Container[int] | Container[LeafValue]) -> str:
    if container.keys:
        return f"{container.type} with keys {_list_keys(container.keys)}"
    return f"{container.type} of {len(container.children)}"


def describe(tree: Tree[LeafValue]) -> str:
    """A short text for a given value: ``float32[4, 16]``, ``None``, ``3 (int)``, ``list of 2``."""
    if isinstance(tree, Container):
        return _container_text(tree)
    return describe_tensor(tree.value) if isinstance(tree.value, TensorDesc) else describe_plain(tree.value)


def describe_tensor(tensor: TensorDesc) -> str:
    """``float32[4, 16]``, with the device if it is not the CPU."""
    where = "" if tensor.device_type == "cpu" else f" on {tensor.device}"
    return f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]{where}"


def describe_plain(plain: PlainValue) -> str:
    """``None``, ``3 (int)``, ``ndarray float32[4]``."""
    if plain.type in ("None", "NoneType"):
        return "None"
    if plain.type == "ndarray":
        return f"ndarray {plain.dtype}{list(plain.shape or ())}"
    return f"{plain.text} ({plain.type})"


# Whether a tensor fits a leaf, and whether two arguments would fit if they were swapped.
# More misplaced arguments than this are another call, not a wrong order.
MOST_MISPLACED = 6
# One byte per element and the same two values: the kernel reads a 0/1 mask right whichever of them it is.
MASK_DTYPES = frozenset({"bool", "uint8", "int8"})


def is_mask_for(spec_dtype: str, tensor: TensorDesc) -> bool:
    """True when a one-byte 0/1 mask stands in for another one-byte type (same bytes, right answer)."""
    if tensor.dtype == spec_dtype or not {tensor.dtype, spec_dtype} <= MASK_DTYPES:
        return False
    return tensor.dtype == "bool" or tensor.stats is None or tensor.stats.all_zero_or_one


def dtype_fits(spec: LeafSpec, tensor: TensorDesc) -> bool:
    """Whether the dtype is the expected one, or a harmless stand-in."""
    return spec.dtype is None or tensor.dtype == spec.dtype or is_mask_for(spec.dtype, tensor)


def rank_fits(spec: LeafSpec, tensor: TensorDesc) -> bool:
    """Whether the number of dims is the expected one, or unknown."""
    return spec.rank is None or len(tensor.shape) == spec.rank


def one_element(spec: LeafSpec, tensor: TensorDesc) -> bool:
    """Whether it is one element either way: the same bytes whatever the rank."""
    if tensor.numel != 1 or spec.rank is None:
        return False
    return spec.rank == 0 or all(dim.static == 1 for dim in spec.dims or (None,) if dim is not None)


def static_mismatches(spec: LeafSpec, tensor: TensorDesc) -> list[tuple[int, int, int]]:
    """``(dim, observed, expected)`` for each static dim that differs; only as many dims as both have."""
    return [
        (at, size, dim.static)
        for at, (dim, size) in enumerate(zip(spec.dims or (), tensor.shape, strict=False))
        if dim.static is not None and dim.static != size
    ]


def fits(spec: LeafSpec, value: LeafValue) -> bool:
    """Whether it could be this argument: a tensor of its dtype, rank and static dims, or a constant's plain value."""
    match value:
        case PlainValue():
            return spec.input_index is None
        case TensorDesc():
            if spec.input_index is None:
                return False
            rank_ok = rank_fits(spec, value) or one_element(spec, value)
            return dtype_fits(spec, value) and rank_ok and not static_mismatches(spec, value)


def swapped_pairs(pairs: Sequence[Pair]) -> list[tuple[Pair, Pair]]:
    """``(pair, the pair whose value belongs here)`` for arguments that fit each other's places, if it is unambiguous.

    Two swapped arguments come as one tuple; more that were rotated come as one tuple each.
    """
    misfits = [pair for pair in pairs if not fits(pair.spec, pair.value) and pair.spec.kind != "unknown"]
    if not misfits:
        # Two tensors of one element, whose rank alone does no harm, that have exactly each other's ranks.
        odd = [
            pair
            for pair in pairs
            if isinstance(pair.value, TensorDesc)
            and pair.spec.kind != "unknown"
            and not rank_fits(pair.spec, pair.value)
        ]
        if len(odd) != 2:
            return []
        first, second = odd
        crossed = all(
            isinstance(value, TensorDesc) and fits(spec, value) and rank_fits(spec, value)
            for spec, value in ((first.spec, second.value), (second.spec, first.value))
        )
        return [(first, second)] if crossed else []
    if not 2 <= len(misfits) <= MOST_MISPLACED:
        return []
    places = [[at for at, other in enumerate(misfits) if fits(pair.spec, other.value)] for pair in misfits]
    answers = list(islice(_assignments(places, 0, frozenset()), 2))
    if len(answers) == 1:
        pairs_of = [(at, choice) for at, choice in enumerate(answers[0]) if answers[0][choice] != at or choice >= at]
        return [(misfits[at], misfits[choice]) for at, choice in pairs_of]
    return _couples(misfits) if not answers else []


def _assignments(places: Sequence[Sequence[int]], at: int, taken: frozenset[int]) -> Iterator[tuple[int, ...]]:
    """All ways to assign to each place a value of its own that fits."""
    if at == len(places):
        yield ()
        return
    for choice in places[at]:
        if choice not in taken:
            for rest in _assignments(places, at + 1, taken | {choice}):
                yield (choice, *rest)


def _couples(misfits: Sequence[Pair]) -> list[tuple[Pair, Pair]]:
    """Pairs of arguments that fit each other's places although something else is wrong as well."""
    found = [
        (first, second)
        for first, second in combinations(misfits, 2)
        if fits(first.spec, second.value) and fits(second.spec, first.value)
    ]
    paths = [pair.path for swap in found for pair in swap]
    return [swap for swap in found if all(paths.count(pair.path) == 1 for pair in swap)]
