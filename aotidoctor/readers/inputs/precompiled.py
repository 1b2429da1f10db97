"""Read precompiled artifacts of torch.compile without unpickling them: opcodes, frames and texts.

- A function of ``aot_compile`` is a pickled dict (``signature``, ``guards_state``, ``compiled_fn``, ``system_info``),
  from torch 2.15 on behind ``PT2AOT`` and a version byte; of a module's functions there is a pickled list.
- ``standalone_compile`` and ``save_cache_artifacts`` write a big-endian crc32 and frames: u64 length, bytes.
- ``torch.compiler.precompile`` (2.15) writes a Python file with its facts as literals, and a torch.save dict with the
  sha256 of that file.
- vLLM keeps such files in folders, and notes their absolute paths.
"""

from __future__ import annotations

import ast
import base64
import binascii
import hashlib
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from aotidoctor.model.artifact import Artifact, ArtifactKind, StorageContent
from aotidoctor.model.contract import Dim, LeafSpec
from aotidoctor.model.expr import Num
from aotidoctor.model.inputs import Container, Leaf, SpecError, Tree, parse_spec, with_leaves
from aotidoctor.model.other_artifacts import CacheEntry, CompiledFunction, Parameter, Precompiled
from aotidoctor.readers.inputs.compiled_function import (
    MAX_STEPS,
    MOST_NAMES,
    aot_function,
    bytes_of,
    entries_of,
    graph_parameters,
    graph_texts,
)
from aotidoctor.readers.inputs.pickle_machine import Items, load_pickle

MAGIC = b"PT2AOT"
_VERSION = 1
# What is read of one file, of one graph in it, and how many of them.
_FILE_LIMIT, _CRC_LIMIT, _GRAPH_LIMIT, _TEXT_LIMIT = 64 << 20, 256 << 20, 16 << 20, 1 << 20
_MOST_FUNCTIONS, _MOST_ENTRIES = 16, 10_000
_FORMS = {b"CacheCompiledArtifact": "standalone-cache", b"AOTCompiledArtifact": "standalone-aot"}


def read_precompiled(artifact: Artifact, content: StorageContent | None, *, verify: bool = False) -> Precompiled:
    """Facts of the artifact, whose kind is one of ``PRECOMPILED_KINDS``; ``content`` is None for a folder."""
    if content is None:
        return _folder(artifact)
    match artifact.kind:
        case ArtifactKind.AOT_COMPILED:
            return _aot_file(content)
        case ArtifactKind.COMPILED_ARTIFACT:
            return _framed(content, "standalone-cache", verify=verify)
        case ArtifactKind.PRECOMPILE_CODE:
            return _code(content.read_at(0, _FILE_LIMIT))
        case ArtifactKind.PRECOMPILE_CACHE:
            return _cache_of_code(artifact, content)
    return _framed(content, "mega-cache", verify=verify)


def _damage_of(problem: str | None) -> tuple[str | None, str | None]:
    """Kind and text of the damage that a pickle shows."""
    if problem is None:
        return None, None
    cut = "ends before its STOP" in problem or "are left" in problem or "unterminated" in problem
    return "truncated" if cut else "malformed", problem


