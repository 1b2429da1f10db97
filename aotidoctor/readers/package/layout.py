"""What an archive or a directory is, and which models are in it, from member names alone.

2.8+      <prefix>/data/aotinductor/<model>/<hash>.wrapper.so ..., <prefix>/archive_format, archive_version
2.7       data/aotinductor/<model>/<hash>.wrapper.so ...,  version, archive_format
2.5/2.6   data/aotinductor/<model>/<hash>.so ...,  version, archive_format
export    <prefix>/models/<name>.json;  before 2.7: serialized_exported_program.json
TorchScript  <prefix>/constants.pkl and <prefix>/code/;   torch.save  <prefix>/data.pkl
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from aotidoctor.model.artifact import ArtifactKind
from aotidoctor.readers.package.item import Item
from aotidoctor.readers.package.text import decode

_MODEL_FILE = re.compile(r"^(?P<root>(?:[^/]*/)*?)data/aotinductor/(?P<model>[^/]+)/(?P<file>[^/].*)$", re.DOTALL)
_PROGRAM = re.compile(r"^(?:[^/]+/)?models/(?P<name>[^/]+)\.json$")
_OLD_PROGRAM = re.compile(r"^(?:[^/]+/)?serialized_exported_program\.json$")
# Folders and prefixes of torch.export.pt2_archive.constants that are neither a compiled model nor a program.
_OTHER_CONTENTS = {
    "data/executorch/": "ExecuTorch programs",
    "data/mtia": "code for MTIA",
    "data/constants/opaque_obj_": "opaque objects",
    "data/constants/custom_obj_": "custom objects",
    "xl_model_weights/": "weights in separate files",
    "extra/module_info.json": "module information",
}
_TEXT_LIMIT = 256


def models_of(items: Iterable[Item]) -> dict[tuple[str, str], list[Item]]:
    """Items of each model, by ``(root, model name)``, in archive order; roots have no trailing slash."""
    found: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        match = _MODEL_FILE.match(item.name)
        if match is not None and not item.name.endswith("/"):
            found.setdefault((match["root"].rstrip("/"), match["model"]), []).append(item)
    return found


def programs_of(items: Iterable[Item]) -> list[tuple[str, Item]]:
    """``(name, item)`` of each exported program."""
    found = []
    for item in items:
        match = _PROGRAM.match(item.name)
        if match is not None:
            found.append((match["name"], item))
        elif _OLD_PROGRAM.match(item.name):
            found.append(("model", item))
    return found


def other_contents(names: Iterable[str]) -> tuple[str, ...]:
    """What an archive holds besides compiled models and exported programs, in words, with the number of members."""
    found: dict[str, int] = {}
    for name in names:
        for mark, words in _OTHER_CONTENTS.items():
            if mark in name and not name.endswith("/"):
                found[words] = found.get(words, 0) + 1
    return tuple(f"{words} ({count})" for words, count in found.items())


def zip_kind(names: Sequence[str]) -> ArtifactKind:
    """Kind of a zip archive."""
    # Our own: it holds sources of a package under their own names.
    if "bundle.json" in names and "report.json" in names:
        return ArtifactKind.BUNDLE
    if any(_MODEL_FILE.match(name) for name in names):
        return ArtifactKind.AOTI_PACKAGE
    if any(_PROGRAM.match(name) or _OLD_PROGRAM.match(name) for name in names):
        return ArtifactKind.EXPORTED_PROGRAM
    below = {name.partition("/")[2] for name in names} | set(names)
    if "constants.pkl" in below and any(name.startswith("code/") for name in below):
        return ArtifactKind.TORCHSCRIPT
    if "data.pkl" in below:
        return ArtifactKind.TORCH_SAVE
    return ArtifactKind.ZIP


def common_prefix(names: Sequence[str]) -> str | None:
    """The top folder that all members share, None when there is none or when it is ``data`` itself."""
    tops = {name.partition("/")[0] for name in names if "/" in name}
    if len(tops) != 1 or any("/" not in name for name in names):
        return None
    top = tops.pop()
    return None if top == "data" else top or None


def marker(items: Iterable[Item], prefix: str | None, name: str) -> str | None:
    """Text of a small marker member such as ``archive_version``, under the prefix or at the top; None when absent."""
    wanted = {name} if prefix is None else {name, f"{prefix}/{name}"}
    for item in items:
        if item.name in wanted:
            data = item.read(_TEXT_LIMIT)
            return None if data is None else decode(data).strip()
    return None


def model_layout(root: str, names: Iterable[str], files: Iterable[str]) -> str:
    """``legacy`` for the layout of 2.5 to 2.7, else ``pt2``. ``names`` are all members, ``files`` the model's."""
    known = frozenset(names)
    if root or "archive_version" in known:
        return "pt2"
    if "version" in known:
        return "legacy"
    return "pt2" if any(".wrapper" in file for file in files) else "legacy"
