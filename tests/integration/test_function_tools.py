"""The operator's Python functions as tools (issue 2, 'Function tools'; spec/conversation.md, Tools and approval; B42, B43, F04, F25)."""

import asyncio
import functools
import json
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field

from folkmoot.domain.schemas import check_schema
from folkmoot.kernel.errors import NotFound
from folkmoot.tools.functions import CallContext, FunctionTools, function_tool
from folkmoot.tools.threads import MAX_THREADS

CONTEXT = CallContext(call_id="c1", idempotency_key="k1", run_id="r1")


async def outcome(function: Callable[..., Any], arguments: str = "{}") -> tuple[str, bool, bool]:
    """Text, is_error and unknown of one call."""
    result = await FunctionTools.discover({"f": function}).run("f", arguments, CONTEXT)
    return result.text, result.is_error, result.unknown


def returning(value: object) -> Callable[[], object]:
    return lambda: value


class TestDiscovery:
    @pytest.fixture
    def package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
        """Installs a package with the given module text and entry points, as pip would lay it out."""

        def install(module: str, points: str, name: str = "shop_functions_of_test") -> None:
            (tmp_path / f"{name}.py").write_text(module)
            info = tmp_path / f"{name}-1.0.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            (info / "entry_points.txt").write_text(f"[folkmoot.functions]\n{points}\n")

        monkeypatch.syspath_prepend(str(tmp_path))
        yield install
        for name in [name for name in sys.modules if name.endswith("_of_test")]:
            del sys.modules[name]

    async def test_an_installed_package_offers_its_functions(self, package: Callable[..., None]) -> None:
        package(
            'def double(n: int) -> int:\n    "Twice n."\n    return 2 * n\n', "double = shop_functions_of_test:double"
        )
        tools = FunctionTools.discover()
        assert tools.offered("double").description == "Twice n."
        assert (await tools.run("double", '{"n":21}', CONTEXT)).text == "42"

    def test_a_package_that_cannot_be_loaded_keeps_no_other_back(self, package: Callable[..., None]) -> None:
        package(
            "import sys\ndef good(): ...\n", "good = shop_functions_of_test:good\ngone = shop_functions_of_test:gone"
        )
        package("raise SystemExit(3)", "exits = exits_of_test:f", name="exits_of_test")
        tools = FunctionTools.discover()
        assert "good" in tools.names
        assert set(tools.unfit) == {"gone", "exits"}
        with pytest.raises(NotFound, match="'gone' cannot be loaded: AttributeError"):
            tools.offered("gone")

    def test_a_name_offered_twice_is_offered_by_none(self, package: Callable[..., None]) -> None:
        package("def f(): ...\n", "f = shop_functions_of_test:f")
        tools = FunctionTools.discover({"f": lambda: "other"})
        assert tools.names == ()
        assert "offered twice" in tools.unfit["f"]

    async def test_an_unknown_name_is_an_error_with_those_that_are(self) -> None:
        tools = FunctionTools.discover({"a": lambda: 1})
        with pytest.raises(NotFound, match="There are: a"):
            tools.offered("b")
        result = await tools.run("b", "{}", CONTEXT)
        assert result.is_error
        assert "There is no function 'b'" in result.text


