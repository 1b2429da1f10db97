"""The globals that an inputs file may name without ``--trust-pickle``.

The reader in the parent builds descriptions for them and the loader in the worker resolves them, so both refuse the
same files. It is the list of ``torch.load(weights_only=True)`` plus what holds plain data: numpy arrays, sets, ranges.
"""

from __future__ import annotations

from aotidoctor.model.c10 import SCALAR_NAMES
from aotidoctor.model.dtypes import ITEMSIZE

_STORAGES = (
    "BFloat16", "Bool", "Byte", "Char", "ComplexDouble", "ComplexFloat", "Double", "Float", "Half", "Int", "Long",
    "QInt32", "QInt8", "QUInt2x4", "QUInt4x2", "QUInt8", "Short",
)  # fmt: skip
STORAGE_DTYPES = {f"{name}Storage": SCALAR_NAMES[name] for name in _STORAGES}

_REBUILD = (
    "_rebuild_device_tensor_from_cpu_tensor",
    "_rebuild_device_tensor_from_numpy",
    "_rebuild_meta_tensor_no_storage",
    "_rebuild_nested_tensor",
    "_rebuild_parameter",
    "_rebuild_parameter_with_state",
    "_rebuild_qtensor",
    "_rebuild_sparse_tensor",
    "_rebuild_tensor",
    "_rebuild_tensor_v2",
    "_rebuild_tensor_v3",
    "_rebuild_wrapper_subclass",
)
_QSCHEMES = (
    "per_channel_affine",
    "per_channel_affine_float_qparams",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
)
_NUMPY_CORES = ("numpy.core", "numpy._core")

SAFE_GLOBALS: frozenset[str] = frozenset(
    {
        "_codecs.encode",
        "builtins.bytearray",
        "builtins.bytes",
        "builtins.complex",
        "builtins.dict",
        "builtins.float",
        "builtins.frozenset",
        "builtins.int",
        "builtins.list",
        "builtins.range",
        "builtins.set",
        "builtins.slice",
        "builtins.tuple",
        "collections.Counter",
        "collections.OrderedDict",
        "collections.defaultdict",
        "numpy.dtype",
        "numpy.ndarray",
        "torch.Size",
        "torch.Tensor",
        "torch._tensor._rebuild_from_type_v2",
        "torch.device",
        "torch.nn.parameter.Parameter",
        "torch.serialization._get_layout",
        "torch.storage.TypedStorage",
        "torch.storage.UntypedStorage",
        "torch.storage._load_from_bytes",
        *(f"torch._utils.{name}" for name in _REBUILD),
        *(f"torch.{name}" for name in _QSCHEMES),
        *(f"torch.{name}" for name in ITEMSIZE),
        *(f"torch.{name}" for name in STORAGE_DTYPES),
        *(f"torch.cuda.{name}" for name in STORAGE_DTYPES),
        *(f"{core}.multiarray.{name}" for core in _NUMPY_CORES for name in ("_reconstruct", "scalar")),
        *(f"{core}.numeric._frombuffer" for core in _NUMPY_CORES),
    }
)

_PYTHON_2 = {"__builtin__": "builtins", "copy_reg": "copyreg"}
_PYTHON_2_NAMES = {"builtins.xrange": "builtins.range", "builtins.unicode": "builtins.str"}


def global_name(module: str, name: str) -> str:
    """``module.name`` as Python 3 calls it: protocol 2 writes ``__builtin__.xrange``."""
    full = f"{_PYTHON_2.get(module, module)}.{name}"
    return _PYTHON_2_NAMES.get(full, full)
