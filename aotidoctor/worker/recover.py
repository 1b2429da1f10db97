"""Job ``recover``: learn what a package without sources expects, by asking its own input checks.

The compiled code compares each input with what it was compiled for when AOTI_RUNTIME_CHECK_INPUTS is set, and says what
it wanted. So each input is given as a stand-in on the meta device, which has no memory to read, and mended by one
complaint per call, until nothing but its device is wrong. Inputs before it are real tensors of what was learnt; the
device complaint about the last one keeps the kernels from ever running.

Without the checks (before 2.7, or switched off at build time) only the number of inputs and the call spec are learnt.
Without the device check (before 2.8, and for devices other than cpu and cuda) nothing would stop the kernels once the
last input is right, so of that one only the dtype is learnt.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from aotidoctor.model.jobs import Run
from aotidoctor.worker.channel import Channel
from aotidoctor.worker.library import describe_library, library_contains
from aotidoctor.worker.load import load_model
from aotidoctor.worker.probing import Asker, Probe
from aotidoctor.worker.setup_module import load_setup
from aotidoctor.worker.unpacked import mapped_library

_COUNT = re.compile(r"expected inputs vector size to be (\d+)")
_TOO_MANY = 4099
_MAX_CALLS = 20_000


def recover(payload: Run, channel: Channel) -> dict[str, Any]:
    """Probe the package.

    Result: ``n_inputs``, ``n_outputs``, ``n_constants`` (null when unknown), ``call_spec`` (two texts or null),
    ``metadata``, ``inputs`` (``name``, ``dtype``, ``dims`` of ``static``/``min``/``max``, ``strides``, ``device_type``,
    ``complete``), ``constants`` (``name``, ``original_fqn``, ``dtype``, ``kind``, ``from_folded``, ``data_size``),
    ``calls`` and ``problems``. What is known is handed over before each input: a crash keeps it.
    """
    os.environ["AOTI_RUNTIME_CHECK_INPUTS"] = "1"
    load_setup(payload, channel)
    channel.enter("load")
    path = channel.user_cwd / payload.package
    model = load_model(payload, path)
    library = path if payload.kind == "bare-so" else mapped_library()
    result: dict[str, Any] = {
        "call_spec": _call_spec(model.loader),
        "metadata": model.get_metadata(),
        "problems": [],
        "inputs": [],
        "calls": 0,
    }
    result.update(describe_library(library, payload.device, result["problems"]))
    channel.put(**result)
    channel.enter("probe")
    asker = Asker(model.loader.run, channel)
    result["n_inputs"] = _count(asker, result)
    if _checks_compiled_in(library, result["problems"]):
        _probe_inputs(asker, result, channel, payload, guarded=library_contains(library, b"unmatched device type"))
    else:
        # They are there, and nothing is known of them but their names.
        result["inputs"] = [{"name": name, "dims": [], "strides": []} for name in result.get("names") or ()]
    result["calls"] = asker.calls
    result.pop("names", None)
    return result


def _call_spec(loader: Any) -> list[str] | None:
    try:
        spec = list(loader.get_call_spec())
    except RuntimeError:
        return None
    return spec if len(spec) == 2 and all(isinstance(part, str) and part for part in spec) else None


def _count(asker: Asker, result: dict[str, Any]) -> int | None:
    """The number of inputs: from the library, else from its complaint about far too many."""
    if result.get("n_inputs") is not None:
        return int(result["n_inputs"])
    found = _COUNT.search(asker.ask([asker.nothing()] * _TOO_MANY))
    if found is None:
        result["problems"].append("the number of inputs could not be determined")
        return None
    return int(found[1])


def _checks_compiled_in(library: Path | None, problems: list[str]) -> bool:
    if library is not None and library_contains(library, b"AOTI_RUNTIME_CHECK_INPUTS"):
        return True
    problems.append("the package was built without input checks, so its inputs could not be probed")
    return False


def _probe_inputs(asker: Asker, result: dict[str, Any], channel: Channel, payload: Run, *, guarded: bool) -> None:
    count = result["n_inputs"] or 0
    names = result.get("names") or []
    ready: list[Any] = []
    for index in range(count):
        channel.put(**{**result, "n_inputs": count})
        probe = Probe(asker, ready, count, index)
        last_unguarded = not guarded and index == count - 1
        probe.learn(only_dtype=last_unguarded)
        if index < len(names):
            probe.name = names[index]
        result["inputs"].append(probe.describe())
        if last_unguarded:
            result["problems"].append(f"input {index} has no device check: only its dtype was probed")
        if not probe.complete or asker.calls > _MAX_CALLS:
            result["problems"].append(f"probing stopped at input {index}: {probe.stopped or 'too many calls'}")
            result["inputs"] += [{"name": name, "dims": [], "strides": []} for name in names[index + 1 :]]
            return
        if index < count - 1:
            ready.append(probe.real(payload.device))