# aot_compile.
def _aot_file(content: StorageContent) -> Precompiled:
    data = content.read_at(0, min(content.size, _FILE_LIMIT))
    magic = data.startswith(MAGIC)
    if magic and data[6:7] != bytes([_VERSION]):
        version = f"format version {data[6:7].hex() or 'none'} after {MAGIC.decode()}"
        return Precompiled(form="aot-compile", magic=True, kind="header", damage=version)
    loaded = load_pickle(data, 7 if magic else 0)
    several = isinstance(loaded.value, Items)
    parts = [bytes_of(item) for item in loaded.value.items] if isinstance(loaded.value, Items) else [data]
    inner = [part.startswith(MAGIC) for part in parts[:_MOST_FUNCTIONS]]
    opened = [loaded]
    if several:
        pairs = zip(parts, inner, strict=False)
        opened = [load_pickle(part, 7 if mark else 0, max_steps=MAX_STEPS) for part, mark in pairs]
    functions = tuple(
        aot_function(one.value, tuple(str(key.id)[:200] for key in one.persistents[:MOST_NAMES]))
        for one in opened
        if one.problem is None
    )
    problems = [loaded.problem, *(one.problem for one in opened), *(one.problem for one in functions)]
    kind, damage = _damage_of(next((problem for problem in problems if problem is not None), None))
    unread: tuple[str, ...] = ()
    if content.size > len(data):
        unread = (f"of {content.size:,} bytes the first {len(data):,} were read",)
        kind, damage = None, None
    if len(parts) > _MOST_FUNCTIONS:
        unread += (f"{len(parts) - _MOST_FUNCTIONS} of its {len(parts)} functions",)
    return Precompiled(
        form="aot-compile-module" if several else "aot-compile",
        functions=functions,
        magic=magic or any(inner),
        kind=kind,
        damage=damage,
        unread=unread,
    )


# Frames behind a checksum.
class _CutError(Exception):
    """The frames go beyond the end of the file."""


class _Frames:
    """The numbers and byte strings of a file, in their order; what is not asked for is not read."""

    def __init__(self, content: StorageContent, start: int = 4) -> None:
        self.content = content
        self.at = start

    def number(self) -> int:
        data = self.content.read_at(self.at, 8)
        if len(data) < 8:
            raise _CutError(f"a number at byte {self.at:,} of {self.content.size:,}")
        self.at += 8
        return int.from_bytes(data, "big")

    def place(self) -> tuple[int, int]:
        """Offset and size of the next byte string, which is skipped."""
        size = self.number()
        at, self.at = self.at, self.at + size
        if self.at > self.content.size:
            raise _CutError(f"{size:,} bytes at byte {at:,} of {self.content.size:,}")
        return at, size

    def data(self, limit: int = 4096) -> bytes:
        at, size = self.place()
        return self.content.read_at(at, min(size, limit))

    def text(self) -> str:
        try:
            return base64.b64decode(self.data(), validate=True).decode("utf-8", "replace")[:300]
        except (binascii.Error, ValueError):
            raise _CutError(f"a text that is not base64, before byte {self.at:,}") from None

    @property
    def finished(self) -> bool:
        return self.at >= self.content.size


def _checksum(content: StorageContent, *, verify: bool) -> tuple[str | None, tuple[str, ...]]:
    """The difference between the recorded crc32 and that of the bytes, and what was not compared."""
    if content.size > _CRC_LIMIT and not verify:
        return None, (f"the checksum of {content.size:,} bytes; add --verify-data",)
    recorded, crc, at = int.from_bytes(content.read_at(0, 4), "big"), 0, 4
    while at < content.size and (chunk := content.read_at(at, min(1 << 20, content.size - at))):
        crc, at = zlib.crc32(chunk, crc), at + len(chunk)
    return (None if crc == recorded else f"the crc32 {crc:08x}, where its first bytes state {recorded:08x}"), ()


def _framed(content: StorageContent, form: str, *, verify: bool) -> Precompiled:
    differs, unread = _checksum(content, verify=verify)
    frames = _Frames(content)
    entries: tuple[CacheEntry, ...] = ()
    functions: tuple[CompiledFunction, ...] = ()
    missing: tuple[str, ...] = ()
    torch_key = key = damage = None
    try:
        if form == "mega-cache":
            entries, functions = _cache_entries(frames, None)
            missing = () if entries else ("entries: the cache is empty",)
        else:
            form = _FORMS.get(frames.data(), form)
            torch_key = frames.data().hex()
        if form == "standalone-cache":
            key = frames.text()
            at, size = frames.place()
            inner = StorageContent(size, lambda start, length: content.read_at(at + start, min(length, size - start)))
            entries, functions = _cache_entries(_Frames(inner), key)
            # The loader takes a cache that is damaged inside for an empty one, and fails without a text.
            differs = differs or _checksum(inner, verify=verify)[0]
        elif form == "standalone-aot":
            at, size = frames.place()
            functions = _graphs(content.read_at(at, min(size, _GRAPH_LIMIT)))
    except _CutError as cut:
        damage = str(cut)
    return Precompiled(
        form=form,
        functions=functions,
        entries=entries,
        torch_key=torch_key,
        key=key,
        kind="truncated" if damage else "checksum" if differs else None,
        damage=damage or differs,
        missing=missing,
        unread=unread,
    )


