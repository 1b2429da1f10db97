"""What the caller passes, by metadata. Reading it needs no torch and executes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from math import prod

from aotidoctor.model.json_types import JsonObject
from aotidoctor.model.record import record
from aotidoctor.model.tree import Container, Leaf, Tree, walk_call, with_leaves


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
    """What the caller passes.

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
        """The description with each tensor as ``change`` makes it."""
        return replace(self, args=_with_tensors(self.args, change), kwargs=_with_tensors(self.kwargs, change))

    def without_elements(self) -> InputSet:
        """The description without the functions that look at values: they hold the tensors."""
        return self.with_tensors(lambda tensor: replace(tensor, elements=None))


def _with_tensors(tree: Container[LeafValue], change: Callable[[TensorDesc], TensorDesc]) -> Container[LeafValue]:
    def changed(value: LeafValue) -> Tree[LeafValue]:
        return Leaf(value=change(value) if isinstance(value, TensorDesc) else value)

    return with_leaves(tree, changed)
