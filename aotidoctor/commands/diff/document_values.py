"""Read untrusted JSON documents value by value, and collect differences with their playbooks.

Every value is read by type, and a wrong one is reported with its place. Levels of a difference: ``decisive`` is
enough to make a package fail, or compute something else, on one side; a playbook names ``relevant`` ones among its
reasons; ``minor`` ones are reported and do not decide.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from aotidoctor.model.errors import CannotExamineError
from aotidoctor.model.evidence import list_names
from aotidoctor.model.fleet import DocumentDifference
from aotidoctor.model.record import JsonValue, record

# Placeholders of redaction are numbered per report.
_PLACEHOLDER = re.compile(r"<(home|host|user|values|secret|email|ip|mac|account|word)(?:-\d+)?>")
_NAMES = {dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}
_LONGEST_VALUE = 60


@record
class DocumentNode:
    """A value with its place.

    The methods raise CannotExamineError for a value of another type; an absent or null value is None or empty.
    """

    value: JsonValue
    file: str
    place: str = "$"

    def at(self, key: str) -> DocumentNode:
        """The value of ``key``; a null one if it is absent."""
        return DocumentNode(value=self._object().get(key), file=self.file, place=f"{self.place}.{key}")

    def without(self, keys: Collection[str]) -> DocumentNode:
        """The object without some of its values."""
        value = {key: item for key, item in self._object().items() if key not in keys}
        return DocumentNode(value=value, file=self.file, place=self.place)

    def text(self, key: str) -> str | None:
        """A text, without the numbers in placeholders of redaction."""
        node = self.at(key)
        match node.value:
            case None:
                return None
            case str():
                return normalized_text(node.value)
            case _:
                raise node.misfit("a text")

    def number(self, key: str) -> int | float | None:
        """A finite number; None for NaN and infinities, which are texts in reports."""
        node = self.at(key)
        match node.value:
            case None | "NaN" | "Infinity" | "-Infinity":
                return None
            case bool():
                raise node.misfit("a number")
            case int() | float():
                return node.value
            case _:
                raise node.misfit("a number")

    def flag(self, key: str) -> bool | None:
        """True or false."""
        node = self.at(key)
        if node.value is not None and not isinstance(node.value, bool):
            raise node.misfit("true or false")
        return node.value

    def nodes(self, key: str) -> tuple[DocumentNode, ...]:
        """The items of a list."""
        node = self.at(key)
        if node.value is None:
            return ()
        if not isinstance(node.value, list):
            raise node.misfit("a list")
        return tuple(
            DocumentNode(value=item, file=self.file, place=f"{node.place}[{index}]")
            for index, item in enumerate(node.value)
        )

    def texts(self, key: str) -> tuple[str, ...]:
        """The texts of a list."""
        found = []
        for node in self.nodes(key):
            if not isinstance(node.value, str):
                raise node.misfit("a text")
            found.append(normalized_text(node.value))
        return tuple(found)

    def numbers(self, key: str) -> tuple[int | None, ...]:
        """The whole numbers of a list."""
        found: list[int | None] = []
        for node in self.nodes(key):
            if node.value is not None and (not isinstance(node.value, int) or isinstance(node.value, bool)):
                raise node.misfit("a whole number")
            found.append(node.value)
        return tuple(found)

    def mapping(self, key: str) -> Mapping[str, str]:
        """An object of texts; null is an empty text."""
        inner = self.at(key)
        return {} if inner.value is None else {name: inner.text(name) or "" for name in inner.names()}

    def names(self) -> tuple[str, ...]:
        """The keys of an object."""
        return tuple(self._object())

    @property
    def missing(self) -> bool:
        """Whether there is nothing here."""
        return self.value is None

    def _object(self) -> Mapping[str, JsonValue]:
        if self.value is None:
            return {}
        if not isinstance(self.value, dict):
            raise self.misfit("an object")
        return self.value

    def misfit(self, expected: str) -> CannotExamineError:
        """The error with the place, the observed value and the expected one."""
        text = repr(self.value) if isinstance(self.value, str | int | float) else ""
        cut = f" {text[:_LONGEST_VALUE]}" if text else ""
        observed = _NAMES.get(type(self.value), "null")
        return CannotExamineError(f"{self.file}: at {self.place[:200]}: observed {observed}{cut}, expected {expected}")


def normalized_text(text: str) -> str:
    """``text`` without the numbers in placeholders, for comparison."""
    return _PLACEHOLDER.sub(r"<\1>", text)


# Kinds of differences, by area.
class DifferenceRule(NamedTuple):
    """A kind of difference. ``playbook`` is the slug of a cause, None if no playbook names such a difference."""

    area: str
    playbook: str | None
    level: str
    why: str


# Playbook, level and reason.
_RULES: Mapping[str, Mapping[str, tuple[str | None, str, str]]] = {
    "host": {
        "platform": ("platform-mismatch", "decisive", "compiled code runs only on one system and architecture"),
        "torch-release": (
            "abi-mismatch",
            "decisive",
            "a package calls functions of torch whose set changes from release to release",
        ),
        "torch-build": ("abi-mismatch", "relevant", "builds of one release differ in their build options"),
        "torch-cuda": ("driver-mismatch", "decisive", "the CUDA that torch was built for needs a driver to match"),
        "torch-abi": ("abi-mismatch", "decisive", "the two ABIs of std::string do not link with each other"),
        "torch": ("toolchain-missing", "decisive", "nothing can be loaded without torch"),
        "isa": ("isa-mismatch", "relevant", "packages are compiled for the instructions of the build machine"),
        "isa-needed": ("isa-mismatch", "decisive", "the package was compiled for these instructions"),
        "gpu": ("gpu-arch-mismatch", "decisive", "GPU code is compiled for a compute capability"),
        "gpu-name": ("gpu-arch-mismatch", "minor", "a different GPU of the same compute capability"),
        "gpu-none": ("device-unavailable", "decisive", "a GPU package needs a GPU"),
        "gpu-count": ("device-index", "relevant", "a device index counts the available GPUs"),
        "driver": ("driver-mismatch", "relevant", "the driver determines which CUDA versions can run"),
        "glibc": ("abi-mismatch", "relevant", "a .so requires the symbol versions of its build machine"),
        "library": ("missing-library", "decisive", "the loader must find every library that the .so names"),
        "symbol": ("abi-mismatch", "decisive", "no library there provides the symbol"),
        "threads": (
            "threads-exceed-build",
            "relevant",
            "some kernels have room only for the threads of the build machine",
        ),
        "memory": ("out-of-memory", "relevant", "weights and buffers must fit"),
        "openmp": ("openmp-conflict", "relevant", "two OpenMP runtimes in one process hang or crash"),
        "tmpdir": ("tmpdir", "decisive", "a package is unpacked there before it is loaded"),
        "compiler": ("toolchain-missing", "relevant", "a package without .so is compiled when it is loaded"),
        "tool": (None, "minor", "determines which probes can run, not what fails"),
        "setting-threads": ("threads-exceed-build", "relevant", "determines the number of threads"),
        "setting-device": ("device-unavailable", "relevant", "determines which GPUs are visible, and their numbers"),
        "setting-library": ("missing-library", "relevant", "determines which libraries are found first"),
        "setting-memory": ("out-of-memory", "relevant", "determines how memory is allocated"),
        "setting-cuda": ("cuda-race", "relevant", "determines in which order kernels run and errors surface"),
        "setting-aoti": ("load-api", "relevant", "read by torch or by the package itself"),
        "setting": (None, "minor", "no playbook names this variable"),
        "python": (None, "minor", "a package does not depend on the version of Python"),
        "system-software": (None, "minor", "its relevant parts are compared separately"),
        "distribution-package": ("abi-mismatch", "relevant", "torch loads it into the same process"),
    },
    "package": {
        "kind": ("artifact-wrong-kind", "decisive", "only an AOTInductor package can be loaded with this API"),
        "layout": ("load-api", "relevant", "the layout determines which loader accepts it"),
        "models": ("model-name", "decisive", "a model is loaded by its name"),
        "machine": ("platform-mismatch", "decisive", "compiled code runs only on one architecture"),
        "backend": ("backend-unsupported", "decisive", "the runtime must have every backend that the methods need"),
        "data-key": (
            "weights-not-loaded",
            "relevant",
            "data are found by their keys, and the .ptd must be of the same export",
        ),
        "needed": ("missing-library", "relevant", "the loader must find every library that the .so names"),
        "feature": (None, "minor", "a debug facility that was compiled in"),
        "device": ("load-device", "decisive", "it was compiled for a different device"),
        "package-isa": ("isa-mismatch", "decisive", "one needs CPU instructions that the other does not"),
        "capability": ("gpu-arch-mismatch", "decisive", "GPU code is compiled for a compute capability"),
        "package-torch": ("abi-mismatch", "relevant", "compiled with a different release of torch"),
        "package-abi": ("abi-mismatch", "decisive", "the two ABIs of std::string do not link with each other"),
        "package-cuda": ("driver-mismatch", "relevant", "compiled with a different CUDA version"),
        "package-threads": ("threads-exceed-build", "relevant", "compiled for a different number of threads"),
        "operators": ("custom-op-missing", "relevant", "a custom operator must be registered before loading"),
        "weights-place": ("weights-not-loaded", "relevant", "weights outside the .so must be loaded or found"),
        "damage": ("artifact-corrupt", "decisive", "a member's bytes differ from those that were written"),
        "random": ("nondeterministic", "relevant", "results differ between runs by design"),
        "uninitialized": ("uninitialized-read", "relevant", "a kernel reads uninitialized memory"),
        "kernels": ("codegen-bug", "relevant", "different generated code for the same model"),
        "origin": (None, "minor", "where and with what it was built"),
        "content": (None, "minor", "the files differ; the differences are listed one by one"),
        "constant": ("weights-mismatch", "decisive", "weights are found by name, and must have its type and shape"),
        "weight-bytes": ("weights-differ", "relevant", "the same weights have the same checksum"),
        "leaf": ("input-tree", "decisive", "a call must have the same leaves"),
        "leaf-keyword": ("input-kwargs", "decisive", "a keyword argument must be passed as such"),
        "leaf-kind": ("input-nontensor", "decisive", "a tensor is not a constant"),
        "leaf-dtype": ("input-dtype", "decisive", "inputs are read as the dtype that was compiled"),
        "leaf-rank": ("input-rank", "decisive", "sizes are read by position"),
        "leaf-shape": ("input-shape", "decisive", "a static size is compiled in"),
        "leaf-range": ("input-range", "decisive", "sizes beyond the compiled range are not guarded"),
        "leaf-stride": ("input-stride", "decisive", "elements are found by the strides that were compiled"),
        "leaf-symbol": ("input-shape-disagree", "relevant", "sizes that are one symbol must be equal"),
        "leaf-device": ("input-device", "decisive", "memory of a different device cannot be read"),
        "output": ("output-spec", "relevant", "the caller gets a different result"),
    },
    "inputs": {
        "given": ("input-count", "decisive", "a call must have the same leaves"),
        "given-keyword": ("input-kwargs", "decisive", "a keyword argument must be passed as such"),
        "given-kind": ("input-nontensor", "decisive", "only tensors reach the compiled code"),
        "given-dtype": ("input-dtype", "decisive", "inputs are read as the dtype that was compiled"),
        "given-rank": ("input-rank", "decisive", "sizes are read by position"),
        "given-shape": ("input-shape", "relevant", "a different size, inside or outside the compiled range"),
        "given-stride": ("input-stride", "decisive", "elements are found by the strides that were compiled"),
        "given-device": ("input-device", "decisive", "memory of a different device cannot be read"),
        "given-layout": ("input-layout", "decisive", "only strided tensors can be read"),
        "given-lazy": ("input-lazy-bit", "decisive", "compiled code ignores the lazy bit"),
        "given-offset": ("input-stride", "minor", "a different offset in its storage"),
        "given-alias": ("input-alias", "relevant", "inputs that share memory see each other's writes"),
        "given-nan": ("input-nan", "relevant", "NaN and Inf go through to the outputs"),
        "given-values": ("index-out-of-range", "relevant", "integers that are indices must be in range"),
        "given-constant": ("input-constant-changed", "relevant", "a value that was baked in is not read again"),
        "given-detail": (None, "minor", "no playbook names this property"),
        "given-problem": ("inputs-file-corrupt", "decisive", "an unreadable file passes no inputs"),
    },
    "outcome": {
        "verdict": (None, "outcome", "the outcome"),
        "cause": (None, "outcome", "diagnosed only on one side"),
        "finding": (None, "outcome", "found only on one side"),
        "signature": (None, "outcome", "not the same failure"),
        "run": (None, "outcome", "the same probe ended differently"),
        "tool-version": (None, "minor", "different versions of aotidoctor may find different things"),
    },
}
DIFFERENCE_RULES = {
    kind: DifferenceRule(area, *others) for area, rules in _RULES.items() for kind, others in rules.items()
}


# Differences of two documents.
Fact = str | int | float | bool | tuple[object, ...] | None
NONE = "none"


@dataclass(slots=True)
class DifferenceTally:
    """Differences, counts of equal and omitted facts, and facts that only one side has."""

    differences: list[DocumentDifference] = field(default_factory=list)
    equal: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    unknown: list[str] = field(default_factory=list)

    def compare(self, rule: str, subject: str, a: Fact, b: Fact) -> None:
        """Compare one fact of both sides; None is not known."""
        area = DIFFERENCE_RULES[rule].area
        if a == b:
            self.equal[area] += 1
        elif a is None or b is None:
            self.unknown.append(
                f"{area}: {subject} (only {'B' if a is None else 'A'} records it: {fact_text(b if a is None else a)})"
            )
        else:
            self.differ(rule, subject, fact_text(a), fact_text(b))

    def differ(self, rule: str, subject: str, a: str, b: str) -> None:
        """Add a difference."""
        known = DIFFERENCE_RULES[rule]
        self.differences.append(
            DocumentDifference(
                area=known.area, subject=subject, a=a, b=b, level=known.level, why=known.why, playbook=known.playbook
            )
        )

    def skip(self, what: str, a: object, b: object) -> None:
        """Count a difference that means nothing."""
        if a != b:
            self.left_out[what] += 1

    def members(self, rule: str, subject: str, a: Iterable[str], b: Iterable[str]) -> None:
        """Compare two sets: one difference with the members that only one of them has."""
        first, second = set(a), set(b)
        self.equal[DIFFERENCE_RULES[rule].area] += len(first & second) or (1 if first == second else 0)
        only_a, only_b = sorted(first - second), sorted(second - first)
        if only_a or only_b:
            self.differ(rule, subject, _describe_names(only_a), _describe_names(only_b))


def _describe_names(names: list[str]) -> str:
    return f"also {list_names(names, 8)}" if names else "without"


def fact_text(value: Fact) -> str:
    """Format a fact."""
    match value:
        case None:
            return "not known"
        case bool():
            return "yes" if value else "no"
        case tuple():
            return f"({', '.join('?' if item is None else str(item) for item in value)})"
        case _:
            return str(value) or "empty"
