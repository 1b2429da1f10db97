"""Whose failure it is: signs of torch, and of other programs, around a message that any program may print.

Compilers, linkers, loaders and memory fail everywhere in the same words. Beside a sign of torch such a message is taken
at its word; without one it is a low suspicion, and beside a sign of another program it is a lead and no diagnosis.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from aotidoctor.model.log import LogMatch

_MARK = re.compile(
    r"(?i:\bc?torch|libtorch|pytorch|inductor|\baoti|triton(?!server)|\.pt2\b|executorch|xformers|flash_?attn|fbgemm|vllm|torchrec)"
    r"|\bat::|\bc10\b|_Z\w{0,40}(?:3c10|2at\d|5torch)|\bTORCH_|Error in dlopen|FakeTensor|\baten\b"
    # Words that nobody else has for it.
    r"|\bmat[12]\b|non-singleton dim|is invalid for input of size|expects each tensor to be|probability tensor"
    r"|must be Tensor, not|got \(\w{0,12}Tensor|Dimension out of range \(expected|indices for tensor of dim"
    r"|of the active trace|\w{2,40}Backward\d|WorkNCCL|\bc10d\b|(?i:\bsglang)|gpu_memory_utilization|state_dict"
    r"|\d-dimensional (?:input|weight|tensor)|\bATen\b|vectorized ISA|\bDim\.(?:AUTO|DYNAMIC)|\bdynamic_shapes\b"
    r"|libc10|site-packages/nvidia/|Tensor(?:\[\])?\(a!\)|swap_constant|fold_state"
    r"|(?:Runtime|Index|Value|Type)Error: [a-z]\w{1,40}\(\w{0,20}\): |batch1 and batch2|running_(?:mean|var)\b"
    r"|split_with_sizes|symbolic sizes|SparseTensorImpl|channels_last|TORCH_LIBRARY|PytorchStream|CUBLAS_STATUS|CUDNN_"
    r"|Tensor as element|to be true, but got false|Tried to allocate \d"
    r"|ProcessGroup[A-Z]\w{2,8}\.[ch]pp|NCCL (?:WARN|error)"
    r"|#ttg\.|\btt\.func\b"
    r"|missing value for argument|invalid combination of arg|input batch_size|scalar type \w+ but (?:found|got)"
    r"|\b(?:MPS|XPU|HPU|NPU|CUDA) (?:[Tt]ensors?|backend|framework)|AITemplate"
    # The sources of tch-rs, as cargo keeps them.
    r"|\btch-\d[\d.]{0,12}[/\\]src[/\\]"
)
# What every program for CUDA prints: a sign where it is told as torch tells it, and nothing speaks of another program.
_ANY = re.compile(r"(?:^|Error:? |what\(\): {1,4}|\] |> |: E? {0,8})CUDA error", re.MULTILINE)
# The names of folders are their owner's; a sign are those below which packages are installed, and files of torch.
_PATH = re.compile(r"(?<![\w:/\\.])(?:~|\.{1,2}|\$\w{1,40}|[A-Za-z]:)?(?:[/\\][\w.+@%-]{1,120}){1,40}")
_OF_PACKAGES = re.compile(
    r"(?:site|dist)-packages|\.(?:so|dll|dylib|pt2?|pte|cubin|ptx|a|lib)(?:[.\d]{0,12}|$)"
    r"|torch[/\\](?:_|csrc|lib|include|export|utils|nn|cuda|fx|onnx|jit|distributed|serialization|functional|autograd)"
    r"|(?:torchinductor_\w{1,40}|torch_compile_cache|triton[/\\]cache|torch_extensions)[/\\]"
    r"|pytorch[/\\](?:benchmarks|test|aten|third_party|tools|cmake)[/\\]"
    r"|[/\\]tch-\d[\d.]{0,12}[/\\]src[/\\]"
    r"|triton[/\\](?:compiler|language|runtime|backends|_C|ops)|(?:aten|c10|ATen)[/\\]"
    r"|(?:vllm|sglang|executorch|xformers|flash_attn|fbgemm\w{0,8}|torchrec|torch\w{2,12})[/\\][\w/\\.-]{0,200}\.(?:py|cpp|cc|cu|h)"
)
_OTHER = re.compile(
    r"(?i:tensorflow|\bjax|\bxla\b|paddle|mxnet|\bcargo\b|rustc|\bnpm\b|node_modules|gradle|\bmaven|gstreamer|"
    r"opencv|\bqt[56]\b|unity|unreal|minecraft|\bjulia\b|\bruby\b|go build|dotnet|\.csproj|\bswift|flutter|\bcobol|"
    r"\bpostgres|\bpsql\b|\bpg_hba|\bmysqld?\b|\bmariadb|\bredis\b|\belectron\b|\bopenssl|\blibcurl|"
    r"AndroidRuntime|\bjava\.lang|\bggml|llama\.cpp|llama_(?:cpp|model_lo|print_t)|whisper\.cpp)"
)
# Forms and causes that are not torch's alone.
_FORMS, _CAUSES = ("linker", "loader", "compiler"), (
    "out-of-memory", "missing-library", "toolchain-missing", "abi-mismatch", "platform-mismatch",
    "tmpdir", "killed", "isa-mismatch",
)  # fmt: skip
# The programs on ggml run models too: what only they print is told; the words of CUDA beside theirs are a lead.
_OF_MODELS = ("ggml",)
# It is the same whoever loads the libraries.
_EVERYWHERE = ("openmp-conflict",)
# Without a sign of torch it is a suspicion; of another program not even that.
_UNMARKED, _OF_OTHERS = 0.45, 0.25
# Libraries that torch, its compilers and its kernels are linked with; of others a linker's complaint says nothing.
_LINKED = re.compile(
    r"(?i:torch|c10|aten|aoti|python|cud|cublas|cufft|curand|cusp|nvrtc|nvtx|nccl|cupti|hip|roc|rccl|miopen|sycl|ze_|omp|mkl|dnnl|sleef|stdc\+\+"
    r"|atomic|blas|lapack|kineto|protobuf|triton|fbgemm|magma|shim|msvcrt|kernel32|ucrt|\bm$|\bdl$|pthread|\brt$)"
)
_NAMED = re.compile(r"LNK1(?:104|181)|cannot find -l|library not found for -l|library '[\w+.-]+' not found")


# Every origin asks it of the lines around one failure.
@lru_cache(maxsize=4)
def has_mark(text: str) -> bool:
    """Whether ``text`` has a sign of torch, of what it compiles or of a library that is built on it."""
    text = _PATH.sub(_without_folders, text)
    return _MARK.search(text) is not None or (_ANY.search(text) is not None and not _is_of_others(text))


def names_linked(text: str) -> bool:
    """Whether a tool misses a library that torch, its compilers and its kernels are linked with."""
    return _NAMED.search(text) is not None and _LINKED.search(text) is not None


def _without_folders(path: re.Match[str]) -> str:
    return path[0] if _OF_PACKAGES.search(path[0]) is not None else "/"


def _is_of_others(text: str) -> bool:
    return _OTHER.search(text) is not None


def of_torch(match: LogMatch, around: str) -> LogMatch:
    """The match with the confidence that it deserves where the lines around it show no sign of torch."""
    if match.pattern.component in _OF_MODELS:
        return match
    is_anybodys = match.event.form in _FORMS or match.pattern.cause in _CAUSES
    if has_mark(around) or _MARK.search(_PATH.sub(_without_folders, match.event.text)) is not None:
        return match
    is_others = match.pattern.cause not in _EVERYWHERE and _is_of_others(around)
    if not (is_anybodys or is_others):
        return match
    is_others = is_others or (_NAMED.search(match.text) is not None and _LINKED.search(match.text) is None)
    return replace(
        match,
        confidence=min(match.confidence, _OF_OTHERS if is_others else _UNMARKED),
        facts={**match.facts, "unmarked": True},
        pattern=replace(match.pattern, is_suspect=True),
    )
