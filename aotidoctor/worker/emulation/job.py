"""Job ``emulate``: carry a CUDA package out on the CPU, and tell every access that a GPU would not have survived.

Stages: ``setup``, ``inputs``, ``load`` (wrapper, constants, kernels), ``run1``, ``reference``, ``done``. The result has
``outputs`` as the job ``run`` has them, and ``emulation``: findings, what was not carried out, and the launches.
"""

from __future__ import annotations

import json
import re
import time
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aotidoctor.model.artifact import ModelEntry
from aotidoctor.model.contract import ConstantSpec, Contract
from aotidoctor.readers.contract import read_contract
from aotidoctor.readers.contract.statements import statements
from aotidoctor.readers.contract.text import find_sections
from aotidoctor.readers.package import read_artifact, read_package_constants
from aotidoctor.worker.call import Call, read_call
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.emulation.arithmetic import Unknown, compute
from aotidoctor.worker.emulation.followed import Followed
from aotidoctor.worker.emulation.found import Found
from aotidoctor.worker.emulation.kernel_text import KernelText, Refused, build, read_kernel
from aotidoctor.worker.emulation.launch import Launch, TooLong
from aotidoctor.worker.emulation.libdevice import Libdevice
from aotidoctor.worker.emulation.pending import Pending
from aotidoctor.worker.emulation.quick import in_full, look
from aotidoctor.worker.emulation.shims import call_operator
from aotidoctor.worker.emulation.storage import Tensor, empty, of_torch
from aotidoctor.worker.emulation.wrapper import CannotError, Lost, Replay
from aotidoctor.worker.setup_module import load_setup
from aotidoctor.worker.treatments import treat
from aotidoctor.worker.values.candidates import Candidates
from aotidoctor.worker.values.observe import candidates_of

_FUNCTION = re.compile(r"^static (?:__attribute__\(\(noinline\)\)|inline)? ?void call_(\w+)\(", re.MULTILINE)
_PARAMETER = re.compile(r"^[ \t]*(?:const )?([\w:]+)(?:<[^>]*>)?&? (\w+),?$", re.MULTILINE)
_SIZE = re.compile(r"(?:uint32_t|int64_t|int32_t|int) (\w+) = ([^\n;]{1,400});")
_BLOCK = re.compile(r"\(?(\w)numel \+ \(?\(?(\d+) ?- ?1\)\)?\)? ?/ ?\(?(\d+)\)?")
# Bytes of inputs and constants from which on the addresses are looked at before anything is computed.
_LARGE = 16 << 20
# What the full way takes for one lane of one access, about; and what share of the time it is given.
_SECONDS_A_LANE = 6e-8
_SHARE_OF_FULL = 0.75
_PIECE = 16 << 20
VALUES = "only addresses and masks were looked at, as there are so many lanes: no numbers, no NaN, no outputs"
_OWN = ("device_idx_", "stream_", "kernels_", "cubin_dir_")


@dataclass(slots=True, kw_only=True)
class _Function:
    """A ``call_<kernel>`` function: parameters in order, the comment with the source, and the statements for sizes."""

    name: str
    parameters: tuple[str, ...]
    comment: str
    line: int
    sizes: tuple[tuple[str, str], ...]
    blocks: Mapping[str, int]
    guarded: bool


