"""What a difference means: the playbook that speaks of it, and how much it matters.

``decisive`` is what alone makes a package fail, or compute something else, on one side; ``relevant`` is what a playbook
names among the reasons; ``minor`` is told and does not decide.
"""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """``playbook`` is the slug of a cause, None where no playbook speaks of such a difference."""

    area: str
    playbook: str | None
    level: str
    why: str


RULES = {
    # The machine.
    "platform": Rule("host", "platform-mismatch", "decisive", "compiled code runs only on one system and architecture"),
    "torch-release": Rule(
        "host",
        "abi-mismatch",
        "decisive",
        "a package calls functions of torch whose set changes from release to release",
    ),
    "torch-build": Rule("host", "abi-mismatch", "relevant", "builds of one release differ in their build options"),
    "torch-cuda": Rule(
        "host", "driver-mismatch", "decisive", "the CUDA that torch was built for needs a driver to match"
    ),
    "torch-abi": Rule("host", "abi-mismatch", "decisive", "the two ABIs of std::string do not link with each other"),
    "torch": Rule("host", "toolchain-missing", "decisive", "nothing can be loaded without torch"),
    "isa": Rule("host", "isa-mismatch", "relevant", "packages are compiled for the instructions of the build machine"),
    "isa-needed": Rule("host", "isa-mismatch", "decisive", "the package was compiled for these instructions"),
    "gpu": Rule("host", "gpu-arch-mismatch", "decisive", "GPU code is compiled for a compute capability"),
    "gpu-name": Rule("host", "gpu-arch-mismatch", "minor", "a different GPU of the same compute capability"),
    "gpu-none": Rule("host", "device-unavailable", "decisive", "a GPU package needs a GPU"),
    "gpu-count": Rule("host", "device-index", "relevant", "a device index counts the available GPUs"),
    "driver": Rule("host", "driver-mismatch", "relevant", "the driver determines which CUDA versions can run"),
    "glibc": Rule("host", "abi-mismatch", "relevant", "a .so requires the symbol versions of its build machine"),
    "library": Rule("host", "missing-library", "decisive", "the loader must find every library that the .so names"),
    "symbol": Rule("host", "abi-mismatch", "decisive", "no library there provides the symbol"),
    "threads": Rule(
        "host", "threads-exceed-build", "relevant", "some kernels have room only for the threads of the build machine"
    ),
    "memory": Rule("host", "out-of-memory", "relevant", "weights and buffers must fit"),
    "openmp": Rule("host", "openmp-conflict", "relevant", "two OpenMP runtimes in one process hang or crash"),
    "tmpdir": Rule("host", "tmpdir", "decisive", "a package is unpacked there before it is loaded"),
    "compiler": Rule("host", "toolchain-missing", "relevant", "a package without .so is compiled when it is loaded"),
    "tool": Rule("host", None, "minor", "determines which probes can run, not what fails"),
    "setting-threads": Rule("host", "threads-exceed-build", "relevant", "determines the number of threads"),
    "setting-device": Rule(
        "host", "device-unavailable", "relevant", "determines which GPUs are visible, and their numbers"
    ),
    "setting-library": Rule("host", "missing-library", "relevant", "determines which libraries are found first"),
    "setting-memory": Rule("host", "out-of-memory", "relevant", "determines how memory is allocated"),
    "setting-cuda": Rule("host", "cuda-race", "relevant", "determines in which order kernels run and errors surface"),
    "setting-aoti": Rule("host", "load-api", "relevant", "read by torch or by the package itself"),
    "setting": Rule("host", None, "minor", "no playbook names this variable"),
    "python": Rule("host", None, "minor", "a package does not depend on the version of Python"),
    "system-software": Rule("host", None, "minor", "its relevant parts are compared separately"),
    "distribution-package": Rule("host", "abi-mismatch", "relevant", "torch loads it into the same process"),
    # The package.
    "kind": Rule(
        "package", "artifact-wrong-kind", "decisive", "only an AOTInductor package can be loaded with this API"
    ),
    "layout": Rule("package", "load-api", "relevant", "the layout determines which loader accepts it"),
    "models": Rule("package", "model-name", "decisive", "a model is loaded by its name"),
    "machine": Rule("package", "platform-mismatch", "decisive", "compiled code runs only on one architecture"),
    "needed": Rule("package", "missing-library", "relevant", "the loader must find every library that the .so names"),
    "feature": Rule("package", None, "minor", "a debug facility that was compiled in"),
    "device": Rule("package", "load-device", "decisive", "it was compiled for a different device"),
    "package-isa": Rule("package", "isa-mismatch", "decisive", "one needs CPU instructions that the other does not"),
    "capability": Rule("package", "gpu-arch-mismatch", "decisive", "GPU code is compiled for a compute capability"),
    "package-torch": Rule("package", "abi-mismatch", "relevant", "compiled with a different release of torch"),
    "package-abi": Rule(
        "package", "abi-mismatch", "decisive", "the two ABIs of std::string do not link with each other"
    ),
    "package-cuda": Rule("package", "driver-mismatch", "relevant", "compiled with a different CUDA version"),
    "package-threads": Rule(
        "package", "threads-exceed-build", "relevant", "compiled for a different number of threads"
    ),
    "operators": Rule(
        "package", "custom-op-missing", "relevant", "a custom operator must be registered before loading"
    ),
    "weights-place": Rule(
        "package", "weights-not-loaded", "relevant", "weights outside the .so must be loaded or found"
    ),
    "damage": Rule("package", "artifact-corrupt", "decisive", "a member's bytes differ from those that were written"),
    "random": Rule("package", "nondeterministic", "relevant", "results differ between runs by design"),
    "uninitialized": Rule("package", "uninitialized-read", "relevant", "a kernel reads uninitialized memory"),
    "kernels": Rule("package", "codegen-bug", "relevant", "different generated code for the same model"),
    "origin": Rule("package", None, "minor", "where and with what it was built"),
    "content": Rule("package", None, "minor", "the files differ; the differences are listed one by one"),
    "constant": Rule(
        "package", "weights-mismatch", "decisive", "weights are found by name, and must have its type and shape"
    ),
    "weight-bytes": Rule("package", "weights-differ", "relevant", "the same weights have the same checksum"),
    "leaf": Rule("package", "input-tree", "decisive", "a call must have the same leaves"),
    "leaf-keyword": Rule("package", "input-kwargs", "decisive", "a keyword argument must be passed as such"),
    "leaf-kind": Rule("package", "input-nontensor", "decisive", "a tensor is not a constant"),
    "leaf-dtype": Rule("package", "input-dtype", "decisive", "inputs are read as the dtype that was compiled"),
    "leaf-rank": Rule("package", "input-rank", "decisive", "sizes are read by position"),
    "leaf-shape": Rule("package", "input-shape", "decisive", "a static size is compiled in"),
    "leaf-range": Rule("package", "input-range", "decisive", "sizes beyond the compiled range are not guarded"),
    "leaf-stride": Rule("package", "input-stride", "decisive", "elements are found by the strides that were compiled"),
    "leaf-symbol": Rule("package", "input-shape-disagree", "relevant", "sizes that are one symbol must be equal"),
    "leaf-device": Rule("package", "input-device", "decisive", "memory of a different device cannot be read"),
    "output": Rule("package", "output-spec", "relevant", "the caller gets a different result"),
    # The call.
    "given": Rule("inputs", "input-count", "decisive", "a call must have the same leaves"),
    "given-keyword": Rule("inputs", "input-kwargs", "decisive", "a keyword argument must be passed as such"),
    "given-kind": Rule("inputs", "input-nontensor", "decisive", "only tensors reach the compiled code"),
    "given-dtype": Rule("inputs", "input-dtype", "decisive", "inputs are read as the dtype that was compiled"),
    "given-rank": Rule("inputs", "input-rank", "decisive", "sizes are read by position"),
    "given-shape": Rule("inputs", "input-shape", "relevant", "a different size, inside or outside the compiled range"),
    "given-stride": Rule("inputs", "input-stride", "decisive", "elements are found by the strides that were compiled"),
    "given-device": Rule("inputs", "input-device", "decisive", "memory of a different device cannot be read"),
    "given-layout": Rule("inputs", "input-layout", "decisive", "only strided tensors can be read"),
    "given-lazy": Rule("inputs", "input-lazy-bit", "decisive", "compiled code ignores the lazy bit"),
    "given-offset": Rule("inputs", "input-stride", "minor", "a different offset in its storage"),
    "given-alias": Rule("inputs", "input-alias", "relevant", "inputs that share memory see each other's writes"),
    "given-nan": Rule("inputs", "input-nan", "relevant", "NaN and Inf go through to the outputs"),
    "given-values": Rule("inputs", "index-out-of-range", "relevant", "integers that are indices must be in range"),
    "given-constant": Rule(
        "inputs", "input-constant-changed", "relevant", "a value that was baked in is not read again"
    ),
    "given-detail": Rule("inputs", None, "minor", "no playbook names this property"),
    "given-problem": Rule("inputs", "inputs-file-corrupt", "decisive", "an unreadable file passes no inputs"),
    # What came of it.
    "verdict": Rule("outcome", None, "outcome", "the outcome"),
    "cause": Rule("outcome", None, "outcome", "diagnosed only on one side"),
    "finding": Rule("outcome", None, "outcome", "found only on one side"),
    "signature": Rule("outcome", None, "outcome", "not the same failure"),
    "run": Rule("outcome", None, "outcome", "the same probe ended differently"),
    "tool-version": Rule("outcome", None, "minor", "different versions of aotidoctor may find different things"),
}
