"""The tensors of a package under the names by which Triton knows them."""

from __future__ import annotations

from aotidoctor.model.contract import Dim
from aotidoctor.model.record import record


@record
class NameRow:
    """One input or output as a release counts them.

    ``slot`` is its place in what is given to the compiled code, ``ordinal`` the name by that place (``INPUT__1``).
    ``forward`` is the name by its place in the call (``ARGS[1][a]``), None where the release has no such names.
    ``path`` is the user's. ``kind`` is ``tensor``, ``unknown`` (no telling what the package takes it for), or, of what
    the server takes for a tensor and is none: ``value`` (a number or None baked in at export), ``empty`` (an empty
    dict), ``nested`` (a container inside a keyword); of outputs, ``number``, ``none`` and ``shifted`` (an empty dict or
    after one: the name answers with another output).

    ``data_type`` is Triton's (``TYPE_FP32``), None where it has none for ``dtype`` or that is not known. ``lost`` marks
    a row whose names do not reach it, since a later row has the same.
    """

    slot: int
    ordinal: str
    forward: str | None
    path: str
    kind: str = "tensor"
    dtype: str | None = None
    data_type: str | None = None
    dims: tuple[Dim, ...] | None = None
    device_type: str | None = None
    generated_name: str | None = None
    used: bool | None = None
    lost: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the server takes for it, the one that all releases take first; none where it is lost."""
        if self.lost:
            return ()
        return (self.ordinal,) if self.forward is None else (self.ordinal, self.forward)

    @property
    def may_be_tensor(self) -> bool:
        """Whether it is a tensor, as far as the package tells."""
        return self.kind in ("tensor", "unknown")

    @property
    def label(self) -> str:
        """``INPUT__1 (kwargs['mask'])``."""
        return f"{self.ordinal} ({self.path})"


@record
class Obstacle:
    """Why no config can serve the package.

    ``rule`` is the id of the rule that reports it, ``kind`` its variant, ``letter`` the consequence (``F``, ``E``,
    ``S``). ``path`` is the user's path of the place, ``observed`` what is there. ``message`` says what the server does,
    ``remedy`` what to do instead.
    """

    rule: str
    kind: str
    letter: str
    path: str
    observed: str
    expected: str
    message: str
    remedy: str


@record
class NameTable:
    """All tensors of a package under their names in one release. ``wanted`` is how many inputs the compiled code takes.

    ``read`` tells whether the rows are what the release makes of the package: not where it cannot parse the call spec.
    """

    release: str
    inputs: tuple[NameRow, ...]
    outputs: tuple[NameRow, ...]
    obstacles: tuple[Obstacle, ...] = ()
    wanted: int = 0
    read: bool = True

    @property
    def servable(self) -> bool:
        """Whether some config can serve the package."""
        return not self.obstacles
