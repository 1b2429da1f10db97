"""Read an InputSet from a file: the format by content, never by name, and the object read as a call.

Apart from the readers of formats, which it imports when a file needs them.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import stat

from aotidoctor.files import O_BINARY, O_NONBLOCK
from aotidoctor.model.artifact import ProgramArchive
from aotidoctor.model.errors import InputsError
from aotidoctor.model.inputs import InputSet, Leaf, PlainValue, TensorDesc
from aotidoctor.readers.inputs.saved_calls import Expected, arrange, graft, plan_to_json
from aotidoctor.readers.inputs.torch_files import (
    FileContent,
    corrupt_error,
    find_pickle,
    missing_error,
    open_members,
    other_zip,
    read_torch_zip,
    wrong_format_error,
)

SHA_LIMIT = 64 << 20
READ_LIMIT = 8 << 20
_ZIP = b"PK\x03\x04"


def read_inputs(path: str, *, trust_pickle: bool = False, expected: Expected | None = None) -> InputSet:
    """Describe the inputs in the file at ``path``; nothing of it is executed, with ``trust_pickle`` neither.

    ``trust_pickle`` only describes what it does not know instead of refusing it: the worker is the one that executes
    it. ``expected`` are the ``args`` and ``kwargs`` trees of the contract; they decide between readings that are both
    possible. Raises ``InputsError`` with the cause ``inputs-file-missing``, ``-corrupt``, ``-unsafe`` or ``-format``.
    """
    return _read(path, _open(path), trust_pickle=trust_pickle, expected=expected)


def _read(path: str, data: memoryview, *, trust_pickle: bool = False, expected: Expected | None = None) -> InputSet:
    try:
        content = _content(path, data, trusted=trust_pickle)
        root = content.tree
        if isinstance(root, Leaf) and isinstance(root.value, PlainValue) and root.value.type != "ndarray":
            raise wrong_format_error(path, f"a single {root.value.type} ({root.value.text})")
        arranged = arrange(root, flat=content.flat, expected=expected)
        return InputSet(
            path=path,
            format=content.format,
            form=arranged.form,
            args=graft(arranged.args, root),
            kwargs=graft(arranged.kwargs, root),
            sha256=hashlib.sha256(data).hexdigest() if len(data) <= SHA_LIMIT else None,
            trusted=trust_pickle,
            globals=content.foreign,
            notes=(*content.notes, *arranged.notes),
            plan=plan_to_json(arranged),
        )
    except (RecursionError, MemoryError) as error:
        raise corrupt_error(path, path, f"a file too complex to read ({type(error).__name__})") from error


def read_examples(archive: ProgramArchive) -> dict[str, TensorDesc]:
    """The example inputs in an archive of torch.export, by path; empty where there are none that can be read."""
    examples = archive.examples
    if examples is None or examples.size > READ_LIMIT:
        return {}
    try:
        data = _open(archive.path)[examples.offset : examples.offset + examples.size]
        # What torch.save writes; of other formats, a document may be too long to be read at all.
        return dict(_read(archive.path, data).tensors()) if bytes(data[:4]) == _ZIP else {}
    except InputsError:
        return {}


def _open(path: str) -> memoryview:
    """The bytes of a regular file; large files are mapped, not read."""
    try:
        with open(path, "rb", opener=_without_waiting) as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise wrong_format_error(path, "no regular file", expected="a file")
            if status.st_size <= READ_LIMIT:
                return memoryview(stream.read(READ_LIMIT + 1))
            return memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    except IsADirectoryError as error:
        raise wrong_format_error(path, "a directory", expected="a file") from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise missing_error(path, "no such file") from error
    except (OSError, ValueError) as error:
        raise missing_error(path, getattr(error, "strerror", None) or str(error), kind="unreadable") from error


def _without_waiting(path: str, flags: int) -> int:
    """Open without waiting for the other end of a named pipe."""
    return os.open(path, flags | O_NONBLOCK | O_BINARY)


def _content(path: str, data: memoryview, *, trusted: bool) -> FileContent:
    if not len(data):
        raise corrupt_error(path, path, "an empty file")
    head = bytes(data[:512])
    if head[:4] in (_ZIP, b"PK\x05\x06"):
        members = open_members(path, data)
        names = members.names()
        what = other_zip(names)
        if what is not None:
            raise wrong_format_error(path, what)
        pickle_name = find_pickle(members)
        if pickle_name is not None:
            return read_torch_zip(members, pickle_name, trusted=trusted)
        if names and all(name.endswith(".npy") for name in names):
            from aotidoctor.readers.inputs.other_formats import read_npz

            return read_npz(members, trusted=trusted)
        first = ", ".join(names[:3])[:100]
        raise wrong_format_error(
            path, f"a zip file of {len(names)} other members ({first})" if names else "an empty zip file"
        )
    # Imported here: torch.save writes zip files, and those are what most people have.
    from aotidoctor.readers.inputs.other_formats import read_other_format

    return read_other_format(path, data, head, trusted=trusted)
