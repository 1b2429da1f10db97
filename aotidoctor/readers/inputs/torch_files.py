"""Read files of torch.save and plain pickles: members of zip files, contents, and the errors of all formats.

Since 1.6 ``torch.save`` writes a zip file of ``data.pkl`` and one record per storage. Older files, and plain pickles
(whose tensors embed such files), have no zip directory. Members are read in place; their names are only looked up,
never used as paths. State dicts, checkpoints, whole models and other archives that are passed as inputs are
recognised and named in the error.
"""

from __future__ import annotations

import dataclasses
import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from aotidoctor.model.errors import InputsError
from aotidoctor.model.evidence import list_names
from aotidoctor.model.inputs import A_PACKAGE, LeafValue, Tree, is_argument_name
from aotidoctor.model.record import record
from aotidoctor.model.torch_names import ITEMSIZE
from aotidoctor.readers.inputs.describe_pickle import Describer, TensorReader, is_tensor_call
from aotidoctor.readers.inputs.pickle_machine import (
    MAX_STEPS,
    Entries,
    Items,
    LoadedPickle,
    Persistent,
    PickleCall,
    PickleGlobal,
    Value,
    load_pickle,
)
from aotidoctor.readers.inputs.tensor_values import (
    FileStorage,
    MalformedError,
    Resolve,
    StorageId,
    TooManyPartsError,
    storage_id,
)


# Content: the result of the reader of every format.
@record
class FileContent:
    """The saved object as it is in the file, before it is read as a call.

    ``format`` as in ``InputSet``; ``flat`` says that the format has names and no nesting. ``foreign`` are globals that
    were described by name only, which happens under ``--trust-pickle``.
    """

    tree: Tree[LeafValue]
    format: str
    flat: bool = False
    foreign: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


# Errors: why an inputs file is refused.
MAX_NAMED = 10
FORMS = "tensors as a tuple or list of arguments, {'args', 'kwargs'}, (args, kwargs), one tensor or a dict of kwargs"


def _error(where: str, cause: str, subject: str, observed: str, expected: str) -> InputsError:
    text = f"{where}: observed {observed}, expected {expected}"
    return InputsError(text, cause=f"inputs-file-{cause}", subject=subject, observed=observed, expected=expected)


def corrupt_error(path: str, subject: str, observed: str, expected: str = "a complete file") -> InputsError:
    """The error for a file that is damaged at ``subject`` (a member, a record, the file)."""
    return _error(path if subject == path else f"{path}: {subject}", "corrupt", subject, observed, expected)


def missing_error(path: str, observed: str, *, kind: str = "missing") -> InputsError:
    """The error for a file that is not there, or ``unreadable`` to this user."""
    return InputsError(
        f"{path}: {observed}",
        cause="inputs-file-missing",
        subject=path,
        observed=observed,
        expected="a file that can be read",
        kind=kind,
    )


def unsafe_error(path: str, names: Sequence[str]) -> InputsError:
    """The error for a file whose reading would call ``names``."""
    listed = list_names(names, MAX_NAMED)
    return InputsError(
        f"{path}: needs code to be executed: {listed}; read it with --trust-pickle if you trust who made it",
        cause="inputs-file-unsafe",
        subject=listed,
        observed=f"a pickle that calls {listed}",
        expected="tensors and plain containers",
    )


def wrong_format_error(path: str, observed: str, *, subject: str | None = None, expected: str = FORMS) -> InputsError:
    """The error for a sound file that holds no inputs."""
    return _error(path, "format", subject or path, observed, expected)


# Members of zip files.
CRC_TOTAL = 64 << 20
MAX_INFLATED = 64 << 20
MAX_MEMBERS = 20_000
_LOCAL_HEADER = 30


