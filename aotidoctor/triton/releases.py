"""Which releases of Triton are known, and what each brought to ``torch_aoti``.

=========  =======  ==================================================================================
up to      2.66     the platform is not known
26.02
26.03      2.67     first ``torch_aoti``; looks for model.pt unless ``default_model_filename`` is set; two inputs only
26.04      2.68     model.pt2 is the default and is detected; still two inputs only
26.05      2.69     call spec parsed: ARGS, KWARGS, RESULT, INPUT__n, OUTPUT__n; no batching, parameters ignored
26.06      2.70     batching of the first dimension, sequence batching with state
26.07      2.71     parameters act; MODEL_INIT_LIBRARY
26.11      2.75     bfloat16 inputs and outputs
=========  =======  ==================================================================================
"""

from __future__ import annotations

import re

from aotidoctor.model.errors import UsageError
from aotidoctor.model.serving import Release

FIRST = "26.03"
# From this release on requests are put together along dim 0, and the answer is taken apart again.
SPLITS_SINCE = "26.06"
_SERVERS = {
    "26.02": "2.66",
    "26.03": "2.67",
    "26.04": "2.68",
    "26.05": "2.69",
    "26.06": "2.70",
    "26.07": "2.71",
    "26.08": "2.72",
    "26.09": "2.73",
    "26.10": "2.74",
    "26.11": "2.75",
}
KNOWN = tuple(Release(name=name, server=server) for name, server in _SERVERS.items())
NEWEST = KNOWN[-1]


def find_release(text: str | None) -> Release:
    """The release called ``26.05``; the newest known for None. Raises UsageError for what is no release."""
    if text is None:
        return NEWEST
    found = re.fullmatch(r"(\d\d)\.(\d\d)(?:-py3\S*)?", text.strip())
    if found is None or not 1 <= int(found[2]) <= 12 or int(found[1]) < 18:
        raise UsageError(f"{text!r} is not a release of Triton; write year and month, such as {NEWEST.name}")
    name = f"{found[1]}.{found[2]}"
    known = next((release for release in KNOWN if release.name == name), None)
    asked = Release(name=name)
    return known or Release(name=name, known=asked.key < NEWEST.key)


def standing(release: Release) -> str | None:
    """What must be said of a release that the rules know nothing of; None where nothing must."""
    if release.known:
        return None
    return f"Triton {release.name} is newer than {NEWEST.name}, the newest that the rules cover; judged as that one"
