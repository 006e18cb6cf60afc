"""What must hold of bindings and of the inputs that go into calls: in themselves, and beside the operation that they take.

Pointers are into the version, by the wire's names. Deliberately absent: whether operations and secrets are there; that takes
the store.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from folkmoot.domain.argument_paths import path_of
from folkmoot.domain.bindings import Unfit, bound_value
from folkmoot.domain.operations import ApprovalMode, Descriptor, OpenApiDescriptor, OperationVersion, Place
from folkmoot.domain.prompts import check_prompts, names_in, problem_of_input_name
from folkmoot.domain.schema_reports import shortened
from folkmoot.domain.tool_bindings import AuthenticationHeader, BindingInput, OnOperation, OperationBinding, SecretInput
from folkmoot.kernel.errors import Fault

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
_SCHEME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,60}")
# What the connection itself says; another value would change where a request goes or where it ends.
_OWN_HEADERS = frozenset(
    ("host", "content-length", "content-type", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect",
     "proxy-authorization", "proxy-connection", "keep-alive")
)  # fmt: skip
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
# What decides which program runs, which code it loads, or where it looks for its files; in capitals.
_OWN_VARIABLES = frozenset(
    ("PATH", "HOME", "LANG", "SHELL", "ENV", "BASH_ENV", "IFS", "NODE_OPTIONS", "NODE_PATH", "JAVA_TOOL_OPTIONS", "RUBYOPT", "RUBYLIB",
     "PERL5OPT", "PERL5LIB")
)  # fmt: skip
_OWN_PREFIXES = ("LD_", "DYLD_", "PYTHON")
_ORDER = (ApprovalMode.NEVER, ApprovalMode.DESTRUCTIVE, ApprovalMode.ALWAYS)
MAX_SECONDS = 3_600
MAX_BYTES = 100_000_000


def faults_of_header(pointer: str, name: str, scheme: str | None) -> Iterator[Fault]:
    """What keeps a header from being sent."""
    if not _TOKEN.fullmatch(name):
        yield Fault(
            f"{pointer}/headerName", f"'{shortened(name, 60)}' is no header's name; write one such as Authorization."
        )
    elif name.lower() in _OWN_HEADERS or name.lower().startswith("mcp-"):
        yield Fault(f"{pointer}/headerName", f"'{name}' is set by the connection itself; choose another header.")
    if scheme is not None and not _SCHEME.fullmatch(scheme):
        yield Fault(f"{pointer}/scheme", "A scheme is one word before the secret, such as Bearer; correct it.")


def faults_of_variable(pointer: str, name: str, scheme: str | None, taken: Collection[str]) -> Iterator[Fault]:
    """What keeps a header from being given to a command, as a variable of its environment. `taken`: those that are set in plain text."""
    shown = shortened(name, 60)
    if not VARIABLE.fullmatch(name):
        message = f"'{shown}' is no variable of an environment, as which a command is given a secret; write one such as API_TOKEN."
        yield Fault(f"{pointer}/headerName", message)
    elif name.upper() in _OWN_VARIABLES or name.upper().startswith(_OWN_PREFIXES):
        message = f"'{shown}' decides what a command runs or reads, and is given no secret; choose another variable."
        yield Fault(f"{pointer}/headerName", message)
    elif name in taken:
        message = f"'{shown}' is in the connector's 'environment' too, in plain text; take one of the two out."
        yield Fault(f"{pointer}/headerName", message)
    if scheme is not None:
        yield Fault(f"{pointer}/scheme", "A variable of an environment holds the secret alone; leave the scheme out.")


def faults_of_limits(pointer: str, seconds: float | None, size: int | None) -> Iterator[Fault]:
    if seconds is not None and not 0 < seconds <= MAX_SECONDS:
        yield Fault(
            f"{pointer}/limitSeconds", f"This is a number of seconds above 0, at most {MAX_SECONDS:,}; correct it."
        )
    if size is not None and not 1 <= size <= MAX_BYTES:
        yield Fault(f"{pointer}/limitBytes", f"This is a number of bytes from 1 to {MAX_BYTES:,}; correct it.")


def faults_of_link(pointer: str, link: OnOperation) -> Iterator[Fault]:
    has_names = link.connector is not None and link.operation is not None
    if link.external_operation_id is None and not has_names:
        message = "This names no operation: give its connector and operation by name, or its externalOperationId."
        yield Fault(pointer, message)


def faults_of_bindings(
    bindings: Iterable[tuple[str, OperationBinding]],
    *,
    inputs: Collection[str] | None = None,
    prompt_inputs: Collection[str] = (),
    secret_inputs: Collection[str] | None = None,
) -> Iterator[Fault]:
    """`bindings`: pairs of JSON pointer and binding. `inputs`, those of prompts among them (`prompt_inputs`), and `secret_inputs`:
    the names that there are; null: not known here."""
    for pointer, binding in bindings:
        yield from faults_of_link(pointer, binding)
        yield from faults_of_limits(pointer, binding.limit_seconds, binding.limit_bytes)
        if binding.is_idempotent:
            yield Fault(
                f"{pointer}/isIdempotent", "A binding can only tighten: false, or null for what the operation says."
            )
        if binding.authentication_header is not None:
            yield from _header_faults(f"{pointer}/authenticationHeader", binding.authentication_header, secret_inputs)
        if inputs is not None:
            yield from faults_of_texts(pointer, binding, inputs=inputs, prompt_inputs=prompt_inputs)


def faults_of_texts(
    pointer: str, binding: OperationBinding, *, inputs: Collection[str], prompt_inputs: Collection[str]
) -> Iterator[Fault]:
    """What is wrong with the `%%inputs%%` of its texts. Guidance is a prompt: what goes into calls alone no model sees."""
    yield from check_prompts([(f"{pointer}{at}/value", pair.value) for _, at, pair in binding.fixed()], inputs)
    yield from check_prompts([(f"{pointer}/promptGuidance", binding.prompt_guidance or "")], prompt_inputs)


def _header_faults(
    pointer: str, header: AuthenticationHeader, secret_inputs: Collection[str] | None
) -> Iterator[Fault]:
    yield from faults_of_header(pointer, header.header_name, header.scheme)
    if (header.secret is None) == (header.secret_input_name is None):
        yield Fault(pointer, "A header sends one secret, or the one that a run input chooses: name one of the two.")
    elif header.secret_input_name is not None and secret_inputs is not None:
        yield from faults_of_secret_input(pointer, header.secret_input_name, secret_inputs)


def faults_of_secret_input(pointer: str, name: str, known: Collection[str]) -> Iterator[Fault]:
    if name not in known:
        message = f"'{shortened(name, 80)}' names no secret input: add it to inputsConnectorAuthenticationSecret."
        yield Fault(f"{pointer}/secretInputName", message)


def faults_of_call_inputs(
    secrets: tuple[SecretInput, ...], bindings: tuple[BindingInput, ...], *, prompts: Collection[str]
) -> Iterator[Fault]:
    """Inputs of calls. One name may fill several targets; the name of a secret is a secret's alone, so that no prompt shows it."""
    others = {*prompts, *(item.name for item in bindings)}
    for index, item in enumerate(secrets):
        pointer = f"/inputsConnectorAuthenticationSecret/{index}"
        yield from _input_name_faults(pointer, item.name)
        yield from faults_of_link(pointer, item)
        yield from faults_of_header(pointer, item.header_name, item.scheme)
        if item.name in others:
            yield Fault(
                f"{pointer}/name", f"'{item.name}' is another input's name too; a secret's is its own. Rename one."
            )
    for index, bound in enumerate(bindings):
        pointer = f"/inputsConnectorBinding/{index}"
        yield from _input_name_faults(pointer, bound.name)
        yield from faults_of_link(pointer, bound)