def _cache_entries(frames: _Frames, wanted: str | None) -> tuple[tuple[CacheEntry, ...], tuple[CompiledFunction, ...]]:
    """The entries of a cache, and their graphs; only that of the entry ``wanted`` where there is one."""
    if (version := frames.number()) != _VERSION:
        raise _CutError(f"encoding version {version}, not {_VERSION}")
    entries: list[CacheEntry] = []
    graphs: list[CompiledFunction] = []
    while not frames.finished and len(entries) < _MOST_ENTRIES:
        kind, count = frames.text(), frames.number()
        for _ in range(min(count, _MOST_ENTRIES - len(entries))):
            key = frames.text()
            at, size = frames.place()
            entries.append(CacheEntry(type=kind, key=key, size=size))
            is_graph = kind == "inductor" if wanted is None else kind in ("inductor", "aot_autograd")
            if is_graph and len(graphs) < _MOST_FUNCTIONS and size <= _GRAPH_LIMIT:
                graphs += _graphs(frames.content.read_at(at, size), key)
    # The graph of standalone_compile is in two entries.
    return tuple(entries), tuple({graph.graph: graph for graph in graphs}.values())


def _graphs(data: bytes, name: str = "graph") -> tuple[CompiledFunction, ...]:
    """The compiled graphs in a pickle. Of one that is cut off or not understood there are none."""
    loaded = load_pickle(data, max_steps=MAX_STEPS)
    texts = list(dict.fromkeys(graph_texts(loaded.value)))[:_MOST_FUNCTIONS]
    return tuple(
        CompiledFunction(
            name=name[:60], graph=text, parameters=tuple(graph_parameters(text)), device_type=_device(text)
        )
        for text in texts
    )


def _device(graph: str) -> str | None:
    found = {leaf.value.device_type for one in graph_parameters(graph) if isinstance(leaf := one.tree, Leaf)}
    devices = found - {None, "cpu"} or found - {None}
    return min(filter(None, devices), default=None)


# torch.compiler.precompile.
_FACT = re.compile(rb"^([A-Z_]{4,40}) = ([^\n]{1,60000})$", re.MULTILINE)
_SHAPES, _DTYPES, _DEVICES = "USER_INPUT_SHAPES", "USER_INPUT_DTYPES", "USER_INPUT_DEVICES"


def _code(data: bytes) -> Precompiled:
    """The facts that the file states as literals; none of it is executed."""
    facts = {name.decode(): text for name, text in _FACT.findall(data) if not name.startswith(b"_")}
    values = {name: _literal(text) for name, text in facts.items() if len(facts) < MOST_NAMES}
    names = [*_texts(values.get("PARAM_NAMES")), *_texts(values.get("BUFFER_NAMES"))]
    shapes = [*_texts(values.get("PARAM_SHAPES")), *_texts(values.get("BUFFER_SHAPES"))]
    weights = [
        f"{name}{list(shape) if isinstance(shape, tuple) else ''}" for name, shape in zip(names, shapes, strict=False)
    ]
    function = CompiledFunction(
        name=str(values.get("FN_NAME") or "forward"),
        backend=str(values["BACKEND"]) if "BACKEND" in values else None,
        parameters=_code_parameters(values),
        torch=str(values["TORCH_VERSION"]) if "TORCH_VERSION" in values else None,
        python=str(values["_DYNAMO_PYTHON_VERSION"]) if "_DYNAMO_PYTHON_VERSION" in values else None,
        device_type=next((str(one).partition(":")[0] for one in _texts(values.get(_DEVICES)) if one), None),
        external=tuple(weights[:MOST_NAMES]),
    )
    if "BACKEND" in values:
        return Precompiled(form="precompile-code", functions=(function,))
    lost = "no line BACKEND = ..., which its loader reads"
    return Precompiled(form="precompile-code", functions=(function,), kind="malformed", damage=lost)


