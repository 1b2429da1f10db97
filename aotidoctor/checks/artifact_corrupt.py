"""The file is damaged: empty, cut off, wrong checksums, or an invalid shared object.

What it does
    Looks for the archive's directory at the end of the file, compares member checksums, and reads the headers of each
    shared object. Of an ExecuTorch file it compares the size with the header's, and the code and the weights with the
    sha256 in their keys.

Why it matters
    The loader never compares checksums: a flipped bit in the weights gives wrong numbers without any message. A cut
    file gives "failed finding central directory", the same text as a file of a different kind. ExecuTorch's runtime
    compares no sha256 either.

Example:
    model/data/aotinductor/model/c5gu.wrapper.so: observed a checksum that differs from the recorded one,
    expected intact data

When it is wrong
    A shared object that lost only its debug sections still runs; that is a warning. Of a package above 64 MiB (1 GiB
    where it is also run) the largest members are listed as not checked, unless a sample of them has pages of zeros; add
    `--verify-data`. A repack that wrote new checksums after the damage hides it.
"""

from __future__ import annotations

import shlex

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.package_facts import at_member, main_object
from aotidoctor.model.artifact import ArtifactKind, CrcState, SharedObject
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import FactValue, FileSource, plural, shorten
from aotidoctor.model.other_artifacts import ExecutorchFile, Precompiled

FIND = Finder("AD-ART-003", "artifact_corrupt")

_COMPLETE = "a complete, readable file"
_WHOLE_FILE = {
    ArtifactKind.EMPTY: ("empty", "0 bytes"),
    ArtifactKind.TRUNCATED_ZIP: ("truncated", "a truncated zip archive"),
}


def run(case: Case) -> Observations:
    """One finding for the file as a whole, or one per damaged member."""
    artifact, whole = case.artifact, at_member(case, None)
    problem = artifact.problem
    if artifact.kind in _WHOLE_FILE:
        kind, words = _WHOLE_FILE[artifact.kind]
        observed, expected = f"{words} ({problem})" if problem else words, _COMPLETE
        facts = {"size": artifact.size}
        yield FIND.error(kind, artifact.path, observed=observed, expected=expected, source=whole, facts=facts)
        return
    if artifact.executorch is not None:
        keys = frozenset(key for delegate in artifact.executorch.delegates for key in delegate.other_keys)
        for file in (artifact.executorch, *case.data):
            yield from _executorch(file, keys)
        # Of code that was changed, the sha256 says all.
        codes = {
            blob.offset: blob.code
            for blob in artifact.executorch.named
            if blob.code is not None and blob.sha256 in (None, blob.promised) and not artifact.executorch.problem
        }
        for code in codes.values():
            yield from _object(case, code)
        return
    if artifact.precompiled is not None:
        yield from _precompiled(artifact.path, artifact.precompiled)
        return
    if problem is not None and artifact.members:
        # The archive's own directory: bytes before the archive are refused by the loader, a wrong count is not.
        state = FIND.warn if "the end record states" in problem else FIND.error
        expected = "an archive as it was written"
        yield state("directory", artifact.path, observed=problem, expected=expected, source=whole)
    for name in artifact.bad_crc:
        yield FIND.error(
            "crc",
            name,
            observed="a checksum that differs from the recorded one",
            expected="intact data",
            message=f"{name}: the data do not match the recorded checksum; the loader does not check it",
            source=at_member(case, name),
            facts={"member": name},
        )
    for model in artifact.models:
        for item in model.shared_objects:
            if item.member not in artifact.names_symlink:
                yield from _object(case, item)


def _precompiled(path: str, found: Precompiled) -> Observations:
    """Damage of an artifact of torch.compile."""
    if found.damage is None:
        return
    kind = {"checksum": "crc", "header": "identifier"}.get(found.kind or "", found.kind or "malformed")
    silent = (
        "; load_cache_artifacts returns None, and everything is compiled again" if found.form == "mega-cache" else ""
    )
    yield FIND.error(
        kind,
        path,
        observed=found.damage,
        expected="format version 01" if found.kind == "header" else _COMPLETE,
        message=f"{path}: {found.damage}{silent}",
        source=FileSource(file=path),
        facts={"form": found.form},
    )


