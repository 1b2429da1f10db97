"""Damage by format: bytes anywhere, members of archives, values of JSON, statements of generated code, with a dictionary."""

from __future__ import annotations

import copy
import io
import json
import random
import warnings
import zipfile
import zlib

# Of UTF-8 an archive takes 65,535 bytes.
LONGEST_NAME = 20_000
NUMBERS = (b"0", b"-1", b"1", b"64", b"65535", b"2147483648", b"9223372036854775807", b"1e309", b"9" * 40, b"1" * 5000)
WORDS = {
    "any": (
        b"\0", b"\xff", b"\n", b" " * 300, b"{", b"}", b"[", b"]", b"(", b")", b'"', b"'", b"\\", b"%n", b"/../../x",
        b"\x1b[2J", b"\xe2\x80\xae", b"\xc2\x9b31m", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"null", b"true", b"NaN",
    ),
    "zip": (
        b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06", b"\xff\xff\xff\xff", b"\xff\xff", b"\x00\x00",
        b"\x08\x00", b"\x01\x00", b"data.pkl", b"archive_format", b"byteorder", b".data/", b"../", b"/etc/passwd",
    ),
    "pickle": (
        b"\x80\x02", b"}", b"]", b"(", b")", b"t", b"R", b"cos\nsystem\n", b"cbuiltins\neval\n", b"ctorch._utils\n", b"q\x00",
        b"h\x00", b"\x85", b"\x86", b"\x87", b"K\x01", b"J\xff\xff\xff\xff", b"\x8a\x08", b"X\xff\xff\xff\x7f", b"Q", b".",
    ),
    "flatbuffer": (
        b"\x04\0\0\0", b"\0\0\0\0", b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", b"\x01\0\0\0", b"\0\0\0\x80", b"\xff" * 8,
        b"ET12", b"eh00", b"FT01", b"FH01", b"CudaBackend", b"_so_blob\n", b"_weights_blob",
    ),
    "json": (b"{}", b"[]", b",", b":", b"null", b'{"type":null,"context":null,"children_spec":[]}', b"[" * 200, b"-0", b"1e999"),
    "cpp": (
        b"AOTInductorModelBase(", b"inputs_info_[0].name", b"constants_info_[9].shape", b"std::move(inputs[0]);", b"s0",
        b"run_impl(", b"assert_size_stride(", b"output_handles[0] = ", b"R\"(", b")\";", b"in_spec_ =", b"if (", b"for (",
        b"launchKernel(", b"index out of bounds: 0 <= tmp0 < 10L", b"aoti_torch_empty_strided(", b"extern \"C\" void",
    ),
    "log": (
        b"Traceback (most recent call last):\n", b"RuntimeError: ", b"CUDA error: ", b"index out of bounds: 0 <= tmp3 < 10L",
        b"terminate called after throwing an instance of 'c10::Error'\n", b"[rank0]: ", b"torch version: ", b"Error: ",
        b"undefined symbol: ", b"\x1f\x8b\x08", b"frame #0: ", b"==1==ERROR: ", b"| ", b"Assertion `", b"block: [0,0,0], ",
    ),
    "pbtxt": (
        b"input", b"output", b"dims: [", b"data_type: TYPE_", b"parameters", b"key:", b"value:", b"#", b"max_batch_size: ",
        b"instance_group", b"{ string_value: \"", b"platform: ", b"dynamic_batching", b"ensemble_scheduling", b"\\x",
    ),
}  # fmt: skip


def mutated(data: bytes, kind: str, rng: random.Random) -> bytes:
    """``data`` with one to six faults; an archive is often taken apart and put together again around them."""
    if data[:2] == b"PK" and rng.random() < 0.7:
        return _archive(data, rng)
    if kind == "json" and rng.random() < 0.5:
        return _document(data, rng)
    return _bytes(data, kind, rng)


def _bytes(data: bytes, kind: str, rng: random.Random) -> bytes:
    words = (*WORDS["any"], *NUMBERS, *WORDS.get(kind, ()), *WORDS.get(kind, ()))
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(8):
            case 0 if data:
                at = min(at, len(data) - 1)
                data = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
            case 1:
                data = data[:at]
            case 2:
                data = data[:at] + data[at + rng.randrange(1, 64) :]
            case 3:
                word = rng.choice(words)
                data = data[:at] + word + data[at + len(word) :]
            case 4:
                part = data[at : at + rng.randrange(1, 400)]
                data = data[:at] + part * rng.choice((2, 3, 200)) + data[at:]
            case 5:
                other = rng.randrange(len(data) + 1)
                data = data[:at] + data[other : other + rng.randrange(1, 200)] + data[at:]
            case _:
                data = data[:at] + rng.choice(words) + data[at:]
    return data


def _archive(data: bytes, rng: random.Random) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    except (OSError, ValueError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error):
        return _bytes(data, "zip", rng)
    if not members:
        return _bytes(data, "zip", rng)
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(members))
        name, content = members[at]
        match rng.randrange(8):
            case 0:
                members.pop(at)
                members = members or [(name, b"")]
            case 1:
                members.append(members[at])
            case 2:
                members[at] = (
                    _bytes(name.encode(), "zip", rng).decode("utf-8", "replace").replace("\0", "")[:LONGEST_NAME]
                    or "x",
                    content,
                )
            case _:
                members[at] = (name, mutated(content, kind_of(name, content), rng))
    out = io.BytesIO()
    warnings.simplefilter("ignore")
    with zipfile.ZipFile(out, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def kind_of(name: str, content: bytes) -> str:
    """The dictionary for a member."""
    if name.endswith(".json"):
        return "json"
    if name.endswith((".cpp", ".h")):
        return "cpp"
    return "pickle" if name.endswith(".pkl") or content[:1] == b"\x80" else "any"


def _document(data: bytes, rng: random.Random) -> bytes:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return _bytes(data, "json", rng)
    for _ in range(rng.choice((1, 2, 4))):
        document = _changed(document, rng, 0)
    return json.dumps(document).encode("utf-8", "replace")


_VALUES = (
    None,
    True,
    0,
    -1,
    1 << 70,
    1e300,
    "",
    "x" * 400,
    "\x1b[2J",
    "\u202e",
    [],
    {},
    [[]],
    [1] * 300,
    {"a": {}},
    "nan",
    0.5,
)


def _changed(value: object, rng: random.Random, depth: int) -> object:
    if isinstance(value, (dict, list)) and value and depth < 12 and rng.random() < 0.85:
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        if rng.random() < 0.1:
            if isinstance(value, dict):
                return {one: item for one, item in value.items() if one != key}
            return value[:key] + value[key + 1 :]
        value[key] = _changed(value[key], rng, depth + 1)
        return value
    # A copy: a value that is changed in its turn would else come to hold itself.
    return copy.deepcopy(rng.choice(_VALUES))
