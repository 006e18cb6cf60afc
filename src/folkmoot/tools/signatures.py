"""What a model is told of a Python function, and how the arguments that it sends become the function's own.

The schema comes from the signature, the description from the docstring. Deliberately absent: running the function.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from folkmoot.domain.schemas import Validator, canonical, check_schema, compile_schema, visible

_MAX_DESCRIPTION = 1_024  # the least that providers take
_MAX_FAULT = 300


@dataclass(frozen=True, slots=True)
class CallContext:
    """Handed to a function that has a parameter of this type; the model neither sees nor chooses it.

    `idempotency_key` is the same for every attempt at one call: hand it on to whatever must not do the work twice.
    """

    call_id: str
    idempotency_key: str
    run_id: str


class UnfitFunction(Exception):
    """The function cannot be a tool; the message is a sentence."""


class UnfitArguments(Exception):
    """The arguments do not fit the signature; the message says what is wrong, without their values."""


@dataclass(frozen=True, slots=True)
class Signature:
    """`parameters`: JSON Schema (draft 2020-12) of the arguments. `context_name`: the parameter that takes the CallContext."""

    description: str
    parameters: dict[str, Any]
    validator: Validator
    names: tuple[str, ...]
    context_name: str | None
    model: type[BaseModel]

    def bind(self, arguments: Mapping[str, Any], context: CallContext) -> dict[str, Any]:
        """The keyword arguments of the call, converted to what the signature says. Raises UnfitArguments."""
        faults = self.validator.faults(dict(arguments))
        if faults:
            raise UnfitArguments(" ".join(faults))
        try:
            converted = self.model.model_validate(arguments)
        except ValidationError as error:
            raise UnfitArguments(_described(error)) from None
        except Exception as error:  # a validator of the operator's own may raise anything
            raise UnfitArguments(f"They were refused: {type(error).__name__}.") from None
        # What was not sent is left to the function's own defaults.
        bound = {self.names[int(field[1:])]: getattr(converted, field) for field in converted.model_fields_set}
        if self.context_name is not None:
            bound[self.context_name] = context
        return bound


def signature_of(function: Callable[..., Any]) -> Signature:
    """Read a function. Raises UnfitFunction where its signature cannot be told to a model."""
    try:
        parameters = inspect.signature(function).parameters
        hints = get_type_hints(_annotated(function), include_extras=True)
    except (TypeError, ValueError, NameError, AttributeError) as error:
        raise UnfitFunction(f"its signature cannot be read ({error})") from None
    _refuse_unnamed(parameters.values())
    contexts = [name for name in parameters if hints.get(name) is CallContext]
    if len(contexts) > 1:
        raise UnfitFunction(f"it has more than one CallContext ({', '.join(contexts)}); leave one")
    names = tuple(name for name in parameters if name not in contexts)
    model = _model(names, parameters, hints)
    schema = _schema(model)
    faults = check_schema(schema, "")
    if faults:
        raise UnfitFunction(f"the JSON Schema of its arguments cannot be used: {faults[0]}")
    return Signature(
        description=_description(function),
        parameters=schema,
        validator=compile_schema(canonical(schema)),
        names=names,
        context_name=contexts[0] if contexts else None,
        model=model,
    )


class _Untitled(GenerateJsonSchema):
    """Titles made up from names tell a model nothing; defaults that JSON does not have are left out."""

    ignored_warning_kinds = frozenset({"skipped-choice", "non-serializable-default"})  # type: ignore[assignment]

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _annotated(function: Callable[..., Any]) -> Callable[..., Any]:
    """What carries the annotations: of a partial its function, of an object its `__call__`."""
    if isinstance(function, functools.partial):
        return _annotated(function.func)
    return function if inspect.isroutine(function) else type(function).__call__


def _refuse_unnamed(parameters: Any) -> None:
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise UnfitFunction(f"its parameter '{parameter}' has no name to send it by; give every parameter a name")


def _model(
    names: tuple[str, ...], parameters: Mapping[str, inspect.Parameter], hints: Mapping[str, Any]
) -> type[BaseModel]:
    """Fields are numbered and the names are aliases, so that a parameter may be called anything ('json', '_x', 'model_y')."""
    fields: dict[str, Any] = {}
    for index, name in enumerate(names):
        default = parameters[name].default
        has_default = default is not inspect.Parameter.empty
        info: FieldInfo = Field(default, alias=name) if has_default else Field(alias=name)
        fields[f"p{index}"] = (hints.get(name, Any), info)
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False, protected_namespaces=())
    try:
        return create_model("Arguments", __config__=config, **fields)
    except Exception as error:  # pydantic's own errors and those of the operator's types are of many classes
        raise UnfitFunction(
            f"a parameter has a type that JSON cannot hold ({type(error).__name__}: {_first_line(error)})"
        ) from None


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    try:
        schema = model.model_json_schema(by_alias=True, schema_generator=_Untitled)
    except Exception as error:
        raise UnfitFunction(f"a parameter has a type that JSON cannot hold ({_first_line(error)})") from None
    schema.pop("title", None)
    schema.setdefault("properties", {})
    return schema


def _description(function: Callable[..., Any]) -> str:
    text = visible(inspect.getdoc(_annotated(function)) or "").strip()
    return text if len(text) <= _MAX_DESCRIPTION else f"{text[: _MAX_DESCRIPTION - 1]}…"


def _described(error: ValidationError) -> str:
    """The first faults by place, without the values and without links."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    return " ".join(
        f"The value at /{'/'.join(str(part) for part in fault['loc'])}: {fault['msg'][:_MAX_FAULT]}."
        for fault in faults[:5]
    )


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0][:_MAX_FAULT] if lines else ""
