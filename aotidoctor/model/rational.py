"""Exact fractions for symbolic sizes.

The standard library's ``fractions`` would do, but importing it costs as much time as reading a whole wrapper.
"""

from __future__ import annotations

from math import gcd


class Rational:
    """``over``/``under`` in lowest terms, ``under`` positive. Immutable by convention; ``under`` must not be 0."""

    __slots__ = ("over", "under")

    def __init__(self, over: int, under: int = 1) -> None:
        common = gcd(over, under) * (-1 if under < 0 else 1)
        self.over = over // common
        self.under = under // common

    def plus(self, other: Rational) -> Rational:
        """The sum."""
        return Rational(self.over * other.under + other.over * self.under, self.under * other.under)

    def times(self, other: Rational) -> Rational:
        """The product."""
        return Rational(self.over * other.over, self.under * other.under)

    def over_by(self, other: Rational) -> Rational | None:
        """The quotient; None for a division by zero."""
        return Rational(self.over * other.under, self.under * other.over) if other.over else None

    def floor(self) -> int:
        """The next integer below or equal."""
        return self.over // self.under

    def ceil(self) -> int:
        """The next integer above or equal."""
        return -(-self.over // self.under)

    def truncated(self) -> int:
        """The integer part, as a C++ conversion to ``int64_t`` gives it."""
        return self.floor() if self.over >= 0 else self.ceil()

    def __lt__(self, other: Rational) -> bool:
        """Whether the value is smaller."""
        return self.over * other.under < other.over * self.under
