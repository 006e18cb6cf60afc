"""Function tools: Python functions of the operator's, found by the entry point group `folkmoot.functions`.

A package offers one by an entry point whose name is the function's name for models:

    [project.entry-points."folkmoot.functions"]
    look_up_order = "shop.tools:look_up_order"

The function may be sync (it runs in a thread of its own) or async. It is trusted code: it is held to limits of time and
size, not locked in. Deliberately absent: a way to define a function over the API.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any, TypeVar

from folkmoot.domain.calls import CallResult, Tool
from folkmoot.domain.operations import ApprovalMode
from folkmoot.domain.schemas import parse_arguments, visible
from folkmoot.domain.tool_names import PROTOCOL_TOOLS
from folkmoot.kernel.errors import NotFound
from folkmoot.tools.results import TooLarge, Unwritable, failure_text, text_of
from folkmoot.tools.signatures import CallContext, Signature, UnfitArguments, UnfitFunction, signature_of
from folkmoot.tools.threads import CallThreads, TooManyThreads, as_ordinary

__all__ = ["ENTRY_POINT_GROUP", "CallContext", "FunctionTools", "function_tool"]

ENTRY_POINT_GROUP = "folkmoot.functions"
UNKNOWN_OUTCOME = "it may or may not have happened; do not repeat it blindly; look, or ask"

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ATTRIBUTE = "__folkmoot_function_tool__"
_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class _Traits:
    is_idempotent: bool = False
    is_read_only: bool = False
    is_terminal: bool = False
    limit_seconds: float = 60.0
    limit_bytes: int = 262_144
    is_gated: bool = False
    is_polling: bool = False


def function_tool(
    *,
    is_idempotent: bool = False,
    is_read_only: bool = False,
    is_terminal: bool = False,
    is_polling: bool = False,
    limit_seconds: float = 60.0,
    limit_bytes: int = 262_144,
    approval_mode: ApprovalMode | str = ApprovalMode.NEVER,
) -> Callable[[_F], _F]:
    """Mark a function with what is known of it; it stays callable as it was. Without a mark the cautious defaults hold.

    `is_idempotent`: the same call with the same idempotency key has its effect once. `is_read_only`: it changes nothing.
    `is_terminal`: its success ends the participant's turn. `is_polling`: it asks how something stands, and may be called the same way
    again and again without being taken for a circle. `limit_bytes` is of the result's text in UTF-8.
    `approval_mode`: `Never`, `Always`, or `Destructive`: a person approves each call, of a function that is not read-only.
    """
    if not 0 < limit_seconds < math.inf:
        raise ValueError("limit_seconds must be a number of seconds above 0.")
    if limit_bytes < 1:
        raise ValueError("limit_bytes must be a number of bytes of at least 1.")
    is_gated = ApprovalMode(approval_mode).gates(is_destructive=not is_read_only)
    traits = _Traits(is_idempotent, is_read_only, is_terminal, limit_seconds, limit_bytes, is_gated, is_polling)

    def mark(function: _F) -> _F:
        setattr(function, _ATTRIBUTE, traits)
        return function

    return mark


@dataclass(frozen=True, slots=True)
class _Function:
    name: str
    call: Callable[..., Any]
    signature: Signature
    traits: _Traits
    is_async: bool


class FunctionTools:
    """The functions of one process. `unfit`: why an entry point is no tool, by its name."""

    def __init__(self, functions: Mapping[str, _Function], unfit: Mapping[str, str]) -> None:
        self._functions = dict(functions)
        self.unfit: Mapping[str, str] = MappingProxyType(dict(unfit))
        self._at_work: set[asyncio.Task[str]] = set()
        self._threads = CallThreads()

    @classmethod
    def discover(cls, extra: Mapping[str, Callable[..., Any]] = MappingProxyType({})) -> FunctionTools:
        """Load what the installed packages offer, and `extra` beside it. One that cannot be used keeps no other back."""
        functions: dict[str, _Function] = {}
        unfit: dict[str, str] = {}
        for name, load in _offers(extra):
            if name in functions or name in unfit:
                functions.pop(name, None)
                unfit[name] = (
                    f"The function '{name}' is offered twice; uninstall one of the packages or rename one entry point."
                )
                continue
            try:
                functions[name] = _made(name, load())
            except UnfitFunction as error:
                unfit[name] = f"The function '{name}' cannot be used: {error}."
            except (Exception, SystemExit) as error:  # importing an operator's module may raise anything
                unfit[name] = f"The function '{name}' cannot be loaded: {failure_text(error)}"
        return cls(functions, unfit)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._functions))

    def offered(self, name: str) -> Tool:
        """What a model is told of the function, to be pinned by a start. Raises NotFound with the reason."""
        function = self._functions.get(name)
        if function is None:
            raise NotFound(self._missing(name))
        traits = function.traits
        return Tool(
            name=name,
            description=function.signature.description,
            parameters=function.signature.parameters,
            is_idempotent=traits.is_idempotent,
            is_read_only=traits.is_read_only,
            is_terminal=traits.is_terminal,
            is_polling=traits.is_polling,
            is_gated=traits.is_gated,
            limit_seconds=traits.limit_seconds,
            limit_bytes=traits.limit_bytes,
        )

    async def run(self, name: str, arguments_json: str, context: CallContext) -> CallResult:
        """Make the call. Whatever goes wrong is a result; only the caller's own cancellation is raised."""
        function = self._functions.get(name)
        if function is None:
            return _error(self._missing(name))
        arguments = parse_arguments(arguments_json)
        if isinstance(arguments, str):
            return _error(arguments)
        try:
            bound = function.signature.bind(arguments, context)
        except UnfitArguments as error:
            return _error(f"The arguments do not fit. {error} Nothing was called.")
        return await self._within_time(function, bound)

    async def _within_time(self, function: _Function, bound: Mapping[str, Any]) -> CallResult:
        # A task of its own: a function that swallows its cancellation must not hold the caller up.
        task = asyncio.get_running_loop().create_task(self._text(function, bound))
        self._at_work.add(task)
        task.add_done_callback(self._settled)
        try:
            done, _ = await asyncio.wait({task}, timeout=function.traits.limit_seconds)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not done:
            task.cancel()
            return _overrun(function)
        return _outcome(function, task)

    async def _text(self, function: _Function, bound: Mapping[str, Any]) -> str:
        """The result's text. Raises whatever the function does; SystemExit as RuntimeError, as it would end the process."""
        limit = function.traits.limit_bytes
        try:
            if function.is_async:
                return text_of(await function.call(**bound), limit_bytes=limit)
            result = await self._threads.run(partial(_called, function, bound))
            return result if isinstance(result, str) else text_of(await result, limit_bytes=limit)
        except SystemExit as error:
            raise as_ordinary(error) from None

    def _settled(self, task: asyncio.Task[str]) -> None:
        self._at_work.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, so that an overrun call's failure is not reported as forgotten

    def _missing(self, name: str) -> str:
        if name in self.unfit:
            return self.unfit[name]
        known = ", ".join(self.names) or "none"
        return f"There is no function '{visible(name)[:80]}'; install the package that offers it. There are: {known}."


