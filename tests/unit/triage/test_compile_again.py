"""The chains of compiles and calls, against a compiler that is played: a package is a file that says how it was made."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from aotidoctor.model.artifact import ExportedFacts
from aotidoctor.model.evidence import Evidence, Severity
from aotidoctor.model.report import EventKind
from aotidoctor.model.run import TimedOut
from aotidoctor.triage import examine, recompile_and_bisect
from aotidoctor.triage.compile_cache import CompileCache
from aotidoctor.triage.state import Session
from tests.unit.probes.outcomes import case, outcome, raised

LOWERINGS = [{"backend": "inductor", "name": f"n{at}", "target": f"aten.op{at}.default"} for at in range(10)]
PASSES = [{"backend": "inductor", "name": "fuse"}]


class Compiler:
    """Plays the children. Wrong where lowering ``wrong`` is on; None: never wrong. ``dies`` are maxima that crash it."""

    def __init__(self, *, wrong=None, dies=(), broken=False):
        self.wrong, self.dies, self.broken = wrong, dies, broken
        self.compiled, self.called = [], 0

    def run(self, request):
        return replace(self._answer(request), id=f"R{len(self.compiled) + self.called}", request=request)

    def _answer(self, request):
        if request.job == "recompile":
            switch = request.payload.bisect
            self.compiled.append(None if switch is None else (switch["subsystem"], switch["max"]))
            if self.broken:
                return raised("LoweringException: no", stage="compile")
            if switch is not None and switch["max"] in self.dies:
                return outcome(ending=TimedOut(limit=1), stage="compile")
            Path(request.payload.target).write_text(json.dumps(switch))
            return outcome(result={"seconds": 7.0, "switchable": {"lowerings": LOWERINGS, "post_grad_passes": PASSES}})
        self.called += 1
        switch = json.loads(Path(request.payload.package).read_text())
        on = switch is None or switch["subsystem"] != "lowerings" or switch["max"] >= (self.wrong or 0)
        agrees = self.wrong is None or not on
        leaf = {"path": "result", "agrees": agrees, "max_abs_diff": 0.0 if agrees else 0.25}
        return outcome(
            outputs=[[{"digest": "right" if agrees else "wrong"}]],
            result={"reference": {"agrees": agrees, "outputs": [leaf]}},
        )


@pytest.fixture
def cache(tmp_path):
    return CompileCache(tmp_path / "cache")


def session_of(tmp_path, compiler, *, tools=True, deadline=None, **options):
    program, gxx = tmp_path / "exported.pt2", tmp_path / "g++"
    program.write_bytes(b"program")
    gxx.touch(exist_ok=True)
    os.utime(gxx, (1, 1))
    made = case(reference=str(program), **{"localize": True, **options})
    host = replace(made.host, tools={"g++": str(gxx) if tools else None})
    made = replace(made, reference=ExportedFacts(name="model"), host=host)
    events = []
    session = Session(case=made, runner=compiler, on_event=events.append, deadline=deadline)
    session.outcomes["plain_run"] = outcome(outputs=[[{"digest": "wrong"}]])
    session.outcomes["reference"] = outcome("reference")
    session.add(
        [
            Evidence(
                code="AD-RUN-011", kind="differs", severity=Severity.ERROR, subject="result", observed="", expected=""
            )
        ]
    )
    return session, events


def told(session, code):
    return next((item for item in session.findings if item.code == code), None)


def test_right_when_compiled_here_and_kept(tmp_path, cache):
    compiler = Compiler()
    for _ in range(2):
        session, _ = session_of(tmp_path, compiler)
        made = recompile_and_bisect.recompile(session, cache)
        assert (made.kind, told(session, "AD-RUN-017").kind) == ("agrees", "agrees")
    assert (compiler.compiled, compiler.called) == ([None], 2)
    assert len(made.steps["lowerings"]) == 10
    assert "agrees when compiled again here" in recompile_and_bisect.recompile_proof(session)["numeric-difference"]
    recompile_and_bisect.bisect(session, made, cache)
    assert told(session, "AD-RUN-018") is None


def test_a_damaged_package_is_compiled_again(tmp_path, cache):
    compiler = Compiler()
    made = recompile_and_bisect.recompile(session_of(tmp_path, compiler)[0], cache)
    Path(made.package).write_text("{")
    assert recompile_and_bisect.recompile(session_of(tmp_path, compiler)[0], cache).kind == "agrees"
    assert compiler.compiled == [None, None]


def test_another_program_is_another_package(tmp_path, cache):
    compiler = Compiler()
    recompile_and_bisect.recompile(session_of(tmp_path, compiler)[0], cache)
    session, _ = session_of(tmp_path, compiler)
    (tmp_path / "exported.pt2").write_bytes(b"another")
    recompile_and_bisect.recompile(session, cache)
    assert compiler.compiled == [None, None]


def test_without_a_compiler_it_says_what_to_install(tmp_path, cache, monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    session, _ = session_of(tmp_path, Compiler(), tools=False)
    assert recompile_and_bisect.recompile(session, cache) is None
    assert "apt-get install g++" in session.not_checked[-1].reason


def test_a_compile_that_fails(tmp_path, cache):
    session, _ = session_of(tmp_path, Compiler(broken=True))
    assert recompile_and_bisect.recompile(session, cache) is None
    assert told(session, "AD-RUN-017").kind == "failed"
    assert list((cache.root / "recompiled").iterdir()) == []


def test_a_cache_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").write_text("")
    session, _ = session_of(tmp_path, Compiler())
    assert recompile_and_bisect.recompile(session, CompileCache(tmp_path / "file")) is None
    assert "nothing can be kept" in session.not_checked[-1].reason


def test_a_probe_that_is_skipped(tmp_path, cache):
    compiler = Compiler()
    session, _ = session_of(tmp_path, compiler, skip_rungs=("recompiled",))
    assert recompile_and_bisect.recompile(session, cache) is None
    assert (compiler.compiled, session.not_checked[-1].reason) == ([], "--skip-probes")


def search(tmp_path, cache, compiler, **more):
    session, events = session_of(tmp_path, compiler, **more)
    made = recompile_and_bisect.recompile(session, cache)
    recompile_and_bisect.bisect(session, made, cache)
    return session, events


def test_the_lowering_is_found(tmp_path, cache):
    compiler = Compiler(wrong=6)
    session, events = search(tmp_path, cache, compiler)
    found = told(session, "AD-RUN-018")
    assert (found.kind, found.subject, found.severity) == ("found", "aten.op6.default", Severity.ERROR)
    assert (found.facts["number"], found.facts["steps"], found.facts["max"]) == (7, 10, 5)
    assert found.facts["workaround"].endswith("TORCH_BISECT_SUBSYSTEM=lowerings TORCH_BISECT_MAX=5")
    assert 4 <= found.facts["runs"] <= 5
    assert len(compiler.compiled) == found.facts["runs"] + 1
    assert recompile_and_bisect.recompile_proof(session) == {}
    assert "lowering 7 of 10 (aten.op6.default)" in recompile_and_bisect.bisect_proof(session)["codegen-bug"]
    lines = [event for event in events if event.kind is EventKind.PROBE_END and event.name.startswith("bisect")]
    assert len(lines) == found.facts["runs"]
    assert lines[0].name == "bisect lowering 1/5"
    assert lines[0].verdict == "none of 10 lowerings: good"
    assert [entry.name for entry in (cache.root / "recompiled").iterdir()] == [
        Path(recompile_and_bisect.recompile(session, cache).package).parent.name
    ]


def test_the_next_call_shows_only_that_it_heals(tmp_path, cache):
    search(tmp_path, cache, Compiler(wrong=6))
    again = Compiler(wrong=6)
    session, _ = search(tmp_path, cache, again)
    assert told(session, "AD-RUN-018").subject == "aten.op6.default"
    assert again.compiled == [("lowerings", 5)]
    assert told(session, "AD-RUN-018").facts["good_run"] is not None


def test_answers_that_no_longer_hold_are_asked_anew(tmp_path, cache):
    search(tmp_path, cache, Compiler(wrong=6))
    session, _ = search(tmp_path, cache, Compiler(wrong=3))
    assert told(session, "AD-RUN-018").subject == "aten.op3.default"


def test_the_budget_stops_the_search_and_the_next_call_goes_on(tmp_path, cache):
    class Slow(Compiler):
        def run(self, request):
            answer = super().run(request)
            if request.job == "recompile" and request.payload.bisect and len(self.compiled) == 3:
                session.deadline = time.monotonic() + 5
            return answer

    compiler = Slow(wrong=6)
    session, _ = session_of(tmp_path, compiler, localize=False, budget=100.0)
    made = recompile_and_bisect.recompile(session, cache)
    recompile_and_bisect.bisect(session, made, cache)
    found = told(session, "AD-RUN-018")
    assert (found.kind, found.severity, found.facts["done"]) == ("unfinished", Severity.INFO, 2)
    assert "resumes from here" in session.not_checked[-1].reason
    assert recompile_and_bisect.bisect_proof(session) == {}
    rest = Compiler(wrong=6)
    session, _ = search(tmp_path, cache, rest)
    assert told(session, "AD-RUN-018").subject == "aten.op6.default"
    assert len(rest.compiled) == len(set(rest.compiled)) <= 3
    assert ("lowerings", -1) not in rest.compiled


def test_a_compile_that_was_killed_is_no_answer(tmp_path, cache):
    session, _ = search(tmp_path, cache, Compiler(wrong=6, dies=(-1,)))
    assert told(session, "AD-RUN-018").kind == "unfinished"
    assert list((cache.root / "bisect").glob("*.json")) == []


def test_no_stage_heals(tmp_path, cache):
    session, _ = search(tmp_path, cache, Compiler(wrong=-5))
    found = told(session, "AD-RUN-018")
    assert (found.kind, found.facts["tried"]) == ("not-found", ("lowerings", "post_grad_passes"))


def test_without_leave_it_tells_the_command(tmp_path, cache):
    compiler = Compiler(wrong=6)
    session, _ = search(tmp_path, cache, compiler, localize=False)
    assert compiler.compiled == [None]
    assert "aotidoctor localize" in session.not_checked[-1].reason


def test_a_failure_of_ours_costs_this_question_only(tmp_path, cache, monkeypatch):
    monkeypatch.setattr(recompile_and_bisect, "compare_code", lambda *_: 1 / 0)
    session, _ = session_of(tmp_path, Compiler())
    assert recompile_and_bisect.recompile(session, cache) is None
    assert "ZeroDivisionError" in session.not_checked[-1].reason


def test_a_package_without_the_printer_says_nothing(tmp_path, cache):
    compiler = Compiler()
    session, _ = session_of(tmp_path, compiler)
    examine.print_values(session, cache)
    assert (len(compiler.compiled), compiler.called) == (1, 0)
    assert "level 1 was not compiled in" in session.not_checked[-1].reason


@pytest.mark.parametrize(
    ("facts", "custom_ops", "where", "named"),
    [
        ({"verdict": "package-wrong"}, (), "cpp_fused_div_0", "cpp_fused_div_0"),
        ({"verdict": "package-wrong"}, (), None, "result"),
        # No float64 run says who is wrong; an operator of somebody's may be.
        ({"verdict": "unknown"}, (), "cpp_fused_div_0", None),
        ({"verdict": "package-wrong"}, ("lab::op",), "cpp_fused_div_0", None),
    ],
)
def test_the_same_wrong_bits_from_this_compiler_are_its_fault(tmp_path, cache, facts, custom_ops, where, named):
    session, _ = session_of(tmp_path, Compiler(wrong=0), localize=False)
    session.case = replace(session.case, contract=replace(session.case.contract, custom_ops=custom_ops))
    session.findings[:] = [replace(item, facts=facts) for item in session.findings]
    if where is not None:
        session.add(
            [replace(session.findings[0], code="AD-RUN-016", kind="diverges", subject=where, facts={"certain": True})]
        )
    assert recompile_and_bisect.recompile(session, cache).kind == "differs"
    found = told(session, "AD-RUN-018")
    assert (found.kind, found.subject) == ("kernel", named) if named else found is None