def _executorch(item: ExecutorchFile, keys: frozenset[str]) -> Observations:
    """Damage of a .pte or .ptd. ``keys`` are those of XNNPACK's data in the program, each of which is a sha256."""
    source, facts = FileSource(file=item.path), {"size": item.size, "expected_size": item.expected_size}
    if item.problem is not None:
        if item.kind == "foreign":
            return
        expected = f"the identifier {'ET12' if item.program else 'FT01'}" if item.kind == "identifier" else _COMPLETE
        kind = item.kind or "malformed"
        yield FIND.error(kind, item.path, observed=item.problem, expected=expected, source=source, facts=facts)
        return
    for delegate in item.delegates:
        if delegate.problem is not None:
            yield FIND.error(
                "payload",
                delegate.backend,
                observed=delegate.problem,
                expected="the keys of its code and its weights, on two lines",
                source=source,
            )
    for blob in item.named:
        if blob.sha256 is None or blob.sha256 == blob.promised:
            continue
        # Other backends may make their keys in another way.
        certain = blob.key in keys or blob.key != blob.promised
        yield (FIND.error if certain else FIND.warn)(
            "digest",
            shorten(blob.key, 90),
            observed=f"data with the sha256 {blob.sha256}",
            expected="the sha256 that their key states",
            message=f"{item.path}: the {blob.size:,} bytes under {shorten(blob.key, 90)} have the sha256 "
            f"{blob.sha256}: data or key were changed after the export; ExecuTorch does not compare them",
            source=source,
            facts={"key": blob.key, "sha256": blob.sha256, "offset": blob.offset, "size": blob.size},
        )


def _object(case: Case, item: SharedObject) -> Observations:
    # Objects of another platform are platform_mismatch's business.
    if item.format in {"pe", "macho"}:
        return
    facts: dict[str, FactValue] = {"member": item.member, "size": item.size, "truncated_at": item.truncated_at}
    source = at_member(case, item.member)
    if item.format == "unknown" and _is_packed(case, item.member):
        yield FIND.info(
            "so-unread",
            item.member,
            observed=item.problem or "not inspected",
            expected="an uncompressed (stored) member, as torch writes it",
            source=at_member(case, item.member),
        )
        return
    if item.format != "elf" or item.problem:
        observed = item.problem or "no ELF header"
        # A library beside the wrapper is unpacked and not opened: the package loads nevertheless (measured).
        main, expected = main_object(case), "a shared object"
        opened = main is None or item.member == main.member or item.member.endswith(".wrapper.so")
        state = FIND.error if opened else FIND.warn
        yield state("so-garbled", item.member, observed=observed, expected=expected, source=source, facts=facts)
        return
    if item.truncated_at is not None:
        yield FIND.warn(
            "so-truncated",
            item.member,
            observed=f"the object ends at {item.truncated_at} bytes, before its section headers",
            expected="a complete shared object",
            message=f"{item.member}: truncated after its loaded part; it may run, without debug information",
            source=source,
            facts=facts,
        )
        return


def _is_packed(case: Case, name: str) -> bool:
    """Whether the member is compressed, so that a large one is not unpacked to look into it."""
    member = next((entry for entry in case.artifact.members if entry.name == name), None)
    return member is not None and member.data_offset is None and member.crc is CrcState.NOT_READ


def _not_compared(case: Case) -> str | None:
    """The checksums that were not compared, and how to compare them."""
    artifact = case.artifact
    if artifact.executorch is not None:
        unhashed = sum(item.unhashed for item in (artifact.executorch, *case.data))
        return f"the sha256 of {unhashed:,} bytes was not compared; add --verify-data" if unhashed else None
    if artifact.precompiled is not None and artifact.precompiled.unread:
        return f"not read: {'; '.join(artifact.precompiled.unread[:5])}"
    if not artifact.unread_crc:
        return None
    unread = frozenset(artifact.unread_crc)
    total = sum(member.size for member in artifact.members if member.name in unread)
    path = shlex.quote(artifact.path)
    instead = (
        "to compare them, download the file"
        if "://" in artifact.path
        else f"to compare them: aotidoctor check {path} --verify-data"
    )
    return f"the checksums of {plural(len(unread), 'member')} ({total:,} bytes) were not compared; {instead}"


CHECK = FIND.check(run, needs=("artifact_missing",), partly=_not_compared)
