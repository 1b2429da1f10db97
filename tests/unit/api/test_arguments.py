"""What the functions of the library take: the options of the commands by their names, and nothing that is only alike."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path

import pytest

import aotidoctor
from aotidoctor.api.option_arguments import options_of
from aotidoctor.cli import COMMANDS
from aotidoctor.cli.lazy import load
from aotidoctor.commands.case_options import option_words
from aotidoctor.model.case import Tolerance

CUDA = Path(__file__).parents[2] / "data" / "cuda" / "mlp.pt2"
# What only says how a report is shown; a report of the library is shown by its methods.
SHOWING = {"format_", "for_", "json", "report", "output", "output_dir", "quiet", "verbose", "fail_on", "redact"}
COMMAND_OF = {name: name for name in ("check", "classify", "compare", "compat", "inspect")} | {"diagnose": "run"}


@pytest.mark.parametrize("name", COMMAND_OF)
def test_the_options_of_the_command_are_the_keywords_of_the_function(name):
    command = load(COMMAND_OF[name], COMMANDS[COMMAND_OF[name]])
    options = {param.name: max(param.opts, key=len).removeprefix("--").replace("-", "_") for param in command.params}
    wanted = {given if given.isidentifier() and given != "from" else own for own, given in options.items()}
    wanted = {word for word in wanted if word not in SHOWING and word not in {"format", "for", "help"}}
    assert wanted <= set(inspect.signature(getattr(aotidoctor, name)).parameters)


GOOD = {"package": str(CUDA)}
WRONG = [
    (aotidoctor.check, {"package": 3}, "package", "int 3"),
    (aotidoctor.check, {"package": ""}, "package", "str ''"),
    (aotidoctor.check, {"package": b"model.pt2"}, "package", "bytes"),
    (aotidoctor.check, {**GOOD, "inputs": 3}, "inputs", "int 3"),
    (aotidoctor.check, {**GOOD, "args": 3}, "args", "int 3"),
    (aotidoctor.check, {**GOOD, "kwargs": [1]}, "kwargs", "list"),
    (aotidoctor.check, {**GOOD, "kwargs": {1: 2}}, "kwargs", "the key int 1"),
    (
        aotidoctor.check,
        {**GOOD, "inputs": "sample.pt", "args": ()},
        "inputs",
        "str 'sample.pt' in addition to args or kwargs",
    ),
    (aotidoctor.check, {**GOOD, "options": {"seed": 1}}, "options", "dict"),
    (aotidoctor.check, {**GOOD, "environ": 1}, "environ", "int 1"),
    (aotidoctor.check, {**GOOD, "generate": 1}, "generate", "int 1"),
    (aotidoctor.check, {**GOOD, "model_name": ""}, "model_name", "str ''"),
    (aotidoctor.check, {**GOOD, "custom_op_library": ["a.so", 2]}, "custom_op_library[1]", "int 2"),
    (aotidoctor.diagnose, {**GOOD, "seed": -1}, "seed", "int -1"),
    (aotidoctor.diagnose, {**GOOD, "seed": True}, "seed", "bool True"),
    (aotidoctor.diagnose, {**GOOD, "threads": 2**20}, "threads", "int 1048576"),
    (aotidoctor.diagnose, {**GOOD, "timeout": 0}, "timeout", "int 0"),
    (aotidoctor.diagnose, {**GOOD, "timeout": float("nan")}, "timeout", "float nan"),
    (aotidoctor.diagnose, {**GOOD, "budget": "soon"}, "budget", "str 'soon'"),
    (aotidoctor.diagnose, {**GOOD, "probes": 7}, "probes", "int 7"),
    (aotidoctor.diagnose, {**GOOD, "rtol": "much"}, "rtol", "str 'much'"),
    (aotidoctor.diagnose, {**GOOD, "atol": {"result": -1}}, "atol['result']", "str 'result:-1'"),
    (aotidoctor.compat, {"packages": []}, "packages", "no path"),
    (aotidoctor.compat, {"packages": str(CUDA), "host": [None]}, "host[0]", "None"),
    (aotidoctor.compat, {"packages": str(CUDA), "torch": 2.14}, "torch", "float 2.14"),
    (aotidoctor.classify, {"log": 3}, "log", "int 3"),
    (aotidoctor.classify, {"log": open(__file__)}, "log", "TextIOWrapper opened as text"),  # noqa: SIM115
    (aotidoctor.inspect, {"package": None}, "package", "None"),
    (aotidoctor.contract, {"package": 1.5}, "package", "float 1.5"),
]


@pytest.mark.parametrize(
    ("function", "given", "where", "observed"), WRONG, ids=[f"{f.__name__}-{w}" for f, _, w, _ in WRONG]
)
def test_a_wrong_value_is_named_with_what_was_expected(function, given, where, observed):
    with pytest.raises(aotidoctor.ArgumentError) as raised:
        function(**given)
    error = pickle.loads(pickle.dumps(raised.value))
    assert (error.where, error.observed) == (where, observed)
    assert error.expected
    assert isinstance(error, aotidoctor.UsageError)
    assert str(error) == f"{where}: observed {observed}, expected {error.expected}"


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (aotidoctor.diagnose, {"inputs": "sample.pt", "generate": True}),
        (aotidoctor.diagnose, {"host": "debian-13"}),
        (aotidoctor.compare, {"args": (1,)}),
        (aotidoctor.compare, {"reference": "exported.pt2"}),
        (aotidoctor.compare, {"from_": "report.json", "args": ()}),
        (aotidoctor.classify, {"log": b"", "inputs": "sample.pt"}),
    ],
)
def test_what_cannot_be_meant_together(function, given):
    with pytest.raises(aotidoctor.UsageError):
        function(**({} if function == aotidoctor.classify else GOOD), **given)


def test_an_unknown_keyword_is_pythons_own_error():
    with pytest.raises(TypeError, match="inptus"):
        aotidoctor.check(str(CUDA), inptus=3)


def test_options_become_fields_and_words():
    asked = {
        "custom_op_library": Path("ops.so"),
        "probes": ["plain_run", "again"],
        "skip_probes": "values,growth",
        "rtol": {"result[0]": 1e-3},
        "atol": 1e-5,
        "timeout": 5,
        "seed": 0,
        "shrink": True,
        "model_name": None,
    }
    options = options_of(None, asked)
    assert options.custom_op_libraries == ("ops.so",)
    assert options.rungs == ("plain_run", "again")
    assert options.skip_rungs == ("values", "growth")
    assert options.tolerances.rtol == (Tolerance(output="result[0]", value=1e-3),)
    assert options.tolerances.atol == (Tolerance(output=None, value=1e-5),)
    assert (options.timeout, options.seed, options.shrink) == (5.0, 0, True)
    said = "--custom-op-library ops.so --probes plain_run,again --skip-probes values,growth --rtol result[0]:0.001"
    assert " ".join(option_words(asked)) == f"{said} --atol 1e-05 --timeout 5 --shrink"


def test_keywords_replace_what_options_hold():
    base = aotidoctor.Options(timeout=7.0, device="cpu")
    options = options_of(base, {"timeout": 60.0, "device": "cuda", "seed": 3})
    assert (options.timeout, options.device, options.seed) == (7.0, "cuda", 3)