def _offers(extra: Mapping[str, Callable[..., Any]]) -> Iterator[tuple[str, Callable[[], Any]]]:
    for point in entry_points(group=ENTRY_POINT_GROUP):
        yield point.name, point.load
    for name, function in extra.items():
        yield name, partial(_given, function)


def _given(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _made(name: str, function: Any) -> _Function:
    if not _NAME.fullmatch(name):
        raise UnfitFunction("its name must be 1 to 64 letters, digits, '_' or '-'")
    if name in PROTOCOL_TOOLS:
        raise UnfitFunction("its name is that of one of the conversation's own tools")
    if not callable(function):
        raise UnfitFunction("it is no function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UnfitFunction("it is a generator; let it return its whole result")
    traits = getattr(function, _ATTRIBUTE, _Traits())
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
    return _Function(name, function, signature_of(function), traits, is_async)


def _called(function: _Function, bound: Mapping[str, Any]) -> str | Awaitable[Any]:
    """Call and write in one go, so that writing a large result does not hold up the event loop either."""
    value = function.call(**bound)
    return value if inspect.isawaitable(value) else text_of(value, limit_bytes=function.traits.limit_bytes)


def _outcome(function: _Function, task: asyncio.Task[str]) -> CallResult:
    if task.cancelled():
        return _error(
            f"The function '{function.name}' was cancelled from inside: {UNKNOWN_OUTCOME}.",
            unknown=_is_unsafe(function),
        )
    error = task.exception()
    match error:
        case None:
            return CallResult(text=task.result(), is_error=False)
        case TooManyThreads():
            return _error("Too many calls of functions are under way. This one was not begun; try it again later.")
        case TooLarge():
            return _error(f"The function '{function.name}' has run, but its result is not shown: {error}")
        case Unwritable():
            return _error(f"The function '{function.name}' has run, but its result cannot be shown: {error}")
        case error:
            return _error(f"The function '{function.name}' failed. {failure_text(error)}")


def _overrun(function: _Function) -> CallResult:
    took = f"The function '{function.name}' took longer than its {function.traits.limit_seconds:g} seconds"
    if _is_unsafe(function):
        return _error(f"{took}; its outcome is unknown: {UNKNOWN_OUTCOME}.", unknown=True)
    return _error(f"{took} and was given up. It can be called again.")


def _is_unsafe(function: _Function) -> bool:
    return not (function.traits.is_idempotent or function.traits.is_read_only)


def _error(text: str, *, unknown: bool = False) -> CallResult:
    return CallResult(text=visible(text), is_error=True, unknown=unknown)
