"""Lay the observed call over the call spec: leaves that belong together, and the places where the trees differ.

The runtime itself never compares trees: it sorts top-level keywords by name, flattens, drops what is not a tensor and
counts. So a difference here is either harmless (a list for a tuple flattens alike) or silently shifts tensors into
other slots (dict keys in another order, a missing element).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from aotidoctor.model.contract import Contract, LeafSpec
from aotidoctor.model.inputs import InputSet, LeafValue, PlainValue, TensorDesc
from aotidoctor.model.record import record
from aotidoctor.model.spec_text import describe_spec
from aotidoctor.model.tree import MAPPINGS, Container, Leaf, Tree, child_path

SEQUENCES = ("tuple", "list", "namedtuple", "structseq")
# Of a finding; the text of one names fewer.
MOST_KEYS = 100
_KEYS_SHOWN = 20
# What is certainly no instance of a class registered with pytree; any other leaf may hold tensors nobody sees here.
PLAIN_TYPES = frozenset({"None", "NoneType", "bool", "int", "float", "complex", "str", "bytes", "ndarray", "set"})


@record
class Pair:
    """A leaf of the call spec and what was given for it, at the user's ``path``."""

    spec: LeafSpec
    path: str
    value: LeafValue


@record
class Difference:
    """One place where the trees differ. ``part``: ``tree``, ``kwargs``, ``count``; ``harmless``: it flattens alike."""

    part: str
    kind: str
    path: str
    observed: str
    expected: str
    harmless: bool = False
    keys_observed: tuple[str, ...] = ()
    keys_expected: tuple[str, ...] = ()


@record(kw_only=False, frozen=False)
class Overlay:
    """Pairs in call-spec order and differences in reading order."""

    pairs: list[Pair] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)

    def of(self, part: str) -> list[Difference]:
        """The differences of one part."""
        return [difference for difference in self.differences if difference.part == part]

    def add(
        self,
        part: str,
        kind: str,
        path: str,
        observed: str,
        expected: str,
        *,
        harmless: bool = False,
        keys: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
    ) -> None:
        """Note a difference; ``keys`` are the observed and the expected ones."""
        self.differences.append(
            Difference(
                part=part,
                kind=kind,
                path=path,
                observed=observed,
                expected=expected,
                harmless=harmless,
                keys_observed=keys[0],
                keys_expected=keys[1],
            )
        )


def overlay_call(contract: Contract, inputs: InputSet) -> Overlay:
    """The overlay of ``inputs`` on the call spec of ``contract`` (which must have one)."""
    overlay = Overlay()
    if contract.args is None or contract.kwargs is None:
        return overlay
    _overlay_signature(overlay, contract, inputs)
    for index, (spec, given) in enumerate(zip(contract.args.children, inputs.args.children, strict=False)):
        _overlay_tree(overlay, contract, spec, given, child_path("args", inputs.args, index))
    given_kwargs = dict(zip(inputs.kwargs.keys, inputs.kwargs.children, strict=True))
    for name, spec in zip(contract.kwargs.keys, contract.kwargs.children, strict=True):
        if name in given_kwargs:
            _overlay_tree(overlay, contract, spec, given_kwargs[name], f"kwargs[{name!r}]")
    return overlay


def _overlay_signature(overlay: Overlay, contract: Contract, inputs: InputSet) -> None:
    """Positional and keyword arguments: which are missing, extra, renamed or given the other way."""
    assert contract.args is not None  # noqa: S101 - told to the type checker; the caller looked
    assert contract.kwargs is not None  # noqa: S101
    wanted, given = contract.kwargs.keys, inputs.kwargs.keys
    keys = (tuple(map(str, given)), tuple(map(str, wanted)))
    missing = [name for name in wanted if name not in given]
    extra = [name for name in given if name not in wanted]
    surplus = len(inputs.args.children) - len(contract.args.children)
    while extra and surplus < 0:
        name, surplus = extra.pop(0), surplus + 1
        overlay.add(
            "kwargs", "positional-as-keyword", f"kwargs[{name!r}]", "given by keyword", "by position", keys=keys
        )
    if missing and surplus >= len(missing):
        names = ", ".join(map(str, missing[:_KEYS_SHOWN]))
        overlay.add("kwargs", "keyword-as-positional", "args", "given by position", f"by keyword: {names}", keys=keys)
        surplus, missing = surplus - len(missing), []
    for _ in range(min(len(missing), len(extra))):
        old, new = missing.pop(0), extra.pop(0)
        overlay.add("kwargs", "renamed", f"kwargs[{new!r}]", f"keyword {new!r}", f"keyword {old!r}", keys=keys)
    for name in missing:
        overlay.add("kwargs", "missing", f"kwargs[{name!r}]", "not given", "a keyword argument", keys=keys)
    for name in extra:
        overlay.add("kwargs", "extra", f"kwargs[{name!r}]", "given", f"keywords {_listed(wanted)}", keys=keys)
    _overlay_count(overlay, contract.args, inputs, surplus)


