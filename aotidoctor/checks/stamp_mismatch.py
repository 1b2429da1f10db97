"""The package differs from its stamp: a different program, different weights or a different release of torch.

What it does
    Compares the stamp that `aotidoctor stamp` wrote into the metadata with the package: call, inputs, outputs and
    constants, the bytes of the constants, and the releases of torch that may have built it.

Why it matters
    A stamp replaces an exported program that is not available. If it belongs to a different program, or the package was
    changed afterwards, the stamp is not evidence, and the package may compute something different from what was tested.

Example:
    weights: observed 1 of 12 constants with different bytes (head.weight), expected those that were stamped

When it is wrong
    Weights that were replaced on purpose: stamp the package again. Up to 64 MiB of constants are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aotidoctor.checks.check import Finder, Observations
from aotidoctor.checks.matching.package_facts import main_object
from aotidoctor.model.case import Case
from aotidoctor.model.evidence import FileSource, list_names

if TYPE_CHECKING:
    from aotidoctor.model.artifact import Stamp

FIND = Finder("AD-ART-012", "stamp_mismatch")


def run(case: Case) -> Observations:
    """Nothing if there is no stamp; a warning per kind of disagreement."""
    seen = case.stamp
    if seen is None:
        return
    source = FileSource(file=seen.member)
    if seen.stamp is None:
        problem, expected = str(seen.problem), "a stamp that this version reads"
        yield FIND.warn("unreadable", "stamp", observed=problem, expected=expected, source=source)
        return
    if case.contract is not None:
        from aotidoctor.readers.provenance.compare_program import compare_program

        for first in compare_program(case.contract, seen.stamp.facts).decisive[:1]:
            expected, facts = f"{first.program}, as stamped", {"aspect": first.aspect, "difference": first.kind}
            kind, observed = "another-program", first.package
            yield FIND.warn(kind, first.subject, observed=observed, expected=expected, source=source, facts=facts)
    if seen.differing:
        count = f"{len(seen.differing)} of {len(seen.differing) + seen.equal} constants"
        yield FIND.warn(
            "other-weights",
            "weights",
            observed=f"{count} with different bytes ({list_names(seen.differing)})",
            expected="those that were stamped",
            source=source,
            facts={"weights": seen.differing[:20], "equal": seen.equal},
        )
    yield from _release(case, seen.stamp, source)
    if seen.unread is not None:
        yield FIND.unchecked(seen.unread)


def _release(case: Case, stamp: Stamp, source: FileSource) -> Observations:
    from aotidoctor.readers.releases.torch_releases import built_by, release_of, release_text

    release = release_of(stamp.torch) if stamp.torch is not None else None
    if case.model is None or release is None:
        return
    built = built_by(case.model, main_object(case), stamped=False)
    early = built.least is not None and release < built.least
    late = built.before is not None and release >= built.before
    if early or late:
        bound = release_text(built.least if early and built.least else built.before or release)
        reason = built.because if early else built.before_because
        yield FIND.warn(
            "other-release",
            "torch",
            observed=f"built by torch {bound} or later: {reason}" if early else f"built before torch {bound}: {reason}",
            expected=f"torch {stamp.torch}, as stamped",
            source=source,
        )


CHECK = FIND.check(run, cause="numeric-difference")
