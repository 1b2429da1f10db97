"""Compare two packages: content, contracts, calls, and requirements on a host."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping

from aotidoctor.commands.diff.document_values import NONE, DifferenceTally, DocumentNode

# The leaves of two contracts, and of two calls.
_INTEGERS = ("int", "uint", "bool")
_DETAILS = ("requires_grad", "quantized")


def _by_path(node: DocumentNode) -> dict[str, DocumentNode]:
    return {leaf.text("path") or "?": leaf for leaf in node.nodes("leaves")}


def _missing(
    tally: DifferenceTally, rule: str, one: Mapping[str, DocumentNode], two: Mapping[str, DocumentNode]
) -> None:
    for path in dict.fromkeys((*one, *two)):
        if path not in one or path not in two:
            kind = f"{rule}-keyword" if path.startswith("kwargs") else rule
            tally.differ(kind, path, *("there" if path in side else "missing" for side in (one, two)))


def _leaf(tally: DifferenceTally, path: str, a: DocumentNode, b: DocumentNode) -> None:
    tally.compare("leaf-kind", f"{path}: kind", a.text("kind"), b.text("kind"))
    tally.compare("leaf-dtype", f"{path}: dtype", a.text("dtype"), b.text("dtype"))
    tally.compare("leaf-device", f"{path}: device", a.text("device_type"), b.text("device_type"))
    tally.compare("leaf-rank", f"{path}: rank", a.number("rank"), b.number("rank"))
    one, two = a.nodes("dims"), b.nodes("dims")
    if len(one) == len(two):
        for index, (first, second) in enumerate(zip(one, two, strict=True)):
            subject = f"{path}: dim {index}"
            if first.number("static") is not None or second.number("static") is not None:
                tally.compare("leaf-shape", subject, _size(first), _size(second))
                continue
            tally.compare("leaf-range", f"{subject}: range", _size(first), _size(second))
            tally.compare("leaf-symbol", f"{subject}: symbol", first.text("expr"), second.text("expr"))
    strides = [side.numbers("strides") for side in (a, b)]
    # A stride that follows from a different size is no difference of its own.
    if [_size(dim) for dim in one] == [_size(dim) for dim in two]:
        tally.compare("leaf-stride", f"{path}: strides", *strides)
    else:
        tally.skip("strides that follow from sizes", *strides)


def _size(dim: DocumentNode) -> str:
    static = dim.number("static")
    if static is not None:
        return str(static)
    low, high = dim.number("min"), dim.number("max")
    return f"{'' if low is None else low}..{'' if high is None else high}"


def compare_calls(tally: DifferenceTally, a: DocumentNode, b: DocumentNode) -> None:
    """Compare the inputs of two callers by metadata."""
    problems = [side.text("problem") or "readable" for side in (a, b)]
    tally.compare("given-problem", "inputs file", *problems)
    if any(side.text("problem") for side in (a, b)):
        return
    one, two = _by_path(a), _by_path(b)
    _missing(tally, "given", one, two)
    for path in one:
        if path in two:
            _given_tensors(tally, path, one[path], two[path])
    tally.compare("given-alias", "tensors that share memory", _shared_storages(one), _shared_storages(two))
    for name in ("path", "sha256"):
        tally.skip("names and hashes of inputs files", a.text(name), b.text(name))


def _given_tensors(tally: DifferenceTally, path: str, a: DocumentNode, b: DocumentNode) -> None:
    kinds = [side.text("kind") for side in (a, b)]
    tally.compare("given-kind", f"{path}: kind", *kinds)
    if kinds[0] != kinds[1]:
        return
    if kinds[0] != "tensor":
        tally.compare("given-kind", f"{path}: type", a.text("type"), b.text("type"))
        tally.compare("given-constant", f"{path}: value", a.text("text"), b.text("text"))
        return
    tally.compare("given-dtype", f"{path}: dtype", a.text("dtype"), b.text("dtype"))
    tally.compare("given-device", f"{path}: device", a.text("device"), b.text("device"))
    tally.compare("given-layout", f"{path}: layout", a.text("layout"), b.text("layout"))
    shapes = [side.numbers("shape") for side in (a, b)]
    if len(shapes[0]) != len(shapes[1]):
        tally.compare("given-rank", f"{path}: shape", *shapes)
    else:
        tally.compare("given-shape", f"{path}: shape", *shapes)
    # Strides of equal shapes; for others, whether they are contiguous.
    one, two = a.numbers("stride"), b.numbers("stride")
    if a.numbers("shape") == b.numbers("shape"):
        tally.compare("given-stride", f"{path}: strides", one, two)
    else:
        orders = ["contiguous" if _ordinary(side) else "other" for side in (a, b)]
        tally.compare("given-stride", f"{path}: strides", *orders)
    for name in ("conj", "neg"):
        tally.compare("given-lazy", f"{path}: {name}", a.flag(name), b.flag(name))
    tally.compare("given-offset", f"{path}: storage offset", a.number("storage_offset"), b.number("storage_offset"))
    for name in _DETAILS:
        tally.compare("given-detail", f"{path}: {name}", a.flag(name), b.flag(name))
    tally.compare("given-detail", f"{path}: subclass", a.text("subclass") or NONE, b.text("subclass") or NONE)
    _values(tally, path, a, b)


def _ordinary(leaf: DocumentNode) -> bool:
    step = 1
    sizes, strides = leaf.numbers("shape"), leaf.numbers("stride")
    for size, stride in zip(reversed(sizes), reversed(strides), strict=False):
        if size != 1 and stride != step:
            return False
        step *= size or 1
    return True


def _values(tally: DifferenceTally, path: str, a: DocumentNode, b: DocumentNode) -> None:
    one, two = a.at("stats"), b.at("stats")
    if one.missing or two.missing:
        return
    for name in ("nan", "inf"):
        counts = [bool(side.number(name)) for side in (one, two)]
        tally.compare("given-nan", f"{path}: {name}", *counts)
    bounds = [(side.number("low"), side.number("high")) for side in (one, two)]
    if (a.text("dtype") or "").startswith(_INTEGERS):
        tally.compare("given-values", f"{path}: lowest and highest", *bounds)
    else:
        tally.skip("values of floating point inputs", *bounds)


def _shared_storages(leaves: Mapping[str, DocumentNode]) -> tuple[object, ...]:
    groups: dict[str, list[str]] = defaultdict(list)
    for path, leaf in leaves.items():
        storage = leaf.text("storage")
        if storage is not None:
            groups[storage].append(path)
    return tuple(sorted(" and ".join(paths) for paths in groups.values() if len(paths) > 1))


# Artifacts, contracts, kernels.
_METADATA = {
    "AOTI_DEVICE_KEY": "device",
    "AOTI_CPU_ISA": "package-isa",
    "AOTI_COMPUTE_CAPABILITY": "capability",
    "AOTI_PLATFORM": "machine",
    "AOTI_MACHINE": "machine",
}
_NUMBER = re.compile(r"_\d+$")
_FEATURES = ("input_checks", "printer_level", "nan_asserts", "kernel_profile")


def compare_artifacts(
    tally: DifferenceTally, a: DocumentNode, b: DocumentNode, weights: tuple[Mapping[str, int], Mapping[str, int]]
) -> bool:
    """Compare two files; True if they are equal. ``weights`` are checksums (CRC-32) of members by name."""
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
    if not a.at("executorch").missing and not b.at("executorch").missing:
        _programs(tally, a.at("executorch"), b.at("executorch"))
    # Checksums that the archives themselves have; weights inside a .so have none.
    first, second = weights
    if first and second:
        for name in sorted(set(first) & set(second)):
            tally.compare("weight-bytes", name, f"CRC {first[name]:08x}", f"CRC {second[name]:08x}")
        tally.members("constant", "files of weights", sorted(first), sorted(second))
    else:
        tally.unknown.append("package: values of the weights (no checksums on both sides)")
    for what in ("size", "n_members"):
        tally.skip("sizes and names of members", a.number(what), b.number(what))
    return False


def _programs(tally: DifferenceTally, a: DocumentNode, b: DocumentNode) -> None:
    """Compare two ExecuTorch files. Keys of data are mostly sha256, so other weights or code have another key."""
    tally.compare("kind", "kind of ExecuTorch file", *("program" if x.flag("program") else "data" for x in (a, b)))
    tally.compare("kind", "identifier", a.text("identifier"), b.text("identifier"))
    methods = [{one.text("name") or "?": one for one in side.nodes("methods")} for side in (a, b)]
    tally.members("models", "methods", *methods)
    for name in methods[0].keys() & methods[1].keys():
        delegates = [one[name].nodes("delegates") for one in methods]
        backends = [tuple(item.text("backend") or "?" for item in listed) for listed in delegates]
        tally.members("backend", f"{name}: backends", *backends)
        for what in ("code_key", "weights_key"):
            keys = [tuple(key for item in listed if (key := item.text(what)) is not None) for listed in delegates]
            tally.members("data-key", f"{name}: {what.replace('_', ' ')}", *keys)
        tally.members("operators", f"{name}: operators", *(one[name].texts("operators") for one in methods))
    tally.members("data-key", "needed from a .ptd", a.texts("needed_data"), b.texts("needed_data"))
    names = [tuple(one.text("key") or "?" for one in side.nodes("named")) for side in (a, b)]
    tally.members("data-key", "keys of data", *names)


def _chosen(artifact: DocumentNode) -> DocumentNode | None:
    name = artifact.text("model_name")
    models = artifact.nodes("models")
    return next((model for model in models if model.text("name") == name), models[0] if models else None)


def _models(tally: DifferenceTally, a: DocumentNode, b: DocumentNode) -> None:
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
    for first, second in zip(objects[0][:1], objects[1][:1], strict=False):
        tally.compare("machine", "machine of the .so", first.text("machine"), second.text("machine"))
        tally.members("needed", "libraries of the .so", first.texts("needed"), second.texts("needed"))
        features = [side.at("features") for side in (first, second)]
        for name in _FEATURES:
            level = name == "printer_level"
            tally.compare("feature", name, *(side.number(name) if level else side.flag(name) for side in features))


def _metadata(model: DocumentNode) -> dict[str, str]:
    return {name: text for part in model.nodes("metadata") for name, text in part.mapping("values").items()}


def compare_contracts(tally: DifferenceTally, a: DocumentNode, b: DocumentNode) -> None:
    """Compare what the compiled code expects and needs."""
    leaves = _by_path(a), _by_path(b)
    _missing(tally, "leaf", *leaves)
    for path in leaves[0]:
        if path in leaves[1]:
            _leaf(tally, path, leaves[0][path], leaves[1][path])
    outputs = [side.nodes("outputs") for side in (a, b)]
    tally.compare("output", "number of outputs", len(outputs[0]), len(outputs[1]))
    for first, second in zip(*outputs, strict=False):
        path = first.text("path") or "?"
        tally.compare("output", f"{path}: path", path, second.text("path"))
        tally.compare("output", f"{path}: dtype", first.text("dtype"), second.text("dtype"))
        tally.compare("output", f"{path}: shape", first.texts("shape"), second.texts("shape"))
        tally.compare("output", f"{path}: device", first.text("device_type"), second.text("device_type"))
    _constants(tally, a, b)
    # Kernels by name, without the number that the compiler gave to each.
    tally.compare("kernels", "number of calls", a.number("n_kernels"), b.number("n_kernels"))
    one, two = (
        Counter(_NUMBER.sub("", kernel.text("name") or "?") for kernel in side.nodes("kernels")) for side in (a, b)
    )
    tally.equal["package"] += sum((one & two).values())
    for rest, other, there in ((one - two, "without", True), (two - one, "without", False)):
        for name, count in list(rest.items())[:20]:
            calls = f"{count} times" if count > 1 else "called"
            tally.differ("kernels", name, calls if there else other, other if there else calls)
    tally.members("operators", "custom operators", a.texts("custom_ops"), b.texts("custom_ops"))
    _needs(tally, a.at("needs"), b.at("needs"))
    tally.compare("weights-place", "weights", a.text("weights"), b.text("weights"))


def _constants(tally: DifferenceTally, a: DocumentNode, b: DocumentNode) -> None:
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


def _by_name(contract: DocumentNode) -> dict[str, DocumentNode]:
    return {item.text("original_fqn") or item.text("name") or "?": item for item in contract.nodes("constants")}


def _needs(tally: DifferenceTally, a: DocumentNode, b: DocumentNode) -> None:
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


def _most_threads(needs: DocumentNode) -> int | float | str:
    inner = needs.at("baked_threads")
    found = [inner.number(name) or 0 for name in inner.names()]
    return max(found, default=NONE, key=float) if found else NONE
