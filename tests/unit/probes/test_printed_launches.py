"""The probe that compiles again and prints launches: when it is asked, and what the lines mean. Nothing is of hardware."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from aotidoctor.localize.value_printer import launch_arguments
from aotidoctor.model.artifact import ExportedFacts
from aotidoctor.model.case import Options, TorchBuild
from aotidoctor.model.evidence import Severity
from aotidoctor.model.jobs import Recompile, Run
from aotidoctor.model.run import Request
from aotidoctor.probes import kernel_values, printed_launches, printed_values
from aotidoctor.probes.tool_effects import add_effect
from aotidoctor.triage import examine, recompile_and_bisect
from aotidoctor.triage.compile_cache import CompileCache
from aotidoctor.triage.open_case import open_case
from aotidoctor.triage.state import Session
from tests.cuda_sim.scenarios import PACKAGES
from tests.unit.probes.outcomes import history, outcome, raised
from tests.unit.probes.test_cuda_probes import ABORT, FAULT, IMA, gpu_case
from tests.unit.probes.test_probes import OK, finding, one

ADD, MUL, MM = "triton_poi_fused_add_0", "triton_poi_fused_mul_1", "aoti_torch_cuda_mm_out"
TOOLS = ("g++", "ptxas", "cuda.h")


def able(*, tools=TOOLS, packages=("triton",), gpus=1, cuda="13.0", reference=True, **options):
    made = gpu_case(tools=tools, gpus=gpus, reference="exported.pt2" if reference else None, **options)
    torch = TorchBuild(version="2.13.0", path="/t", cuda=cuda)
    host = replace(made.host, torch=torch, packages=dict.fromkeys(packages, "3.7"))
    return replace(made, host=host, reference=ExportedFacts(name="model") if reference else None)


def lines(*names, returned=True):
    """Level 3; the last launch returned, or not."""
    shown = [f"[ {when}_launch: {name} ]" for name in names for when in ("before", "after")]
    return "\n".join(shown if returned else shown[:-1]) + "\n"


def runs(free, held):
    """Outcomes by name, for the two probes."""
    pairs = (("free", free), ("blocking", held))
    return {f"printed_launches_{probe}#{at}": each for probe, all_ in pairs for at, each in enumerate(all_, 1)}


def failed(text, **more):
    return raised(IMA, stage="run1", stdout_tail=text, **more)


def done(text=""):
    return outcome(stdout_tail=text)


LATE = failed(lines(MM, ADD, MM, MUL))
HELD = failed(lines(MM, ADD, returned=False))
CRASHED = outcome(ending=ABORT, stage="run1", stderr_tail=f"what():  {IMA}\n", stdout_tail=HELD.stdout_tail)


def read(free, held, plain=FAULT):
    about = history(plain_run=plain, **runs(free, held))
    return one(printed_launches.read(able(), about, list(about.outcomes.values())[-1]))


def reason(*findings, case=None, plain=FAULT):
    return printed_launches.plan(case or able(), history(*findings, plain_run=plain)).reason


def test_it_compiles_with_names_only():
    plan = printed_launches.plan(able(), history(plain_run=FAULT))
    assert isinstance(plan, Request)
    assert (plan.job, plan.payload.printer, plan.payload.reference) == ("recompile", 3, "exported.pt2")
    assert printed_launches.values_request(able(), ADD).payload.printed_kernels == ADD


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"tools": ("g++", "cuda.h")}, ["ptxas"]),
        ({"tools": ("g++", "ptxas")}, ["cuda.h"]),
        ({"tools": ("ptxas", "cuda.h")}, ["a C++ compiler"]),
        ({"packages": ()}, ["Triton"]),
        ({"gpus": 0}, ["a GPU"]),
        ({"cuda": None}, ["a PyTorch with CUDA"]),
        ({"tools": (), "packages": ()}, ["Triton", "ptxas", "cuda.h", "a C++ compiler"]),
    ],
)
def test_what_is_missing_is_named_and_nothing_else(changes, missing):
    told = reason(case=able(**changes))
    named = [
        word for word in ("a GPU (", "a PyTorch with CUDA", "Triton (", "ptxas (", "cuda.h", "a C++") if word in told
    ]
    assert [word.rstrip(" (") for word in named] == [word.removesuffix(" compiler") for word in missing]


def test_without_a_program_there_is_nothing_to_compile():
    assert "--reference" in reason(case=able(reference=False))


def test_a_package_that_works_needs_no_launches():
    assert "returned" in reason(plain=OK)


@pytest.mark.parametrize(
    ("code", "kind"),
    [("AD-RUN-026", "kernel"), ("AD-RUN-027", "exception"), ("AD-RUN-028", "race"), ("AD-RUN-029", "moves-uncached")],
)
def test_what_a_cheaper_probe_has_told_is_not_asked_again_unless_the_user_does(code, kind):
    known = finding(code, kind, severity=Severity.WARN)
    assert code in reason(known)
    asked = able(rungs=("plain_run", "printed_launches"))
    assert isinstance(printed_launches.plan(asked, history(known, plain_run=FAULT)), Request)


def test_a_launch_trace_that_could_not_be_made_leaves_it_to_this_one():
    known = finding("AD-RUN-026", "unavailable", severity=Severity.INFO)
    assert isinstance(printed_launches.plan(able(), history(known, plain_run=FAULT)), Request)


def test_each_run_has_an_interpreter_of_its_own_and_half_of_them_blocking_launches():
    made = printed_launches.call_requests(able(), history(plain_run=FAULT), "made.pt2")
    assert [dict(request.env) for request in made] == [{}, {"CUDA_LAUNCH_BLOCKING": "1"}] * 2
    assert {(request.fresh, request.payload.package, request.payload.unbuffered) for request in made} == {
        (True, "made.pt2", True)
    }


@pytest.mark.parametrize("held", [HELD, CRASHED], ids=["raises", "aborts"])
def test_the_last_line_counts_with_blocking_launches_only(held):
    item = read([LATE, LATE], [held, held])
    assert (item.kind, item.subject, item.facts["symptom"]) == ("kernel", ADD, "cuda-illegal-access")
    assert item.facts["without_blocking"] == (MUL,)
    assert f"{MUL} (2 of 2 runs failed): launches are asynchronous" in item.message
    assert (item.facts["runs"], item.facts["failed"]) == ((2, 2), (2, 2))


def test_where_both_print_the_same_nothing_is_said_of_an_innocent_one():
    assert "innocent" not in read([HELD, HELD], [HELD, HELD]).message


def test_an_operator_is_one():
    held = failed(lines(MM, returned=False))
    assert (read([LATE, LATE], [held, held]).kind, read([LATE, LATE], [held, held]).subject) == ("extern", MM)


@pytest.mark.parametrize(
    ("free", "held", "kind"),
    [
        ([done(lines(MM, ADD))] * 2, [done(lines(MM, ADD))] * 2, "agrees"),
        ([LATE, LATE], [done(lines(MM, ADD))] * 2, "vanishes"),
        ([LATE, LATE], [failed(lines(MM, ADD))] * 2, "elsewhere"),
        ([LATE, LATE], [HELD, done(lines(MM, ADD))], "undecided"),
        ([LATE, LATE], [HELD, failed(lines(MM, returned=False))], "undecided"),
        ([failed(""), failed("")], [failed(""), failed("")], "unavailable"),
        ([done(), done()], [done(), done()], "unavailable"),
    ],
)
def test_what_names_no_kernel(free, held, kind):
    item = read(free, held)
    assert (item.kind, item.subject, "kernel" in item.facts) == (kind, None, False)


def test_another_failure_than_the_packages_names_no_kernel():
    other = raised("CUDA out of memory. Tried to allocate 2.00 GiB", stdout_tail=HELD.stdout_tail)
    assert read([other, other], [other, other]).kind == "undecided"


@pytest.mark.parametrize(
    ("text", "stage", "expected"), [(lines(ADD), "run1", True), ("", "load", None), ("", "run1", False)]
)
def test_whether_the_printer_acted(text, stage, expected):
    ran = raised(IMA, stage=stage, stdout_tail=text)
    ran = replace(ran, request=replace(ran.request, payload=Run(unbuffered=True)))
    assert add_effect(able(), ran).took_effect is expected


BLOCK = """[  {when}_launch - {kernel} - {name}  ]:
-2 {high}
[ CUDAFloatType{{2}} ]
Number of elements: 2
Dtype: float32
Mean value: -0.5
Min value: -2
Max value: {high}
Device: cuda:0
Size: [2]
Stride: [1]
"""


def block(when, kernel, name, high="1"):
    return BLOCK.format(when=when, kernel=kernel, name=name, high=high)


def test_the_arguments_are_those_of_the_last_launch_before_it_was_made():
    size = f"[  before_launch - {ADD} - {ADD}_xnumel: %s  ]\\n"
    earlier = block("before", ADD, "buf0") + size % 3 + block("after", ADD, "buf0")
    last = block("before", ADD, "buf1", "7") + size % 5
    shown = launch_arguments(earlier + last, ADD)
    assert (shown[0].partition(":")[0], shown[-1]) == ("buf1", f"{ADD}_xnumel = 5")
    assert "from -2 to 7" in shown[0]
    assert launch_arguments(earlier + last + block("after", ADD, "buf1", "9"), ADD) == shown
    assert launch_arguments(earlier, MUL) == ()


def test_the_values_are_those_of_the_kernel_that_was_named():
    named = read([LATE, LATE], [HELD, HELD])
    ran = replace(failed(block("before", ADD, "buf1")), request=replace(HELD.request, probe=printed_launches.VALUES))
    item = one(printed_launches.read(able(), history(named, plain_run=FAULT), ran))
    assert (item.kind, item.subject, len(item.facts["arguments"])) == ("values", ADD, 1)
    silent = replace(ran, stdout_tail="")
    assert one(printed_launches.read(able(), history(named, plain_run=FAULT), silent)).kind == "unavailable"


class Machine:
    """Plays the children: compiles write ``made``, calls fail as planned."""

    def __init__(self, free, held, values="", compiles=True):
        self.free, self.held, self.values, self.compiles = free, held, values, compiles
        self.asked = []

    def run(self, request):
        self.asked.append(
            (request.job, getattr(request.payload, "printer", None) or getattr(request.payload, "level", None))
        )
        return replace(self._answer(request), id=f"R{len(self.asked)}", request=request)

    def _answer(self, request):
        if request.job == "recompile":
            if not self.compiles:
                return raised("RuntimeError: Triton Error [CUDA]: an illegal memory access", stage="compile")
            with open(request.payload.target, "w") as file:
                file.write("made")
            return outcome(result={"seconds": 1.0, "switchable": {}})
        if request.probe == printed_launches.VALUES:
            return failed(self.values)
        return self.held if "blocking" in request.probe else self.free


@pytest.fixture
def climbed(tmp_path, monkeypatch):
    def session(machine, *, unfit=None):
        monkeypatch.setattr(recompile_and_bisect, "compiler_of", lambda _: "g++")
        monkeypatch.setattr(examine, "why_unfit", lambda *_: unfit)
        it = Session(case=able(), runner=machine)
        it.outcomes["plain_run"] = FAULT
        examine.print_launches(it, CompileCache(tmp_path / "cache"))
        return it

    return session


def kinds(session):
    return [(item.code, item.kind) for item in session.findings]


def test_the_chain_names_the_kernel_and_then_asks_for_its_arguments(climbed):
    machine = Machine(LATE, HELD, block("before", ADD, "buf1"))
    session = climbed(machine)
    assert kinds(session) == [("AD-RUN-034", "kernel"), ("AD-RUN-034", "values")]
    assert machine.asked == [("recompile", 3), *[("printed", 3)] * 4, ("recompile", 2), ("printed", 2)]


def test_where_no_kernel_is_named_nothing_more_is_compiled(climbed):
    machine = Machine(done(lines(MM, ADD)), done(lines(MM, ADD)))
    session = climbed(machine)
    assert kinds(session) == [("AD-RUN-034", "agrees")]
    assert session.findings[0].severity is Severity.WARN
    assert ("recompile", 2) not in machine.asked


def test_a_compile_that_faults_itself_is_told(climbed):
    session = climbed(Machine(LATE, HELD, compiles=False))
    assert kinds(session) == [("AD-RUN-017", "failed")]
    assert "illegal memory access" in session.findings[0].observed


def test_a_package_of_other_kernels_is_not_called(climbed):
    machine = Machine(LATE, HELD)
    session = climbed(machine, unfit="compiled here, the program has other kernels")
    assert (kinds(session), machine.asked) == ([], [("recompile", 3)])
    assert "other kernels" in session.not_checked[-1].reason


def test_the_gpu_is_part_of_the_key():
    keys = set()
    for name, kernel in (("A", None), ("B", None), ("A", ADD)):
        case = able()
        gpu = replace(case.host.gpus[0], name=name)
        case = replace(case, host=replace(case.host, gpus=(gpu,), tools={"g++": __file__}))
        session = Session(case=case, runner=None)
        keys.add(
            recompile_and_bisect.key_for(
                session,
                Request(
                    probe="x", job="recompile", payload=Recompile(reference="", config=None, printed_kernels=kernel)
                ),
            )
        )
    assert len(keys) == 3


# Values on CUDA: where NaN comes from, by a package compiled here with level 2.

NAN = finding("AD-RUN-005", "nan-output", clean=True)


def test_nan_of_a_package_for_cuda_is_followed_by_the_printer_where_it_can_be_compiled():
    plan = printed_values.plan(able(), history(NAN, plain_run=OK))
    assert (plan.job, plan.payload.printer) == ("recompile", 2)
    assert printed_values.call_request(able(), "made.pt2", 2).fresh
    told = printed_values.plan(able(tools=("g++", "cuda.h")), history(NAN, plain_run=OK)).reason
    assert ("ptxas (" in told, "Triton (" in told, "by hand" in told) == (True, False, True)


def test_numbers_that_are_tuned_anew_are_not_compared():
    differs = finding("AD-RUN-011", "differs")
    assert "tuned again" in printed_values.plan(able(), history(differs, plain_run=OK)).reason


def test_the_triton_kernel_that_writes_nan_is_named_and_its_constants_are_inputs():
    kernel = "triton_poi_fused_addmm_relu_0"
    case, _ = open_case(str(PACKAGES / "mlp.pt2"), None, Options(), os.environ)
    shown = (
        block("before", MM, "buf0")
        + block("after", MM, "buf0", "6")
        + block("before", kernel, "buf1", "6")
        + block("before", kernel, "l1_bias")
        + block("after", kernel, "buf1", "nan")
        + block("after", kernel, "l1_bias")
    )
    plain = outcome(outputs=[[{"nan": 3}]])
    ran = outcome("printed_values", outputs=[[{"nan": 3, "digest": "else"}]], result={"printed": shown})
    found = printed_values.read(case, history(plain_run=plain), ran)[0]
    assert (found.kind, found.facts["kernel"], found.facts["method"]) == ("nan", kernel, "value printer")


def test_what_a_triton_kernel_writes_in_place_is_not_taken_for_the_operators_before_it():
    assert "in-place" in kernel_values.plan(able(), history(NAN, plain_run=OK)).reason
    without = able()
    without = replace(without, contract=replace(without.contract, kernels=without.contract.kernels[:1]))
    assert isinstance(kernel_values.plan(without, history(NAN, plain_run=OK)), Request)
