"""Parse config.pbtxt to a tree with positions, as protobuf's text format does, and to the fields that rules need.

It accepts what the C++ parser of a server accepts, which is not quite what protobuf's Python parser does: a sign may
stand apart from its number, and no number begins with ``+``. Tests compare it with both. It adds the line and column of
every field and list element; protobuf itself gives those of errors only. No default is applied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from aotidoctor.model.serving_config import (
    TOP,
    ConfigField,
    ConfigMessage,
    ControlConfig,
    Given,
    InstanceGroup,
    ModelConfig,
    ParameterConfig,
    StateConfig,
    TensorConfig,
    written_text,
)
from aotidoctor.triton.config_schema import (
    ENUMS,
    INTEGERS,
    QUOTES,
    ROOT,
    ConfigToken,
    FieldType,
    TextFormatError,
    comments,
    enumerators,
    fields_of,
    string_value,
    tokens,
)

# The tree.
_IDENTIFIER = re.compile(r"\w+")
_CLOSING = {"{": "}", "<": ">"}
_TRUE, _FALSE = ("true", "t", "1", "True"), ("false", "f", "0", "False")
_TOO_DEEP = 64


def parse_config(text: str, *, lenient: bool = False) -> ConfigMessage:
    """Parse the whole file; ``lenient`` accepts fields that are not in the table of types. Raises TextFormatError."""
    return _ConfigReader(text, lenient=lenient).whole()


def integer(text: str) -> int:
    """Parse a number as protobuf writes it: decimal, hexadecimal, octal with a leading 0. Raises ValueError."""
    octal = re.fullmatch(r"(-?)0(\d+)", text)
    return int(f"{octal[1]}0o{octal[2]}" if octal else text, 0)


def is_true(text: str) -> bool:
    """Whether the text of a bool spells true."""
    return text in _TRUE or _bit(text) == 1


def _bit(text: str) -> int | None:
    """The number that a bool is written as, 0 or 1 in any base; None where it is none."""
    try:
        number = integer(text)
    except ValueError:
        return None
    return number if number in (0, 1) and text[:1] != "-" else None


class _ConfigReader:
    def __init__(self, text: str, *, lenient: bool) -> None:
        self._tokens: Iterator[ConfigToken] = tokens(text)
        self._lenient = lenient
        self._token = next(self._tokens)

    def whole(self) -> ConfigMessage:
        return ConfigMessage(fields=self._fields(ROOT, "", depth=0), at=TOP)

    def _next(self) -> ConfigToken:
        token = self._token
        self._token = next(self._tokens, token)
        return token

    def _take(self, *texts: str) -> bool:
        if self._token.text in texts:
            self._next()
            return True
        return False

    def _expect(self, *texts: str) -> ConfigToken:
        if self._token.text not in texts:
            wanted = " or ".join(f'"{text}"' for text in texts)
            raise self._error(f"expected {wanted}, found {self._token_text()}")
        return self._next()

    def _token_text(self) -> str:
        return f'"{self._token.text}"' if self._token.text else "the end of the file"

    def _error(self, message: str) -> TextFormatError:
        return TextFormatError(message, self._token.at)

    def _fields(self, kind: str, end: str, *, depth: int) -> tuple[ConfigField, ...]:
        """Parse fields up to and including ``end``."""
        if depth > _TOO_DEEP:
            raise self._error("messages in messages, too deep")
        known = {} if kind == "?" else fields_of(kind)
        found: list[ConfigField] = []
        while self._token.text != end:
            name = self._token
            if not _IDENTIFIER.match(name.text):
                raise self._error(f"expected the name of a field, found {self._token_text()}")
            self._next()
            type_ = known.get(name.text)
            if type_ is None:
                if not self._lenient:
                    raise TextFormatError(f'{_field_text(kind)} has no field "{name.text}"', name.at)
                type_ = FieldType(type="?", repeated=True, oneof=None)
            _refuse_another(kind, name, type_, known, found)
            if type_.is_message:
                self._take(":")
            else:
                self._expect(":")
            found.extend(self._values(name, type_, depth))
            # Between fields a comma or a semicolon may stand.
            self._take(",", ";")
        self._next()
        return tuple(found)

    def _values(self, name: ConfigToken, type_: FieldType, depth: int) -> Iterator[ConfigField]:
        listed = type_.repeated and self._take("[")
        if listed and self._take("]"):
            return
        while True:
            begin = self._token if listed else name
            yield ConfigField(name=name.text, value=self._value(begin, type_, depth), at=begin.at)
            if not listed or self._take("]"):
                return
            self._expect(",")

    def _value(self, name: ConfigToken, type_: FieldType, depth: int) -> Given[str] | ConfigMessage:
        unknown = type_.type == "?"
        if type_.is_message and (not unknown or self._token.text in _CLOSING):
            end = _CLOSING[self._expect(*_CLOSING).text]
            return ConfigMessage(fields=self._fields(type_.type, end, depth=depth + 1), at=name.at)
        token = self._token
        if type_.type == "string" or (unknown and token.text[:1] in QUOTES):
            if self._token.text[:1] not in QUOTES:
                raise self._error(f"expected a string in quotes, found {self._token_text()}")
            parts = []
            # Strings that stand one after the other are one string.
            while self._token.text[:1] in QUOTES:
                parts.append(string_value(self._next()))
            return Given(value="".join(parts), at=token.at)
        sign = "-" if type_.type != "bool" and self._take("-") else ""
        text = sign + self._token.text
        problem = None if unknown else _problem(text, type_.type)
        if problem is not None:
            raise TextFormatError(problem, token.at)
        self._next()
        return Given(value=text, at=token.at)


def _field_text(kind: str) -> str:
    return "an entry of a map" if kind.startswith("{") else f"a {kind}" if kind != ROOT else "the config"


def _refuse_another(
    kind: str, name: ConfigToken, type_: FieldType, known: dict[str, FieldType], found: list[ConfigField]
) -> None:
    """Raise where the field, or another one of its group, has been set before."""
    if type_.repeated:
        return
    for other in found:
        if other.name == name.text and not _is_default(other, type_):
            raise TextFormatError(f'"{name.text}" is given twice in {_field_text(kind)}', name.at)
        beside = known.get(other.name)
        if type_.oneof and other.name != name.text and beside is not None and beside.oneof == type_.oneof:
            raise TextFormatError(f'"{name.text}" and "{other.name}" exclude each other', name.at)


def _is_default(field: ConfigField, type_: FieldType) -> bool:
    """A scalar that was set to its default counts as not set, unless it belongs to a group."""
    value = field.value
    if isinstance(value, ConfigMessage) or type_.oneof is not None:
        return False
    if type_.type == "string":
        return value.value == ""
    if type_.type == "bool":
        return not is_true(value.value)
    if type_.type in ENUMS:
        names = enumerators(type_.type)
        return value.value == names[0] or (value.value not in names and integer(value.value) == 0)
    return integer(value.value) == 0 if type_.type in INTEGERS else _float(value.value) == 0


def _problem(text: str, type_: str) -> str | None:
    """What is wrong with the text of a scalar, None where nothing is."""
    if text[:1] in QUOTES:
        what = "an enumerator" if type_ in ENUMS else "a number" if type_ != "bool" else "a bool"
        return f"{text} is in quotes; {what} is written without"
    try:
        if type_ in INTEGERS:
            low, high = INTEGERS[type_]
            return None if low <= integer(text) <= high else f"{text} is out of the range of {type_}"
        if type_ in ENUMS:
            if text in enumerators(type_):
                return None
            try:
                number = integer(text)
            except ValueError:
                return f'{type_} has no value "{text}"'
            # Any number will do: an enumeration of proto3 is open.
            return None if -(2**31) <= number < 2**31 else f"{text} is out of range"
        if type_ in ("float", "double"):
            _float(text)
            return None
    except ValueError:
        return f'"{text}" is not a valid {type_}'
    known = text in (*_TRUE, *_FALSE) or _bit(text) is not None
    return None if known else f'expected true or false, found "{text}"'


def _float(text: str) -> float:
    if re.match(r"-?0[0-9]+", text):
        raise ValueError(text)
    if re.fullmatch(r"-?(?:inf(?:inity)?|nan)", text, re.IGNORECASE):
        return float(text)
    digits = text[:-1] if text[-1:] in ("f", "F") else text
    if digits[-1:].isalpha() or "_" in digits:
        raise ValueError(text)
    return float(digits)


# The fields.
SCHEDULERS = ("dynamic_batching", "sequence_batching", "ensemble_scheduling")


def read_fields(tree: ConfigMessage, text: str) -> ModelConfig:
    """Config of ``tree``, which was parsed from ``text``."""
    sequence = tree.message("sequence_batching")
    return ModelConfig(
        tree=tree,
        name=text_of(tree, "name"),
        platform=text_of(tree, "platform"),
        backend=text_of(tree, "backend"),
        default_model_filename=text_of(tree, "default_model_filename"),
        max_batch_size=_number(tree, "max_batch_size"),
        inputs=tuple(_tensor(item) for item in tree.messages("input")),
        outputs=tuple(_tensor(item) for item in tree.messages("output")),
        instance_groups=tuple(_group(item) for item in tree.messages("instance_group")),
        parameters=_parameters(tree),
        scheduling=next((item for item in tree.fields if item.name in SCHEDULERS), None),
        controls=tuple(_control(item) for item in sequence.messages("control_input")) if sequence else (),
        states=tuple(
            StateConfig(
                at=item.at,
                input_name=text_of(item, "input_name"),
                output_name=text_of(item, "output_name"),
                data_type=enum_of(item, "data_type", "DataType"),
                dims=numbers_of(item, "dims"),
            )
            for item in (sequence.messages("state") if sequence else ())
        ),
        batch_inputs=tree.messages("batch_input"),
        batch_outputs=tree.messages("batch_output"),
        warmups=tree.messages("model_warmup"),
        cc_model_filenames={
            written_text(text_of(item, "key")): written_text(text_of(item, "value"))
            for item in tree.messages("cc_model_filenames")
        },
        comments=tuple(comments(text)),
    )


def enum_of(message: ConfigMessage, name: str, enum: str) -> Given[str] | None:
    """Enumerator of a field, also where its number is written; a number without a name stays a number."""
    found, names = text_of(message, name), enumerators(enum)
    if found is None or found.value in names:
        return found
    try:
        number = integer(found.value)
    except ValueError:
        return found
    return Given(value=names[number], at=found.at) if 0 <= number < len(names) else found


def numbers_of(message: ConfigMessage, name: str) -> tuple[Given[int], ...]:
    """Whole numbers of a repeated field."""
    return tuple(Given(value=integer(item.value), at=item.at) for item in texts_of(message, name))


def texts_of(message: ConfigMessage, name: str) -> tuple[Given[str], ...]:
    """Scalars of a repeated field, as text."""
    return tuple(item.value for item in message.all(name) if isinstance(item.value, Given))


def text_of(message: ConfigMessage, name: str) -> Given[str] | None:
    """Last scalar of a field as text: before it only defaults are allowed."""
    return next(reversed(texts_of(message, name)), None)


def _number(message: ConfigMessage, name: str) -> Given[int] | None:
    return next(reversed(numbers_of(message, name)), None)


def _flag(message: ConfigMessage, name: str) -> Given[bool] | None:
    found = text_of(message, name)
    return None if found is None else Given(value=is_true(found.value), at=found.at)


def _tensor(message: ConfigMessage) -> TensorConfig:
    reshape = message.message("reshape")
    return TensorConfig(
        at=message.at,
        name=text_of(message, "name"),
        data_type=enum_of(message, "data_type", "DataType"),
        dims=numbers_of(message, "dims"),
        reshape=numbers_of(reshape, "shape") if reshape is not None else None,
        optional=_flag(message, "optional"),
        ragged=_flag(message, "allow_ragged_batch"),
        tree=message,
    )


def _group(message: ConfigMessage) -> InstanceGroup:
    name = text_of(message, "name")
    return InstanceGroup(
        at=message.at,
        name=name.value if name is not None else None,
        kind=enum_of(message, "kind", "ModelInstanceGroup.Kind"),
        count=_number(message, "count"),
        gpus=numbers_of(message, "gpus"),
        profile=texts_of(message, "profile"),
        tree=message,
    )


def _parameters(tree: ConfigMessage) -> tuple[ParameterConfig, ...]:
    """One per key, the last one: a map has no duplicates."""
    found: dict[str, ParameterConfig] = {}
    for entry in tree.messages("parameters"):
        key = text_of(entry, "key") or Given(value="", at=entry.at)
        value = entry.message("value")
        text = text_of(value, "string_value") if value is not None else None
        found[key.value] = ParameterConfig(at=entry.at, key=key, value=text)
    return tuple(found.values())


def _control(message: ConfigMessage) -> ControlConfig:
    controls: Sequence[ConfigMessage] = message.messages("control")
    kinds = (enum_of(item, "kind", "ModelSequenceBatching.Control.Kind") for item in controls)
    types = (enum_of(item, "data_type", "DataType") for item in controls)
    return ControlConfig(
        at=message.at,
        name=text_of(message, "name"),
        # The first enumerator is what an absent field means.
        kinds=tuple(kind.value if kind is not None else "CONTROL_SEQUENCE_START" for kind in kinds),
        data_type=next((kind for kind in types if kind is not None), None),
    )
