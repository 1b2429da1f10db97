"""Cases of the call spec and of names: rules 9 to 17 and 25 to 28."""

from __future__ import annotations

from tests.unit.triton.harness import ServingCase
from tests.unit.triton.specs import T, call, dic, lis, ordered, repacked, spec, tup

Y = "1/model.pt2"
KWARGS = call(T, mask=T)
UNSORTED = call(dic({"b": T, "a": T}))


def tensor(name: str, dims: str = "-1, 1024", kind: str = "TYPE_FP32", more: str = "") -> str:
    return f'  {{ name: "{name}" data_type: {kind} dims: [ {dims} ]{more} }}'


def config(
    inputs: tuple[str, ...], outputs: tuple[str, ...] = ("RESULT",), *, dims: str = "-1, 1024", more: str = ""
) -> str:
    """A config without batching: inputs from line 3 on, then the line of ``]``, then the outputs."""
    lines = ['platform: "torch_aoti"', "input ["]
    lines += ",\n".join(tensor(name, dims) for name in inputs).split("\n")
    lines += ["]", "output ["]
    lines += ",\n".join(tensor(name, dims) for name in outputs).split("\n")
    return "\n".join([*lines, "]", "instance_group [ { kind: KIND_CPU } ]"]) + f"\n{more}"


def case(name: str, package: bytes, **changes) -> ServingCase:
    """A case on ``package``; the wrapper of a case is another way to give one."""
    files = {Y: package, **changes.pop("files", {})}
    return ServingCase(name=name, wrapper=None, files=files, **{"release": "26.05", **changes})


ONE, TWO = ("INPUT__0",), ("INPUT__0", "INPUT__1")
NAMED = config(("ARGS[0]", "ARGS[1]"))

