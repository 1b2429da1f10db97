"""Name element types, devices, operators and safe globals in the spellings of torch, C++ and Triton.

Element types are spelled as torch does, without its prefix; sizes are in bytes. c10 numbers them, generated code names
them in C++ and Triton in its own way.

The safe globals are those that an inputs file may name without ``--trust-pickle``. The reader in the parent builds
descriptions for them and the loader in the worker resolves them, so both refuse the same files. The list is that of
``torch.load(weights_only=True)`` plus plain data: numpy arrays, sets, ranges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from aotidoctor.model.record import record

# Element types.
_OF_SIZE = {
    1: "bool uint8 int8 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2 "
    "quint8 qint8 quint4x2 quint2x4 bits8 bits1x8 bits2x4 bits4x2",
    2: "int16 uint16 float16 bfloat16 bits16",
    4: "int32 uint32 float32 complex32 qint32",
    8: "int64 uint64 float64 complex64",
    16: "complex128",
}
ITEMSIZE: Mapping[str, int] = {
    **{name: size for size, names in _OF_SIZE.items() for name in names.split()},
    **{f"{sign}int{width}": 1 for sign in ("", "u") for width in range(1, 8)},
}

QUANTIZED = frozenset({"quint8", "qint8", "qint32", "quint4x2", "quint2x4"})

_SAFETENSORS = (
    "BOOL=bool U8=uint8 I8=int8 I16=int16 U16=uint16 I32=int32 U32=uint32 I64=int64 U64=uint64 F16=float16 "
    "BF16=bfloat16 F32=float32 F64=float64 C64=complex64 F8_E4M3=float8_e4m3fn F8_E5M2=float8_e5m2 "
    "F8_E8M0=float8_e8m0fnu F8_E4M3FNUZ=float8_e4m3fnuz F8_E5M2FNUZ=float8_e5m2fnuz"
)
SAFETENSORS_DTYPES: Mapping[str, str] = dict(pair.split("=") for pair in _SAFETENSORS.split())

# Of reduced precision: they overflow where others would not.
HALF = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def index_at(position: int, shape: Sequence[int]) -> list[int]:
    """The index of the element at ``position`` in row-major order."""
    index = []
    for size in reversed(shape):
        index.append(position % size)
        position //= size
    return index[::-1]


def contiguous_stride(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements; sizes 0 and 1 count as 1, as torch does it."""
    stride: list[int] = []
    step = 1
    for size in reversed(shape):
        stride.append(step)
        step *= max(size, 1)
    return tuple(reversed(stride))


