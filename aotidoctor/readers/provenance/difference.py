"""One thing in which a package and a program differ, and what was compared at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aotidoctor.model.record import record


@record
class Difference:
    """``aspect`` is ``call``, ``inputs``, ``outputs``, ``constants`` or ``operators``; ``kind`` its variant.

    ``decisive``: compiling the program cannot have given this package. The others happen when a program is compiled
    (ranges are narrowed, sizes specialised), or come and go with the version of torch.
    """

    aspect: str
    kind: str
    subject: str
    package: str
    program: str
    decisive: bool


@record
class Compared:
    """``aspects`` were compared; ``left_out`` tells what could not be, and why."""

    differences: tuple[Difference, ...] = ()
    aspects: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def decisive(self) -> tuple[Difference, ...]:
        """Differences that no compilation makes."""
        return tuple(item for item in self.differences if item.decisive)


def joined(parts: Iterable[Compared]) -> Compared:
    """All of several comparisons."""
    found: Sequence[Compared] = tuple(parts)
    return Compared(
        differences=tuple(item for part in found for item in part.differences),
        aspects=tuple(dict.fromkeys(aspect for part in found for aspect in part.aspects)),
        left_out=tuple(text for part in found for text in part.left_out),
    )
