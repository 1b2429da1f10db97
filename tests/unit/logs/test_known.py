"""Known issues are shown on their own words, and on no others."""

from __future__ import annotations

import pytest

from aotidoctor.commands.classify import classify_text
from aotidoctor.diagnosis.playbooks import PlaybookError, read_known_issues
from aotidoctor.logs.patterns import known_issue, known_issues
from tests.every import every

KNOWN = known_issues()


def test_there_are_many_each_once_with_an_address():
    assert len({(issue.issue, issue.words) for issue in KNOWN}) == len(KNOWN)
    assert len({issue.issue for issue in KNOWN}) >= 60
    assert all(issue.url.startswith("https://") for issue in KNOWN)


@every("issue", KNOWN, ids=lambda issue: issue.issue)
def test_its_words_show_it(issue):
    findings, diagnoses, _ = classify_text(f"RuntimeError: {' ... '.join(issue.words)}\n".encode(), "log")
    shown = [item.facts.get("known_issue") for item in findings]
    assert issue.issue in shown
    assert diagnoses[0].cause == issue.cause


WORKER = """torch._inductor.exc.InductorError: SubprocException: An exception occurred in a subprocess:

Name=triton_poi_fused_add_0
Traceback (most recent call last):
  File "/venv/torch/_inductor/compile_worker/subproc_pool.py", line 457, in do_job
    result = job()
  File "/venv/torch/_inductor/runtime/compile_tasks.py", line 87, in _worker_compile_triton
    kernel = load_kernel()
  File "/tmp/torchinductor_me/ab/cab.py", line 11, in <module>
    triton_helpers.set_driver_to_gpu()
  File "/venv/torch/_inductor/runtime/triton_helpers.py", line 61, in set_driver_to_gpu
    isinstance(driver.active, backend.driver)
  File "/venv/triton/runtime/driver.py", line 36, in active
    self._active = self.default
  File "/venv/triton/runtime/driver.py", line 29, in default
    self._default = _create_driver()
  File "/venv/triton/runtime/driver.py", line 20, in _create_driver
    raise RuntimeError(f"{len(active_drivers)} active drivers ({active_drivers}). There should only be one.")
RuntimeError: 0 active drivers ([]). There should only be one.
"""
# As torch prints them: the lines of a thread are not always those of a release.
PRINTED = {
    "fake kernel": (
        "RuntimeError: expected size 4==4, stride 1==8 at dim=0\n"
        "Error in op: torch.ops.shop.price.default\n"
        "This error most often comes from a incorrect fake (aka meta) kernel for a custom op.\n"
        "Use torch.library.opcheck to test your custom op.\n",
        "pytorch#143765",
    ),
    "a class that export does not take": (
        "torch._dynamo.exc.UserError: It looks like one of the inputs with type `<class 'shop.Order'>` is not supported or"
        " pytree-flattenable. \nExported graphs inputs can only contain the following supported types: [<class"
        " 'torch.Tensor'>, <class 'int'>]. \n",
        "pytorch#117598",
    ),
    "pytree of 2.13": (
        "NotImplementedError: Deserializing shop.Order in pytree is not registered.\n",
        "pytorch#186900",
    ),
    "pytree of 2.15": (
        "NotImplementedError: Deserializing shop.Order in pytree failed because the serialized type is not registered in"
        " this process. If this type is defined in another package, import that package before loading this artifact so"
        " its pytree registrations run.\n",
        "pytorch#186900",
    ),
    "specialized, old": (
        "torch.fx.experimental.symbolic_shapes.ConstraintViolationError: Constraints violated (L['x'].size()[0])!\n"
        "  - Not all values of RelaxedUnspecConstraint(L['x'].size()[0]) are valid because L['x'].size()[0] was inferred"
        " to be a constant (7).\n",
        "pytorch#135960",
    ),
    "specialized": (
        "torch._dynamo.exc.UserError: Constraints violated (L['x'].size()[0])!\n"
        "  - You marked L['x'].size()[0] as dynamic but your code specialized it to be a constant (7). If you're using"
        " mark_dynamic, either remove it or use maybe_mark_dynamic.\n",
        "pytorch#135960",
    ),
    "no GPU": ("RuntimeError: 0 active drivers ([]). There should only be one.\n", "deepseek-ai/DeepSeek-R1#493"),
    "a GPU, in a compile worker": (WORKER, "pytorch#184643"),
    "one shim": (
        "RuntimeError: Check failed: int_id == num_ints - num_output_ints Mismatch between ints consumed and num_ints,"
        " got int_id = 1, num_ints = 2\n",
        "pytorch#173229",
    ),
    "an argument that the package leaves out": (
        "RuntimeError: Check failed: int_id == num_ints - num_output_ints Mismatch between ints consumed and num_ints,"
        " got int_id = 0, num_ints = 1\n",
        "pytorch#189189",
    ),
    "emulated casts": (
        "TypeError: CppVecOverrides.to_dtype() got an unexpected keyword argument 'use_compute_types'\n",
        "pytorch#159239",
    ),
    "emulated casts of 2.6": (
        "TypeError: ValueRangeAnalysis.to_dtype() got an unexpected keyword argument 'use_compute_types'\n",
        "unslothai/unsloth-zoo#217",
    ),
}