@record(kw_only=False, frozen=False)
class Members:
    """The members of the zip file at ``path``, whose bytes are ``data``. ``crc_left`` bytes may still be checked.

    ``unchecked`` counts members whose CRC was not compared.
    """

    path: str
    data: memoryview
    infos: dict[str, zipfile.ZipInfo]
    has_crc: bool
    crc_left: int = CRC_TOTAL
    unchecked: int = 0

    def read(self, name: str) -> memoryview:
        """The bytes of a member: a view of the file when it is stored. Raises ``InputsError`` when it is damaged."""
        info = self.infos[name]
        header = bytes(self.data[info.header_offset : info.header_offset + _LOCAL_HEADER])
        if len(header) < _LOCAL_HEADER or header[:4] != b"PK\x03\x04":
            raise corrupt_error(self.path, name, "no local header", "a local header at the position in the directory")
        start = info.header_offset + _LOCAL_HEADER + sum(struct.unpack("<HH", header[26:30]))
        raw = self.data[start : start + info.compress_size]
        if len(raw) < info.compress_size:
            raise corrupt_error(self.path, name, f"{len(raw)} bytes", f"{info.compress_size} as in the directory")
        view = raw if info.compress_type == zipfile.ZIP_STORED else self._inflate(info, raw)
        if len(view) != info.file_size:
            raise corrupt_error(self.path, name, f"{len(view)} bytes", f"{info.file_size} as in the directory")
        if not self.has_crc or len(view) > self.crc_left:
            self.unchecked += 1
            return view
        self.crc_left -= len(view)
        crc = zlib.crc32(view)
        if crc != info.CRC:
            raise corrupt_error(self.path, name, f"CRC {crc:08x}", f"{info.CRC:08x}: the data was changed")
        return view

    def _inflate(self, info: zipfile.ZipInfo, raw: memoryview) -> memoryview:
        if info.compress_type != zipfile.ZIP_DEFLATED or info.flag_bits & 1:
            raise corrupt_error(
                self.path, info.filename, "an unusual compression or encryption", "stored or deflated data"
            )
        if info.file_size > MAX_INFLATED:
            raise corrupt_error(self.path, info.filename, f"{info.file_size} bytes deflated", f"at most {MAX_INFLATED}")
        try:
            return memoryview(zlib.decompressobj(-15).decompress(raw, info.file_size + 1))
        except zlib.error as error:
            raise corrupt_error(self.path, info.filename, f"deflated data that does not inflate ({error})") from error


