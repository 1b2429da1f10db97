"""What hooks on a CUDA package saw."""

from __future__ import annotations

from collections.abc import Mapping

from aotidoctor.model.record import record


@record
class Launch:
    """A computing call of a CUDA package: call ``number`` of call ``run`` of the model."""

    symbol: str = ""
    number: int = 0
    run: int = 0
    argument: int | None = None
    kernel: str | None = None
    grid: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None
    shared: int | None = None


@record
class LaunchFailure:
    """The first answer of the driver that was an error: after ``call``, found ``before`` the next one."""

    code: int = 0
    name: str | None = None
    text: str | None = None
    call: Launch | None = None
    before: Launch | None = None
    run: int = 0


@record
class Launches:
    """A run with the driver's answer after each launch. ``launch_trace`` is there once the calls are hooked."""

    launch_trace: Mapping[str, int] | None = None
    launch_last: Launch | None = None
    launch_count: int | None = None
    launch_failure: LaunchFailure | None = None
    launch_problem: LaunchFailure | None = None