class TestSignature:
    def test_the_schema_comes_from_the_signature(self) -> None:
        def order(
            item: str,
            count: Annotated[int, Field(ge=1, description="How many")] = 1,
            size: Literal["s", "m"] | None = None,
        ) -> str:
            """Order an item.

            The longer story.
            """
            return f"{item}{count}{size}"

        offered = FunctionTools.discover({"order": order}).offered("order")
        assert offered.description == "Order an item.\n\nThe longer story."
        assert offered.parameters == {
            "type": "object",
            "additionalProperties": False,
            "required": ["item"],
            "properties": {
                "item": {"type": "string"},
                "count": {"type": "integer", "minimum": 1, "default": 1, "description": "How many"},
                "size": {"anyOf": [{"type": "string", "enum": ["s", "m"]}, {"type": "null"}], "default": None},
            },
        }
        assert check_schema(offered.parameters, "") == ()

    def test_a_function_without_parameters_takes_an_empty_object(self) -> None:
        offered = FunctionTools.discover({"f": lambda: 1}).offered("f")
        assert offered.parameters == {"type": "object", "additionalProperties": False, "properties": {}}

    def test_without_a_mark_the_cautious_defaults_hold(self) -> None:
        offered = FunctionTools.discover({"f": lambda: 1}).offered("f")
        assert (offered.is_idempotent, offered.is_read_only, offered.is_terminal) == (False, False, False)

    def test_a_mark_is_told_and_the_function_stays_as_it_was(self) -> None:
        @function_tool(is_idempotent=True, is_read_only=True, is_terminal=True, limit_seconds=2.5, limit_bytes=10)
        def f(x: int) -> int:
            return x

        assert f(3) == 3
        offered = FunctionTools.discover({"f": f}).offered("f")
        assert (offered.is_idempotent, offered.is_read_only, offered.is_terminal) == (True, True, True)
        assert (offered.limit_seconds, offered.limit_bytes) == (2.5, 10)

    @pytest.mark.parametrize("limits", [{"limit_seconds": 0}, {"limit_seconds": float("nan")}, {"limit_bytes": 0}])
    def test_limits_that_are_none_are_refused(self, limits: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match="limit_"):
            function_tool(**limits)

    async def test_parameters_may_have_any_name(self) -> None:
        def f(json: int, _private: int, model_config: int, self_: int = 4) -> list[int]:
            return [json, _private, model_config, self_]

        assert await outcome(f, '{"json":1,"_private":2,"model_config":3}') == ("[1,2,3,4]", False, False)

    async def test_the_context_is_handed_in_and_not_told(self) -> None:
        def f(x: int, *, call: CallContext) -> str:
            return f"{x} {call.call_id} {call.idempotency_key} {call.run_id}"

        assert "call" not in FunctionTools.discover({"f": f}).offered("f").parameters["properties"]
        assert await outcome(f, '{"x":1}') == ("1 c1 k1 r1", False, False)
        text, is_error, _ = await outcome(f, '{"x":1,"call":{"call_id":"forged"}}')
        assert is_error
        assert "/call is not allowed" in text

    @pytest.mark.parametrize(
        ("name", "function", "words"),
        [
            ("a b", lambda: 1, "name"),
            ("call_vote", lambda: 1, "own tools"),
            ("f", 3, "no function"),
            ("f", lambda *a: a, "has no name"),
            ("f", lambda **a: a, "has no name"),
            ("f", len, "has no name"),
        ],
    )
    def test_what_cannot_be_told_to_a_model_is_refused_with_the_reason(
        self, name: str, function: Any, words: str
    ) -> None:
        tools = FunctionTools.discover({name: function})
        assert tools.names == ()
        assert words in tools.unfit[name]

    def test_types_that_json_cannot_hold_are_refused(self) -> None:
        def takes_object(x: threading.Lock) -> None: ...
        def takes_unknown(x: "NoSuchType") -> None: ...  # type: ignore[name-defined]  # noqa: F821
        def takes_function(x: Callable[[], int]) -> None: ...
        def takes_two(a: CallContext, b: CallContext) -> None: ...
        def generates() -> Iterator[int]:
            yield 1

        for function in (takes_object, takes_unknown, takes_function, takes_two, generates):
            tools = FunctionTools.discover({"f": function})
            assert "cannot be used" in tools.unfit["f"], function

    def test_a_long_docstring_is_cut(self) -> None:
        """F53: descriptions of any size."""

        def f() -> None: ...

        f.__doc__ = "x" * 1_000_000
        assert len(FunctionTools.discover({"f": f}).offered("f").description) == 1_024

    async def test_partials_methods_and_callable_objects_work(self) -> None:
        class Adder:
            def __init__(self, n: int) -> None:
                self.n = n

            def method(self, x: int) -> int:
                return self.n + x

            async def __call__(self, x: int) -> int:
                return self.n + x

        def add(n: int, x: int) -> int:
            return n + x

        for function in (Adder(1), Adder(1).method, functools.partial(add, 1)):
            assert await outcome(function, '{"x":2}') == ("3", False, False)


@dataclass
class Line:
    item: str
    count: int


class Order(BaseModel):
    lines: list[Line]
    due: date


