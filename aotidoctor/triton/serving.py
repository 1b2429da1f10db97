"""Describe a model as Triton Inference Server would serve it: its directory, packages and release; and the rules.

The text of config.pbtxt is in ``serving_config``; ``Settled`` is what the server makes of it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field

from aotidoctor.model.artifact import Artifact, ModelEntry
from aotidoctor.model.case import Host
from aotidoctor.model.contract import ModelContract
from aotidoctor.model.evidence import Evidence, FactValue, Severity
from aotidoctor.model.record import record
from aotidoctor.model.serving_config import HookLibrary, InstanceGroup, ModelConfig, ParameterConfig, Position

PLATFORM = "torch_aoti"


@record
class Release:
    """A release of Triton: ``name`` like ``26.05``, ``server`` like ``2.69`` (None when not known).

    ``known`` is False for one that is newer than everything the rules were made from.
    """

    name: str
    server: str | None = None
    known: bool = True

    @property
    def key(self) -> tuple[int, int]:
        """Year and month; orders releases."""
        year, _, month = self.name.partition(".")
        return int(year), int(month)

    def since(self, name: str) -> bool:
        """Whether this is release ``name`` or a later one."""
        return self.key >= Release(name=name).key

    def before(self, name: str) -> bool:
        """Whether this is older than release ``name``."""
        return not self.since(name)


@record
class Settled:
    """The config as the server completes it before the backend sees it.

    ``platform_from`` tells where it comes from: ``config``, ``detected`` (from the files of the first version
    directory) or ``core`` (its default for the backend).
    ``kinds`` are the kinds of the instance groups after ``KIND_AUTO`` is resolved on this host, one per group (one
    where no group is written). ``policy`` is ``latest:1``, ``all`` or ``specific:1,3``.
    """

    backend: str
    platform: str
    filename: str
    platform_from: str = "config"
    kinds: tuple[str, ...] = ()
    policy: str = "latest:1"


@record
class ServedVersion:
    """A version directory. ``served`` tells whether the version policy picks it.

    ``files`` are the paths in it, relative. ``package`` is the path that the backend opens, whether it is there or not.
    ``artifact`` is None where there is no such file, ``entry`` where the package has no model called ``model``,
    ``contract`` where it could not be read: ``problem`` then says why. ``host_findings`` are those of the checks that
    compare the package with this host.
    """

    number: int
    directory: str
    package: str
    served: bool
    files: tuple[str, ...] = ()
    artifact: Artifact | None = None
    entry: ModelEntry | None = None
    contract: ModelContract | None = None
    problem: str | None = None
    host_findings: tuple[Evidence, ...] = ()


@record
class ServedModel:
    """Everything that a rule may see of one model.

    ``name`` is that of the directory ``path``. ``config`` is None where the text is no config at all (``parse_problem``
    says why, at ``parse_at``); a model without config.pbtxt has an empty one and ``config_path`` None.
    ``ignored`` are entries of the directory that look like versions and are not. ``siblings`` are the configs of the
    other models of the repository, by name. ``loose`` are files of the directory in none of its versions, relative.
    ``hook`` is the library of MODEL_INIT_LIBRARY, None where the config names none by an absolute path.
    """

    name: str
    path: str
    release: Release
    host: Host
    text: str = ""
    config_path: str | None = None
    config: ModelConfig | None = None
    parse_problem: str | None = None
    parse_at: Position | None = None
    settled: Settled | None = None
    versions: tuple[ServedVersion, ...] = ()
    ignored: tuple[str, ...] = ()
    siblings: Mapping[str, ModelConfig] = field(default_factory=dict)
    loose: tuple[str, ...] = ()
    hook: HookLibrary | None = None

    @property
    def instance_groups(self) -> tuple[InstanceGroup, ...]:
        """Those of the config."""
        return () if self.config is None else self.config.instance_groups

    @property
    def parameters(self) -> tuple[ParameterConfig, ...]:
        """Those of the config."""
        return () if self.config is None else self.config.parameters

    @property
    def served(self) -> tuple[ServedVersion, ...]:
        """The versions that the server would load."""
        return tuple(version for version in self.versions if version.served)

    @property
    def contracts(self) -> tuple[tuple[ServedVersion, ModelContract], ...]:
        """The served versions whose contract could be read, with it."""
        return tuple((item, item.contract) for item in self.served if item.contract is not None)


class Consequence(enum.Enum):
    """Consequence for the server if nothing is done; each value is the letter of the rule list."""

    FAILS_TO_LOAD = "F"
    REQUESTS_FAIL = "E"
    SILENTLY_WRONG = "S"
    WASTE = "W"
    NOTE = "I"

    @property
    def severity(self) -> Severity:
        """Severity of a finding about it."""
        return {Consequence.WASTE: Severity.WARN, Consequence.NOTE: Severity.INFO}.get(self, Severity.ERROR)


class Needs(enum.Enum):
    """Parts of a model that a rule needs; each includes those above it."""

    NOTHING = "nothing"
    CONFIG = "config"
    AOTI = "aoti"
    PACKAGE = "package"
    CONTRACT = "contract"


@record
class Remark:
    """Result of a rule; the engine makes a finding of it.

    ``message`` is the consequence in the chosen release, in words. ``subject`` is the thing in the model (a tensor, a
    parameter), None for the model itself. ``at`` is the place in ``file``, which is config.pbtxt where None.
    ``consequence``: where it is not the worst of its rule.
    """

    kind: str
    message: str
    remedy: str
    consequence: Consequence | None = None
    observed: str = ""
    expected: str = ""
    subject: str | None = None
    at: Position | None = None
    file: str | None = None
    facts: Mapping[str, FactValue] = field(default_factory=dict)


@record
class NotJudged:
    """A rule could not answer; ``reason`` says why."""

    reason: str


# NotJudged beside remarks is about a part of the model (an output whose type the package does not tell).
RuleResult = Iterable[Remark | NotJudged]
Check = Callable[[ServedModel], RuleResult]


@record
class ServingRule:
    """One rule of the list. Its manual page is the docstring of ``check``.

    ``worst`` is the worst consequence it may have. ``last_seen`` is the newest release whose behaviour was seen.
    """

    id: str
    family: str
    title: str
    worst: Consequence
    check: Check
    needs: Needs
    last_seen: str

    @property
    def code(self) -> str:
        """The code of its findings: ``TRITON-R27``."""
        return f"TRITON-{self.id}"


class Family(list[ServingRule]):
    """The rules of one family; ``@RULES.rule("R29", "an input is optional", Consequence.FAILS_TO_LOAD)`` adds one."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def rule(
        self,
        number: str,
        title: str,
        worst: Consequence,
        *,
        needs: Needs = Needs.AOTI,
        last_seen: str = "26.05",
        family: str = "",
    ) -> Callable[[Check], Check]:
        """A decorator that makes a rule of a check."""
        shared = {"id": number, "family": family or self._name, "title": title, "last_seen": last_seen}

        def add(check: Check) -> Check:
            self.append(ServingRule(worst=worst, check=check, needs=needs, **shared))
            return check

        return add
