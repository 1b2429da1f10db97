"""Written contracts against `check`: every case of the end-to-end tests, judged by both, and nothing told apart."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from foundry.cases import Kit
from foundry.models import BY_NAME
from foundry.place import cache_dir
from foundry.registry import CASES

from aotidoctor.checks import registry
from aotidoctor.commands.contract import validator as what_is_copied
from aotidoctor.commands.contract.emit import _COPIED, cpp_header, json_schema, python_module
from aotidoctor.commands.contract.shippable import read_contract
from aotidoctor.model.case import Case, Options
from aotidoctor.model.errors import AotidoctorError
from aotidoctor.model.evidence import Severity
from aotidoctor.model.inputs import Container, Leaf, PlainValue, TensorDesc
from aotidoctor.model.jobs import InputsSource
from aotidoctor.triage.open_case import open_case, with_inputs
from aotidoctor.triage.state import Session
from aotidoctor.triage.static_checks import run_checks
from aotidoctor.worker.safe_load import load_inputs

pytestmark = pytest.mark.torch

# Of what the C++ function sees, the tensors, nothing can be wrong.
TREES = {"AD-IN-002", "AD-IN-003", "AD-IN-004", "AD-IN-005", "AD-IN-006", "AD-IN-009"}
# What no schema can say: how sizes agree, symbolic strides, the order of keys, whether a mask holds zeros and ones.
UNSAID = {"AD-IN-006", "AD-IN-014", "AD-IN-016"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A call, and the codes that `check` refuses it for."""

    name: str
    base: str
    case: Case
    reference: str | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    refused: frozenset[str]


def judged(kit: Kit, where: Path) -> Iterator[Judged]:
    """Every case whose package and inputs can be read. Packages that are the same are read once."""
    opened: dict[tuple[str, str | None], Case] = {}
    for case in CASES:
        folder = where / case.name
        folder.mkdir()
        call = case.make(kit, folder)
        given = list(call.options)
        reference = given[given.index("--reference") + 1] if "--reference" in given else None
        if call.inputs is None or "--model-name" in given or "--trust-pickle" in given:
            continue
        if not call.model.is_file():
            continue
        key = (hashlib.sha256(call.model.read_bytes()).hexdigest(), reference)
        if key not in opened:
            opened[key], _ = open_case(str(call.model), None, Options(reference=reference), os.environ)
        seen = with_inputs(replace(opened[key], inputs_path=str(call.inputs)))
        if seen.contract is None or seen.contract.args is None or seen.inputs is None:
            continue
        try:
            args, kwargs = load_inputs(InputsSource(path=str(call.inputs), plan=seen.inputs.plan))
        except Exception:  # the setup of the case would make it readable
            continue
        session = Session(case=seen, runner=None)
        run_checks(session)
        errors = {item.code for item in session.findings if item.severity is Severity.ERROR}
        yield Judged(
            name=case.name,
            base=case.base,
            case=seen,
            reference=reference,
            args=args,
            kwargs=kwargs,
            refused=frozenset(code for code in errors if code.startswith("AD-IN-")),
        )
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def calls(packages: Kit, tmp_path_factory: pytest.TempPathFactory) -> list[Judged]:
    with pytest.MonkeyPatch.context() as patch:
        # Only of the inputs is anything asked here.
        patch.setattr(registry, "CHECKS", tuple(check for check in registry.CHECKS if check.stage == "inputs"))
        found = list(judged(packages, tmp_path_factory.mktemp("cases")))
    assert len(found) > 200
    assert len([one for one in found if one.refused]) > 90
    return found


def module(text: str) -> ModuleType:
    """The written module. What is copied into each has the place of its source: a traceback, and coverage, name that."""
    made = ModuleType("written")
    source = what_is_copied.__file__
    before, _, common = Path(source).read_text(encoding="utf-8").partition(_COPIED)
    first = text[: text.index(common.rstrip())].count("\n") + 1
    last = first + common.rstrip().count("\n")
    for copied, nodes in groupby(ast.parse(text).body, lambda node: first <= node.lineno <= last):
        part = ast.Module(list(nodes), [])
        if copied:
            ast.increment_lineno(part, before.count("\n") + 2 - first)
        exec(compile(part, source if copied else "written.py", "exec", flags=annotations.compiler_flag), made.__dict__)
    return made


@cache
def written(kit: Kit, base: str, reference: str | None) -> ModuleType:
    wanted = read_contract(
        str(kit.package(base)),
        inputs=str(kit.sample_path(base)),
        reference=reference,
        model_name=None,
        environ=os.environ,
    )
    return module(python_module(wanted))


def test_python_refuses_what_check_refuses(calls: list[Judged], packages: Kit) -> None:
    wrong = []
    for one in calls:
        validator = written(packages, one.base, one.reference)
        found = validator.find_problems(one.args, one.kwargs)
        try:
            validator.validate_inputs(one.args, one.kwargs)
            raised = False
        except validator.ContractError:
            raised = True
        if not raised == bool(found) == bool(one.refused):
            wrong.append((one.name, sorted(one.refused), found))
    assert wrong == []


