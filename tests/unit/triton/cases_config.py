"""Cases of the config's text, platform, name, files and versions: rules 1 to 8."""

from __future__ import annotations

from tests.unit.triton.harness import MLP, ServingCase, package


def without(line: int, text: str = MLP) -> str:
    """The text without one line, counted from 1."""
    lines = text.splitlines(keepends=True)
    return "".join(lines[: line - 1] + lines[line:])


def added(text: str) -> str:
    """The healthy config, and ``text`` from line 9 on."""
    return MLP + text


CASES = (
    ServingCase(name="healthy"),
    ServingCase(name="healthy-26.05", release="26.05"),
    ServingCase(name="healthy-26.11", release="26.11"),
    ServingCase(name="healthy-27.03", release="27.03"),
    ServingCase(name="healthy-comment", config="# the model\n" + MLP),
    ServingCase(name="healthy-windows-lines", config=MLP.replace("\n", "\r\n")),
    ServingCase(name="healthy-angle-brackets", config=MLP.replace("{ kind: KIND_CPU }", "< kind: KIND_CPU >")),
    ServingCase(name="healthy-latin-comment", config=added("# gr\udcfc\udcdfe\n")),
    ServingCase(name="healthy-named", config=added('name: "mlp"\n')),
    ServingCase(name="healthy-backend", config=added('backend: "pytorch"\n')),
    ServingCase(
        name="healthy-other-file-name", filename="net.pt2", config=added('default_model_filename: "net.pt2"\n')
    ),
    # R1
    ServingCase(name="comment-with-slashes", config=added("// the model\n"), expected=("R1:9",)),
    ServingCase(name="comma-after-the-last", config=MLP.replace("[ 1024 ] }\n]", "[ 1024 ] },\n]"), expected=("R1:6",)),
    ServingCase(name="enumerator-in-quotes", config=MLP.replace("TYPE_FP32", '"TYPE_FP32"', 1), expected=("R1:4",)),
    ServingCase(name="unknown-field", config=added('default_model_name: "x"\n'), expected=("R1:9",)),
    ServingCase(name="platform-twice", config=added('platform: "torch_aoti"\n'), expected=("R1:9",)),
    ServingCase(
        name="two-schedulers", config=added("dynamic_batching { }\nsequence_batching { }\n"), expected=("R1:10",)
    ),
    ServingCase(name="bare-parameter", config=added('parameters { key: "A" value: "1" }\n'), expected=("R1:9",)),
    ServingCase(name="byte-order-mark", config="\ufeff" + MLP, expected=("R1:1",)),
    ServingCase(name="latin-in-a-name", config=MLP.replace("RESULT", "R\udcfc"), expected=("R1:7",)),
    ServingCase(
        name="preferred-beyond-the-largest",
        config=added("dynamic_batching {\n  preferred_batch_size: [ 32,\n 128 ]\n}\n"),
        expected=("R1:11",),
    ),
    ServingCase(name="no-dims", config=MLP.replace(" dims: [ 1024 ]", "", 1), expected=("R1:4",)),
    # R2
    ServingCase(name="backend-alone", config='backend: "pytorch"\n' + without(1), expected=("R2:1",)),
    ServingCase(
        name="file-name-alone", config='default_model_filename: "model.pt2"\n' + without(1), expected=("R2:1",)
    ),
    ServingCase(name="platform-upper-case", config=MLP.replace("torch_aoti", "TORCH_AOTI"), expected=("R2:1",)),
    ServingCase(name="platform-libtorch", config=MLP.replace("torch_aoti", "pytorch_libtorch"), expected=("R2:1",)),
    ServingCase(name="other-backend", config=added('backend: "onnxruntime"\n'), expected=("R2:9",)),
    ServingCase(name="too-old", release="26.02", expected=("R2:1",)),
    # R3
    ServingCase(name="detected", config=without(1), expected=("R3:1",)),
    ServingCase(name="detected-as-torchscript", config=without(1), files={"1/model.pt": b"x"}, expected=("R3:1",)),
    # On 26.03 the file has to be named, and without it even a stated platform looks for model.pt.
    ServingCase(name="file-not-named-26.03", release="26.03", expected=("R4:1",)),
    # R4
    ServingCase(name="no-package", wrapper=None, expected=("R4:1",)),
    ServingCase(name="another-name", filename="mlp.pt2", expected=("R4:1",)),
    ServingCase(
        name="a-name-that-is-not-there", config=added('default_model_filename: "net.pt2"\n'), expected=("R4:9",)
    ),
    # R5
    ServingCase(
        name="no-such-version", config=added("version_policy { specific { versions: [ 3 ] } }\n"), expected=("R5:9",)
    ),
    ServingCase(name="folder-is-no-number", version="v1", expected=("R5", "R5:1")),
    ServingCase(
        name="healthy-two-versions", files={"2/model.pt2": package("mlp")}, config=added("version_policy { all { } }\n")
    ),
    ServingCase(name="healthy-old-version-is-not-served", version="2", files={"1/readme.txt": b"gone"}),
    ServingCase(name="zeros-before-the-version", version="01", expected=("R5", "R5:1")),
    ServingCase(name="letters-behind-the-version", version="1a", expected=("R4:1",)),
    ServingCase(
        name="latest-of-none", config=added("version_policy { latest { num_versions: 0 } }\n"), expected=("R5:9",)
    ),
    ServingCase(name="healthy-version-zero", version="0"),
    # R6
    ServingCase(name="name-of-another", config=added('name: "net"\n'), expected=("R6:9",)),
    # R7
    ServingCase(name="inner-name", inner="encoder", expected=("R7",)),
    ServingCase(name="not-a-package", wrapper=None, files={"1/model.pt2": b"not a zip"}, expected=("R7",)),
    # R8
    ServingCase(name="sources-only", compiled=False, expected=("R8",)),
)
