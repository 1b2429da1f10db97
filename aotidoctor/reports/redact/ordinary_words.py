"""Words that are too ordinary to be hidden, whoever is called so: those of reports, of slugs and of fields.

A user may be called ``dtype``: his name is hidden in paths and addresses, and ``input-dtype`` is a cause as before.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from aotidoctor.model.report import playbook_files

SHORTEST = 4
"""A name shorter than this is hidden only where a path or an address shows that a person or a machine is meant."""
SUBSTRING = 6
"""In a bundle, a name of at least this length is hidden inside longer words, too."""
_JOINT = re.compile(r"[-._ ]")

# Ordinary words of reports: as a name, hidden only where a path or an address shows that a person is meant.
ORDINARY = frozenset({
    "root", "user", "users", "admin", "guest", "nobody", "default", "main", "local", "host", "localhost", "home",
    "test", "tests", "build", "builder", "runner", "docker", "conda", "miniconda", "anaconda", "miniforge",
    "circleci", "vscode", "codespace", "coder", "jovyan", "nvidia", "ec2-user", "azureuser", "appuser", "jenkins",
    "node", "server", "work", "worker", "linux", "ubuntu", "debian", "unknown", "none", "true", "false", "null",
    "name", "data", "device", "memory", "error", "model", "models", "package", "python", "torch", "cuda", "aoti",
    "inductor", "triton", "kernel", "tensor", "stride", "strides", "shape", "shapes", "input", "inputs", "output",
    "outputs", "float", "double", "bool", "cpu", "gpu", "layout", "linear", "embedding", "report", "bundle",
    "check", "debug", "crash", "signal", "thread", "threads", "batch", "index", "value", "values", "weight",
    "weights", "buffer", "buffers", "constant", "constants", "wrapper", "library", "symbol", "version",
    "aotidoctor", "aotinductor", "export", "exported", "compile", "compiled", "load", "loaded", "serve", "serving",
    "program", "process", "system", "machine", "aten", "fused", "prims",
})  # fmt: skip
# Words of causes, codes, checks, probes, commands, dtypes and of the values of enumerations, if they are not above. A
# test compares them with their sources.
SCHEMA_WORDS = frozenset({
    "a", "abi", "accepts", "access", "ad", "alias", "alone", "ambiguous", "analyze", "api", "application", "arch",
    "art", "artifact", "assert", "autotune", "backend", "backtrace", "bad", "bare", "bfloat16", "bisect", "bit",
    "bits16", "bits1x8", "bits2x4", "bits4x2", "bits8", "blame", "blocking", "bomb", "bug", "bun", "c", "cache",
    "caching", "call", "capture", "cases", "changed", "checks", "class", "classify", "closed", "code", "codegen",
    "compare", "compat", "compiler", "completion", "complex128", "complex32", "complex64", "config", "confirmed",
    "conflict", "context", "contract", "core", "corrupt", "count", "cpp", "custom", "dead", "demo", "diff", "differ",
    "difference", "directory", "disagree", "divisibility", "division", "does", "driver", "dtype", "dump", "dynamic",
    "e", "e2m1fn", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu", "effect", "effects", "empty",
    "emulation", "end", "env",
    "exceed", "exception", "executable", "executorch", "exits", "explain", "extern", "f", "failed", "failure",
    "failures", "fake", "fault", "file", "fill", "folder", "findings", "fine", "fix", "flags", "fleet", "float16",
    "float32", "float4", "float64", "float8", "format", "good", "graph", "growth", "hang", "harmless", "healthy", "i",
    "illegal", "in", "incomplete", "info", "inspect", "int1", "int16", "int2", "int3", "int32", "int4", "int5", "int6",
    "int64", "int7", "int8", "integer", "isa", "killed", "kind", "known", "kwargs", "large", "launch", "launches",
    "lazy", "leak", "lfs", "limit", "limits", "link", "localize", "log", "lowering", "malloc", "man", "mcp", "merged",
    "metadata", "minimize", "mismatch", "missing", "mixed", "mode", "mutation", "nan", "no", "nondeterministic",
    "nontensor", "not", "nothing", "numbers", "numeric", "of", "only", "onnx", "op", "openmp", "operator", "ops",
    "order", "other", "out", "over", "overflow", "packaging", "payload", "performance", "pickle", "pipe", "plain",
    "platform", "plugin", "plugins", "pointer", "precompile", "printed", "probe", "problem", "produced", "pytree",
    "qint32", "qint8", "quint2x4", "quint4x2", "quint8", "race", "range", "rank", "rates", "read", "recompiled", "ref",
    "reference", "refused", "refuses", "remote", "repeat", "repro", "return", "returns", "right", "run", "runs",
    "runtime", "s", "safetensors", "sanitizer", "save", "say", "schema", "settings", "setup", "shim", "shrink", "so",
    "socket", "spec", "specialization", "stack", "stage", "stages", "stamp", "start", "sub", "suspected", "sweep",
    "symint", "symptoms", "terminal", "text", "threading", "time", "tmpdir", "took", "tool", "toolchain",
    "torchscript", "trace", "train", "treat", "treatment", "tree", "truncated", "uint1", "uint16", "uint2", "uint3",
    "uint32", "uint4", "uint5", "uint6", "uint64", "uint7", "uint8", "unavailable", "unbacked", "undefined",
    "unguarded", "uninitialized", "unreadable", "unsafe", "unsupported", "variants", "verify", "w", "warn", "watch",
    "watched", "weights", "wrong", "x2", "zip",
})  # fmt: skip


def is_ordinary(name: str) -> bool:
    """Whether hiding ``name`` wherever it stands would destroy reports: a short or ordinary word, a slug of ours."""
    folded = name.casefold()
    return len(name) < SHORTEST or all(word in ORDINARY or word in SCHEMA_WORDS for word in _JOINT.split(folded))


def is_common(name: str) -> bool:
    """Whether ``name`` is a word that reports use: a folder called ``/home/shared`` is not private."""
    return is_ordinary(name) or is_structural(name) or name.casefold() in _vocabulary()


def is_structural(name: str) -> bool:
    """Whether ``name`` is, or is in, the name of a field of the documents: hiding it would break them."""
    folded = name.casefold()
    return folded in _fields() or (len(folded) >= SUBSTRING and any(folded in one for one in _fields()))


@lru_cache(maxsize=1)
def _vocabulary() -> frozenset[str]:
    """The words of the playbooks. Read only when a name was met that may be a word."""
    texts = (path.read_text(encoding="utf-8").casefold() for path in playbook_files())
    return frozenset(word for text in texts for word in re.findall(r"[a-z]{4,}", text))


@lru_cache(maxsize=1)
def _fields() -> frozenset[str]:
    """Names of fields and keys, and their words, off the sources that define them. Read for bundles only."""
    package = Path(__file__).resolve().parents[2]
    sources = [
        *(package / "model").glob("*.py"),
        *(package / "reports" / "json").glob("*.py"),
        *(package / "commands" / "bundle").glob("*.py"),
    ]
    texts = "".join(path.read_text(encoding="utf-8") for path in sources)
    names = [one or two for one, two in re.findall(r'(?m)^ {4,}([a-z]\w*): |"([a-z][\w/]*)(?:\.json|\.md)?"', texts)]
    return frozenset(names) | frozenset(word for name in names for word in re.split(r"[_/]", name) if word)
