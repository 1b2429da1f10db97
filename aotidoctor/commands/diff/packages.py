"""Two packages: what is in them, what they expect of a caller and need of a host."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from aotidoctor.commands.diff.leaves import compare_leaves
from aotidoctor.commands.diff.node import Node
from aotidoctor.commands.diff.tally import NONE, Tally

_METADATA = {
    "AOTI_DEVICE_KEY": "device",
    "AOTI_CPU_ISA": "package-isa",
    "AOTI_COMPUTE_CAPABILITY": "capability",
    "AOTI_PLATFORM": "machine",
    "AOTI_MACHINE": "machine",
}
_NUMBER = re.compile(r"_\d+$")
_FEATURES = ("input_checks", "printer_level", "nan_asserts", "kernel_profile")


def compare_artifacts(tally: Tally, a: Node, b: Node, weights: tuple[Mapping[str, int], Mapping[str, int]]) -> bool:
    """What is in the files; True when they are the same file. ``weights`` are checksums of members by name."""
    hashes = [side.text("sha256") for side in (a, b)]
    if hashes[0] is not None and hashes[0] == hashes[1]:
        tally.equal["package"] += 1
        return True
    tally.compare("content", "sha256", *hashes)
    tally.compare("kind", "kind of file", a.text("kind"), b.text("kind"))
    tally.compare("layout", "format of the archive", a.text("archive_format") or NONE, b.text("archive_format") or NONE)
    names = [tuple(model.text("name") or "?" for model in side.nodes("models")) for side in (a, b)]
    tally.members("models", "models", *names)
    tally.members("damage", "damaged members", a.texts("bad_crc"), b.texts("bad_crc"))
    one, two = _chosen(a), _chosen(b)
    if one is not None and two is not None:
        _models(tally, one, two)
    _weights(tally, *weights)
    for what in ("size", "n_members"):
        tally.skip("sizes and names of members", a.number(what), b.number(what))
    return False


def _chosen(artifact: Node) -> Node | None:
    name = artifact.text("model_name")
    models = artifact.nodes("models")
    return next((model for model in models if model.text("name") == name), models[0] if models else None)


def _models(tally: Tally, a: Node, b: Node) -> None:
    tally.compare("layout", "layout", a.text("layout"), b.text("layout"))
    tally.compare("weights-place", "place of the weights", a.text("weights_location"), b.text("weights_location"))
    tally.compare("layout", "sources only", a.flag("cpp_only"), b.flag("cpp_only"))
    tally.members("capability", "targets of GPU code", a.texts("gpu_targets"), b.texts("gpu_targets"))
    operators = [tuple(node.text("target") or "?" for node in side.nodes("extern_ops")) for side in (a, b)]
    tally.members("operators", "operators called by name", *operators)
    one, two = _metadata(a), _metadata(b)
    for name in sorted(set(one) | set(two)):
        tally.compare(_METADATA.get(name, "origin"), name, one.get(name, NONE), two.get(name, NONE))
    objects = (a.nodes("shared_objects"), b.nodes("shared_objects"))
    if objects[0] and objects[1]:
        _objects(tally, objects[0][0], objects[1][0])


def _metadata(model: Node) -> dict[str, str]:
    return {name: text for part in model.nodes("metadata") for name, text in part.mapping("values").items()}


def _objects(tally: Tally, a: Node, b: Node) -> None:
    tally.compare("machine", "machine of the .so", a.text("machine"), b.text("machine"))
    tally.members("needed", "libraries of the .so", a.texts("needed"), b.texts("needed"))
    one, two = a.at("features"), b.at("features")
    for name in _FEATURES:
        if name == "printer_level":
            tally.compare("feature", name, one.number(name), two.number(name))
        else:
            tally.compare("feature", name, one.flag(name), two.flag(name))


def _weights(tally: Tally, one: Mapping[str, int], two: Mapping[str, int]) -> None:
    """Checksums that the archives themselves have; weights inside a .so have none."""
    if not one or not two:
        tally.unknown.append("package: values of the weights (no checksums on both sides)")
        return
    for name in sorted(set(one) & set(two)):
        tally.compare("weight-bytes", name, f"CRC {one[name]:08x}", f"CRC {two[name]:08x}")
    tally.members("constant", "files of weights", sorted(one), sorted(two))


def compare_contracts(tally: Tally, a: Node, b: Node) -> None:
    """What the compiled code expects and needs."""
    compare_leaves(tally, a, b)
    _outputs(tally, a.nodes("outputs"), b.nodes("outputs"))
    _constants(tally, a, b)
    _kernels(tally, a, b)
    tally.members("operators", "custom operators", a.texts("custom_ops"), b.texts("custom_ops"))
    _needs(tally, a.at("needs"), b.at("needs"))
    tally.compare("weights-place", "weights", a.text("weights"), b.text("weights"))


def _outputs(tally: Tally, a: tuple[Node, ...], b: tuple[Node, ...]) -> None:
    tally.compare("output", "number of outputs", len(a), len(b))
    for one, two in zip(a, b, strict=False):
        path = one.text("path") or "?"
        tally.compare("output", f"{path}: path", path, two.text("path"))
        tally.compare("output", f"{path}: dtype", one.text("dtype"), two.text("dtype"))
        tally.compare("output", f"{path}: shape", one.texts("shape"), two.texts("shape"))
        tally.compare("output", f"{path}: device", one.text("device_type"), two.text("device_type"))


def _constants(tally: Tally, a: Node, b: Node) -> None:
    tally.compare("constant", "number of constants", a.number("n_constants"), b.number("n_constants"))
    one, two = _by_name(a), _by_name(b)
    listed = [side.number("n_constants") or 0 for side in (a, b)]
    if len(one) == listed[0] and len(two) == listed[1]:
        tally.members("constant", "constants", sorted(one), sorted(two))
    else:
        tally.unknown.append("package: constants that a report does not list (`aotidoctor inspect` lists all)")
    for name in sorted(set(one) & set(two)):
        first, second = one[name], two[name]
        tally.compare("constant", f"{name}: dtype", first.text("dtype"), second.text("dtype"))
        tally.compare("constant", f"{name}: shape", first.numbers("shape"), second.numbers("shape"))
        tally.compare("constant", f"{name}: strides", first.numbers("stride"), second.numbers("stride"))
        tally.compare("constant", f"{name}: bytes", first.number("data_size"), second.number("data_size"))
        tally.compare("device", f"{name}: device", first.text("device_type"), second.text("device_type"))


def _by_name(contract: Node) -> dict[str, Node]:
    return {item.text("original_fqn") or item.text("name") or "?": item for item in contract.nodes("constants")}


def _kernels(tally: Tally, a: Node, b: Node) -> None:
    """The calls, whatever number the compiler gave to each."""
    tally.compare("kernels", "number of calls", a.number("n_kernels"), b.number("n_kernels"))
    one, two = (Counter(_call(kernel) for kernel in side.nodes("kernels")) for side in (a, b))
    tally.equal["package"] += sum((one & two).values())
    for rest, other, there in ((one - two, "without", True), (two - one, "without", False)):
        for name, count in list(rest.items())[:20]:
            told = f"{count} times" if count > 1 else "called"
            tally.differ("kernels", name, told if there else other, other if there else told)


def _call(kernel: Node) -> str:
    return _NUMBER.sub("", kernel.text("name") or "?")


def _needs(tally: Tally, a: Node, b: Node) -> None:
    tally.members("package-isa", "instructions needed", a.texts("isa"), b.texts("isa"))
    tally.compare("device", "device", a.text("device_type"), b.text("device_type"))
    capability = [side.text("compute_capability") or NONE for side in (a, b)]
    tally.compare("capability", "compute capability", *capability)
    for rule, name in (("package-torch", "torch_version"), ("package-cuda", "cuda_version")):
        tally.compare(rule, name.replace("_", " "), a.text(name), b.text(name))
    tally.compare("package-abi", "CXX11 ABI", a.flag("cxx11_abi"), b.flag("cxx11_abi"))
    tally.compare("package-threads", "threads compiled in", _most_threads(a), _most_threads(b))
    tally.compare("origin", "Python of the build", a.text("python_version"), b.text("python_version"))
    tally.members("random", "random operators", a.texts("random_ops"), b.texts("random_ops"))
    for name in ("uninitialized_ops", "nan_constants"):
        tally.members("uninitialized", name.replace("_", " "), a.texts(name), b.texts(name))
    tally.skip("paths", a.text("torch_path"), b.text("torch_path"))


def _most_threads(needs: Node) -> int | float | str:
    inner = needs.at("baked_threads")
    found = [inner.number(name) or 0 for name in inner.keys()]  # noqa: SIM118 - a node is no mapping
    return max(found, default=NONE, key=float) if found else NONE
