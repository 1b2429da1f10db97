"""What to try next: fewer operators from the end, fewer from the beginning, then groups out of the middle.

Pure: yields the operators to keep, is sent whether that still fails alike, and returns the fewest that did. The first
two steps halve, as if a longer part failed wherever a shorter one does; the third asks until no single operator can be
left out. What is returned was tried, whatever was assumed.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

Names = tuple[str, ...]
Search = Generator[Names, bool, Names]


def fewest(operators: Sequence[str]) -> Search:
    """The search; ``operators`` are all of them in order, which are known to fail."""
    best = tuple(operators)
    best = yield from _from_the_end(best)
    best = yield from _from_the_beginning(best)
    return (yield from _from_the_middle(best))


def _from_the_end(names: Names) -> Search:
    low, high = 0, len(names)
    while high - low > 1:
        middle = (low + high) // 2
        failed = yield names[:middle]
        low, high = (low, middle) if failed else (middle, high)
    return names[:high]


def _from_the_beginning(names: Names) -> Search:
    low, high = 0, len(names)
    while high - low > 1:
        middle = (low + high) // 2
        failed = yield names[middle:]
        low, high = (middle, high) if failed else (low, middle)
    return names[low:]


def _from_the_middle(names: Names) -> Search:
    """Delta debugging: leave out one of n groups; where none can be, twice as many groups."""
    groups = 2
    while len(names) > 1:
        size = -(-len(names) // groups)
        for start in range(0, len(names), size):
            rest = (*names[:start], *names[start + size :])
            if rest and (yield rest):
                names, groups = rest, max(groups - 1, 2)
                break
        else:
            if size == 1:
                break
            groups = min(groups * 2, len(names))
    return names
