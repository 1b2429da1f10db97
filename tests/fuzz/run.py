"""``python -m tests.fuzz.run --cases 2000 --seed 1``: figures on stdout, each bad case as one line with its number."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from tests.fuzz.cases import run_case
from tests.fuzz.server import Answer, now, warm_up


def fuzz(seed: int, first: int, count: int) -> list[tuple[int, Answer]]:
    """All answers, with the numbers of their cases."""
    warm_up()
    return [(number, run_case(seed, number)) for number in range(first, first + count)]


def main() -> None:
    """Run the cases; exit status 1 where one of them is bad."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    warm_up()
    figures = _Figures()
    # What is known when somebody ends it counts, too.
    with suppress(KeyboardInterrupt):
        for number in range(given.first, given.first + given.cases):
            figures.add(f"{given.seed}/{number}", run_case(given.seed, number))
    sys.stdout.write(f"seed {given.seed}: {figures.line()}\n")
    sys.exit(figures.bad > 0)


@dataclass(slots=True)
class _Figures:
    cases: int = 0
    bad: int = 0
    over: int = 0
    slowest: float = 0.0
    biggest: int = 0
    began: float = field(default_factory=now)
    statuses: Counter[int] = field(default_factory=Counter)
    commands: Counter[str] = field(default_factory=Counter)

    def add(self, name: str, answer: Answer) -> None:
        self.cases += 1
        self.statuses[answer.status] += 1
        self.commands[answer.words[0]] += 1
        self.slowest, self.biggest = max(self.slowest, answer.seconds), max(self.biggest, answer.memory)
        self.over += answer.seconds > 2
        if answer.faults:
            self.bad += 1
            sys.stdout.write(f"case {name}: {' '.join(answer.words)}: {' | '.join(answer.faults)}\n")
            sys.stdout.flush()

    def line(self) -> str:
        return (
            f"{self.cases} cases in {now() - self.began:.0f} s: {self.bad} bad; statuses {dict(self.statuses)}; commands "
            f"{dict(self.commands)}; slowest {self.slowest:.2f} s of CPU time ({self.over} above 2 s), most memory "
            f"{self.biggest >> 20} MB"
        )


if __name__ == "__main__":
    main()