def test_python_sees_good_calls_as_right_at_once(packages: Kit) -> None:
    slow = []
    for base in BY_NAME:
        try:
            validator = written(packages, base, None)
        except AotidoctorError:
            continue
        args, kwargs = packages.call(base)
        validator.find_problems(args, kwargs)  # the names of dtypes are known from then on
        if not validator._fast_torch(args, kwargs):
            slow.append(base)
    assert slow == []


NESTED = {
    "a list": lambda x, y: ([x, y],),
    "a tuple": lambda x, y: ((x, y),),
    "one of them": lambda x, y: (x, [y]),
    "deeper": lambda x, y: ([[x], ((y,),)],),
    "one is missing": lambda x, y: ([x],),
    "one too many": lambda x, y: ([x, y, x],),
    "another dtype": lambda x, y: ([x, y.double()],),
}


def test_what_pytorch_computes_of_nested_sequences_is_right(packages: Kit) -> None:
    import torch
    from torch.utils._pytree import tree_leaves

    loaded = torch._inductor.aoti_load_package(str(packages.package("pointwise")))
    validator = written(packages, "pointwise", None)
    x, y = packages.call("pointwise")[0]
    expected = loaded(x, y)
    for name, nest in NESTED.items():
        args = nest(x, y)
        if name == "another dtype":
            assert [problem.cause for problem in validator.find_problems(args)] == ["input-count"]
            continue
        try:
            computes = bool(torch.equal(tree_leaves(loaded(*args))[0], tree_leaves(expected)[0]))
        except RuntimeError:
            computes = False
        assert computes == (validator.find_problems(args) == []), name
    endless = [x]
    endless.append(endless)
    assert validator.find_problems((endless,))


def test_arrays_are_judged_as_tensors(packages: Kit) -> None:
    validator = written(packages, "mlp", None)
    x, y = (tensor.numpy() for tensor in packages.call("mlp")[0])
    validator.validate_inputs((x, y))
    assert validator._fast_numpy((x, y), {})
    for args, cause in (
        ((x.astype("float64"), y), "input-dtype"),
        ((x, y[:4]), "input-shape-disagree"),
        ((x[:, ::2], y), "input-shape"),
        ((x.T.copy().T, y), "input-stride"),
        ((x, packages.call("mlp")[0][1]), "input-nontensor"),
    ):
        with pytest.raises(validator.ContractError) as raised:
            validator.validate_inputs(args)
        assert raised.value.cause == cause


def test_what_begins_elsewhere_than_the_code_asserts_is_refused(packages: Kit) -> None:
    import torch

    path, sample = str(packages.package("linear")), str(packages.sample_path("linear"))
    wanted = read_contract(path, inputs=sample, reference=None, model_name=None, environ=os.environ)
    args, kwargs = packages.call("linear")
    first = args[0]
    inside = torch.empty(first.numel() + 4, dtype=first.dtype)
    # A device of its own needs the alignment; a CPU reads at any address.
    for device, offsets in ((None, {1: True, 4: False}), ("cpu", {1: False})):
        leaves = tuple(
            replace(leaf, alignment=16, device_type=device) if leaf.input_index == 0 else leaf
            for leaf in wanted.contract.leaves
        )
        aligned = replace(wanted, contract=replace(wanted.contract, leaves=leaves))
        validator = module(python_module(aligned))
        assert ("true, 16}" in cpp_header(aligned)) is (device is None)
        for offset, refused in offsets.items():
            view = inside[offset : offset + first.numel()].view(first.shape)
            found = validator.find_problems((view, *args[1:]), kwargs)
            assert [problem.cause for problem in found] == (["input-stride"] if refused else [])
            assert validator._fast_torch((view, *args[1:]), kwargs) is not refused


def test_strict_refuses_what_is_out_of_range(packages: Kit) -> None:
    validator = written(packages, "mlp", None)
    x, y = packages.call("mlp")[0]
    validator.validate_inputs((x, y), strict=True)
    validator.validate_inputs((x[:0], y[:0]))
    with pytest.raises(validator.ContractError) as raised:
        validator.validate_inputs((x[:0], y[:0]), strict=True)
    assert raised.value.cause == "input-range"


