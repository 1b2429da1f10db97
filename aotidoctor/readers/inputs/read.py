"""From a file to an ``InputSet``: the format by content, never by name; the reading of the object as a call."""

from __future__ import annotations

import hashlib
import mmap
import os
import stat

from aotidoctor.model.forms import Expected, arrange, graft, plan_to_json
from aotidoctor.model.inputs import InputSet, PlainValue
from aotidoctor.model.tree import Leaf
from aotidoctor.readers.inputs.content import Content
from aotidoctor.readers.inputs.members import Members, open_members
from aotidoctor.readers.inputs.not_inputs import other_zip
from aotidoctor.readers.inputs.problems import corrupt, missing, wrong_format
from aotidoctor.readers.inputs.torch_zip import find_pickle, read_torch_zip

SHA_LIMIT = 64 << 20
READ_LIMIT = 8 << 20


def read_inputs(path: str, *, trust_pickle: bool = False, expected: Expected | None = None) -> InputSet:
    """Describe the inputs in the file at ``path``; nothing of it is executed, with ``trust_pickle`` neither.

    ``trust_pickle`` only describes what it does not know instead of refusing it: the worker is the one that executes
    it. ``expected`` are the ``args`` and ``kwargs`` trees of the contract; they decide between readings that are both
    possible. Raises ``InputsError`` with the cause ``inputs-file-missing``, ``-corrupt``, ``-unsafe`` or ``-format``.
    """
    data = _open(path)
    try:
        content = _content(path, data, trusted=trust_pickle)
        return _input_set(path, data, content, trusted=trust_pickle, expected=expected)
    except (RecursionError, MemoryError) as error:
        raise corrupt(path, path, f"a file too complex to read ({type(error).__name__})") from error


def _open(path: str) -> memoryview:
    """The bytes of a regular file; large files are mapped, not read."""
    try:
        with open(path, "rb", opener=opener) as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise wrong_format(path, "no regular file", expected="a file")
            if status.st_size <= READ_LIMIT:
                return memoryview(stream.read(READ_LIMIT + 1))
            return memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    except IsADirectoryError as error:
        raise wrong_format(path, "a directory", expected="a file") from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise missing(path, "no such file") from error
    except (OSError, ValueError) as error:
        raise missing(path, getattr(error, "strerror", None) or str(error)) from error


def opener(path: str, flags: int) -> int:
    """Open without waiting for the other end of a named pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _content(path: str, data: memoryview, *, trusted: bool) -> Content:
    if not len(data):
        raise corrupt(path, path, "an empty file")
    head = bytes(data[:512])
    if head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return _zip_content(path, open_members(path, data), trusted=trusted)
    # Imported here: torch.save writes zip files, and those are what most people have.
    from aotidoctor.readers.inputs.other_formats import read_other  # noqa: PLC0415

    return read_other(path, data, head, trusted=trusted)


def _zip_content(path: str, members: Members, *, trusted: bool) -> Content:
    names = members.names()
    what = other_zip(names)
    if what is not None:
        raise wrong_format(path, what)
    pickle_name = find_pickle(members)
    if pickle_name is not None:
        return read_torch_zip(members, pickle_name, trusted=trusted)
    if names and all(name.endswith(".npy") for name in names):
        from aotidoctor.readers.inputs.arrays import read_npz  # noqa: PLC0415

        return read_npz(members, trusted=trusted)
    shown = ", ".join(names[:3])[:100]
    raise wrong_format(path, f"a zip file of {len(names)} other members ({shown})" if names else "an empty zip file")


def _input_set(path: str, data: memoryview, content: Content, *, trusted: bool, expected: Expected | None) -> InputSet:
    root = content.tree
    if isinstance(root, Leaf) and isinstance(root.value, PlainValue) and root.value.type != "ndarray":
        raise wrong_format(path, f"a single {root.value.type} ({root.value.text})")
    arranged = arrange(root, flat=content.flat, expected=expected)
    return InputSet(
        path=path,
        format=content.format,
        form=arranged.form,
        args=graft(arranged.args, root),
        kwargs=graft(arranged.kwargs, root),
        sha256=hashlib.sha256(data).hexdigest() if len(data) <= SHA_LIMIT else None,
        trusted=trusted,
        globals=content.foreign,
        notes=(*content.notes, *arranged.notes),
        plan=plan_to_json(arranged),
    )
