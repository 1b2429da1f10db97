"""Read an Artifact from a path: an archive, a directory (an unpacked package) or a bare shared object.

Runs nothing, extracts nothing, raises nothing for what the file contains. In an archive integrity comes first, then
the kind, then the models.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from aotidoctor.model.artifact import Artifact, ArtifactKind, CrcState, ExportedFacts, Member, ModelEntry
from aotidoctor.readers.package.blob import Blob, opened_blob, path_blob, registered_source
from aotidoctor.readers.package.package_layout import (
    HEAD_SIZE,
    PackageMember,
    archive_item,
    common_prefix,
    file_item,
    first_line,
    marker,
    model_layout,
    models_of,
    object_format,
    other_contents,
    programs_of,
    sniff,
    zip_kind,
)
from aotidoctor.readers.package.package_models import SUFFIX as METADATA_SUFFIX
from aotidoctor.readers.package.package_models import SUFFIXES as GPU_SUFFIXES
from aotidoctor.readers.package.package_models import Counts, build_model
from aotidoctor.readers.package.zip_archive import (
    DEFAULT_CRC_LIMIT,
    DEFLATED,
    STORED,
    ZipDirectory,
    ZipEntry,
    crc_states,
    describe_damage,
    duplicate_names,
    overlapping_members,
    oversized_members,
    read_zip_directory,
    unsafe_names,
)

# Members put together: kind, markers, models, exported programs. A package has a handful of models; more is an attack.
MAX_MODELS = 64


def with_contents(base: Artifact, items: Sequence[PackageMember]) -> Artifact:
    """Add kind, prefix, markers, models and programs to an artifact whose members are known."""
    names = [item.name for item in items]
    kind = zip_kind(names)
    counts = dict(base.counts)
    listed = list(models_of(items).items())
    if len(listed) > MAX_MODELS:
        counts["unread_models"] = len(listed) - MAX_MODELS
    top = {name for name in names if "/" not in name}
    models = tuple(
        build_model(name, model_layout(root, top, [item.name for item in members]), root, members, counts)
        for (root, name), members in listed[:MAX_MODELS]
    )
    prefix = common_prefix(names) or next((model.root for model in models if model.root), None)
    version = marker(items, prefix, "archive_version")
    if version is None and kind is ArtifactKind.AOTI_PACKAGE:
        version = marker(items, None, "version")
    problem = base.problem
    if kind is ArtifactKind.TORCH_SAVE and any(map(_is_precompile_cache, items)):
        kind = ArtifactKind.PRECOMPILE_CACHE
    if problem is None and kind is ArtifactKind.ZIP and any("data/executorch/" in name for name in names):
        problem = "a PT2 archive for ExecuTorch"
    return replace(
        base,
        kind=kind,
        problem=problem,
        other_contents=other_contents(names),
        prefix=prefix,
        archive_version=version,
        archive_format=marker(items, prefix, "archive_format"),
        models=models,
        exported=read_programs(items, counts),
        counts=counts,
    )


def _is_precompile_cache(item: PackageMember) -> bool:
    """Whether it is the pickle of a dict that begins as the cache of torch.compiler.precompile does."""
    blob = item.open() if item.name.endswith("data.pkl") and item.member.data_offset is not None else None
    return blob is not None and b"torch.compiler.precompile" in blob.read_at(0, 256)


def read_programs(items: Sequence[PackageMember], counts: Counts) -> tuple[ExportedFacts, ...]:
    """Facts of every exported program that parses; the others are counted."""
    programs = list(programs_of(items))[:MAX_MODELS]
    if not programs:
        return ()
    from aotidoctor.readers.package.exported_program import MAX_JSON, parse_exported

    found = []
    for name, item in programs:
        data = item.read(MAX_JSON)
        facts = parse_exported(name, data) if data is not None else None
        if facts is None:
            counts["unread_programs"] = counts.get("unread_programs", 0) + 1
        else:
            found.append(facts)
    return tuple(found)


def read_archive(base: Artifact, blob: Blob, directory: ZipDirectory) -> Artifact:
    """Fill ``base`` (path and size are set) from the archive in ``blob``; no checksum is compared."""
    entries = directory.entries
    items = archive_items(base.path, blob, entries)
    names = [entry.name for entry in entries]
    counts = {
        "trailing_bytes": directory.trailing,
        "encrypted_members": sum(entry.encrypted for entry in entries),
        "unknown_compression": sum(entry.method not in (STORED, DEFLATED) for entry in entries),
        "backslash_names": sum("\\" in entry.name for entry in entries),
    }
    checked = replace(
        base,
        members=tuple(item.member for item in items),
        names_duplicate=duplicate_names(names),
        names_unsafe=unsafe_names(names),
        names_symlink=tuple(entry.name for entry in entries if stat.S_ISLNK(entry.mode)),
        names_directory=tuple(name for name in names if name.endswith("/")),
        oversized=tuple(oversized_members(blob, entries)),
        overlapping=tuple(overlapping_members(entries)),
        problem=directory.problem,
        counts={key: number for key, number in counts.items() if number},
    )
    return with_contents(checked, items)


def with_states(archive: Artifact, entries: Sequence[ZipEntry], states: Sequence[CrcState]) -> Artifact:
    """``archive`` with the state of each of its members, which are ``entries``."""
    named = [(entry.name, state) for entry, state in zip(entries, states, strict=True)]
    return replace(
        archive,
        members=tuple(replace(member, crc=state) for member, state in zip(archive.members, states, strict=True)),
        bad_crc=tuple(name for name, state in named if state is CrcState.BAD),
        unread_crc=tuple(name for name, state in named if state is CrcState.NOT_READ),
    )


def archive_items(path: str, blob: Blob, entries: Sequence[ZipEntry]) -> list[PackageMember]:
    """One item per entry, in directory order; no checksum is compared."""
    return [
        archive_item(
            Member(
                name=entry.name,
                size=entry.size,
                compressed_size=entry.compressed,
                crc=CrcState.NOT_READ,
                data_offset=entry.data_offset if entry.method == STORED and not entry.encrypted else None,
                path=path,
                is_symlink=stat.S_ISLNK(entry.mode),
            ),
            entry,
            blob,
        )
        for entry in entries
    ]


def zip_items(path: str) -> list[PackageMember] | None:
    """The members of the zip archive at ``path``, readable as long as it is there; None when it is none."""
    try:
        remote = registered_source(path)
        if remote is None and not Path(path).is_file():
            return None
        return unchecked_items(path, remote or path_blob(path, Path(path).stat().st_size))
    except (OSError, ValueError):
        return None


def unchecked_items(path: str, blob: Blob) -> list[PackageMember] | None:
    """The members of the archive in ``blob``, their checksums not compared; None when it is none."""
    directory = read_zip_directory(blob)
    return None if directory is None else archive_items(path, blob, directory.entries)


# Directories and bare shared objects.
MAX_FILES = 10_000
MAX_DEPTH = 12
BARE_MODEL = "model"
# Folders of standalone_compile, and of vLLM.
_OF_CACHE = re.compile(r"^(?:aotautograd|fxgraph)/|(?:^|/)vllm_compile_cache\.py$|(?:^|/)rank_\d{1,6}_\d{1,6}/model$")


def read_directory(base: Artifact) -> Artifact:
    """Fill ``base`` from the files under its path. Links are listed, not followed."""
    root = Path(base.path)
    items = [file_item(member) for member in _walk(root)]
    problem = f"more than {MAX_FILES} files: the rest was not read" if len(items) >= MAX_FILES else None
    listed = replace(
        base,
        members=tuple(item.member for item in items),
        names_symlink=tuple(item.name for item in items if item.member.is_symlink),
        size=sum(item.member.size for item in items),
        problem=problem,
    )
    found = with_contents(listed, [item for item in items if not item.member.is_symlink])
    if found.models:
        kind = ArtifactKind.AOTI_DIRECTORY
    else:
        names = [item.name for item in items]
        kind = ArtifactKind.COMPILE_CACHE if any(map(_OF_CACHE.search, names)) else ArtifactKind.DIRECTORY
    if kind is not ArtifactKind.DIRECTORY:
        return replace(found, kind=kind)
    models = tuple(_packaged_models(items))
    return replace(found, kind=ArtifactKind.PACKAGE_FOLDER if models else kind, models=models)


def _packaged_models(items: Sequence[PackageMember]) -> Iterator[ModelEntry]:
    """The models of the packages in a folder, such as one of ZeroGPU: ``package/submodules/NAME/package.pt2``."""
    packages = [item.member for item in items if item.name.endswith(".pt2") and not item.member.is_symlink]
    for member in packages[:MAX_MODELS]:
        name = member.name.removeprefix("package/").removesuffix(".pt2").removesuffix("/package")
        with suppress(OSError, ValueError), opened_blob(member.path) as (blob, _):
            models = _read_file(Artifact(path=member.path, kind=ArtifactKind.OTHER, size=blob.size), blob)[0].models
            yield from (replace(one, name=name if len(models) == 1 else f"{name}/{one.name}") for one in models)


def read_bare_object(base: Artifact) -> Artifact:
    """Fill ``base`` from a shared object and the files beside it: same name, or device code."""
    path = Path(base.path)
    stem = path.name.rpartition(".")[0] or path.name
    alike = {f"{stem}.json", f"{stem}.cpp", f"{stem}{METADATA_SUFFIX}", f"{stem}.wrapper.cpp", f"{stem}_weights.blob"}
    # The loader cuts the name at its last dot and adds .json; the compiler names the others alike. Whatever the
    # suffix of the file itself, it is the library.
    library = path.name if path.suffix == ".so" else f"{path.name}.so"
    members = [_directory_member(library, path, base.size, is_symlink=False)]
    beside = _walk(path.parent, depth=MAX_DEPTH, beside=True)
    members += [member for member in beside if member.name in alike or member.name.endswith(GPU_SUFFIXES)]
    items = list(map(file_item, members))
    counts: dict[str, int] = {}
    model = build_model(BARE_MODEL, "bare", "", items, counts)
    return replace(base, members=model.members, models=(model,), counts=counts)


def _walk(root: Path, depth: int = 0, *, beside: bool = False) -> Iterator[Member]:
    """Regular files and links below ``root``, sorted, at most ``MAX_FILES``.

    ``beside``: they are only neighbours, and what cannot be listed is left out. Raises OSError otherwise.
    """
    pending = [(root, depth)]
    found = 0
    while pending and found < MAX_FILES:
        folder, level = pending.pop()
        paths: list[Path] = []
        with suppress(OSError) if beside else nullcontext():
            paths = sorted(folder.iterdir())
        for path in paths:
            try:
                status = os.lstat(path)
            except OSError:
                continue
            is_link = stat.S_ISLNK(status.st_mode)
            if stat.S_ISDIR(status.st_mode):
                if level < MAX_DEPTH:
                    pending.append((path, level + 1))
            elif found < MAX_FILES and (is_link or stat.S_ISREG(status.st_mode)):
                found += 1
                yield _directory_member(path.relative_to(root).as_posix(), path, status.st_size, is_symlink=is_link)


def _directory_member(name: str, path: Path, size: int, *, is_symlink: bool) -> Member:
    return Member(
        name=name,
        size=size,
        compressed_size=size,
        crc=CrcState.NONE,
        data_offset=0,
        path=str(path),
        is_symlink=is_symlink,
    )


# Paths.
HASH_LIMIT = 64 << 20
_ZIP = (b"PK\3\4", b"PK\5\6", b"PK\1\2")


def read_artifact(
    path: str, *, crc_limit: int = DEFAULT_CRC_LIMIT, on_contents: Callable[[Artifact], None] | None = None
) -> Artifact:
    """Read what is at ``path``: a file of any kind or a directory.

    Checksums are compared for members of ``crc_limit`` bytes in total, shared objects and small members first, and for
    doubtful ones (``crc_states``); the others are listed in ``unread_crc``. ``sha256`` is set for files up to 64 MiB,
    unless ``crc_limit`` is 0.
    ``on_contents`` gets the artifact of what can be read before either, which may take long. Nothing is raised for
    content: a file that cannot be opened gives ``MISSING`` or ``UNREADABLE``.
    """
    remote = registered_source(path)
    if remote is not None:
        base = Artifact(path=path, kind=ArtifactKind.OTHER, size=remote.size)
        # Whole members are not fetched for their checksums.
        found, entries = _read_file(base, remote)
        return with_states(found, entries, crc_states(remote, entries, 0)) if entries else found
    base = _at(path)
    if base.kind is not ArtifactKind.OTHER or base.problem is not None:
        return base
    notify = on_contents or (lambda _artifact: None)
    try:
        if Path(path).is_dir():
            found = read_directory(base)
            notify(found)
            return found
        with opened_blob(path) as (blob, _):
            found, entries = _read_file(replace(base, size=blob.size), blob)
            notify(found)
            found = replace(found, sha256=blob.sha256() if crc_limit and blob.size <= HASH_LIMIT else None)
            return with_states(found, entries, crc_states(blob, entries, crc_limit)) if entries else found
    except OSError as error:
        return replace(base, kind=ArtifactKind.UNREADABLE, problem=error.strerror or str(error))


def read_exported(path: str) -> tuple[ExportedFacts, ...]:
    """Facts of the exported programs in an archive; empty when ``path`` is no torch.export archive."""
    try:
        if not Path(path).is_file():
            return ()
        with opened_blob(path) as (blob, _):
            return read_programs(unchecked_items(path, blob) or (), {})
    except (OSError, ValueError):
        return ()


def read_damage(path: str, crc_limit: int = DEFAULT_CRC_LIMIT) -> str | None:
    """The damage of an archive in words, as far as ``crc_limit`` goes; None also where it cannot be read."""
    try:
        if not Path(path).is_file():
            return None
        with opened_blob(path) as (blob, _):
            directory = read_zip_directory(blob)
            entries = directory.entries if directory is not None else ()
            states = crc_states(blob, entries, crc_limit)
    except (OSError, ValueError):
        return None
    return describe_damage([entry.name for entry, state in zip(entries, states, strict=True) if state is CrcState.BAD])


def _at(path: str) -> Artifact:
    """Facts from the file system. ``OTHER`` without a problem means: go on and read it."""
    base = Artifact(path=path, kind=ArtifactKind.OTHER, size=0)
    try:
        link = str(Path(path).readlink()) if Path(path).is_symlink() else None
        base = replace(base, is_symlink=link is not None, link_target=link)
        mode = Path(path).stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return replace(base, kind=ArtifactKind.MISSING)
    except OSError as error:
        return replace(base, kind=ArtifactKind.UNREADABLE, problem=error.strerror or str(error))
    except ValueError as error:
        # A path with a NUL character cannot exist.
        return replace(base, kind=ArtifactKind.MISSING, problem=str(error))
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        return replace(base, problem="not a regular file")
    return base


def _read_file(base: Artifact, blob: Blob) -> tuple[Artifact, Sequence[ZipEntry]]:
    """The contents of a file, and the entries of an archive; nothing is read whole."""
    head = blob.read_at(0, HEAD_SIZE)
    is_zip = head.startswith(_ZIP)
    # Something may have been put before the archive, but a file that begins as an object is one.
    directory = read_zip_directory(blob) if is_zip or object_format(head) is None else None
    if directory is not None and (is_zip or directory.entries):
        return read_archive(base, blob, directory), directory.entries
    if is_zip:
        return replace(base, kind=ArtifactKind.TRUNCATED_ZIP, problem="its end record is missing"), ()
    kind, problem = sniff(head, blob.size)
    found = replace(base, kind=kind, problem=problem)
    match kind:
        case ArtifactKind.TEXT | ArtifactKind.LFS_POINTER:
            return replace(found, first_line=first_line(head)), ()
        case ArtifactKind.BARE_SO:
            return read_bare_object(found), ()
    return found, ()