class TestArguments:
    async def test_they_arrive_as_the_signature_says(self) -> None:
        def f(order: Order, at: date, ratio: float, tags: set[str]) -> str:
            return f"{order.lines[0].count + 1} {order.due.year} {at.month} {ratio} {sorted(tags)}"

        arguments = {
            "order": {"lines": [{"item": "x", "count": 1}], "due": "2026-01-02"},
            "at": "2026-03-04",
            "ratio": 1,
            "tags": ["b", "a"],
        }
        assert await outcome(f, json.dumps(arguments)) == ("2 2026 3 1.0 ['a', 'b']", False, False)

    async def test_code_fences_and_emptiness_are_read(self) -> None:
        """B33, B43."""
        assert await outcome(lambda x=1: x, '```json\n{"x": 5}\n```') == ("5", False, False)
        assert await outcome(lambda x=1: x, "") == ("1", False, False)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ('{"x":"1"}', 'The value at /x, a string, is not of type "integer"'),
            ("{}", "lacks 'x'"),
            ('{"x":1,"y":2}', "/y is not allowed"),
            ('{"x":-1}', "/x"),
            ("[1]", "an array, not an object"),
            ("{x:1}", "not JSON"),
            ('{"x":NaN}', "NaN"),
            ('{"x":' + "9" * 5000 + "}", "digits"),
            ('{"x":' + "[" * 100_000, "nested"),
        ],
    )
    async def test_a_fault_is_an_error_result_and_costs_no_call(self, arguments: str, words: str) -> None:
        """B43: arguments that do not parse never run; F25."""
        calls: list[int] = []

        def f(x: Annotated[int, Field(ge=0)]) -> None:
            calls.append(x)

        text, is_error, unknown = await outcome(f, arguments)
        assert is_error
        assert not unknown
        assert words in text
        assert calls == []

    async def test_what_only_the_signature_can_check_is_checked_without_telling_the_value(self) -> None:
        def odd(x: int) -> int:
            if x % 2 == 0:
                raise ValueError("must be odd")
            return x

        def explodes(x: int) -> int:
            raise RuntimeError("boom")

        def f(x: Annotated[int, AfterValidator(odd)] = 1, y: Annotated[int, AfterValidator(explodes)] = 1) -> None: ...

        text, is_error, _ = await outcome(f, '{"x":20261}')
        assert not is_error
        text, is_error, _ = await outcome(f, '{"x":20262}')
        assert is_error
        assert "The value at /x: Value error, must be odd." in text
        assert "20262" not in text
        text, is_error, _ = await outcome(f, '{"y":1}')
        assert is_error
        assert "RuntimeError" in text


class TestResults:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ("as it is", "as it is"),
            ("", ""),
            (None, "null"),
            (True, "true"),
            ({"a": (1, 2.5)}, '{"a":[1,2.5]}'),
            (Line("x", 2), '{"item":"x","count":2}'),
            (Order(lines=[], due=date(2026, 1, 2)), '{"lines":[],"due":"2026-01-02"}'),
            ([float("nan")], "[null]"),
            ("a\x00b\ud83d", "a\u2400b\\ud83d"),
            ({"k\ud800": "v\x00\ud800"}, '{"k\\\\ud800":"v\u2400\\\\ud800"}'),
        ],
    )
    async def test_text_is_kept_and_all_else_is_json(self, value: object, text: str) -> None:
        """F25: NUL, lone surrogates and NaN take their visible form."""
        assert await outcome(lambda: value) == (text, False, False)

        async def later() -> object:
            return value

        assert await outcome(later) == (text, False, False)

    @pytest.mark.parametrize("value", [object(), [object()], b"\xff", iter([1]), threading.Lock()])
    async def test_what_json_cannot_hold_is_an_error_that_says_it_has_run(self, value: object) -> None:
        text, is_error, _ = await outcome(lambda: value)
        assert is_error
        assert "has run, but its result cannot be shown" in text
        assert type(value).__name__ in text

    async def test_a_deep_or_circular_result_is_an_error(self) -> None:
        deep: list[Any] = []
        for _ in range(100_000):
            deep = [deep]
        circle: list[Any] = []
        circle.append(circle)
        for value in (deep, circle):
            text, is_error, _ = await outcome(returning(value))
            assert is_error
            assert "has run" in text

    async def test_an_endless_generator_is_an_error(self) -> None:
        async def chunks() -> AsyncIterator[int]:
            yield 1

        for value in ((n for n in iter(int, 1)), chunks()):
            text, is_error, _ = await outcome(returning(value))
            assert is_error
            assert "one by one" in text

    async def test_a_result_over_the_limit_says_size_and_limit(self) -> None:
        limited = function_tool(limit_bytes=10)
        assert await outcome(limited(lambda: "ä" * 5)) == ("ä" * 5, False, False)
        text, is_error, unknown = await outcome(limited(lambda: "ä" * 5 + "!"))
        assert is_error
        assert not unknown
        assert "11 bytes" in text
        assert "10" in text


