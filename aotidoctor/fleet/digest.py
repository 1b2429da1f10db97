"""Compute the key of an answer: the contents of files, the host, the options, and the tool itself.

Settings are the options of the command line that are the same for every item.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from aotidoctor.files import O_BINARY, O_CLOEXEC, O_NONBLOCK
from aotidoctor.fleet.items import EXECUTING, FleetItem
from aotidoctor.model.case import Host, TmpdirState
from aotidoctor.model.record import as_object, record, to_json, values_of
from aotidoctor.model.report import playbook_folder
from aotidoctor.remote.remote_files import clean_url, is_url
from aotidoctor.version import __version__


@record
class Settings:
    """``timeout`` and ``item_timeout`` are the limits of a child run and of an item, in seconds.

    ``memory_limit`` is in bytes. ``triton`` is the release of the server.
    """

    fail_on: str = "error"
    redact: bool = True
    timeout: float = 60.0
    item_timeout: float = 120.0
    memory_limit: int | None = None
    repeat: int = 1
    generate: bool = False
    trust_pickle: bool = False
    model_name: str | None = None
    device: str | None = None
    triton: str | None = None


# Digests. Before the digest of a version, which is none of content.
DIGEST_VERSION = "version:"
_CHUNK = 1 << 20
# Of a folder: a model repository has fewer files than that.
MOST_FILES = 20_000
# What changes from one moment to the next, and is no part of what a machine is.
_OF_THE_MOMENT = frozenset({"memory_available"})


class NotReadableError(OSError):
    """A path is no file and no folder that can be read to its end."""


def content_digest(path: str) -> tuple[str, int]:
    """The sha256 of a file, and its size; of a folder, those of the names and contents below it.

    A bare library has none: the files beside it decide, too. That of a URL covers the version that the server reports.

    Raises OSError and CannotExamineError.
    """
    if is_url(path):
        from aotidoctor.remote.remote_files import open_remote

        file = open_remote(path)
        if file.version is None or file.size is None:
            raise NotReadableError(f"{clean_url(path)}: the server does not report the version of the file")
        return DIGEST_VERSION + hashlib.sha256(f"{clean_url(path)}\0{file.version}".encode()).hexdigest(), file.size
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        return _folder_digest(path)
    descriptor = os.open(path, os.O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_BINARY)
    with open(descriptor, "rb", buffering=0) as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotReadableError(f"{path} is not a regular file")
        digest, size = hashlib.sha256(), 0
        while data := stream.read(_CHUNK):
            if not size and data.startswith(b"\x7fELF"):
                raise NotReadableError(f"{path} is examined with the files next to it")
            digest.update(data)
            size += len(data)
        return digest.hexdigest(), size


def _folder_digest(path: str) -> tuple[str, int]:
    digest, total, number = hashlib.sha256(), 0, 0
    for here, folders, names in os.walk(path):
        folders.sort()
        for file in (os.path.join(here, name) for name in sorted(names)):
            if not os.path.isfile(file):
                continue
            number += 1
            if number > MOST_FILES:
                raise NotReadableError(f"{path} has more than {MOST_FILES:,} files")
            one, size = content_digest(file)
            digest.update(f"{os.path.relpath(file, path)}\0{one}\0".encode("utf-8", "surrogateescape"))
            total += size
    return digest.hexdigest(), total


@lru_cache(maxsize=1)
def tool_digest() -> str:
    """The version with the contents of the code and the playbooks: what judges."""
    digest = hashlib.sha256(__version__.encode())
    code = Path(__file__).parent.parent
    for root, ending in ((code, ".py"), (code, ".txt"), (playbook_folder() or code, ".md")):
        for file in sorted(root.rglob(f"*{ending}")):
            digest.update(f"{file.relative_to(root)}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


def host_digest(host: Host) -> str:
    """The sha256 of the lasting facts about a machine, without its state of the moment."""
    steady = {name: value for name, value in values_of(host).items() if name not in _OF_THE_MOMENT}
    if isinstance(host.tmpdir, TmpdirState):
        steady["tmpdir"] = replace(host.tmpdir, free_bytes=None)
    return hashlib.sha256(json.dumps(to_json(steady), sort_keys=True).encode()).hexdigest()


def answer_key(item: FleetItem, contents: Sequence[str], settings: Settings, host: str) -> str:
    """The digest of everything that decides the answer. ``contents`` are the digests of ``item.files``, in order."""
    # The time that an item may take decides nothing but whether there is an answer.
    options = {name: value for name, value in as_object(to_json(settings)).items() if name != "item_timeout"}
    used = options if item.command in EXECUTING else {**options, "timeout": None, "repeat": None}
    given = [name is not None for name in (item.package, item.inputs, item.data, item.reference, item.setup)]
    # The end of its name may decide what a file is.
    ends = [os.path.splitext(path)[1] for path in item.files]
    decisive = [item.command, list(contents), given, ends, used, host, tool_digest()]
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()
