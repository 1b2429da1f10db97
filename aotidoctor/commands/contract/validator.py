"""The part of a written Python validator that is the same for every package; its source is copied into the file.

It needs the standard library of Python 3.10, and judges as ``aotidoctor check`` does: what the compiled code would
compute wrongly is a problem; what flattens alike, or is not read, is none.
"""

from __future__ import annotations

# --- copied from here ---
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple


class ContractError(ValueError):
    """An argument that the compiled code would compute wrongly, or not at all.

    ``cause`` is a cause of aotidoctor (``aotidoctor explain input-stride``), ``path`` is where it is.
    """

    def __init__(self, cause: str, path: str, observed: object, expected: object) -> None:
        super().__init__(f"{path}: observed {observed}, expected {expected} ({cause})")
        self.cause, self.path, self.observed, self.expected = cause, path, str(observed), str(expected)


_Symbols = dict[int, int]
_Size = Callable[[_Symbols], int | None] | None


class _Dim(NamedTuple):
    """``solve`` is (symbol, slope, its denominator, constant, its denominator); ``step`` is (step, size at 0)."""

    text: str
    static: int | None = None
    low: int | None = None
    high: int | None = None
    size: _Size = None
    symbol: int | None = None
    solve: tuple[int, int, int, int] | None = None
    step: tuple[int, int] | None = None


class _Leaf(NamedTuple):
    """``kind`` is tensor, constant or unknown; ``baked`` is what a constant was at export, None where not known."""

    path: str
    kind: str
    dtype: str | None = None
    rank: int | None = None
    dims: tuple[_Dim, ...] | None = None
    strides: tuple[int | None, ...] | None = None
    sizes_of_strides: tuple[_Size, ...] | None = None
    device: str | None = None
    used: bool = True
    baked: str | None = None
    alignment: int | None = None


class _Node(NamedTuple):
    """``family`` is sequence, mapping or the name of a class; ``children`` are nodes or indices of leaves."""

    family: str
    text: str
    keys: tuple[Any, ...]
    children: tuple[Any, ...]


class _Given(NamedTuple):
    """A tensor that was given: ``masks`` tells whether it holds zeros and ones only."""

    leaf: _Leaf
    path: str
    value: Any
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    layout: str
    device: str


_MASKS = frozenset(("bool", "uint8", "int8"))
_NO_OBJECTS = (type(None), bool, int, float, complex, str, bytes, set)
_NAMES: dict[Any, str] = {}


def _dtype(value: Any) -> str:
    """The name of a dtype, as torch and numpy spell it."""
    dtype = value.dtype
    name = _NAMES.get(dtype)
    if name is None:
        name = _NAMES[dtype] = str(dtype).replace("torch.", "")
    return name


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "device") and hasattr(value, "layout")


def _is_array(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "strides") and hasattr(value, "dtype")


def _plain(value: Any) -> str:
    """A value that is not a tensor, in words."""
    if isinstance(value, (str, bytes)):
        return repr(value[:80])[:80]
    if value is None or type(value) in (bool, int, float, complex):
        return repr(value)[:80] if type(value) is not complex else str(value)
    known = type(value).__module__ == "torch" and type(value).__name__ in ("dtype", "Size", "device")
    return (str(value) if known else f"a {type(value).__name__}")[:80]


def _family(value: Any) -> str | None:
    """``sequence`` or ``mapping``, which flatten alike within themselves; None for what is no container."""
    if isinstance(value, dict) and type(value).__name__ in ("dict", "OrderedDict", "defaultdict"):
        return "mapping"
    if type(value) in (tuple, list) or (isinstance(value, tuple) and hasattr(value, "_fields")):
        return "sequence"
    return None