class TestFailures:
    async def test_an_exception_is_told_by_class_and_message_without_traceback(self) -> None:
        def f() -> None:
            raise KeyError("no such order")

        async def g() -> None:
            raise KeyError("no such order")

        for function in (f, g):
            text, is_error, unknown = await outcome(function)
            assert text == "The function 'f' failed. KeyError: 'no such order'"
            assert is_error
            assert not unknown

    async def test_a_long_or_hostile_message_is_cut_and_made_safe(self) -> None:
        def f() -> None:
            raise ValueError("\x00\ud800" + "x" * 100_000)

        text, _, _ = await outcome(f)
        assert len(text) < 600
        text.encode()
        assert "\x00" not in text

    async def test_an_exception_that_cannot_be_told_is_named(self) -> None:
        class Mute(Exception):
            def __str__(self) -> str:
                raise RuntimeError

        def f() -> None:
            raise Mute

        assert (await outcome(f))[0] == "The function 'f' failed. Mute."

    @pytest.mark.parametrize(
        "error", [SystemExit(3), StopIteration(), asyncio.CancelledError(), TimeoutError("its own")]
    )
    async def test_no_exception_gets_out(self, error: BaseException) -> None:
        def f() -> None:
            raise error

        async def g() -> None:
            raise error

        for function in (f, g):
            _, is_error, _ = await outcome(function)
            assert is_error

    async def test_an_inner_cancellation_leaves_the_outcome_unknown(self) -> None:
        async def f() -> None:
            raise asyncio.CancelledError

        text, is_error, unknown = await outcome(f)
        assert is_error
        assert unknown
        assert "may or may not have happened" in text
        _, _, unknown = await outcome(function_tool(is_idempotent=True)(f))
        assert not unknown


class TestTime:
    async def test_an_overrun_call_may_or_may_not_have_happened(self) -> None:
        """F04's sentence, for a call that was given up."""
        release = threading.Event()
        text, is_error, unknown = await outcome(function_tool(limit_seconds=0.05)(lambda: release.wait(30)))
        release.set()
        assert is_error
        assert unknown
        assert "it may or may not have happened; do not repeat it blindly; look, or ask" in text
        assert "0.05 seconds" in text

    @pytest.mark.parametrize("traits", [{"is_idempotent": True}, {"is_read_only": True}])
    async def test_an_overrun_call_that_can_be_repeated_is_a_plain_error(self, traits: dict[str, bool]) -> None:
        @function_tool(limit_seconds=0.05, **traits)
        async def f() -> None:
            await asyncio.Event().wait()

        text, is_error, unknown = await outcome(f)
        assert is_error
        assert not unknown
        assert "can be called again" in text

    async def test_an_async_function_is_cancelled_at_its_limit(self) -> None:
        cancelled = asyncio.Event()

        @function_tool(limit_seconds=0.05)
        async def f() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        await outcome(f)
        await asyncio.wait_for(cancelled.wait(), 10)

    async def test_a_function_that_swallows_its_cancellation_holds_nobody_up(self) -> None:
        release = asyncio.Event()

        @function_tool(limit_seconds=0.05)
        async def f() -> None:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue

        _, is_error, unknown = await asyncio.wait_for(outcome(f), 10)
        release.set()
        assert is_error
        assert unknown

    async def test_a_cancelled_caller_is_cancelled_and_so_is_the_function(self) -> None:
        began, ended = asyncio.Event(), asyncio.Event()

        async def f() -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        task = asyncio.create_task(outcome(f))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(ended.wait(), 10)

    async def test_a_sync_function_does_not_hold_up_the_event_loop(self) -> None:
        release = threading.Event()

        def f() -> bool:
            return release.wait(30)

        task = asyncio.create_task(outcome(f))
        ticks = 0
        while not task.done() and ticks < 100:
            await asyncio.sleep(0)
            ticks += 1
        assert ticks == 100
        release.set()
        assert await task == ("true", False, False)

    async def test_calls_run_side_by_side(self) -> None:
        meeting = threading.Barrier(3)
        tools = FunctionTools.discover({"f": lambda: meeting.wait(30) >= 0})
        results = await asyncio.gather(*(tools.run("f", "{}", CONTEXT) for _ in range(3)))
        assert [result.text for result in results] == ["true"] * 3

    async def test_stuck_threads_are_bounded_and_given_back(self) -> None:
        release = threading.Event()
        stuck = function_tool(limit_seconds=0.2)(lambda: release.wait(30))
        tools = FunctionTools.discover({"stuck": stuck, "quick": lambda: "done"})
        results = await asyncio.gather(*(tools.run("stuck", "{}", CONTEXT) for _ in range(MAX_THREADS)))
        assert all(result.unknown for result in results)
        refused = await tools.run("quick", "{}", CONTEXT)
        assert refused.is_error
        assert not refused.unknown
        assert "was not begun" in refused.text
        release.set()
        for thread in threading.enumerate():
            if thread.name == "folkmoot-function":
                thread.join(10)
        assert (await tools.run("quick", "{}", CONTEXT)).text == "done"
