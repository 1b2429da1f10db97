"""Things that people pass as inputs and that hold none: state dicts, checkpoints, whole models, other archives."""

from __future__ import annotations

from collections.abc import Sequence

from aotidoctor.model.named import is_argument_name
from aotidoctor.readers.inputs.nodes import Call, Entries, Global, Persistent, Value
from aotidoctor.readers.inputs.tensors import is_tensor_call

_PARTS = frozenset({"model", "optimizer", "module", "net", "ema", "scheduler", "lr_scheduler", "param_groups"})


def other_pickle(root: Value) -> str | None:
    """What a pickled object is if it holds no inputs, None if it may hold some."""
    if isinstance(root, Call):
        state = root.state.entries if isinstance(root.state, Entries) else ()
        if {"_parameters", "_modules"} <= {key for key, _ in state if isinstance(key, str)}:
            return f"a pickled model ({root.name[:80]})"
    entries = _entries(root)
    if entries is not None:
        return _other_dict(root, entries)
    if isinstance(root, Persistent):
        return "a bare storage, without shape"
    if isinstance(root, Global):
        return f"the name of a function or class ({root.name[:80]})"
    if root is None or isinstance(root, (bool, int, float, str, bytes)):
        return f"a single {type(root).__name__}"
    return None


def _entries(value: Value) -> Sequence[tuple[Value, Value]] | None:
    if isinstance(value, Entries):
        return value.entries
    if isinstance(value, Call) and value.name == "collections.OrderedDict":
        return value.entries
    return None


def _other_dict(root: Value, entries: Sequence[tuple[Value, Value]]) -> str | None:
    if _is_state_dict(root, entries):
        names = ", ".join(str(key)[:60] for key, _ in entries[:3])
        return f"a state dict of {len(entries)} tensors ({names}{', ...' if len(entries) > 3 else ''})"
    for key, value in entries:
        inner = _entries(value)
        if not isinstance(key, str) or inner is None or not (key in _PARTS or key.endswith("state_dict")):
            continue
        if _is_state_dict(value, inner) or "param_groups" in {name for name, _ in inner if isinstance(name, str)}:
            return f"a training checkpoint ({key[:60]!r} holds a state dict)"
    if {"state", "param_groups"} == {key for key, _ in entries if isinstance(key, str)}:
        return "the state of an optimizer"
    return None


def _is_state_dict(value: Value, entries: Sequence[tuple[Value, Value]]) -> bool:
    """Names with dots and tensors only; or the ``_metadata`` that ``Module.state_dict`` leaves."""
    if isinstance(value, Call) and isinstance(value.state, Entries):
        return any(key == "_metadata" for key, _ in value.state.entries)
    names = [key for key, _ in entries if isinstance(key, str)]
    tensors = all(isinstance(item, Call) and is_tensor_call(item) for _, item in entries)
    return tensors and len(names) == len(entries) and dotted(names)


def dotted(names: Sequence[str]) -> bool:
    """Whether any name is one of a parameter (``layers.0.weight``) and no path of an argument (``args.0``)."""
    return any("." in name and not is_argument_name(name) for name in names)


def other_zip(names: Sequence[str]) -> str | None:
    """What a zip file is by its members if it holds no inputs."""
    parts = [name.partition("/")[2] or name for name in names]
    if any(part.startswith("code/") for part in parts) and "data.pkl" in parts:
        return "a TorchScript module"
    if any(part.startswith("data/aotinductor/") and part.endswith((".so", ".cpp")) for part in parts):
        return "an AOTInductor package"
    if any(part.startswith("models/") and part.endswith(".json") for part in parts):
        return "an exported program"
    if any(part.endswith("serialized_exported_program.json") for part in names):
        return "an exported program"
    return None


_MAGIC = (
    (b"\x7fELF", "a shared library or program (ELF)"),
    (b"MZ", "a Windows program"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"\x1f\x8b", "gzip-compressed data"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (b"\x89HDF\r\n", "an HDF5 file"),
    (b"GGUF", "a GGUF model"),
    (b"PAR1", "a Parquet file"),
    (b"version https://git-lfs", "a git-lfs pointer, not the file itself"),
    (b"<", "an HTML or XML page"),
)


def other_file(head: bytes) -> str:
    """What a file is by its first bytes, when no reader takes it."""
    stripped = head.lstrip()
    for magic, name in _MAGIC:
        if stripped.startswith(magic):
            return name
    if len(head) > 262 and head[257:262] == b"ustar":
        return "a tar file (torch.save before 0.1.10 wrote such)"
    text = head[:200].decode("utf-8", "replace")
    if text.isprintable() or all(letter.isprintable() or letter.isspace() for letter in text):
        return f"text ({text.strip().splitlines()[0][:60]!r})" if text.strip() else "blank text"
    return f"an unknown format (first bytes {head[:4].hex(' ')})"
