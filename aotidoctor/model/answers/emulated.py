"""A CUDA package that was carried out on the CPU."""

from __future__ import annotations

from aotidoctor.model.record import record


@record
class Finding:
    """One finding of an emulation.

    ``kind`` is ``out-of-bounds``, ``misaligned``, ``use-after-free``, ``uninitialized``, ``race``, ``duplicate-index``,
    ``int32-overflow``, ``device-assert``, ``nan``, ``inf`` or ``operator-refused``. ``launch`` counts launches from 1,
    None for what an operator did; ``line`` is the line of the kernel's own text, ``wrapper_line`` that of the wrapper.
    ``program`` is its place in the grid and ``lane`` the element of its block, None where every program has the same.
    ``buffer`` is the wrapper's name, ``offset`` and ``extent`` count elements as the kernel reads them. ``count`` is
    how many lanes.
    """

    kind: str
    launch: int | None = None
    kernel: str | None = None
    line: int | None = None
    wrapper_line: int | None = None
    text: str | None = None
    grid: tuple[int, ...] = ()
    program: tuple[int, ...] | None = None
    lane: int | None = None
    access: str = ""
    argument: str | None = None
    buffer: str | None = None
    offset: int | None = None
    extent: int | None = None
    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    message: str = ""
    count: int = 1
    output: str | None = None
    value: int | None = None

    @property
    def place(self) -> str:
        """``launch 3 triton_poi_fused_0, program 0, lane 5``."""
        if self.launch is None:
            return self.kernel or self.output or "the wrapper"
        parts = [f"launch {self.launch} {self.kernel}"]
        if self.program is not None:
            used = self.program if any(self.program[1:]) else self.program[:1]
            parts.append(f"program {'x'.join(map(str, used))}")
        if self.lane is not None:
            parts.append(f"lane {self.lane}")
        return ", ".join(parts)


@record
class NotEmulated:
    """What was not carried out, and how often."""

    what: str
    why: str
    times: int = 1


@record
class EmulatedLaunch:
    """How far one launch came, and by which way."""

    state: str | None = None
    way: str | None = None
    seconds: float = 0.0


@record
class Emulation:
    """The whole run: ``launched`` calls of kernels; ``problem`` says why nothing was emulated at all."""

    findings: tuple[Finding, ...] = ()
    not_emulated: tuple[NotEmulated, ...] = ()
    launches: tuple[EmulatedLaunch, ...] = ()
    launched: int = 0
    problem: str | None = None

    @property
    def done(self) -> int:
        """Launches that were carried out to their end."""
        return sum(one.state in ("done", "empty") for one in self.launches)

    @property
    def quick(self) -> int:
        """Launches that were looked at by their addresses alone."""
        return sum(one.way == "quick" for one in self.launches)

    @property
    def seconds(self) -> float:
        """What the launches took."""
        return sum(one.seconds for one in self.launches)


@record
class Emulated:
    """A package carried out on the CPU."""

    emulation: Emulation | None = None
