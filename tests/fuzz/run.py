"""``python -m tests.fuzz.run --cases 2000 --seed 1``: figures on stdout, each bad case as one line with its number.

A fork answers a slice of the cases, on each core one; a case that is bad there, or ends it, is asked again in a fork of its own.
"""

from __future__ import annotations

import argparse
import os
import pickle
import resource
import select
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tests.fuzz.cases import run_case
from tests.fuzz.server import LONGEST_WAIT_S, OF_MEMORY, OF_TIME, Answer, ask_here, now, warm_up

# What a slice adds to the memory of its process stays far from the limit of a case.
SLICE = 50
WARMING = 60


def answers(seed: int, numbers: range, jobs: int) -> Iterator[tuple[int, Answer]]:
    """All answers, with the numbers of their cases, in the order in which they come."""
    _warm_up(min(WARMING, len(numbers) // 8))
    waiting = [numbers[at : at + SLICE] for at in range(0, len(numbers), SLICE)][::-1]
    running: list[_Slice] = []
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(_Slice(seed, waiting.pop()))
        ready = select.select(running, (), (), 1)[0]
        for one in list(running):
            if one in ready and (number := one.answered()) is not None:
                answer = one.answer
                yield number, answer if not answer.faults else _alone(seed, number, answer.faults)
            elif one in ready or one.stuck():
                running.remove(one)
                if rest := one.end():
                    yield rest[0], _alone(seed, rest[0], ())
                    waiting.append(rest[1:])


def _warm_up(cases: int) -> None:
    """Fill the caches that a command fills, by cases of another seed: without them a fork has twice the work."""
    warm_up()
    streams = [os.dup(number) for number in range(3)]
    files = sys.stdin, sys.stdout, sys.stderr
    for number in range(cases):
        run_case(-1, number, ask_here)
    sys.stdin, sys.stdout, sys.stderr = files
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _alone(seed: int, number: int, faults: tuple[str, ...]) -> Answer:
    """The answer of a new fork, and what was bad only in the process of many cases. What they cost counts here alone."""
    answer = run_case(seed, number)
    more = tuple(
        f"only after other cases: {fault}"
        for fault in faults
        if fault not in answer.faults and not fault.endswith((OF_TIME, OF_MEMORY))
    )
    return replace(answer, faults=(*answer.faults, *more))


class _Slice:
    """A fork that writes its answers into a pipe."""

    def __init__(self, seed: int, numbers: range) -> None:
        self.rest, self.since = numbers, now()
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            with suppress(BaseException), os.fdopen(writing, "wb") as file:
                for number in numbers:
                    answer = run_case(seed, number, ask_here)
                    pickle.dump(replace(answer, stdout=b"", stderr=b""), file)
                    file.flush()
            os._exit(0)
        os.close(writing)
        self.file = os.fdopen(reading, "rb", buffering=0)

    def fileno(self) -> int:
        return self.file.fileno()

    def answered(self) -> int | None:
        """The number of the case that ``answer`` is of; None at the end."""
        try:
            self.answer: Answer = pickle.load(self.file)
        except (EOFError, pickle.UnpicklingError):
            return None
        number, self.rest, self.since = self.rest[0], self.rest[1:], now()
        return number

    def stuck(self) -> bool:
        return now() - self.since > LONGEST_WAIT_S

    def end(self) -> range:
        """The cases without an answer, after the end of the process."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.file.close()
        return self.rest


def main() -> None:
    """Run the cases; exit status 1 where one of them is bad."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()
    figures = _Figures()
    # What is known when somebody ends it counts, too.
    with suppress(KeyboardInterrupt):
        for number, answer in answers(given.seed, range(given.first, given.first + given.cases), given.jobs):
            figures.add(f"{given.seed}/{number}", answer)
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