def _overlay_count(overlay: Overlay, wanted: Container[int], inputs: InputSet, surplus: int) -> None:
    if surplus == 0:
        return
    kind, first = ("many", len(wanted.children)) if surplus > 0 else ("few", len(inputs.args.children))
    overlay.add(
        "count",
        kind,
        f"args[{first}]",
        f"{len(inputs.args.children)} positional arguments",
        f"{len(wanted.children)}",
    )


def _overlay_tree(overlay: Overlay, contract: Contract, spec: Tree[int], given: Tree[LeafValue], path: str) -> None:
    match spec, given:
        case Leaf(value=index), Leaf(value=value):
            overlay.pairs.append(Pair(spec=contract.leaves[index], path=path, value=value))
        case Leaf(value=index), Container():
            overlay.add("tree", "nesting", path, describe(given), describe_spec(contract.leaves[index]))
        case Container(), Leaf(value=PlainValue() as value) if _is_object(spec, value):
            overlay.add("tree", "object", path, describe(given), _container_text(spec), harmless=True)
        case Container(), Leaf():
            overlay.add("tree", "nesting", path, describe(given), _container_text(spec))
        case Container(), Container():
            _overlay_containers(overlay, contract, spec, given, path)


def _overlay_containers(
    overlay: Overlay, contract: Contract, spec: Container[int], given: Container[LeafValue], path: str
) -> None:
    wanted, got = _family(spec.type), _family(given.type)
    if wanted != got:
        overlay.add("tree", "type", path, _container_text(given), _container_text(spec))
    elif spec.type != given.type and not (spec.type.startswith("namedtuple") and given.type.startswith("namedtuple")):
        overlay.add("tree", "list-for-tuple", path, given.type, spec.type, harmless=True)
    if wanted == got == "mapping":
        _overlay_mappings(overlay, contract, spec, given, path)
        return
    if len(spec.children) != len(given.children) and wanted == got:
        overlay.add("tree", "length", path, f"{len(given.children)} elements", f"{len(spec.children)} elements")
    for index, (wanted_child, child) in enumerate(zip(spec.children, given.children, strict=False)):
        _overlay_tree(overlay, contract, wanted_child, child, child_path(path, given, index))


def _overlay_mappings(
    overlay: Overlay, contract: Contract, spec: Container[int], given: Container[LeafValue], path: str
) -> None:
    keys = (tuple(map(str, given.keys)), tuple(map(str, spec.keys)))
    if set(spec.keys) != set(given.keys):
        overlay.add("tree", "keys", path, f"keys {_listed(given.keys)}", f"keys {_listed(spec.keys)}", keys=keys)
    elif spec.keys != given.keys:
        overlay.add("tree", "key-order", path, f"keys {_listed(given.keys)}", f"keys {_listed(spec.keys)}", keys=keys)
    children = dict(zip(given.keys, given.children, strict=True))
    for key, child in zip(spec.keys, spec.children, strict=True):
        if key in children:
            _overlay_tree(overlay, contract, child, children[key], f"{path}[{key!r}]")


def _listed(keys: Sequence[object]) -> str:
    """``['a', 'b']``; of many the first ones."""
    more = f", … {len(keys) - _KEYS_SHOWN} more]" if len(keys) > _KEYS_SHOWN else "]"
    return f"[{', '.join(map(repr, keys[:_KEYS_SHOWN]))}{more}"


def _is_object(spec: Container[int], value: PlainValue) -> bool:
    """An object of some class where a registered one belongs: only the process that flattens it sees inside."""
    return _family(spec.type) not in ("sequence", "mapping") and value.type not in PLAIN_TYPES


def _family(kind: str) -> str:
    """``sequence`` and ``mapping`` flatten alike within themselves; any other container is its own family."""
    if kind.startswith(SEQUENCES):
        return "sequence"
    return "mapping" if kind in MAPPINGS else kind


def _container_text(container: Container[int] | Container[LeafValue]) -> str:
    if container.keys:
        return f"{container.type} with keys {_listed(container.keys)}"
    return f"{container.type} of {len(container.children)}"


def describe(tree: Tree[LeafValue]) -> str:
    """What was given, in a few words: ``float32[4, 16]``, ``None``, ``3 (int)``, ``list of 2``."""
    if isinstance(tree, Container):
        return _container_text(tree)
    return describe_tensor(tree.value) if isinstance(tree.value, TensorDesc) else describe_plain(tree.value)


def describe_tensor(tensor: TensorDesc) -> str:
    """``float32[4, 16]``, with the device where it is not the CPU."""
    where = "" if tensor.device_type == "cpu" else f" on {tensor.device}"
    return f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]{where}"


def describe_plain(plain: PlainValue) -> str:
    """``None``, ``3 (int)``, ``ndarray float32[4]``."""
    if plain.type in ("None", "NoneType"):
        return "None"
    if plain.type == "ndarray":
        return f"ndarray {plain.dtype}{list(plain.shape or ())}"
    return f"{plain.text} ({plain.type})"