CASES = (
    # R9
    case("ordered-dict", repacked("mlp", call(ordered({"a": T, "b": T}))), config=config(TWO), expected=("R9",)),
    case("ordered-dict-in-the-result", repacked("mlp", None, spec(ordered({"y": T}))), config=NAMED, expected=("R9",)),
    case("ordered-dict-26.04", repacked("mlp", call(ordered({"a": T, "b": T}))), config=config(TWO), release="26.04"),
    ServingCase(name="defaultdict", wrapper="defaultdict", release="26.05", config=config(TWO), expected=("R9",)),
    # R10
    case("keywords-only", repacked("mlp", call(x=T, y=T)), config=config(TWO), expected=("R10",)),
    case("empty-list", repacked("mlp", call(T, T, lis())), config=config(TWO), expected=("R10",)),
    case("healthy-lists", repacked("mlp", call(lis(T), tup(T))), config=config(("ARGS[0][0]", "ARGS[1][0]"))),
    # R11
    case("number-as-key", repacked("mlp", call(dic({0: T, 1: T}))), config=config(TWO), expected=("R11",)),
    case("healthy-number-as-text", repacked("mlp", call(dic({"0": T, "1": T}))), config=config(TWO)),
    # R12
    case(
        "keyword-in-brackets", repacked("mlp", KWARGS), config=config(("ARGS[0]", "KWARGS[mask]")), expected=("R12:4",)
    ),
    case("healthy-keyword", repacked("mlp", KWARGS), config=config(("ARGS[0]", "KWARGSmask"))),
    case("healthy-keyword-by-number", repacked("mlp", KWARGS), config=config(TWO)),
    case("keyword-in-brackets-26.04", repacked("mlp", KWARGS), config=config(("A", "KWARGS[mask]")), release="26.04"),
    # R13
    case(
        "nested-keyword", repacked("mlp", call(T, opts=dic({"a": T, "b": T}))), config=config(TWO), expected=("R13:4",)
    ),
    ServingCase(
        name="nested-keyword-of-three",
        wrapper="nested_kwargs",
        release="26.05",
        config=config(("INPUT__0", "INPUT__1", "INPUT__2"), dims="2, 3"),
        expected=("R13:4",),
    ),
    # R14
    ServingCase(
        name="number-as-argument",
        wrapper="trail_int",
        release="26.05",
        config=config(TWO, dims="4, 4"),
        expected=("R14:4",),
    ),
    # R15
    case("empty-dict", repacked("mlp", call(T, T, dic({}))), config=config(TWO), expected=("R15",)),
    ServingCase(
        name="after-an-empty-dict",
        wrapper="empty_output",
        release="26.05",
        config=config(ONE, ("OUTPUT__0", "OUTPUT__1", "RESULT[2]"), dims="2, 3"),
        expected=("R15:7", "R15:8"),
    ),
    ServingCase(
        name="healthy-before-an-empty-dict",
        wrapper="empty_output",
        release="26.05",
        config=config(ONE, ("OUTPUT__0",), dims="2, 3"),
    ),
    # R16
    ServingCase(name="one-input-missing", release="26.05", config=config(("ARGS[0]",)), expected=("R16:3",)),
    ServingCase(
        name="one-input-too-many",
        release="26.05",
        config=config(("ARGS[0]", "ARGS[1]", "ARGS[2]")),
        expected=("R16:3", "R17:5"),
    ),
    ServingCase(
        name="two-inputs-26.04",
        wrapper="nested_kwargs",
        release="26.04",
        config=config(TWO, dims="2, 3"),
        expected=("R16",),
    ),
    ServingCase(name="healthy-two-inputs-26.04", config=NAMED, release="26.04"),
    # R17
    ServingCase(name="small-letters", release="26.05", config=config(("args[0]", "ARGS[1]")), expected=("R17:3",)),
    ServingCase(name="zero-before", release="26.05", config=config(("INPUT__00", "INPUT__1")), expected=("R17:3",)),
    ServingCase(name="one-underscore", release="26.05", config=config(TWO, ("OUTPUT_0",)), expected=("R17:7",)),
    ServingCase(name="result-of-one", release="26.05", config=config(TWO, ("RESULT[0]",)), expected=("R17:7",)),
    case("one-tuple", repacked("mlp", None, spec(tup(T))), config=config(TWO, ("RESULT",)), expected=("R17:7",)),
    case("healthy-one-tuple", repacked("mlp", None, spec(tup(T))), config=config(TWO, ("RESULT[0]",))),
    case("quoted-key", repacked("mlp", UNSORTED), config=config(("ARGS[0]['b']", "ARGS[0][a]")), expected=("R17:3",)),
    ServingCase(name="number-beyond-26.04", release="26.04", config=config(("x__0", "x__2")), expected=("R17:4",)),
    ServingCase(name="healthy-any-name-26.04", release="26.04", config=config(("x", "y"), ("z",))),
    # R25
    ServingCase(name="two-names-of-one", release="26.05", config=config(("ARGS[0]", "INPUT__0")), expected=("R25:4",)),
    ServingCase(name="name-twice", release="26.05", config=config(("ARGS[0]", "ARGS[0]")), expected=("R25:4",)),
    ServingCase(name="number-twice-26.04", release="26.04", config=config(("a__1", "b__1")), expected=("R25:4",)),
    # R26
    ServingCase(name="healthy-mixed", release="26.05", config=config(("ARGS[0]", "INPUT__1")), notes=("R26:3",)),
    ServingCase(
        name="swapped-26.04", release="26.04", config=config(("ARGS[1]", "ARGS[0]")), expected=("R26:3", "R26:4")
    ),
    ServingCase(
        name="number-beside-a-name-26.04",
        release="26.04",
        config=config(("INPUT__1", "ARGS[0]")),
        expected=("R26:3", "R26:4"),
    ),
    ServingCase(name="healthy-numbers-26.04", release="26.04", config=config(("INPUT__1", "INPUT__0"))),
    # R27
    case(
        "comments-in-the-alphabets-order",
        repacked("mlp", UNSORTED),
        config=config(TWO)
        .replace("] },\n", "] },  # a\n", 1)
        .replace('{ name: "INPUT__1"', '# b\n  { name: "INPUT__1"'),
        expected=("R27:3", "R27:5"),
    ),
    case(
        "healthy-comments-that-are-right",
        repacked("mlp", UNSORTED),
        config=config(TWO).replace("] },\n", "] },  # b\n", 1).replace("] }\n", "] }  # opts['a']: a\n", 1),
    ),
    case("healthy-unsorted-without-comments", repacked("mlp", UNSORTED), config=config(TWO), notes=("R27",)),
    case(
        "renumbered-in-the-new-version",
        repacked("mlp", UNSORTED),
        files={"2/model.pt2": repacked("mlp", call(dic({"a": T, "b": T})))},
        config=config(TWO),
        expected=("R27:3",),
    ),
    case(
        "healthy-renumbered-but-named",
        repacked("mlp", UNSORTED),
        files={"2/model.pt2": repacked("mlp", call(dic({"a": T, "b": T})))},
        config=config(("ARGS[0][a]", "ARGS[0][b]")),
    ),
    # R28
    case(
        "key-with-a-space",
        repacked("mlp", call(dic({"k k": T, "b": T}))),
        config=config(("ARGS[0][k k]", "ARGS[0][b]")),
        expected=("R28:3",),
    ),
    case("healthy-key-with-a-space", repacked("mlp", call(dic({"k k": T, "b": T}))), config=config(TWO)),
    case(
        "two-paths-of-one-name",
        repacked("mlp", call(dic({"a": dic({"b": T}), "a][b": T}))),
        config=config(("INPUT__1",)),
        expected=("R28",),
    ),
)