def _input_name_faults(pointer: str, name: str) -> Iterator[Fault]:
    problem = problem_of_input_name(name)
    if problem is not None:
        yield Fault(f"{pointer}/name", problem)


def faults_beside(pointer: str, binding: OperationBinding, version: OperationVersion) -> Iterator[Fault]:
    """What of a binding the operation's version does not admit: targets that are not there, and what would loosen it."""
    taken = [(place, f"{pointer}{at}", pair.name, pair.value) for place, at, pair in binding.fixed()]
    yield from faults_of_targets(taken, version.descriptor, name=binding.name)
    mode = binding.approval_mode
    if mode is not None and _ORDER.index(mode) < _ORDER.index(version.approval_mode):
        yield _looser(f"{pointer}/approvalMode", mode, version.approval_mode)
    if binding.limit_seconds is not None and binding.limit_seconds > version.limit_seconds:
        yield _looser(f"{pointer}/limitSeconds", f"{binding.limit_seconds:g}", f"{version.limit_seconds:g}")
    if binding.limit_bytes is not None and binding.limit_bytes > version.limit_bytes:
        yield _looser(f"{pointer}/limitBytes", binding.limit_bytes, version.limit_bytes)


def faults_of_targets(
    taken: Iterable[tuple[Place, str, str, str | None]], descriptor: Descriptor, *, name: str
) -> Iterator[Fault]:
    """`taken`: place, JSON pointer, target and value of each binding; null: not known yet. Two may not stand within each other."""
    paths: list[tuple[str, ...]] = []
    for place, pointer, target, value in taken:
        path = path_of(descriptor, place, target)
        shown = shortened(target, 80)
        if path is None:
            where = f" ({place})" if isinstance(descriptor, OpenApiDescriptor) else ""
            yield Fault(pointer, f"The operation of '{name}' has no parameter '{shown}'{where}; correct the name.")
            continue
        if any(path[: len(other)] == other[: len(path)] for other in paths):
            yield Fault(pointer, f"'{shown}' of '{name}' is bound twice; leave one out.")
        paths.append(path)
        if value is not None and not names_in(value):
            yield from _value_faults(pointer, descriptor, path, value)


def _value_faults(pointer: str, descriptor: Descriptor, path: tuple[str, ...], value: str) -> Iterator[Fault]:
    try:
        bound_value(descriptor, path, value, {})
    except Unfit as error:
        yield Fault(pointer, f"The value for '{'.'.join(path)}' is wrong: {error}. Correct it.")


def _looser(pointer: str, wanted: object, there: object) -> Fault:
    return Fault(pointer, f"'{wanted}' is looser than the operation's own '{there}'; a binding can only tighten.")