@dataclass(slots=True, kw_only=True)
class _Engine:
    """Launches, in order, with the kernels that were built so far; ``named`` ones are carried out in full."""

    functions: Mapping[str, _Function]
    found: Found
    channel: Channel
    seconds: float
    deadline: float
    number: int = 0
    lanes: int = 0
    named: frozenset[str] = frozenset()
    in_full: dict[str, str] = field(default_factory=dict)
    kernels: dict[str, tuple[KernelText, Any] | Refused] = field(default_factory=dict)

    def launch(self, replay: Replay, name: str, texts: list[str], line: int) -> None:
        """Carry out one call of a kernel. Raises ``CannotError``."""
        self.number += 1
        entry: dict[str, Any] = {"number": self.number, "kernel": name, "line": line, "state": "skipped"}
        entry |= {"origins": list(replay.origins[0])}
        self.found.launches.append(entry)
        function = self.functions.get(name)
        if function is None:
            raise CannotError(f"the package has no function call_{name}")
        if time.monotonic() > self.deadline:
            raise CannotError("the time for the emulation is spent")
        text, built = self._kernel(function)
        arguments = self._arguments(replay, function, text, texts)
        names = {key: value for key, value in arguments.items() if isinstance(value, int | float)}
        grid = self._grid(function, names)
        entry |= {"grid": list(grid), "blocks": dict(function.blocks), "numbers": names}
        if 0 in grid:
            entry["state"] = "empty"
            return
        for value in arguments.values():
            if isinstance(value, Tensor) and not value.storage.known and value.name:
                entry["unknown"] = [*entry.get("unknown", []), value.name]
        if entry.get("unknown"):
            raise CannotError(f"{', '.join(entry['unknown'])} is not known: a statement before was not carried out")
        started = time.monotonic()
        before = len(self.found.findings)
        launch = Launch(
            number=self.number,
            kernel=text,
            function=built,
            arguments=arguments,
            grid=grid,
            blocks=function.blocks,
            line=line,
            found=self.found,
            seconds=min(self.seconds, self.deadline - started),
        )
        try:
            entry["way"] = self._followed(replay, launch, name, function.parameters)
        except TooLong as error:
            raise CannotError(f"{name} did not end within {launch.seconds:.3g} s") from error
        except CannotError:
            raise
        except Exception as error:
            said = (str(error).strip().splitlines() or [""])[-1]
            raise CannotError(f"{name} in the interpreter: {type(error).__name__}: {said}"[:400]) from error
        entry |= {"state": "done", "seconds": round(time.monotonic() - started, 4)}
        entry |= {"findings": len(self.found.findings) - before}

    def _followed(self, replay: Replay, launch: Launch, name: str, parameters: tuple[str, ...]) -> str:
        """Carry it out, and keep what it reads and writes where that is asked for; the way that it went."""
        if replay.followed is None:
            return self._carry_out(replay, launch, name)
        given = [(one, at, launch.arguments.get(one)) for at, one in enumerate(parameters)]
        places = [(one, at, value) for one, at, value in given if isinstance(value, Tensor)]
        # The pointers of a user's kernel do not tell by their names what they are for.
        updates = "tl.atomic_" in launch.kernel.text
        replay.followed.begin(name, [one for one in places if updates or not one[0].startswith("out_ptr")])
        way = self._carry_out(replay, launch, name)
        replay.followed.end([one for one in places if not one[0].startswith("in_ptr")])
        return way

    def _carry_out(self, replay: Replay, launch: Launch, name: str) -> str:
        """By the quick way where that is asked for and the kernel lets it, else in full; which it was."""
        if replay.pending is None:
            launch.run()
            return "full"
        if self.named & {name, launch.kernel.name}:
            in_full(launch, replay.pending)
            return "full"
        looked = look(launch, replay.pending)
        self.lanes += looked.lanes
        if looked.why is not None:
            self.in_full.setdefault(launch.kernel.name, looked.why)
        return "quick" if looked.why is None else "full"

    def _kernel(self, function: _Function) -> tuple[KernelText, Any]:
        known = self.kernels.get(function.name)
        if known is None:
            try:
                parsed = read_kernel(function.name, function.comment, function.line)
                known = parsed, build(parsed, self._folder(), Libdevice())
            except Refused as refused:
                known = refused
            except Exception as error:
                known = Refused(f"its source could not be executed: {type(error).__name__}: {error}"[:300])
            self.kernels[function.name] = known
        if isinstance(known, Refused):
            raise CannotError(f"{function.name}: {known}")
        return known

    def _folder(self) -> Path:
        folder = self.channel.run_dir / "kernels"
        folder.mkdir(exist_ok=True)
        return folder

    def _arguments(
        self, replay: Replay, function: _Function, text: KernelText, texts: list[str]
    ) -> dict[str, Tensor | int | float]:
        """By the kernel's own names."""
        made: dict[str, Tensor | int | float] = {}
        for name, given in zip(function.parameters, texts, strict=False):
            kind = text.signature.get(name, "")
            if kind.startswith("*"):
                made[name] = replay.tensor(given)
            elif name not in _OWN:
                made[name] = replay.number(given)
        missing = [name for name, kind in text.signature.items() if kind != "constexpr" and name not in made]
        for name in missing:
            value = text.constants.get(name)
            if not isinstance(value, int | float):
                raise CannotError(f"{function.name}: the wrapper does not say what {name} is")
            made[name] = value
        return made

    def _grid(self, function: _Function, names: Mapping[str, int | float]) -> tuple[int, int, int]:
        known: dict[str, Any] = dict(names)
        for name, text in function.sizes:
            with suppress(Unknown):
                known[name] = compute(text, known)
        found = [known.get(f"grid_{at}") for at in range(3)]
        if any(not isinstance(one, int) for one in found):
            raise CannotError(f"{function.name}: its grid is not known")
        return tuple(found)  # type: ignore[return-value]