def _literal(text: bytes) -> object:
    try:
        return ast.literal_eval(text.decode("utf-8", "replace"))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def _texts(value: object) -> Sequence[object]:
    return value[:_MOST_ENTRIES] if isinstance(value, list | tuple) else ()


def _code_parameters(values: Mapping[str, object]) -> tuple[Parameter, ...]:
    """The inputs besides the modules, in the order of the call; the modules are values that no guard holds."""
    described = zip(*(_texts(values.get(name)) for name in (_SHAPES, _DTYPES, _DEVICES)), strict=False)
    leaves = [_code_leaf(at, *one) for at, one in enumerate(described)]
    modules, count, spec = values.get("MODULE_POSITIONS"), values.get("NUM_POSITIONAL_ARGS"), values.get("IN_SPEC")
    trees: Sequence[Tree[LeafSpec]] = [Leaf(value=leaf) for leaf in leaves]
    try:
        tree = parse_spec(spec) if isinstance(spec, str) else None
        if isinstance(tree, Container):
            trees = with_leaves(tree, lambda at: Leaf(value=leaves[at])).children
    except (SpecError, IndexError):
        trees = ()
    if not isinstance(count, int) or not 0 <= count <= MOST_NAMES:
        return ()
    inputs = iter(trees)
    return tuple(
        Parameter(name=f"arg {at}", kind=0, tree=None if at in _texts(modules) else next(inputs, None))
        for at in range(count)
    )


def _code_leaf(at: int, shape: object, dtype: object, device: object) -> LeafSpec:
    if not isinstance(dtype, str):
        return LeafSpec(index=0, path=str(at), kind="unknown")
    sizes = [size for size in _texts(shape) if isinstance(size, int)] if shape is not None else None
    return LeafSpec(
        index=0,
        path=str(at),
        kind="tensor",
        input_index=0,
        dtype=dtype.removeprefix("torch."),
        rank=len(sizes) if sizes is not None else None,
        dims=tuple(Dim(static=size, expr=Num(size)) for size in sizes) if sizes is not None else None,
        device_type=str(device).partition(":")[0] if device else None,
    )


def _cache_of_code(artifact: Artifact, content: StorageContent) -> Precompiled:
    """The dict of the cache, and whether its Python file lies beside it."""
    member = next((one for one in artifact.members if one.name.rpartition("/")[2] == "data.pkl"), None)
    start = member.data_offset if member is not None else None
    data = content.read_at(start, min(member.size, _FILE_LIMIT)) if member is not None and start is not None else b""
    loaded = load_pickle(data)
    facts = entries_of(loaded.value)
    digest = facts.get("code_hash")
    kind, damage = _damage_of(loaded.problem)
    missing = _partner(Path(artifact.path), digest) if isinstance(digest, str) else ()
    entries: tuple[CacheEntry, ...] = ()
    packed = bytes_of(facts.get("artifact"))
    if packed:
        inner = StorageContent(len(packed), lambda at, size: packed[at : at + size])
        found = _framed(inner, "mega-cache", verify=True)
        entries, kind, damage = found.entries, kind or found.kind, damage or found.damage
    return Precompiled(
        form="precompile-cache", entries=entries, kind=kind, damage=damage, missing=missing, key=str(digest)[:80]
    )


