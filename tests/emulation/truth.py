"""What must be found in a case, by construction, and how far a finding is that: kernel, line, lane or element."""

from __future__ import annotations

import re

import numpy as np
import torch
from cases import FAR, STEP, WIDE, kernels_of
from oracle import Lanes, access_of

from aotidoctor.readers.contract.wrapper_text import split_list

_CALL = re.compile(
    r"^\s*(?:AOTI_TORCH_ERROR_CODE_CHECK\()?(?:call_(\w+)|aoti_torch_(?:cuda|proxy)_\w+)\((.*)\);", re.MULTILINE
)
_BYTES = {"i1": 1, "i8": 1, "u8": 1, "fp16": 2, "bf16": 2, "i16": 2, "i32": 4, "fp32": 4, "i64": 8, "fp64": 8}


def judge(case, wrapper, args, told):
    """``{"kind", "kernel", "line", "place"}``: True or False of the first finding, None where nothing says what is right.

    None altogether where the case turns out to be no fault with this sample: a mask that was not needed.
    """
    facts = case.facts or {}
    if "word" in facts:
        return _kernel_edit(case, wrapper, args, told)
    if "input" in facts:
        return _by_input(case, wrapper, args, told)
    return {}


def _first(told):
    return told["findings"][0] if told["findings"] else {}


def _launch_of(told, first, kernel):
    launch = next((one for one in told["launches"] if one["kernel"].startswith(kernel)), None)
    same = [
        one for one in told["launches"] if one["number"] == first.get("launch") and one["kernel"].startswith(kernel)
    ]
    return same[0] if same else launch


def _kernel_edit(case, wrapper, args, told):
    facts, first = case.facts, _first(told)
    start, number, word = facts["start"], facts["number"], facts["word"]
    text = next(text for line, text in kernels_of(wrapper) if line == start)
    launch = _launch_of(told, first, case.kernel)
    if launch is None or "blocks" not in launch:
        return None
    lanes = Lanes(text, launch)
    found = _expected_lanes(word, lanes, number, launch)
    if word == "plain":
        found, rows = None, _duplicates(args[1], args[-1].shape[-1], lanes.sizes[0])
        if not rows:
            return None
    if found is not None and not found[1].any():
        return None
    right = {
        "kind": first.get("kind") in case.kinds,
        "kernel": first.get("kernel") == case.kernel,
        "line": first.get("wrapper_line") == start + number,
    }
    if word == "plain":
        return {**right, "place": first.get("offset", -1) // args[-1].shape[-1] in rows}
    wanted = None if word == "everywhere" else "all"
    return {**right, "place": None if found is None else _is_there(lanes, found, first, count=wanted)}


def _expected_lanes(word, lanes, number, launch):
    """``(indices, which lanes)``; None where the text does not tell."""
    match word:
        case "unmasked":
            return lanes.astray(number, launch["numbers"].get("xnumel", lanes.known.get("xnumel")))
        case "stride":
            return lanes.astray(number, STEP // 2)
        case "one":
            return lanes.astray(number, FAR)
        case "narrow":
            found = lanes.astray(number, None)
            return None if found is None else (found[0], found[1] & (np.abs(found[0] * WIDE) >= 2**31))
        case "everywhere":
            found = lanes.astray(number, None)
            programs = lanes.known["xindex"] // lanes.sizes[0]
            return None if found is None else (found[0], found[1] & bool(programs.max() > 0))
        case _:
            return lanes.astray(number, None)


def _is_there(lanes, found, first, *, count):
    """Whether the finding's lane is one of those, with the element that this lane goes to; None without a lane."""
    index, astray = found
    programs = lanes.programs
    # What every program does alike may be carried out once for all of them.
    if count is not None and first.get("count") not in (int(astray.sum()), int(astray.sum()) * programs):
        return False
    if first.get("program") is None:
        return None
    at = lanes.element(first["program"], first["lane"], index.shape)
    if at is None:
        # The block along a looped reduction is not in the package: the element is.
        return first["offset"] in set(index[astray].tolist()) if "offset" in first else None
    return bool(astray[at]) and first.get("offset", int(index[at])) == int(index[at])


def _duplicates(ids, width, block):
    """Ids that lanes of different programs write to: ``width`` lanes for each."""
    seen: dict[int, set[int]] = {}
    for at, one in enumerate(ids.tolist()):
        seen.setdefault(one, set()).add(at * width // block)
    return {one for one, programs in seen.items() if len(programs) > 1}


def _by_input(case, wrapper, args, told):
    """The first kernel that takes the input, its first line that goes astray, and the lanes that do."""
    facts, first = case.facts, _first(told)
    name = re.findall(r'inputs_info_\[\d+\]\.name = "(\w+)"', wrapper)[facts["input"]]
    reader = next((one for one in _CALL.finditer(wrapper) if re.search(rf"\b{name}\b", one[2])), None)
    right = {"kind": first.get("kind") in case.kinds, "kernel": None, "line": None, "place": None}
    if reader is None or reader[1] is None:
        return right
    start, text = next(one for one in kernels_of(wrapper) if f"triton('{reader[1]}'" in one[1])
    lines = text.split("\n")
    given = [at for at, one in enumerate(split_list(reader[2])) if re.search(rf"\b{name}\b", one)]
    names = re.search(r"def \w+\((.*)\):", text)[1].split(", ")
    own = {names[at] for at in given if at < len(names)}
    launch = _launch_of(told, first, reader[1])
    right["kernel"] = first.get("kernel") == reader[1]
    if "element" in facts:
        load = next(at for at, one in enumerate(lines) if _goes_through(one, own))
        checks = [at for at, one in enumerate(lines) if "tl.device_assert(" in one and at > load]
        value = lines[load].strip().partition(" ")[0]
        line = next((at for at in checks if re.search(rf"\b{value}\b", lines[at])), checks[0])
        right["line"] = first.get("wrapper_line") == start + line
        right["place"] = _is_element(facts, args, first, launch)
        return right
    lanes = Lanes(text, launch)
    bytes_ = args[facts["input"]].nbytes
    for at, line in enumerate(lines):
        if _goes_through(line, own):
            kind = re.search(rf"'{access_of(line).argument}': '\*(\w+)'", text)[1]
            found = lanes.astray(at, bytes_ // _BYTES[kind])
            if found is None:
                return right
            if found[1].any():
                right["line"] = first.get("wrapper_line") == start + at
                right["place"] = _is_there(lanes, found, first, count="all")
                return right
    return right


def _goes_through(line, arguments):
    access = access_of(line)
    return access is not None and access.argument in arguments


def _is_element(facts, args, first, launch):
    """One lane after the other reads the index: ``lanes`` of them each element."""
    if first.get("program") is None:
        return False
    given = args[facts["argument"]]
    flat = int(torch.arange(given.numel()).view(given.shape)[facts["element"]])
    block = launch["blocks"].get("x", 1)
    at = (first["program"][0] * block + first["lane"]) // facts["lanes"]
    return at == flat and first["count"] == facts["lanes"]
