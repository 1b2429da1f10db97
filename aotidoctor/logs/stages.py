"""Where in the life of a package a failure is, by what it says and by its frames."""

from __future__ import annotations

import re

from aotidoctor.logs.found import Found

# The first that fits: what is outermost in a stack comes last, so that the inner one decides.
_STAGES = (
    ("serve", re.compile(r"failed to load '|tritonserver|model_repository_manager|triton_python_backend")),
    (
        "package",
        re.compile(
            r"package_aoti|package_pt2|aoti_compile_and_package.*package|inductor/package/package\.py.*in package"
        ),
    ),
    (
        "export",
        re.compile(
            r"torch/export/(?!pt2_archive|exported_program)|torch/_export/(?!serde)|torch\._dynamo|_dynamo/|ConstraintViolation"
        ),
    ),
    (
        "load",
        re.compile(
            r"aoti_load_package|load_package|load_pt2|AOTIModelPackageLoader|create_func_|Error in dlopen|"
            r"AOTIModelContainerRunner::AOTIModelContainerRunner|AOTInductorModelContainerCreate"
        ),
    ),
    (
        "compile",
        re.compile(
            r"aoti_compile|aot_compile|torch/_inductor/(?!package)|LoweringException|InductorError|CppCompileError"
        ),
    ),
    (
        "run",
        re.compile(
            r"run_func_|run_impl|::run\(|Exception raised from (?:cpp|triton)_|CUDA (?:driver )?error|in __call__"
        ),
    ),
)


def stage_of(found: Found) -> str:
    """The stage, empty where nothing tells."""
    text = "\n".join((found.text, *found.frames))
    return next((stage for stage, words in _STAGES if words.search(text)), "")
