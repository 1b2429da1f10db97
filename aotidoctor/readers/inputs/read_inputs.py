"""Read an InputSet from a file: the format by content, never by name, and the object read as a call; or many calls.

Apart from the readers of formats, which it imports when a file needs them.

Many calls are the files of a folder, those that a pattern names, or the items of a list in one file. A list may also be
the arguments of one call: the call spec decides. It is one call where the whole list has the structure of the spec, and
also where that cannot be told; it is a list of calls where it has not, and an item has.
"""

from __future__ import annotations

import glob
import hashlib
import mmap
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from aotidoctor.files import O_BINARY, O_NONBLOCK
from aotidoctor.model.artifact import ProgramArchive
from aotidoctor.model.errors import CannotExamineError, InputsError
from aotidoctor.model.inputs import Container, InputSet, Leaf, LeafValue, PlainValue, TensorDesc, with_leaves
from aotidoctor.readers.inputs.saved_calls import Arranged, Expected, arrange, fits_call, graft, plan_to_json
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


# Many calls.
MOST_SAMPLES = 10_000
_ENDINGS = (".pt", ".pth", ".npz", ".npy", ".safetensors", ".json", ".pkl", ".pickle")
_NUMBERS = re.compile(r"(\d{1,18})")


def sample_files(given: str) -> tuple[str, ...] | None:
    """The files of the folder or pattern ``given``, in the order of their numbers; None where it names one file.

    Raises:
        CannotExamineError: there are none, or more than ``MOST_SAMPLES``.
    """
    folder = Path(given)
    try:
        if folder.is_dir():
            found = [str(one) for one in folder.iterdir() if one.suffix.lower() in _ENDINGS and one.is_file()]
            lacking = f"{given}: no file in this folder ends in {', '.join(_ENDINGS)}"
        elif glob.has_magic(given) and not os.path.lexists(given):
            found = [name for name in glob.glob(given) if not Path(name).is_dir()]  # noqa: PTH207 - as given
            lacking = f"{given}: no file has such a name"
        else:
            return None
    except (OSError, ValueError) as error:
        raise CannotExamineError(f"{given}: {error}") from error
    if not found or len(found) > MOST_SAMPLES:
        raise CannotExamineError(
            f"{given}: {len(found):,} files, expected at most {MOST_SAMPLES:,}" if found else lacking
        )
    return tuple(sorted(found, key=_by_numbers))


def _by_numbers(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _NUMBERS.split(name)]


def listed_calls(given: InputSet, expected: Expected | None) -> tuple[InputSet, ...]:
    """The calls of the list in the file of ``given``, which was read as one call; empty where it is one.

    Raises:
        InputsError: the file cannot be read any more.
        CannotExamineError: there are more than ``MOST_SAMPLES``.
    """
    items = given.args.children
    if given.path is None or given.form != "args" or len(items) < 2 or any(isinstance(one, Leaf) for one in items):
        return ()
    root = _content(given.path, _open(given.path), trusted=given.trusted).tree
    if expected is None or isinstance(root, Leaf) or fits_call(arrange(root, expected=expected), root, expected):
        return ()
    readings = [arrange(item, expected=expected) for item in root.children[:MOST_SAMPLES]]
    if not any(fits_call(one, item, expected) for one, item in zip(readings, root.children, strict=False)):
        return ()
    if (count := len(root.children)) > MOST_SAMPLES:
        raise CannotExamineError(f"{given.path}: a list of {count:,} calls, expected at most {MOST_SAMPLES:,}")
    return tuple(_items(given, root, readings))


def _items(whole: InputSet, root: Container[LeafValue], readings: list[Arranged]) -> Iterator[InputSet]:
    for index, reading in enumerate(readings):
        args, kwargs = (
            with_leaves(side, lambda place, at=index: Leaf(value=(at, *place)))  # type: ignore[misc]  # of this item
            for side in (reading.args, reading.kwargs)
        )
        placed = replace(reading, args=args, kwargs=kwargs)
        yield replace(
            whole,
            form=reading.form,
            args=graft(args, root),
            kwargs=graft(kwargs, root),
            notes=(f"item {index} of a list of {len(root.children):,} calls", *reading.notes),
            plan=plan_to_json(placed),
        )


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
        # Without waiting for the other end of a named pipe.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | O_NONBLOCK | O_BINARY)) as stream:
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


def _content(path: str, data: memoryview, *, trusted: bool) -> FileContent:
    if not len(data):
        raise corrupt_error(path, path, "an empty file")
    head = bytes(data[:512])
    if head[:4] in (_ZIP, b"PK\x05\x06"):
        members = open_members(path, data)
        names = tuple(members.infos)
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
