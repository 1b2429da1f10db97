"""Describe an ExecuTorch program (``.pte``) or its data file (``.ptd``), as far as it is read without ExecuTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aotidoctor.model.artifact import SharedObject
from aotidoctor.model.record import record

AOTI_BACKENDS = frozenset({"CudaBackend", "MetalBackend", "mps"})
"""Backends whose delegates hold code of AOTInductor."""

EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@record
class PlanTensor:
    """A tensor of a method's plan. ``shape`` holds upper bounds where ``dynamic``; ``fqn`` is set for a constant.

    ``unbounded`` tells a dynamic one whose sizes are only those of the export.
    ``external`` tells that its data are in a ``.ptd`` file, ``device`` is the one that it is on (``cuda:0``).
    """

    dtype: str
    shape: tuple[int, ...]
    dim_order: tuple[int, ...] = ()
    dynamic: bool = False
    unbounded: bool = False
    fqn: str | None = None
    external: bool = False
    device: str = "cpu"


@record
class Delegate:
    """A part of a method that a backend executes.

    ``code_key`` and ``weights_key`` are the names of its AOTInductor code and weights, ``other_keys`` those of other
    data it names. ``problem`` says what is wrong with its payload.
    """

    backend: str
    compile_specs: Mapping[str, str] = field(default_factory=dict)
    code_key: str | None = None
    weights_key: str | None = None
    other_keys: tuple[str, ...] = ()
    problem: str | None = None


@record
class PteMethod:
    """A method; an input or output that is no tensor is the name of its type (``Int``).

    ``devices`` are those beside the CPU that tensors of its plan are on.
    """

    name: str
    inputs: tuple[PlanTensor | str, ...] = ()
    outputs: tuple[PlanTensor | str, ...] = ()
    delegates: tuple[Delegate, ...] = ()
    operators: tuple[str, ...] = ()
    external: tuple[PlanTensor, ...] = ()
    devices: tuple[str, ...] = ()


@record
class NamedBlob:
    """Data under a key. ``offset`` is in the file; ``tensor`` is its layout, None for bytes of a backend.

    ``promised`` is the sha256 in its key, ``sha256`` that of its bytes, None where they were not read. ``code``
    is the library that it is, where it is code. ``nan`` counts the elements of ``tensor`` that are NaN, None where they
    were not read.
    """

    key: str
    offset: int
    size: int
    tensor: PlanTensor | None = None
    promised: str | None = None
    sha256: str | None = None
    code: SharedObject | None = None
    nan: int | None = None


@record
class ExecutorchFile:
    """A ``.pte`` (``program`` is True) or ``.ptd``.

    ``expected_size`` is the least size that its header and segments state. ``problem`` says why reading stopped:
    ``kind`` is ``identifier``, ``foreign`` (no such file at all), ``truncated`` or ``malformed``. ``unhashed`` counts
    the bytes whose sha256 was not taken.
    """

    path: str
    program: bool
    size: int
    identifier: str
    version: int | None = None
    expected_size: int = 0
    n_segments: int = 0
    methods: tuple[PteMethod, ...] = ()
    named: tuple[NamedBlob, ...] = ()
    kind: str | None = None
    problem: str | None = None
    unhashed: int = 0

    @property
    def keys(self) -> frozenset[str]:
        """Keys of its data."""
        return frozenset(blob.key for blob in self.named)

    def method(self, name: str | None) -> PteMethod | None:
        """The method called ``name`` (default ``forward``), else the only one there is, else None."""
        found = next((one for one in self.methods if one.name == (name or "forward")), None)
        return self.methods[0] if found is None and name is None and len(self.methods) == 1 else found

    def code_of(self, method: PteMethod) -> tuple[NamedBlob, ...]:
        """The AOTInductor code that the method runs, as far as it is in this file."""
        keys = {delegate.code_key for delegate in method.delegates}
        return tuple(blob for blob in self.named if blob.key in keys and blob.code is not None)

    @property
    def delegates(self) -> tuple[Delegate, ...]:
        """Delegates of all methods, in order."""
        return tuple(delegate for method in self.methods for delegate in method.delegates)

    @property
    def needed_data(self) -> tuple[str, ...]:
        """Keys that the methods need and that this file does not hold, so that a ``.ptd`` has to; code excepted."""
        found = [tensor.fqn for method in self.methods for tensor in method.external if tensor.fqn is not None]
        for delegate in self.delegates:
            weights = delegate.weights_key
            if weights is not None and not weights.startswith(EMPTY_SHA256):
                found.append(weights)
            found += delegate.other_keys
        return tuple(key for key in dict.fromkeys(found) if key not in self.keys)
