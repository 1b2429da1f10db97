"""What a package needs of its host, and which of its operations are not repeatable."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.contract import HostNeeds, KernelCall
from aotidoctor.readers.contract.kernel_sources import KernelFacts
from aotidoctor.readers.contract.launch import Launch

_INCLUDE_TORCH = re.compile(r"(?<![^\s'\"])-I(\S+?)/torch/include(?!\S)")
_INCLUDE_PYTHON = re.compile(r"(?<![^\s'\"])-I\S*/include/python(\d+\.\d+)")
_ABI = re.compile(r"-D ?_GLIBCXX_USE_CXX11_ABI=([01])")
_CUDA = re.compile(r"(?<![^\s'\"])-[IL]\S*/cuda-(\d+(?:\.\d+)?)/")
_TORCH_VERSION = re.compile(r"/torch[-_](\d+\.\d+\.\d+[\w.+]*)")
_FEATURE = re.compile(r"\s-m((?:avx|amx|fma|sse|f16c|bmi)[\w.-]*)")
_RANDOM = re.compile(
    r"(?:^|[._])(?:rand(?:n|int|perm)?(?:_like)?|native_dropout|dropout|bernoulli|multinomial|normal|poisson|exponential|"
    r"uniform|geometric|cauchy|log_normal|rrelu_with_noise|randint_low)(?:_|$|\.)"
)
_EMPTY = re.compile(r"aten\.(?:new_)?empty(?:_like|_strided|_permuted)?$")
# Operators that make a kernel hold a NaN because the model says so; they show in the kernel's name.
_DELIBERATE_NAN = re.compile(r"full|fill|where|nan|masked|scalar_tensor|lift|constant|pad|std|var|median|quantile|log")
_ISA_FEATURES: Mapping[str, tuple[str, ...]] = {
    "AVX2": ("avx2", "fma"),
    "AVX512": ("avx512f", "avx512dq", "avx512vl", "avx512bw", "fma"),
    "AVX512_VNNI": ("avx512_vnni",),
    "AMX_TILE": ("amx_tile", "amx_bf16", "amx_int8"),
    "AMX": ("amx_tile", "amx_bf16", "amx_int8"),
    "ASIMD": ("asimd",),
    "NEON": ("asimd",),
    "SVE256": ("sve",),
}
_SPELLING = {"avx512vnni": "avx512_vnni", "avx512bf16": "avx512_bf16", "avx512fp16": "avx512_fp16"}


def read_needs(
    model: ModelEntry,
    command: str,
    facts: KernelFacts,
    *,
    kernels: Sequence[KernelCall],
    launches: Mapping[str, Launch],
    unwritten: Sequence[str],
) -> HostNeeds:
    """Combine metadata, the compile command and what the kernels show."""
    values = metadata_values(model)
    return HostNeeds(
        device_type=values.get("AOTI_DEVICE_KEY"),
        compute_capability=values.get("AOTI_COMPUTE_CAPABILITY") or None,
        gpu_code=model.gpu_code,
        missing_gpu_code=_missing_code(model, launches),
        isa=_isa(command, values.get("AOTI_CPU_ISA", "")),
        march_native="-march=native" in command,
        baked_threads=facts.baked_threads,
        torch_path=_torch_path(command),
        torch_version=_first(_TORCH_VERSION, command),
        python_version=_first(_INCLUDE_PYTHON, command),
        cuda_version=_first(_CUDA, command),
        cxx11_abi={"0": False, "1": True}.get(_first(_ABI, command) or ""),
        random_ops=_random(facts, kernels),
        uninitialized_ops=_uninitialized(facts, kernels, unwritten),
        nan_constants=facts.nan,
    )


def metadata_values(model: ModelEntry) -> dict[str, str]:
    """All metadata of the model in one table; the wrapper's wins over the kernel's, as the Python loader reads it."""
    values: dict[str, str] = {}
    for one in sorted(model.metadata, key=lambda one: "wrapper" in one.member):
        values.update(one.values)
    return values


def isa_features(text: str) -> tuple[str, ...]:
    """CPU features, as /proc/cpuinfo spells them, of ``AOTI_CPU_ISA`` metadata such as ``AVX512 AVX512_VNNI``."""
    return tuple(dict.fromkeys(name for word in text.upper().split() for name in _ISA_FEATURES.get(word, ())))


def _isa(command: str, metadata: str) -> tuple[str, ...]:
    flags = [flag.replace("-", "_") for flag in _FEATURE.findall(command)]
    features = [_SPELLING.get(flag, flag) for flag in flags]
    return tuple(dict.fromkeys(features)) or isa_features(metadata)


def _torch_path(command: str) -> str | None:
    found = _INCLUDE_TORCH.search(command)
    return f"{found[1]}/torch" if found is not None else None


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1] if found is not None else None


def _missing_code(model: ModelEntry, launches: Mapping[str, Launch]) -> tuple[str, ...]:
    """Device code that a kernel loads by name and that is no member. Its directory is the build host's and unused."""
    present = {member.name.rpartition("/")[2] for member in model.members}
    wanted = (launch.device_code for launch in launches.values() if launch.device_code is not None)
    return tuple(dict.fromkeys(name for name in wanted if name not in present))


def _random(facts: KernelFacts, kernels: Sequence[KernelCall]) -> tuple[str, ...]:
    found = {f"{function} in {kernel}": None for kernel, function in facts.random}
    for kernel in kernels:
        names = kernel.origins if kernel.kind != "extern" else (*kernel.origins, _shim(kernel.name))
        for name in names:
            if _RANDOM.search(name) is not None:
                found[name if name.startswith("aten.") else kernel.name] = None
    return tuple(found)


def _shim(name: str) -> str:
    """``.rand_like`` of ``aoti_torch_cpu_rand_like``."""
    return re.sub(r"^aoti_torch_(?:cpu|cuda|xpu|mps)?_?(?:inductor_)?", ".", name)


def _uninitialized(facts: KernelFacts, kernels: Sequence[KernelCall], unwritten: Sequence[str]) -> tuple[str, ...]:
    """Reads of memory that nothing wrote: buffers first, then kernels with a NaN constant that no operator explains.

    A comment that names ``aten.empty`` is no proof by itself: the buffer may be filled by the same kernel. With a NaN
    constant in the kernel's body it is.
    """
    found = [f"aten.empty ({text})" for text in unwritten]
    origins = {kernel.name: kernel.origins for kernel in kernels}
    for name in facts.nan:
        named = [origin for origin in origins.get(name, ()) if _EMPTY.match(origin) is not None]
        if named:
            found.append(f"{named[0]} ({name})")
        elif _DELIBERATE_NAN.search(name) is None:
            found.append(f"aten.empty? (NaN constant in {name})")
    return tuple(found)