def _partner(path: Path, digest: str) -> tuple[str, ...]:
    """What is wrong with the Python file of a cache: nothing where one beside it has the sha256 ``digest``."""
    found = []
    try:
        found = sorted(one for one in path.parent.iterdir() if one.suffix == ".py" and one.is_file())[:100]
        for one in found:
            if one.stat().st_size <= _FILE_LIMIT and hashlib.sha256(one.read_bytes()).hexdigest() == digest:
                return ()
    except OSError:
        return ()
    beside = f"; {found[0].name} beside it is another" if found else ""
    return (f"the Python file with the sha256 {digest[:80]}{beside}",)


# Folders.
_RANK = re.compile(r"(?:^|/)rank_\d{1,6}_\d{1,6}/model$")
_PATH = re.compile(r"'(/[^'\n]{1,1000})'")
VLLM_INDEX = "vllm_compile_cache.py"


def _folder(artifact: Artifact) -> Precompiled:
    names = [member.name for member in artifact.members]
    if any(name.startswith(("aotautograd/", "fxgraph/")) for name in names):
        return _unpacked(artifact)
    functions: list[CompiledFunction] = []
    stale: list[str] = []
    missing: list[str] = []
    unread: list[str] = []
    for member in artifact.members:
        if member.is_symlink:
            continue
        if _RANK.search(member.name):
            found = _read_model(member.path, member.size)
            functions += [replace(one, name=f"{one.name} ({member.name})"[:300]) for one in found.functions]
            missing += [f"{member.name}: {found.damage}"] if found.damage else []
            unread += found.unread
        elif member.name.rpartition("/")[2] == VLLM_INDEX and member.size <= _TEXT_LIMIT:
            folder, here = member.name.rpartition("/")[0], set(names)
            for path in _PATH.findall(_read_text(member.path)):
                name = PurePosixPath(path).name
                inside = f"{folder}/{name}" if folder else name
                stale += [path] if path != str(Path(member.path).parent / name) else []
                there = any(one == inside or one.startswith(f"{inside}/") for one in here)
                missing += [] if there else [inside]
    return Precompiled(
        form="vllm-cache",
        functions=tuple(functions[:_MOST_FUNCTIONS]),
        missing=tuple(dict.fromkeys(missing))[:MOST_NAMES],
        stale=tuple(dict.fromkeys(stale))[:MOST_NAMES],
        unread=tuple(unread),
    )


def _read_model(path: str, size: int) -> Precompiled:
    try:
        with Path(path).open("rb") as file:
            data = file.read(_FILE_LIMIT)
    except OSError as error:
        return Precompiled(form="aot-compile", unread=(f"{path}: {error.strerror}",))
    return _aot_file(StorageContent(size, lambda at, length: data[at : at + length]))


def _read_text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _unpacked(artifact: Artifact) -> Precompiled:
    """``aotautograd/KEY/...`` and ``fxgraph/xx/KEY/...``; the loader takes the one key of the first."""
    keys = {member.name.split("/")[1] for member in artifact.members if member.name.startswith("aotautograd/")}
    graphs = [member for member in artifact.members if member.name.startswith("fxgraph/")]
    functions: list[CompiledFunction] = []
    for member in graphs[:_MOST_FUNCTIONS]:
        if member.size <= _GRAPH_LIMIT and not member.is_symlink:
            try:
                functions += _graphs(Path(member.path).read_bytes())
            except OSError:
                continue
    missing = [] if len(keys) == 1 else [f"aotautograd/: {len(keys)} keys, where the loader takes the only one"]
    missing += [] if graphs else ["fxgraph/: the compiled graph"]
    entries = tuple(
        CacheEntry(type=member.name.partition("/")[0], key=member.name.split("/")[-2], size=member.size)
        for member in artifact.members[:_MOST_ENTRIES]
        if member.name.startswith(("aotautograd/", "fxgraph/"))
    )
    return Precompiled(
        form="standalone-unpacked",
        functions=tuple({one.graph: one for one in functions}.values()),
        entries=entries,
        key=min(keys, default=None),
        missing=tuple(missing),
    )