def is_row_major(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    """Whether these are the strides of a tensor that was just made; a dim of size 1 may have any."""
    steps = zip(shape, stride, contiguous_stride(shape), strict=False)
    return len(shape) == len(stride) and all(size == 1 or step == plain for size, step, plain in steps)


# Numbers and names in c10 and generated code.
# c10::ScalarType, in its order of declaration (torch/headeronly/core/ScalarType.h).
SCALAR_TYPES = (
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32", "complex64",
    "complex128", "bool", "qint8", "quint8", "qint32", "bfloat16", "quint4x2", "quint2x4", "bits1x8", "bits2x4",
    "bits4x2", "bits8", "bits16", "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "uint16",
    "uint32", "uint64",
)  # fmt: skip
# Its enumerators, which messages and wrappers write as at::kHalf.
SCALAR_NAMES = {
    "Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64", "Half": "float16",
    "Float": "float32", "Double": "float64", "ComplexHalf": "complex32", "ComplexFloat": "complex64",
    "ComplexDouble": "complex128", "Bool": "bool", "BFloat16": "bfloat16", "QInt8": "qint8", "QUInt8": "quint8",
    "QInt32": "qint32", "QUInt4x2": "quint4x2", "QUInt2x4": "quint2x4", "UInt16": "uint16", "UInt32": "uint32",
    "UInt64": "uint64",
    **{name.capitalize(): name for name in (
        "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    )},
}  # fmt: skip
# torch._export.serde.schema.ScalarType, in whose module an import costs more than a run.
EXPORTED_TYPES = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64",
    9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16",
    29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz", 33: "float8_e8m0fnu",
    34: "uint32", 35: "uint64",
}  # fmt: skip
# Types of elements, in C++ without their namespaces and in Triton's signatures.
_ELEMENTS = {
    "bool": ("bool", "i1"),
    "uint8": ("uint8_t", "unsigned char", "u8"),
    "int8": ("int8_t", "signed char", "i8"),
    "int16": ("int16_t", "short", "i16"),
    "uint16": ("uint16_t", "u16"),
    "int32": ("int32_t", "int", "i32"),
    "uint32": ("uint32_t", "u32"),
    "int64": ("int64_t", "long", "i64"),
    "uint64": ("uint64_t", "u64"),
    "float16": ("half", "Half", "fp16"),
    "bfloat16": ("bfloat16", "BFloat16", "bf16"),
    "float32": ("float", "fp32"),
    "float64": ("double", "fp64"),
    "complex64": ("complex<float>",),
    "complex128": ("complex<double>",),
}
_BY_ELEMENT = {name: dtype for dtype, names in _ELEMENTS.items() for name in names}
# c10::DeviceType.
DEVICE_TYPES = {0: "cpu", 1: "cuda", 6: "hip", 9: "xla", 12: "xpu", 13: "mps", 14: "meta"}


def scalar_type(number: int) -> str | None:
    """The dtype with this number; None for an unknown one."""
    return SCALAR_TYPES[number] if 0 <= number < len(SCALAR_TYPES) else None


def element_dtype(name: str) -> str | None:
    """``float16`` of ``at::Half``, ``half`` or ``fp16``; None for an unknown type."""
    return _BY_ELEMENT.get(name.rpartition("::")[2] if "<" not in name else name.partition("::")[2])


# Environment variables.
# Prefixes of the variables that change how a package runs, with what ``diff`` calls a difference in one.
# HIP, HSA, ROCR and AMD are of AMD's GPUs: HIP, its runtime below, and the choice of devices.
_SETTINGS = {
    "setting-aoti": "TORCH PYTORCH AOT_ AOTI_ AOTINDUCTOR_ ATEN_",
    "setting-cuda": "CUDA_ CUBLAS_ CUDNN_ HIP_ HSA_ ROCR_ AMD_",
    "setting": "NVIDIA_ NCCL_ TRITON_",
    "setting-threads": "OMP_ GOMP_ KMP_ MKL_",
    "setting-memory": "MALLOC_",
    # The place of the process among those of torchrun, SLURM, Open MPI, MVAPICH and MPICH.
    "setting-ranks": "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE SLURM_PROCID SLURM_LOCALID SLURM_NTASKS "
    "OMPI_COMM_WORLD_ MV2_COMM_WORLD_ PMI_RANK PMI_SIZE",
}
VARIABLES: Mapping[str, str] = {prefix: name for name, prefixes in _SETTINGS.items() for prefix in prefixes.split()}

LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK")
"""The variables that number the processes of one host."""
VISIBLE_DEVICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
"""The variables that list the GPUs which a process sees."""

# Debug settings of AOTInductor and CUDA, and when each acts.
CHECK_INPUTS, CPP_STACKS = "AOTI_RUNTIME_CHECK_INPUTS", "TORCH_SHOW_CPP_STACKTRACES"
LAUNCH_BLOCKING, NO_CACHING = "CUDA_LAUNCH_BLOCKING", "PYTORCH_NO_CUDA_MEMORY_CACHING"
ALLOCATOR = "PYTORCH_CUDA_ALLOC_CONF"


@record(kw_only=False)
class DebugSetting:
    """An environment variable. ``acts`` is ``run`` (on any package), ``compile`` (baked in) or ``cuda-init``."""

    name: str
    acts: str
    what: str


DEBUG_SETTINGS = (
    DebugSetting(
        CHECK_INPUTS, "run", "compares inputs with the contract, rank excepted; read at the first call of each load"
    ),
    DebugSetting(CPP_STACKS, "run", "adds the C++ stack to exceptions"),
    DebugSetting("TORCH_CPP_LOG_LEVEL", "run", "INFO shows what the loader extracts"),
    DebugSetting("AOTI_LOG_LOADING", "run", "prints how long the copy of the constants took (2.14)"),
    DebugSetting("AOTI_COPY_USE_PINNED_ASYNC", "run", "1 copies constants to a GPU through pinned memory (2.14)"),
    DebugSetting("AOTI_COPY_STAGE_BUFFER_BYTES", "run", "size of the buffer for that copy (2.14)"),
    DebugSetting("AOTI_COPY_STAGE_CPU_THREADS", "run", "threads that fill the buffer for that copy (2.15)"),
    DebugSetting(
        NO_CACHING,
        "cuda-init",
        "one allocation per tensor, so an out-of-bounds write is detected; in old versions any value enabled it",
    ),
    DebugSetting(LAUNCH_BLOCKING, "cuda-init", "errors appear at their launch; needs a new process"),
    DebugSetting(ALLOCATOR, "cuda-init", "expandable_segments:True keeps free memory in one piece"),
    DebugSetting("PYTORCH_USE_CUDA_DSA", "cuda-init", "device assertions; inert unless torch was built with them"),
    DebugSetting("TORCHINDUCTOR_NAN_ASSERTS", "compile", "asserts that inputs contain no NaN or Inf"),
    DebugSetting(
        "AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER", "compile", "1 saves, 2 prints values, 3 prints kernel names"
    ),
    DebugSetting("TORCHINDUCTOR_SIZE_ASSERTS", "compile", "asserts on sizes and strides"),
    DebugSetting(
        "TORCHINDUCTOR_ALIGNMENT_ASSERTS_INPUTS", "compile", "asserts that inputs begin at aligned addresses (2.15)"
    ),
    DebugSetting(
        "TORCHINDUCTOR_UNSAFE_SKIP_SCALAR_RANGE_ASSERTS",
        "compile",
        "leaves out the ranges of torch._check: wrong numbers in place of an error (2.15)",
    ),
    DebugSetting("AOT_INDUCTOR_DEBUG_SYMBOLS", "compile", "debug symbols in the library"),
    DebugSetting("INDUCTOR_PROVENANCE", "compile", "writes kernel_information.json into the package"),
    DebugSetting("TORCH_COMPILE_DEBUG", "compile", "keeps graphs and generated code of the compilation"),
)

# Operators, and which of them torch ships.
BUILT_IN = frozenset({
    "_", "_c10d_functional", "_c10d_functional_autograd", "_dtensor", "_operator", "aten", "c10d", "c10d_functional",
    "debugprims", "export", "higher_order", "inductor", "math", "mkl", "mkldnn", "mkldnn_prepacked", "onednn",
    "prepacked", "prim", "prims", "profiler", "quantized", "quantized_decomposed", "rngprims", "sparse",
    "static_runtime", "streams", "symm_mem", "torch", "triton", "xnnpack",
})  # fmt: skip


def foreign(targets: Iterable[str]) -> list[str]:
    """``namespace::name`` of the operators that are not part of torch, without overload, in order."""
    names = dict.fromkeys(qualified_name(target) for target in targets if target)
    return [name for name in names if name.partition("::")[0] not in BUILT_IN]


def qualified_name(target: str) -> str:
    """``ops::scale`` of ``torch.ops.ops.scale.default``, ``ops.scale.default`` or ``ops::scale.default``."""
    if "::" in target:
        namespace, _, name = target.partition("::")
        return f"{namespace}::{name.partition('.')[0]}"
    parts = target.removeprefix("torch.ops.").split(".")
    return f"{parts[0]}::{parts[1]}" if len(parts) > 1 else target


# Globals that a pickle of inputs may name.
_STORAGES = (
    "BFloat16", "Bool", "Byte", "Char", "ComplexDouble", "ComplexFloat", "Double", "Float", "Half", "Int", "Long",
    "QInt32", "QInt8", "QUInt2x4", "QUInt4x2", "QUInt8", "Short",
)  # fmt: skip
STORAGE_DTYPES = {f"{name}Storage": SCALAR_NAMES[name] for name in _STORAGES}

_NUMPY_CORES = ("numpy.core", "numpy._core")

_GLOBALS = {
    "_codecs": "encode",
    "builtins": "bytearray bytes complex dict float frozenset int list range set slice tuple",
    "collections": "Counter OrderedDict defaultdict",
    "numpy": "dtype ndarray",
    "torch": "Size Tensor device per_channel_affine per_channel_affine_float_qparams per_channel_symmetric "
    "per_tensor_affine per_tensor_symmetric",
    "torch._tensor": "_rebuild_from_type_v2",
    "torch._utils": "_rebuild_device_tensor_from_cpu_tensor _rebuild_device_tensor_from_numpy "
    "_rebuild_meta_tensor_no_storage _rebuild_nested_tensor _rebuild_parameter _rebuild_parameter_with_state "
    "_rebuild_qtensor _rebuild_sparse_tensor _rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3 "
    "_rebuild_wrapper_subclass",
    "torch.nn.parameter": "Parameter",
    "torch.serialization": "_get_layout",
    "torch.storage": "TypedStorage UntypedStorage _load_from_bytes",
}
SAFE_GLOBALS: frozenset[str] = frozenset(
    {
        *(f"{module}.{name}" for module, names in _GLOBALS.items() for name in names.split()),
        *(f"torch.{name}" for name in (*ITEMSIZE, *STORAGE_DTYPES)),
        *(f"torch.cuda.{name}" for name in STORAGE_DTYPES),
        *(f"{core}.multiarray.{name}" for core in _NUMPY_CORES for name in ("_reconstruct", "scalar")),
        *(f"{core}.numeric._frombuffer" for core in _NUMPY_CORES),
    }
)

_PYTHON_2 = {"__builtin__": "builtins", "copy_reg": "copyreg"}
_PYTHON_2_NAMES = {"builtins.xrange": "builtins.range", "builtins.unicode": "builtins.str"}


def global_name(module: str, name: str) -> str:
    """``module.name`` as Python 3 spells it: protocol 2 writes ``__builtin__.xrange``."""
    full = f"{_PYTHON_2.get(module, module)}.{name}"
    return _PYTHON_2_NAMES.get(full, full)