class _Call:
    """One call, laid over the contract: ``found`` are its problems in the order in which they are asked."""

    def __init__(self, leaves: Sequence[_Leaf], *, strict: bool) -> None:
        self.leaves, self.strict = leaves, strict
        self.found: list[ContractError] = []
        self.pairs: list[tuple[_Leaf, str, Any]] = []

    def add(self, cause: str, path: str, observed: object, expected: object) -> None:
        self.found.append(ContractError(cause, path, observed, expected))

    def lay(self, node: Any, value: Any, path: str) -> None:
        """Pair the leaves below ``node`` with those of ``value``."""
        family = _family(value)
        if isinstance(node, int):
            if family is not None:
                self.add("input-tree", path, f"a {type(value).__name__}", "a single value")
            else:
                self.pairs.append((self.leaves[node], path, value))
            return
        if family is None:
            known = node.family in ("sequence", "mapping")
            if known or _is_tensor(value) or _is_array(value) or isinstance(value, _NO_OBJECTS):
                self.add("input-tree", path, _plain(value), node.text)
            return
        if family != node.family:
            self.add("input-tree", path, f"a {type(value).__name__}", node.text)
        elif family == "mapping":
            self.lay_keys(node, value, path)
        elif len(value) != len(node.children):
            self.add("input-tree", path, f"{len(value)} elements", f"{len(node.children)} elements")
        else:
            for index, child in enumerate(node.children):
                self.lay(child, value[index], f"{path}[{index}]")

    def lay_keys(self, node: _Node, value: dict[Any, Any], path: str) -> None:
        """Dicts flatten in the order of their keys: another order exchanges tensors."""
        given = [key if type(key) in (str, int) else repr(key)[:80] for key in value]
        if given != list(node.keys):
            self.add("input-tree", path, f"keys {given[:20]}", f"keys {list(node.keys)[:20]}")
        children = dict(zip(given, value.values(), strict=True))
        for key, child in zip(node.keys, node.children, strict=False):
            if key in children:
                self.lay(child, children[key], f"{path}[{key!r}]")

    def judge(self) -> None:
        """Ask of each pair what can be asked of it alone, then of all together."""
        self.values()
        tensors = [found for found in map(self.tensor, self.pairs) if found is not None]
        whole = [found for found in tensors if self.alone(found)]
        votes: dict[int, dict[int, int]] = {}
        for _, _, dim, size in _dims(whole):
            root = _root(dim, size)
            if root is not None and dim.symbol is not None:
                count = votes.setdefault(dim.symbol, {})
                count[root] = count.get(root, 0) + 1
        symbols = {symbol: max(count, key=lambda root: count[root]) for symbol, count in votes.items()}
        self.sizes(whole, symbols)
        for found in whole:
            self.stride(found, symbols)

    def values(self) -> None:
        """Tensors where values were fixed at export, and the other way round."""
        arrays = not any(_is_tensor(value) for _, _, value in self.pairs)
        for leaf, path, value in self.pairs:
            tensor = _is_tensor(value) or (arrays and _is_array(value))
            if leaf.kind == "tensor" and not tensor:
                self.add("input-nontensor", path, _plain(value), f"a {leaf.dtype or ''} tensor".replace("  ", " "))
            elif leaf.kind == "constant" and tensor:
                self.add("input-count", path, "a tensor", "no tensor: this leaf was a plain value (or None) at export")
            elif leaf.kind == "constant" and leaf.baked not in (None, _plain(value)):
                self.add("input-constant-changed", path, _plain(value), f"{leaf.baked} (fixed at export)")

    def tensor(self, pair: tuple[_Leaf, str, Any]) -> _Given | None:
        """What a tensor or an array says of itself."""
        leaf, path, value = pair
        if leaf.kind != "tensor":
            return None
        if _is_array(value):
            width = value.dtype.itemsize or 1
            steps = tuple(step // width if step % width == 0 else -1 for step in value.strides)
            device = leaf.device or "cpu"
            return _Given(leaf, path, value, _dtype(value), tuple(value.shape), steps, "strided", device)
        if not _is_tensor(value):
            return None
        layout = str(value.layout).replace("torch.", "")
        if layout == "jagged" or getattr(value, "is_nested", False):
            layout = "nested"
        strided = layout == "strided"
        shape = tuple(int(size) for size in value.shape) if strided else ()
        steps = tuple(int(step) for step in value.stride()) if strided else ()
        return _Given(leaf, path, value, _dtype(value), shape, steps, layout, value.device.type)

    def alone(self, given: _Given) -> bool:
        """Layout, device, dtype, lazy bits and form; whether it has the form that was compiled."""
        leaf, path = given.leaf, given.path
        if given.layout != "strided":
            self.add("input-layout", path, f"layout {given.layout}", "strided")
            return False
        if leaf.device not in (None, given.device):
            self.add("input-device", path, f"device {given.device}", leaf.device)
            return False
        if leaf.dtype not in (None, given.dtype) and not _is_mask(given):
            if leaf.used:
                self.add("input-dtype", path, given.dtype, leaf.dtype)
            return False
        for bit in ("conj", "neg"):
            asked = getattr(given.value, f"is_{bit}", None)
            if asked is not None and asked():
                self.add("input-lazy-bit", path, f"the {bit} bit", f"resolved values (resolve_{bit}())")
        return self.fits(given)

    def fits(self, given: _Given) -> bool:
        """Rank and static sizes."""
        leaf, path = given.leaf, given.path
        if leaf.rank not in (None, len(given.shape)):
            if leaf.used and not _one_element(given):
                self.add("input-rank", path, f"{len(given.shape)} dims {given.shape}", f"{leaf.rank} dims")
            return False
        for at, (dim, size) in enumerate(zip(leaf.dims or (), given.shape, strict=False)):
            if dim.static not in (None, size):
                if leaf.used:
                    self.add("input-shape", f"{path}.shape[{at}]", f"{size} in {given.shape}", dim.static)
                return False
        return True

    def sizes(self, tensors: Sequence[_Given], symbols: _Symbols) -> None:
        """Dynamic sizes: divisible, agreeing with each other and, where it is asked for, within their range."""
        for given, at, dim, size in _dims(tensors):
            path = f"{given.path}.shape[{at}]"
            wanted = dim.size(symbols) if dim.size is not None else None
            if dim.step is not None and _root(dim, size) is None and (size - dim.step[1]) % dim.step[0]:
                self.add("input-divisibility", path, size, f"a multiple of {dim.step[0]} ({dim.text})")
            elif wanted not in (None, size) and given.leaf.used:
                self.add("input-shape-disagree", path, size, f"{wanted} ({dim.text})")
        if not self.strict:
            return
        for given in tensors:
            for at, (dim, size) in enumerate(zip(given.leaf.dims or (), given.shape, strict=False)):
                low, high = dim.low, dim.high
                if dim.static is None and ((low is not None and size < low) or (high is not None and size > high)):
                    shown = f"{'' if low is None else low}..{'' if high is None else high}"
                    self.add("input-range", f"{given.path}.shape[{at}]", size, shown)

    def stride(self, given: _Given, symbols: _Symbols) -> None:
        """Strides, but for dims of one element and tensors of none."""
        leaf = given.leaf
        wanted = list(leaf.strides or ())
        if leaf.sizes_of_strides is not None and _agrees(given, symbols):
            for at, size in enumerate(leaf.sizes_of_strides):
                wanted[at] = size(symbols) if wanted[at] is None and size is not None else wanted[at]
        differs = any(
            want is not None and want != step and size != 1
            for want, step, size in zip(wanted, given.strides, given.shape, strict=False)
        )
        if differs and 0 not in given.shape and leaf.used:
            shown = ", ".join("?" if want is None else str(want) for want in wanted)
            self.add("input-stride", f"{given.path}.stride", f"{given.strides} of {given.shape}", f"({shown})")
        if leaf.alignment is not None and leaf.used and not _is_array(given.value):
            begins = given.value.storage_offset() * given.value.element_size()
            if begins % leaf.alignment:
                wanted_start = f"a start at a multiple of {leaf.alignment} bytes"
                self.add("input-stride", f"{given.path}.storage_offset", f"byte {begins} of the storage", wanted_start)


def _is_mask(given: _Given) -> bool:
    """Zeros and ones of one byte: the same bytes whichever of three dtypes they have."""
    if given.leaf.dtype not in _MASKS or given.dtype not in _MASKS:
        return False
    return given.dtype == "bool" or 0 in given.shape or bool(((given.value == 0) | (given.value == 1)).all())


def _one_element(given: _Given) -> bool:
    """One element whatever the rank."""
    alone = all(size == 1 for size in given.shape)
    return alone and (given.leaf.rank == 0 or all(dim.static == 1 for dim in given.leaf.dims or (_Dim(""),)))


def _dims(tensors: Sequence[_Given]) -> Iterator[tuple[_Given, int, _Dim, int]]:
    for given in tensors:
        for at, (dim, size) in enumerate(zip(given.leaf.dims or (), given.shape, strict=False)):
            if dim.static is None and dim.size is not None:
                yield given, at, dim, size


def _root(dim: _Dim, size: int) -> int | None:
    """What the symbol of ``dim`` is if ``dim`` is ``size``; None where that is no integer, or not to be told."""
    if dim.solve is None:
        return None
    over, under, constant, parts = dim.solve
    top, bottom = (size * parts - constant) * under, over * parts
    return top // bottom if top % bottom == 0 else None


def _agrees(given: _Given, symbols: _Symbols) -> bool:
    """The tensor has the sizes that the symbols say: then its strides follow from them."""
    for _, _, dim, size in _dims([given]):
        if dim.symbol is not None and (_root(dim, size) is None or symbols.get(dim.symbol) != _root(dim, size)):
            return False
        if dim.size is not None and dim.size(symbols) not in (None, size):
            return False
    return True


def _floor(over: int, under: int) -> int:
    return over // under


def _cut(over: int, under: int) -> int:
    return over // under if (over < 0) == (under < 0) else -(-over // under)


def _mod(over: int, under: int) -> int:
    return over - _cut(over, under) * under


def _max(*sizes: int) -> int:
    return max(sizes)


def _min(*sizes: int) -> int:
    return min(sizes)


def _sizes(text: Callable[[_Symbols], int]) -> Callable[[_Symbols], int | None]:
    """``text`` where all its symbols are known, None otherwise."""

    def size(symbols: _Symbols) -> int | None:
        try:
            return text(symbols)
        except (KeyError, ZeroDivisionError):
            return None

    return size


# What shows that a tensor does not belong where it is.
_MISFITS = frozenset(("input-count", "input-dtype", "input-nontensor", "input-rank", "input-shape"))


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The values of sequences in the order in which the runtime flattens them; a mapping is one value."""
    if _family(value) == "sequence":
        for index, item in enumerate(value):
            yield from _flat(item, f"{path}[{index}]")
    else:
        yield path, value


def _is_of_sequences(node: Any) -> bool:
    return isinstance(node, int) or (node.family == "sequence" and all(map(_is_of_sequences, node.children)))


def _laid_in_order(
    leaves: Sequence[_Leaf], spec: tuple[_Node, _Node], args: Any, kwargs: Any, *, strict: bool
) -> _Call | None:
    """Sequences that are nested in another way, ``model([x, y])`` for ``(x, y)``: the order of the tensors decides.

    None where one does not fit its place, or the keys of a mapping may stand for another order.
    """
    wanted, named = spec
    if set(kwargs) != set(named.keys) or not all(map(_is_of_sequences, (wanted, *named.children))):
        return None
    try:
        found = [*_flat(tuple(args), "args")]
        found += [pair for key in named.keys for pair in _flat(kwargs[key], f"kwargs[{key!r}]")]
    except RecursionError:
        return None
    call = _Call(leaves, strict=strict)
    if len(found) != len(leaves) or not all(_is_tensor(value) or _is_array(value) for _, value in found):
        return None
    call.pairs = [(leaf, path, value) for leaf, (path, value) in zip(leaves, found, strict=True)]
    call.judge()
    return None if any(problem.cause in _MISFITS for problem in call.found) else call


def _problems(
    leaves: Sequence[_Leaf], spec: tuple[_Node, _Node], args: Any, kwargs: Any, *, strict: bool
) -> list[ContractError]:
    """All problems of a call; of a call whose tree is wrong those of its tree."""
    call = _Call(leaves, strict=strict)
    wanted, named = spec
    if set(kwargs) != set(named.keys):
        call.add("input-kwargs", "kwargs", f"keywords {sorted(map(str, kwargs))}", f"keywords {sorted(named.keys)}")
    elif len(args) != len(wanted.children):
        call.add("input-count", "args", f"{len(args)} positional arguments", len(wanted.children))
    else:
        for index, child in enumerate(wanted.children):
            call.lay(child, args[index], f"args[{index}]")
        for key, child in zip(named.keys, named.children, strict=False):
            call.lay(child, kwargs[key], f"kwargs[{key!r}]")
    if call.found:
        alike = _laid_in_order(leaves, spec, args, kwargs, strict=strict)
        return call.found if alike is None else alike.found
    call.judge()
    return call.found
