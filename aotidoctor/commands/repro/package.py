"""The package beside the script: a copy without what the failure does not need."""

from __future__ import annotations

import io
import random
import re
import shutil
import struct
import zipfile
from itertools import accumulate
from pathlib import Path

from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.model.case import Case
from aotidoctor.model.contract import ConstantSpec
from aotidoctor.readers.package.constants import constants_bytes

ZEROED, RANDOM, KEPT = "zeroed", "random", "kept"
# Larger ones are not taken apart: they would have to be in memory whole.
LIMIT = 2 << 30
_NOT_NEEDED = re.compile(r"(?:^|/)(?:data/sample_inputs|models|extra)/")
_WEIGHT_FILE = re.compile(r"(?:^|/)data/weights/(?!.*\.json$)")
_BLOCK = 4096


def can_strip(case: Case) -> str | None:
    """Why the package is copied as it is; None where its weights can be taken out."""
    if case.artifact.kind is not ArtifactKind.AOTI_PACKAGE or case.model is None:
        return "it is not a package that can be rewritten"
    if case.artifact.size > LIMIT:
        return f"it is larger than {LIMIT >> 30} GiB"
    if case.model.weights_location not in ("so", "mmap", "blob", "disk", "external", "none"):
        return f"the location of its weights is unknown ({case.model.weights_location})"
    return None


def copy_package(case: Case, target: Path, weights: str) -> str:
    """Write the package with its weights zeroed, random or kept; what was done, in words.

    Raises:
        OSError, ValueError: it cannot be done.
    """
    if weights == KEPT:
        shutil.copyfile(case.artifact.path, target)
        return "kept"
    location = case.model.weights_location if case.model is not None else ""
    whole = _constants(case, location)
    if location in ("so", "mmap", "blob") and not whole and _own(case):
        raise ValueError("the bytes of its weights were not found")
    new = _filled(whole, _own(case), weights)
    done = 0
    with zipfile.ZipFile(case.artifact.path) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as made:
        for info in source.infolist():
            if _NOT_NEEDED.search(info.filename):
                continue
            data = source.read(info)
            if whole and info.filename.endswith((".so", ".blob")):
                done += data.count(whole)
                data = data.replace(whole, new)
            elif location == "disk" and _WEIGHT_FILE.search(info.filename):
                data, done = _blank_file(data), done + 1
            made.writestr(zipfile.ZipInfo(info.filename), data)
    if whole and not done:
        raise ValueError("the bytes of its weights were not found in it")
    if not done:
        return "it ships none"
    return "zeroed" if weights == ZEROED else "random floating-point values; integers kept"


def _own(case: Case) -> list[ConstantSpec]:
    constants = case.contract.constants if case.contract is not None else ()
    return [one for one in constants if not one.from_folded]


def _constants(case: Case, location: str) -> bytes:
    if case.model is None or location not in ("so", "mmap", "blob"):
        return b""
    return constants_bytes(case.artifact, case.model, location, LIMIT)


def _filled(whole: bytes, constants: list[ConstantSpec], weights: str) -> bytes:
    if weights == ZEROED:
        return bytes(len(whole))
    new, sizes = bytearray(whole), [one.data_size or 0 for one in constants]
    for one, start, size in zip(constants, accumulate([0, *sizes]), sizes, strict=False):
        pattern = _pattern(one.dtype or "")
        if pattern:
            new[start : start + size] = (pattern * (size // len(pattern) + 1))[:size]
    return bytes(new)


def _pattern(dtype: str) -> bytes:
    """Small random numbers of a floating-point dtype; empty for others."""
    numbers = [random.Random(at).uniform(-0.1, 0.1) for at in range(_BLOCK)]  # noqa: S311 - no secret
    match dtype:
        case "float32" | "complex64":
            return struct.pack(f"<{_BLOCK}f", *numbers)
        case "float64" | "complex128":
            return struct.pack(f"<{_BLOCK}d", *numbers)
        case "float16":
            return struct.pack(f"<{_BLOCK}e", *numbers)
        case "bfloat16":
            return b"".join(struct.pack("<f", number)[2:] for number in numbers)
    return b""


def _blank_file(data: bytes) -> bytes:
    """A file of ``torch.save`` with zeros for its storages."""
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return data
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as made:
        for info in source.infolist():
            content = source.read(info)
            blank = re.search(r"(?:^|/)data/\d+$", info.filename) is not None
            made.writestr(zipfile.ZipInfo(info.filename), bytes(len(content)) if blank else content)
    return out.getvalue()
