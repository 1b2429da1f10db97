"""All that a check may see."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from aotidoctor.model.record import record
from aotidoctor.model.tolerance import Tolerances

if TYPE_CHECKING:
    from aotidoctor.model.artifact import Artifact, ExportedFacts, ModelEntry
    from aotidoctor.model.contract import ConstantSpec, Contract, HostNeeds
    from aotidoctor.model.errors import InputsError
    from aotidoctor.model.host import Host
    from aotidoctor.model.inputs import InputSet, TensorDesc
    from aotidoctor.model.json_types import JsonObject
    from aotidoctor.model.stamp import StampSeen


@record
class Options:
    """What the user asked for. Seconds and counts; paths as given.

    ``threads`` is the thread count to run with (None: torch's default). ``model_name`` None means: ``model`` as the
    loader does, or the only model there is. ``localize`` asks for the place of a failure whatever it costs, also where
    the diagnosis does not need it; ``shrink`` for the smallest inputs that still fail. ``host`` is the profile of the
    machine that is meant instead of this one, ``torch`` the release that is meant instead of the host's, ``weights`` a
    file whose weights are to be loaded. ``tolerances`` are for outputs
    against the reference's; ``measure`` asks for their distance from a float64 run also where they agree. ``emulate``
    tells when a CUDA package is carried out on the CPU: ``always``, ``auto`` (where it cannot run here, or failed
    without an explanation) or ``never``; ``emulate_kernel`` is the kernel that a GPU elsewhere has named.
    ``imports`` are modules that every child imports first: setups of plugins.
    """

    model_name: str | None = None
    device: str | None = None
    setup: str | None = None
    custom_op_libraries: tuple[str, ...] = ()
    reference: str | None = None
    generate: bool = False
    seed: int = 0
    timeout: float = 60.0
    budget: float | None = None
    repeat: int = 2
    jobs: int = 1
    threads: int | None = None
    trust_pickle: bool = False
    # The probes that --probes and --skip-probes name; the fields are called so in bundles, and plugins read them.
    rungs: tuple[str, ...] | None = None
    skip_rungs: tuple[str, ...] = ()
    memory_limit: int | None = None
    localize: bool = False
    shrink: bool = False
    host: str | None = None
    torch: str | None = None
    weights: str | None = None
    tolerances: Tolerances = field(default_factory=Tolerances)
    measure: bool = False
    emulate: str = "auto"
    emulate_kernel: str | None = None
    imports: tuple[str, ...] = ()

    def asks_for(self, probe: str) -> bool:
        """Whether ``--probes`` names it."""
        return self.rungs is not None and probe in self.rungs


@record
class Case:
    """Artifact, contract, inputs and host. ``model`` is the entry the loader would take, None if it would find none.

    ``inputs`` is None when no inputs were given or they could not be read; ``inputs_error`` then says why.
    ``weights`` are the tensors of --weights, None where there are none or they could not be read.
    ``setup_loads`` is False where the setup file does not speak of ``after_load``, None where that is not known.
    ``stamp`` is what the package says of its own origin, None where it carries no stamp.
    ``reference`` holds the static facts of ``--reference`` when it is an exported program. ``generated`` is the JSON
    inputs document that the worker makes tensors from under ``--generate``.
    """

    artifact: Artifact
    host: Host
    options: Options = field(default_factory=Options)
    model: ModelEntry | None = None
    contract: Contract | None = None
    inputs: InputSet | None = None
    inputs_path: str | None = None
    inputs_error: InputsError | None = None
    setup_loads: bool | None = None
    weights: tuple[ConstantSpec, ...] | None = None
    reference: ExportedFacts | None = None
    generated: JsonObject | None = None
    stamp: StampSeen | None = None

    @property
    def needs(self) -> HostNeeds:
        """What the package needs of a host, as far as the contract tells."""
        from aotidoctor.model.contract import HostNeeds  # noqa: PLC0415 - whoever has no contract rarely asks

        return self.contract.needs if self.contract is not None else HostNeeds()

    @property
    def tensors(self) -> dict[str, TensorDesc]:
        """The tensors that are given, by the caller's path."""
        return dict(self.inputs.tensors()) if self.inputs is not None else {}
