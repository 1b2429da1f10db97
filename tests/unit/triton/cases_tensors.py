"""Cases of types, dims and batches: rules 18 to 24 and 31 to 33."""

from __future__ import annotations

from tests.unit.triton.cases_spec import TWO, config, tensor
from tests.unit.triton.harness import MLP, ServingCase

NAMED = config(("ARGS[0]", "ARGS[1]"))
ODD = {"wrapper": "odd_outputs", "release": "26.05"}
JOINT = """\
platform: "torch_aoti"
max_batch_size: 8
input [
  { name: "INPUT__0" data_type: TYPE_FP32 dims: [ 3 ] },
  { name: "INPUT__1" data_type: TYPE_FP32 dims: [ 5 ] }
]
output [
  { name: "OUTPUT__0" data_type: TYPE_FP32 dims: [ 3 ] }
]
instance_group [ { kind: KIND_CPU } ]
"""
STATIC = config(("INPUT__0",), ("OUTPUT__0",), dims="2, 3")


def odd(name: str, kind: str = "TYPE_FP32", dims: str = "1") -> str:
    """The healthy config of the package with odd outputs, and one output more, at line 7."""
    return STATIC.replace('  { name: "OUTPUT__0"', f'{tensor(name, dims, kind)},\n  {{ name: "OUTPUT__0"')


CASES = (
    # R18
    ServingCase(name="bfloat16-too-early", config=MLP.replace("TYPE_FP32", "TYPE_BF16", 1), expected=("R18:4",)),
    ServingCase(name="unsigned", config=MLP.replace("TYPE_FP32", "TYPE_UINT16", 1), expected=("R18:4",)),
    ServingCase(
        name="string-output", config=MLP[:-80] + MLP[-80:].replace("TYPE_FP32", "TYPE_STRING"), expected=("R18:7",)
    ),
    ServingCase(
        name="string-input", config=MLP.replace("TYPE_FP32", "TYPE_STRING", 1), release="26.11", expected=("R18:4",)
    ),
    # R19
    ServingCase(name="double-into-float", config=MLP.replace("TYPE_FP32", "TYPE_FP64", 1), expected=("R19:4",)),
    ServingCase(
        name="bfloat16-into-float",
        config=MLP.replace("TYPE_FP32", "TYPE_BF16", 1),
        release="26.11",
        expected=("R19:4",),
    ),
    # R20
    ServingCase(
        name="double-output", config=STATIC[:-90] + STATIC[-90:].replace("FP32", "FP64"), expected=("R20:6",), **ODD
    ),
    # R21
    ServingCase(name="other-size", config=NAMED.replace("-1, 1024", "-1, 1023", 1), expected=("R21:3",)),
    ServingCase(name="other-rank", config=NAMED.replace("-1, 1024", "-1, 4, 1024", 1), expected=("R21:3",)),
    ServingCase(name="wider", config=NAMED.replace("-1, 1024", "-1, -1", 1), expected=("R21:3",)),
    ServingCase(name="healthy-narrower", config=NAMED.replace("-1, 1024", "8, 1024")),
    ServingCase(
        name="beyond-the-range", config=NAMED.replace("-1, 1024", "65, 1024"), expected=("R21:3", "R21:4", "R22:7")
    ),
    ServingCase(
        name="two-sizes",
        config=NAMED.replace("-1, 1024", "8, 1024", 1).replace("-1, 1024", "9, 1024", 1),
        expected=("R21:4",),
    ),
    ServingCase(name="healthy-one-row", config=NAMED.replace("-1, 1024", "1, 1024"), notes=("R21:3", "R21:4", "R22:7")),
    ServingCase(name="batch-dim-written", config=MLP.replace("[ 1024 ]", "[ -1, 1024 ]", 1), expected=("R21:4",)),
    ServingCase(
        name="no-multiple",
        wrapper="div8",
        config=config(("INPUT__0",), dims="20").replace(
            '"RESULT" data_type: TYPE_FP32 dims: [ 20 ]', '"RESULT" data_type: TYPE_FP32 dims: [ -1 ]'
        ),
        expected=("R21:3",),
    ),
    ServingCase(
        name="healthy-multiple",
        wrapper="div8",
        config=config(("INPUT__0",), dims="24").replace(
            '"RESULT" data_type: TYPE_FP32 dims: [ 24 ]', '"RESULT" data_type: TYPE_FP32 dims: [ -1 ]'
        ),
    ),
    ServingCase(
        name="healthy-reshaped",
        config=NAMED.replace("dims: [ -1, 1024 ]", "dims: [ -1, 32, 32 ] reshape { shape: [ -1, 1024 ] }", 1),
    ),
    # R22
    ServingCase(
        name="output-of-another-size",
        config=STATIC[:-90] + STATIC[-90:].replace("2, 3", "2, 4"),
        expected=("R22:6",),
        **ODD,
    ),
    ServingCase(
        name="healthy-output-wider",
        config=STATIC[:-90] + STATIC[-90:].replace("2, 3", "-1, 3"),
        notes=("R22:6",),
        **ODD,
    ),
    # R23
    ServingCase(name="scalar-output", config=odd("RESULT[total]"), expected=("R23:6",), **ODD),
    ServingCase(name="number-output", config=odd("OUTPUT__2", "TYPE_INT64"), expected=("R23:6",), **ODD),
    # R24
    ServingCase(name="none-output", config=odd("RESULT[none]"), expected=("R24:6",), **ODD),
    ServingCase(name="healthy-without-none", config=STATIC, **ODD),
    ServingCase(name="healthy-after-none", config=odd("OUTPUT__4", dims="2, 3"), **ODD),
    # R31
    ServingCase(
        name="batches-of-a-static-package",
        config="max_batch_size: 8\n" + STATIC.replace("2, 3", "3"),
        expected=("R31:1",),
        **ODD,
    ),
    # R32
    ServingCase(name="more-than-compiled", config=MLP.replace("64", "65"), expected=("R32:2",)),
    ServingCase(name="healthy-as-many-as-compiled", config=MLP),
    ServingCase(name="healthy-joint", wrapper="joint", config=JOINT),
    ServingCase(
        name="output-without-the-batch",
        wrapper="joint",
        config=JOINT.replace('"OUTPUT__0"', '"OUTPUT__2"').replace("[ 3 ] }\n]\ni", "[ 1 ] }\n]\ni"),
        expected=("R22:8", "R32:8"),
    ),
    # R33
    ServingCase(name="batch-dim-left-out", config=NAMED.replace("-1, 1024", "1024", 1), expected=("R33:3",)),
    ServingCase(name="healthy-all-dims", config=config(TWO)),
)