@pytest.mark.parametrize("name", PRINTED)
def test_the_printed_words_show_it(name):
    text, issue = PRINTED[name]
    findings, diagnoses, _ = classify_text(text.encode(), "log")
    assert findings[0].facts.get("known_issue") == issue
    assert issue in diagnoses[0].remedy.text


@pytest.mark.parametrize("name", ["pytree of 2.13", "pytree of 2.15"])
def test_the_class_is_named_in_each_wording(name):
    findings, _, _ = classify_text(PRINTED[name][0].encode(), "log")
    assert findings[0].subject == "shop.Order"


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: Check failed: Mismatch between ints consumed and num_ints, got int_id = 3, num_ints = 5\n",
        """RuntimeError: Failed to create metal library, error: Error Domain=MTLLibraryErrorDomain Code=3 "program_source:1:1:"\n""",
        "TypeError: TritonOverrides.to_dtype() got an unexpected keyword argument 'use_compute_types'\n",
    ],
)
def test_words_of_other_faults_show_none(text):
    findings, _, _ = classify_text(text.encode(), "log")
    assert findings
    assert not [item for item in findings if item.facts.get("known_issue")]


def test_half_of_its_words_do_not():
    split = [issue for issue in KNOWN if len(issue.words) > 1]
    assert split
    assert [issue.issue for issue in split if known_issue(issue.words[0], issue.cause) == issue] == []


def test_the_release_of_a_pattern_is_not_shown_as_the_users():
    findings, _, _ = classify_text(b"torch._inductor.exc.MissingOperatorWithoutDecomp: missing lowering\n", "log")
    assert findings[0].facts["source"] == "torch/_inductor/exc.py"


@pytest.mark.parametrize(
    "text",
    [
        "[[known]\n",
        "[[known]]\nissue = 'x#1'\n",
        "[[known]]\nissue='x#1'\nurl='https://x'\nwords=['short']\n",
        "other = 1\n",
        "[[known]]\nissue='x#1'\nurl='https://x'\noperator='any'\nsymptom='dtype'\n",
        "[[known]]\nissue='x#1'\nurl='https://x'\noperator='any'\nsymptom='odd'\ndtypes=['uint8']\n",
        "[[known]]\nissue='x#1'\nurl='https://x'\noperator='any'\nsymptom='dtype'\ndtypes=['uint8']\nwords=['a message of its own']\n",
    ],
)
def test_a_broken_block_is_refused(text):
    with pytest.raises(PlaybookError):
        read_known_issues("cause", f"```toml known\n{text}```\n")