class MappedPart(io.RawIOBase):
    """A part of a mapped file as a file."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go somewhere; ``whence`` as for files."""
        self._at = max(0, offset + (0, self._at, len(self._data))[whence])
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Some bytes, from where it is."""
        end = len(self._data) if size < 0 else self._at + size
        found = bytes(self._data[self._at : end])
        self._at += len(found)
        return found


def open_members(path: str, data: memoryview) -> Members:
    """The directory of the zip file. Raises ``InputsError`` when there is none, or it contradicts itself."""
    try:
        with zipfile.ZipFile(MappedPart(data)) as archive:
            infos = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, OverflowError, struct.error) as error:
        if b"PK\x05\x06" not in bytes(data[-66_000:]):
            raise corrupt_error(path, path, "a zip file without its central directory (truncated?)") from error
        raise corrupt_error(path, path, f"a damaged zip directory ({error})") from error
    if len(infos) > MAX_MEMBERS:
        raise corrupt_error(path, path, f"a zip file of {len(infos)} members", f"at most {MAX_MEMBERS}")
    found: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        if info.filename in found:
            raise corrupt_error(path, info.filename[:200], "two members with one name", "one")
        found[info.filename] = info
    # torch has a setting to write no CRCs; then all of them are 0.
    return Members(path, data, found, has_crc=any(info.CRC for info in infos))


# Files that hold no inputs.
_PARTS = frozenset({"model", "optimizer", "module", "net", "ema", "scheduler", "lr_scheduler", "param_groups"})


def other_pickle(root: Value) -> str | None:
    """The nature of a pickled object without inputs; None if it may hold some."""
    if isinstance(root, PickleCall):
        state = root.state.entries if isinstance(root.state, Entries) else ()
        if {"_parameters", "_modules"} <= {key for key, _ in state if isinstance(key, str)}:
            return f"a pickled model ({root.name[:80]})"
    entries = _entries(root)
    if entries is not None:
        return _other_dict(root, entries)
    if isinstance(root, Persistent):
        return "a bare storage, without shape"
    if isinstance(root, PickleGlobal):
        return f"the name of a function or class ({root.name[:80]})"
    if root is None or isinstance(root, (bool, int, float, str, bytes)):
        return f"a single {type(root).__name__}"
    return None


def _entries(value: Value) -> Sequence[tuple[Value, Value]] | None:
    if isinstance(value, Entries):
        return value.entries
    if isinstance(value, PickleCall) and value.name == "collections.OrderedDict":
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
    if isinstance(value, PickleCall) and isinstance(value.state, Entries):
        return any(key == "_metadata" for key, _ in value.state.entries)
    names = [key for key, _ in entries if isinstance(key, str)]
    tensors = all(isinstance(item, PickleCall) and is_tensor_call(item) for _, item in entries)
    return tensors and len(names) == len(entries) and has_dotted_names(names)


def has_dotted_names(names: Sequence[str]) -> bool:
    """Whether any name is one of a parameter (``layers.0.weight``) and no path of an argument (``args.0``)."""
    return any("." in name and not is_argument_name(name) for name in names)


def other_zip(names: Sequence[str]) -> str | None:
    """The nature of a zip file without inputs, by its members; None if it may hold some."""
    parts = [name.partition("/")[2] or name for name in names]
    if any(part.startswith("code/") for part in parts) and "data.pkl" in parts:
        return "a TorchScript module"
    if any(part.startswith("data/aotinductor/") and part.endswith((".so", ".cpp")) for part in parts):
        return A_PACKAGE
    if any(part.startswith("models/") and part.endswith(".json") for part in parts):
        return "an exported program"
    if any(part.endswith("serialized_exported_program.json") for part in names):
        return "an exported program"
    return None


# From a pickle to its content.
def pickle_content(
    path: str, loaded: LoadedPickle, reader: TensorReader, *, member: str, format_: str, trusted: bool
) -> FileContent:
    """The content of one pickle. ``member`` names the record of the pickle, for errors. Raises ``InputsError``."""
    what = None if loaded.problem else other_pickle(loaded.value)
    if what is not None and what.startswith("a pickled model"):
        raise wrong_format_error(path, what)
    if loaded.foreign and not trusted:
        raise unsafe_error(path, loaded.foreign)
    if loaded.problem is not None:
        raise corrupt_error(path, member, f"a damaged pickle ({loaded.problem})", "a complete pickle")
    if what is not None:
        raise wrong_format_error(path, what)
    with pickle_errors(path, member):
        return FileContent(tree=Describer(reader).call_of(loaded.value), format=format_, foreign=loaded.foreign)


@contextmanager
def pickle_errors(path: str, member: str) -> Iterator[None]:
    """Raise what a pickle is not as the error of the file, whose record ``member`` it is."""
    try:
        yield
    except TooManyPartsError as error:
        raise wrong_format_error(path, error.observed) from error
    except MalformedError as error:
        raise corrupt_error(path, error.subject or member, error.observed, error.expected) from error


# Files without a zip directory.
MAGIC = 0x1950A86A20F9469CFC6C
EMBEDDED_STEPS = 1000  # the pickles of one storage, and the headers, have a few dozen


def read_legacy(path: str, data: memoryview, *, trusted: bool) -> FileContent:
    """The content of a legacy file or a plain pickle. Raises ``InputsError``."""
    first = load_pickle(data)
    if first.problem is None and first.value == MAGIC:
        loaded, storages = _legacy(path, data, first.end, trusted=trusted)
        reader = TensorReader(_resolver(storages), nested_storage(path))
        return pickle_content(path, loaded, reader, member="object", format_="pt-legacy", trusted=trusted)
    reader = TensorReader(_resolver({}), nested_storage(path))
    return pickle_content(path, first, reader, member="pickle", format_="pickle", trusted=trusted)


def _legacy(
    path: str, data: memoryview, start: int, *, trusted: bool = False, max_steps: int = MAX_STEPS
) -> tuple[LoadedPickle, dict[str, FileStorage]]:
    """The object and the storages: version, system, object, storage keys, then count and bytes of each storage."""
    version = load_pickle(data, start, max_steps=EMBEDDED_STEPS)
    system = load_pickle(data, version.end, max_steps=EMBEDDED_STEPS)
    loaded = load_pickle(data, system.end, max_steps=max_steps)
    for part in (version, system):
        if part.problem is not None:
            raise corrupt_error(path, "header", f"a damaged pickle ({part.problem})")
    if loaded.problem is not None or (loaded.foreign and not trusted):
        return loaded, {}
    keys = load_pickle(data, loaded.end, max_steps=max_steps)
    if keys.problem is not None or not isinstance(keys.value, Items):
        raise corrupt_error(path, "storage keys", f"a damaged pickle ({keys.problem or 'no list'})")
    names = [str(key)[:80] for key in keys.value.items if isinstance(key, (str, int))]
    # Count and bytes of each. They are little-endian on every machine; torch does not read what `system` says.
    position = keys.end
    with pickle_errors(path, "object"):
        ids = {wanted.key: wanted for wanted in map(storage_id, loaded.persistents)}
    found: dict[str, FileStorage] = {}
    for name in names:
        wanted = ids.get(name)
        count = int.from_bytes(data[position : position + 8], "little")
        if wanted is None:
            raise corrupt_error(path, f"storage {name}", "a storage that no tensor uses", "storages of the object")
        size = count * (1 if wanted.dtype is None else ITEMSIZE[wanted.dtype])
        view = data[position + 8 : position + 8 + size]
        need = max(size, wanted.nbytes)
        if len(view) < need:
            raise corrupt_error(path, f"storage {name}", f"{len(view)} bytes", f"{need}")
        found[name] = FileStorage(key=name, dtype=wanted.dtype, nbytes=size, device=wanted.device, data=view)
        position += 8 + size
    return loaded, found


def _resolver(storages: dict[str, FileStorage]) -> Callable[[StorageId], FileStorage]:
    def resolve(wanted: StorageId) -> FileStorage:
        if wanted.key not in storages:
            raise MalformedError("no such storage", f"{wanted.nbytes} bytes of tensor data", f"storage {wanted.key}")
        return storages[wanted.key]

    return resolve


def nested_storage(path: str) -> Callable[[bytes | str], FileStorage]:
    """Resolve the torch files that ``pickle.dump`` embeds for storages; each holds one storage and nothing else.

    Every embedded file is a storage of its own, even with equal bytes: pickle does not keep tensors shared.
    """
    known: dict[int, tuple[bytes | str, FileStorage]] = {}

    def resolve(data: bytes | str) -> FileStorage:
        if id(data) not in known:
            raw = data if isinstance(data, bytes) else data.encode("latin-1", "replace")
            known[id(data)] = data, _read_embedded(path, memoryview(raw), len(known))
        return known[id(data)][1]

    return resolve


def _read_embedded(path: str, data: memoryview, index: int) -> FileStorage:
    first = load_pickle(data, max_steps=EMBEDDED_STEPS)
    if first.problem is not None or first.value != MAGIC:
        raise MalformedError("an embedded storage that is not a torch file")
    loaded, storages = _legacy(path, data, first.end, max_steps=EMBEDDED_STEPS)
    if loaded.foreign:
        raise unsafe_error(path, loaded.foreign)
    storage = _resolver(storages)(storage_id(loaded.value))
    return dataclasses.replace(storage, key=f"embedded-{index}")


def find_pickle(members: Members) -> str | None:
    """The name of the record that holds the object, None when this is no such file."""
    names = [name for name in members.infos if name == "data.pkl" or name.endswith("/data.pkl")]
    return min(names, key=len, default=None)


def read_torch_zip(members: Members, pickle_name: str, *, trusted: bool) -> FileContent:
    """The content of the file. Raises ``InputsError``."""
    reader = TensorReader(storages_of(members, pickle_name, {}), nested_storage(members.path))
    # The copy is for speed: single bytes of a view are slow to get.
    loaded = load_pickle(bytes(members.read(pickle_name)))
    content = pickle_content(members.path, loaded, reader, member=pickle_name, format_="pt", trusted=trusted)
    unchecked = f"{members.unchecked} records were not compared with their CRC"
    return dataclasses.replace(content, notes=(unchecked,)) if members.unchecked else content


def storages_of(members: Members, pickle_name: str, known: dict[str, FileStorage]) -> Resolve:
    """Find the storages that the pickle names in the records beside it; ``known`` are those found so far.

    Raises ``InputsError``, as what it returns does.
    """
    prefix = pickle_name.removesuffix("data.pkl")
    # Whether the file says that a big-endian machine wrote its storages.
    order = f"{prefix}byteorder"
    big_endian = order in members.infos and bytes(members.read(order)[:3]) == b"big"

    def resolve(wanted: StorageId) -> FileStorage:
        if wanted.key not in known:
            known[wanted.key] = _storage(members, prefix, wanted, big_endian=big_endian)
        storage = known[wanted.key]
        if storage.data is not None and len(storage.data) < wanted.nbytes:
            raise MalformedError(f"{len(storage.data)} bytes", f"{wanted.nbytes}", f"{prefix}data/{wanted.key}")
        return dataclasses.replace(storage, dtype=wanted.dtype, nbytes=wanted.nbytes)

    return resolve


def _storage(members: Members, prefix: str, wanted: StorageId, *, big_endian: bool) -> FileStorage:
    if wanted.device == "meta":
        return FileStorage(key=wanted.key, dtype=wanted.dtype, nbytes=wanted.nbytes, device="meta")
    name = f"{prefix}data/{wanted.key}"
    if name not in members.infos:
        raise corrupt_error(members.path, name, "no such record", f"{wanted.nbytes} bytes of tensor data")
    return FileStorage(
        key=wanted.key,
        dtype=wanted.dtype,
        nbytes=wanted.nbytes,
        device=wanted.device,
        data=members.read(name),
        big_endian=big_endian,
    )