def _library(kit: Kit, bases: list[str], where: Path) -> Path:
    """A library of operators, one per package: the causes of a list of tensors, joined."""
    import torch

    includes, functions = [], []
    for base in bases:
        link = where / f"{base}.pt2"
        link.symlink_to(kit.package(base))
        wanted = read_contract(
            str(link), inputs=str(kit.sample_path(base)), reference=None, model_name=None, environ=os.environ
        )
        header = cpp_header(wanted)
        (where / f"{base}.h").write_text(header)
        # A word that C++ or the header itself uses is another name there.
        space = re.findall(r"namespace aotidoctor_contract::(\w+)", header)[-1]
        includes.append(f'#include "{base}.h"')
        functions.append(
            f'  m.def("{base}", [](std::vector<at::Tensor> x) {{ std::string all; '
            f"for (auto& one : aotidoctor_contract::{space}::find_problems(x)) all += one.cause + ' '; return all; }});"
        )
    source = "\n".join(
        [*includes, "#include <torch/library.h>", "TORCH_LIBRARY(aotidoctor_contracts, m) {", *functions, "}"]
    )
    written_headers = [(where / f"{base}.h").read_text() for base in bases]
    key = hashlib.sha256("".join([torch.__version__, source, *written_headers]).encode()).hexdigest()[:12]
    made = cache_dir() / f"contracts-{key}.so"
    if not made.exists():
        home = Path(torch.__file__).parent
        folders = [home / "include", home / "include" / "torch" / "csrc" / "api" / "include"]
        (where / "all.cpp").write_text(source)
        command = ["g++", "-std=c++20", "-O0", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror=return-type"]
        command += [word for path in folders for word in ("-isystem", path)]
        command += [str(where / "all.cpp"), "-o", str(where / "all.so")]
        command += [f"-L{home / 'lib'}", "-lc10", "-ltorch_cpu"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
        assert "warning" not in done.stderr, done.stderr[-4000:]
        shutil.move(where / "all.so", made)
    return made


def test_cpp_refuses_what_check_refuses(calls: list[Judged], packages: Kit, tmp_path: Path) -> None:
    import torch

    bases = sorted({one.base for one in calls if not one.case.contract.readings} - {"bag"})
    torch.ops.load_library(str(_library(packages, bases, tmp_path)))
    wrong, seen = [], 0
    for one in calls:
        if one.refused & TREES or one.base not in bases:
            continue
        assert one.case.contract is not None
        named = {str(key): one.kwargs[str(key)] for key in one.case.contract.kwargs.keys}
        tensors = [leaf for leaf in torch.utils._pytree.tree_leaves((one.args, named)) if torch.is_tensor(leaf)]
        causes = getattr(torch.ops.aotidoctor_contracts, one.base)(tensors).split()
        seen += 1
        if bool(causes) != bool(one.refused):
            wrong.append((one.name, sorted(one.refused), causes))
    assert seen > 150
    assert wrong == []


# Keywords, macros, and names that the header itself uses.
NAMES = (
    "class",
    "int",
    "std",
    "at",
    "c10",
    "NULL",
    "linux",
    "int64_t",
    "Leaf",
    "validate_inputs",
    "1x",
    "model",
    "and",
)


def test_a_header_compiles_whatever_the_package_is_called(packages: Kit, tmp_path: Path) -> None:
    import torch

    for name in NAMES:
        link = tmp_path / f"{name}.pt2"
        link.symlink_to(packages.package("mlp"))
        wanted = read_contract(str(link), inputs=None, reference=None, model_name=None, environ=os.environ)
        (tmp_path / f"{name}.h").write_text(cpp_header(wanted))
    (tmp_path / "all.cpp").write_text("".join(f'#include "{name}.h"\n' for name in NAMES))
    include = Path(torch.__file__).parent / "include"
    command = ["g++", "-std=gnu++20", "-fsyntax-only", "-isystem", str(include), str(tmp_path / "all.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


def document(value: Any) -> Any:
    """An inputs document of a description."""
    match value:
        case Container(type="dict" | "ordereddict" | "defaultdict", children=children, keys=keys):
            return {str(key): document(child) for key, child in zip(keys, children, strict=True)}
        case Container(children=children):
            return [document(child) for child in children]
        case Leaf(value=TensorDesc() as tensor):
            return {
                "tensor": {
                    "dtype": tensor.dtype,
                    "shape": list(tensor.shape),
                    **({"stride": list(tensor.stride)} if tensor.stride is not None else {}),
                    "device": tensor.device,
                    "layout": tensor.layout,
                    "conj": tensor.conj,
                    "neg": tensor.neg,
                }
            }
        case Leaf(value=PlainValue() as plain):
            return plain.text
    return None


@cache
def schema_of(kit: Kit, base: str) -> dict[str, Any]:
    import jsonschema

    wanted = read_contract(
        str(kit.package(base)), inputs=str(kit.sample_path(base)), reference=None, model_name=None, environ=os.environ
    )
    schema = json.loads(json_schema(wanted))
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def test_the_schema_refuses_nothing_that_check_accepts(calls: list[Judged], packages: Kit) -> None:
    import jsonschema

    wrong = []
    for one in calls:
        schema = schema_of(packages, one.base)
        assert one.case.inputs is not None
        call = {"args": document(one.case.inputs.args), "kwargs": document(one.case.inputs.kwargs)}
        refused = not jsonschema.Draft202012Validator(schema).is_valid(call)
        # PyTorch computes it, since it flattens alike: a note for `check`. A schema knows one tree.
        nested = one.name == "tree_args_wrapped_again"
        keys = {item for item in one.refused if item == "AD-IN-002"} and one.name.endswith("order")
        unsaid = one.refused <= UNSAID or keys or one.name == "dtype_uint8_mask_255"
        if refused != bool(one.refused) and not (unsaid and not refused) and not nested:
            wrong.append((one.name, sorted(one.refused), refused))
    assert wrong == []
