"""A kernel receives a tensor on a different device from its own, because the compiled graph mixes devices.

What it does
    Follows every tensor of the wrapper from its origin (input, constant, buffer) to the calls, and compares its device
    with that of the kernel: C++ kernels run on the CPU, Triton kernels on the GPU, shims on the device in their name.

Why it matters
    A CUDA address in a CPU kernel is a SIGSEGV, a CPU address in a Triton kernel an illegal memory access, regardless
    of what the caller passes: no input is at fault.

Example:
    cpp_fused_embedding_0: observed embed_weight on cuda, expected cpu

When it is wrong
    It may run on a GPU that shares memory with the CPU. A shim is reported only if all its tensors are on a different
    device: operators may take a number or an index from the CPU.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from aotidoctor.checks.check import Finder, Findings
from aotidoctor.checks.matching.package_facts import at_call
from aotidoctor.model.case import Case
from aotidoctor.model.contract import KernelCall, ModelContract, earlier_names
from aotidoctor.model.evidence import Evidence

FIND = Finder("AD-LOAD-006", "mixed_device")
KNOWN = ("cpu", "cuda")
_SHIM = re.compile(r"aoti_torch_(cpu|cuda)_(?!_to_copy|copy)")


def run(case: Case) -> Findings:
    """One finding per kernel and tensor."""
    contract = case.contract
    if contract is None or not contract.kernels:
        return FIND.unchecked("the package contains no sources that show its calls")
    devices = devices_of(contract)
    if len({device for device in devices.values() if device in KNOWN}) < 2:
        return []
    names: dict[str | None, str] = {leaf.generated_name: leaf.path for leaf in contract.leaves}
    names |= {one.name: one.original_fqn for one in contract.constants if one.original_fqn}
    found: dict[tuple[str, str], Evidence] = {}
    for call in contract.kernels:
        wanted = device_of_call(call)
        known = [name for name in dict.fromkeys(call.arguments) if devices.get(name) in KNOWN]
        strange = [name for name in known if devices[name] != wanted]
        # An operator may take a number or an index from the CPU.
        if wanted is None or (call.kind == "extern" and len(strange) < len(known)):
            continue
        for name in strange:
            tensor, device = names.get(name) or name, devices[name]
            found[call.name, name] = found.get((call.name, name)) or FIND.error(
                call.kind,
                call.name,
                observed=f"{tensor} on {device}",
                expected=wanted,
                message=f"{call.name} runs on {wanted} and receives {tensor}, which is on {device}: the graph mixes "
                "devices",
                source=at_call(case, call),
                facts={
                    "kernel": call.name,
                    "tensor": tensor,
                    "device": device,
                    "wanted": wanted,
                    "origins": call.origins,
                },
            )
    return list(found.values())


def devices_of(contract: ModelContract) -> Mapping[str, str]:
    """The device type of each name of the wrapper, as far as the wrapper states it."""
    devices = dict(contract.buffer_devices)
    devices |= {one.name: one.device_type for one in contract.constants if one.device_type is not None}
    devices |= {
        leaf.generated_name: leaf.device_type
        for leaf in contract.leaves
        if leaf.generated_name is not None and leaf.device_type is not None
    }
    for name in contract.renamed:
        root = next((one for one in earlier_names(name, contract.renamed) if one in devices), None)
        if root is not None:
            devices[name] = devices[root]
    return devices


def device_of_call(call: KernelCall) -> str | None:
    """The device type that the call runs on; None if its name does not say."""
    if call.kind == "cpp":
        return "cpu"
    if call.kind in ("triton", "metal"):
        return "cuda" if call.kind == "triton" else "mps"
    found = _SHIM.match(call.name)
    return found[1] if found is not None and call.kind == "extern" else None


CHECK = FIND.check(
    run,
    needs=("artifact_missing", "artifact_wrong_kind", "artifact_bad_metadata"),
    facts=("buffer", "call", "constant"),
)