def emulate(payload: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Do it."""
    payload, applied = treat.prepare(payload, channel)
    load_setup(payload, channel)
    channel.enter("inputs")
    call, notes = read_call(payload["inputs"], channel)
    call = treat.apply(payload.get("treatment") or [], call, applied)
    channel.put(applied=applied, input_notes=notes, inputs=call.describe(values=False))
    channel.enter("load")
    package = str(channel.user_cwd / payload["package"])
    artifact = read_artifact(package)
    model = artifact.model(payload.get("model_name") or "model") or artifact.models[0]
    contract = read_contract(artifact, model)
    if contract is None or model.wrapper_cpp is None:
        channel.put(emulation={"problem": "the package has no wrapper.cpp that can be read"})
        return {}
    try:
        _install()
    except ImportError as error:
        channel.put(emulation={"problem": f"Triton is not installed here ({error})", "install": True})
        return {}
    stored = read_package_constants(artifact, model, contract.constants, contract.weights)
    _run(payload, channel, model, contract, stored, call)
    return {}


def _install() -> None:
    import triton  # noqa: F401

    from aotidoctor.worker.emulation.interpreter import install

    install(Libdevice())


def _constants(specs: Sequence[ConstantSpec], stored: Mapping[str, Any]) -> list[Tensor | Lost]:
    """The constants in the order of the wrapper, each in an allocation of its own."""
    made: list[Tensor | Lost] = []
    for spec in specs:
        found = stored.get(spec.original_fqn)
        if spec.from_folded or found is None or found.content is None:
            why = "it is computed when the package is loaded" if spec.from_folded else None
            why = why or getattr(found, "problem", None) or "not in the package"
            made.append(Lost(f"the constant {spec.name}: {why}"))
        else:
            made.append(_constant(spec, found))
    return made


def _constant(spec: ConstantSpec, found: Any) -> Tensor | Lost:
    """Read piece by piece: a copy of the largest one would be felt."""
    import numpy as np

    made = empty(spec.name, spec.dtype or "float32", tuple(found.shape or ()), tuple(found.stride or ()))
    begins, storage = (found.offset or 0) * made.itemsize, made.storage
    if begins + storage.size > found.content.size:
        return Lost(f"the constant {spec.name}: its data are cut off")
    for at in range(0, storage.size, _PIECE):
        piece = found.content.read_at(begins + at, min(_PIECE, storage.size - at))
        storage.bytes[at : at + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
    storage.all_written()
    return made


@dataclass(slots=True, kw_only=True)
class _Pass:
    """The whole wrapper replayed once: what was found, the launches, the outputs."""

    found: Found
    engine: _Engine
    outputs: list[tuple[str, Any]]

    @property
    def in_time(self) -> bool:
        """Whether no launch was left out, or broken off, for time."""
        return not any(
            "the time for the emulation" in why or "did not end" in why for _, why in self.found.not_emulated
        )

    def result(self) -> dict[str, Any]:
        """As the probe reads it."""
        return {**self.found.result(), "launched": self.engine.number, "in_full": self.engine.in_full}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """What is to be emulated. ``limit`` is in seconds, for all passes together."""

    payload: dict[str, Any]
    channel: Channel
    model: ModelEntry
    contract: Contract
    stored: Mapping[str, Any]
    call: Call
    limit: float
    candidates: Candidates | None = None

    def replayed(self, seconds: float, *, quick: bool) -> _Pass:
        """One pass; ``quick``: only addresses and masks, with values where an address needs them."""
        found = Found()
        engine = _Engine(
            functions=_functions(self.model.wrapper_cpp or ""),
            found=found,
            channel=self.channel,
            seconds=seconds,
            deadline=time.monotonic() + seconds,
            named=frozenset(map(str, self.payload.get("emulate_kernels") or ())),
        )
        replay = Replay(
            inputs=[of_torch(path, tensor) for path, tensor in _ordered(self.contract, self.call)],
            constants=_constants(self.contract.constants, self.stored),
            found=found,
            launch=engine.launch,
            operator=call_operator,
            nodes=_nodes(str(self.channel.user_cwd / self.payload["package"]), self.model),
            pending=Pending() if quick else None,
            followed=None if quick or self.candidates is None else Followed(candidates=self.candidates),
        )
        wrapper = find_sections(self.model.wrapper_cpp or "")
        try:
            replay.run(_statements(wrapper.body.text, wrapper.body.line))
        finally:
            self.channel.put(emulation={**found.result(), "launched": engine.number})
        if replay.followed is not None:
            told = [(spec.path, replay.outputs.get(at)) for at, spec in enumerate(self.contract.outputs)]
            self.channel.put(watch=replay.followed.result(
                [(path, one) for path, one in told if isinstance(one, Tensor) and one.storage.known]
            ))  # fmt: skip
        return _Pass(found=found, engine=engine, outputs=_outputs(self.contract, replay, found))

    @property
    def size(self) -> int:
        """Bytes of inputs and constants."""
        inputs: int = sum(tensor.numel() * tensor.element_size() for _, tensor in self.call.tensors())
        constants: int = sum(one.content.size for one in self.stored.values() if one.content is not None)
        return inputs + constants


def _run(  # noqa: PLR0917
    payload: dict[str, Any],
    channel: Channel,
    model: ModelEntry,
    contract: Contract,
    stored: Mapping[str, Any],
    call: Call,
) -> None:
    """In full where that is quickly done or asked for; what is large is looked at by the quick way first."""
    job = _Job(
        payload=payload, channel=channel, model=model, contract=contract, stored=stored, call=call,
        limit=float(payload.get("emulate_seconds") or 60.0),
    )  # fmt: skip
    if (payload.get("watch") or {}).get("reference"):
        job = replace(job, candidates=candidates_of(payload, call, channel)[0])
    channel.enter("run1")
    done = _passes(job, asked=bool(payload.get("reference") or payload.get("keep_outputs")))
    channel.put(emulation=done.result(), outputs=[_describe_all(done.outputs)])
    if payload.get("reference") and all(tensor is not None for _, tensor in done.outputs):
        _compare(payload, call, dict(done.outputs), channel)
    if payload.get("keep_outputs"):
        _save(channel.user_cwd / payload["keep_outputs"], done.outputs)


def _passes(job: _Job, *, asked: bool) -> _Pass:
    """``asked``: values are wanted, and not addresses alone. A kernel that was named is looked at first."""
    way = job.payload.get("emulate_way") or "auto"
    began = time.monotonic()
    first = None
    named = bool(job.payload.get("emulate_kernels"))
    if way == "quick" or (way == "auto" and (named or (job.size >= _LARGE and not asked))):
        first = job.replayed(job.limit, quick=True)
        left = job.limit - (time.monotonic() - began)
        if way == "quick" or first.found.findings or first.engine.lanes * _SECONDS_A_LANE > left / 2:
            return first
    left = job.limit - (time.monotonic() - began)
    full = job.replayed(left * (1.0 if first is not None else _SHARE_OF_FULL), quick=False)
    if full.in_time or full.found.findings or way == "full":
        return full
    left = job.limit - (time.monotonic() - began)
    return first or job.replayed(left, quick=True)


class _NoModel:
    """Stands for a loaded package: its weights were not read the way a loaded one's are."""

    def __getattr__(self, name: str) -> Any:
        """Nothing of it is there."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise LookupError("the package was emulated, not loaded")


def _compare(payload: dict[str, Any], call: Call, outputs: dict[str, Any], channel: Channel) -> None:
    """Hold the outputs against the reference's, arranged as it arranges its own."""
    from aotidoctor.worker import reference
    from aotidoctor.worker.leaves import rebuild_result

    channel.enter("reference")
    ours: Any = None
    with suppress(Exception):
        reference.share_reference(payload["reference"], channel)
        program = reference.load_reference(payload["reference"], channel)
        theirs = reference.attempt(program, call.copy() or call)[1]
        ours = rebuild_result(theirs, outputs.get) if theirs is not None else None
    # What failed fails again, and is told.
    model: Any = _NoModel()
    channel.put(**reference.check_reference(payload, model, call, (None, ours), channel))


def _nodes(package: str, model: ModelEntry) -> list[dict[str, Any]]:
    """The calls of the proxy executor, from the package's JSON; none where it cannot be read."""
    if model.extern_member is None:
        return []
    try:
        with zipfile.ZipFile(package) as archive:
            document = json.loads(archive.read(model.extern_member))
        return [entry["node"] for entry in document["nodes"]]
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        return []


def _statements(text: str, line: int) -> list[tuple[int, str]]:
    """Those behind the signature of ``run_impl``."""
    found = list(statements(text, line))
    start = next((at for at, (_, one) in enumerate(found) if one.endswith(") {")), -1)
    return found[start + 1 : -1] if found and found[-1][1].startswith("}") else found[start + 1 :]


def _ordered(contract: Contract, call: Call) -> list[tuple[str, Any]]:
    """The caller's tensors in the order of the compiled code's inputs, by their paths where these are known."""
    given = call.tensors()
    order = {leaf.path: leaf.input_index for leaf in contract.leaves if leaf.input_index is not None}
    if len(given) == len(order) and all(path in order for path, _ in given):
        return sorted(given, key=lambda pair: order[pair[0]] or 0)
    return given


def _outputs(contract: Contract, replay: Replay, found: Found) -> list[tuple[str, Any]]:
    """Outputs by path; one that could not be had is None."""
    made: list[tuple[str, Any]] = []
    for at, spec in enumerate(contract.outputs):
        value = replay.outputs.get(at)
        if isinstance(value, Tensor) and replay.pending is not None and replay.pending.is_left_out(value.storage):
            found.skip("the values that are computed", VALUES)
            made.append((spec.path, None))
            _tell_unwritten(value, spec.path, found)
            continue
        if not isinstance(value, Tensor) or not value.storage.known:
            why = value.why if isinstance(value, Lost) else "something that was not carried out may have written to it"
            found.skip(spec.path, why)
            made.append((spec.path, None))
            continue
        _tell_unwritten(value, spec.path, found)
        made.append((spec.path, value.torch()))
    return made


def _tell_unwritten(value: Tensor, path: str, found: Found) -> None:
    count = value.has_unwritten()
    if count:
        found.add("uninitialized", buffer=value.name, output=path, count=count, launch=None, kernel=None,
                  allocation=value.storage.name)  # fmt: skip


def _describe_all(outputs: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    from aotidoctor.worker.describe import describe, digest

    return [
        {**describe(path, tensor, values=True), "sha256": digest(tensor)}
        for path, tensor in outputs
        if tensor is not None
    ]


def _save(path: Path, outputs: list[tuple[str, Any]]) -> None:
    import torch

    torch.save({path: None if tensor is None else tensor.clone() for path, tensor in outputs}, path)


def _functions(text: str) -> dict[str, _Function]:
    """The ``call_<kernel>`` functions of the wrapper by the names of their kernels."""
    starts = list(_FUNCTION.finditer(text))
    made: dict[str, _Function] = {}
    line, counted = 1, 0
    for at, start in enumerate(starts):
        line += text.count("\n", counted, start.start())
        counted = start.start()
        end = starts[at + 1].start() if at + 1 < len(starts) else text.find("\n}", start.end()) + 2
        made[start[1]] = _function(start[1], text[start.end() : end], line)
    return made


def _function(name: str, text: str, line: int) -> _Function:
    opening = text.find("{")
    opened = text.find("/*", opening)
    closed = text.find("*/", opened) if opened >= 0 else -1
    code = text[closed + 2 :] if closed >= 0 else text[opening:]
    sizes = tuple((found[1], found[2]) for found in _SIZE.finditer(code))
    blocks = {found[1]: int(found[3]) for _, size in sizes for found in _BLOCK.finditer(size) if found[2] == found[3]}
    parameters = tuple(found[2] for found in _PARAMETER.finditer(text[:opening]))
    return _Function(
        name=name,
        parameters=parameters,
        comment=text[opened:closed] if closed >= 0 else "",
        line=line + text.count("\n", 0, max(opened, 0)),
        sizes=sizes,
        blocks=blocks,
        guarded="return;" in code,
    )
