"""Which key a call takes, what becomes of keys that fail, and that all of it is read anew at each call (platform.md; B44, F61)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import panels
import pytest
import pytest_asyncio
from api_at_hand import NAMESPACE, NEW_ID, PANEL, RUNS, problem_of, put, stranger_key, working_beside
from crews import until
from keyed_models import MODEL, Bank, bank

from folkmoot import settings
from folkmoot.runtime import ended_calls
from folkmoot.runtime.options import WorkerOptions

VARIABLE = "BANK_API_KEY"
ANSWERED = "select * from model_call where error_class is null and voided_at is null"
OF_KEYS = {
    "refused": "Authentication",
    "forbidden": "Authentication",
    "limited": "RateLimited",
    "quota": "QuotaExhausted",
    "missing": "Authentication",
}


@pytest_asyncio.fixture
async def home(database_dsn: str, tmp_path: Path) -> AsyncIterator[Bank]:
    async with bank(database_dsn, tmp_path) as made:
        await made.panel()
        yield made


async def rows(home: Bank, statement: str, *values: Any) -> list[dict[str, Any]]:
    return await panels.fetch(home.server.installation.database, statement, *values)


class TestOrder:
    async def test_without_a_stack_the_runs_own_then_the_tenants(self, home: Bank) -> None:
        """platform.md: the run's own by priority, then the tenant's; each is taken when those before it fail."""
        own = []
        for name, priority in (("own-second", 2), ("own-first", 1)):
            await home.secret(name)
            home.models.plays[name] = "refused"
            own.append({**home.entry(f"{NAMESPACE}/{name}", "credentialId"), "priority": priority})
        await home.key("tenant-second", priority=5)
        await home.key("tenant-first", priority=-1, play="quota")
        run = await home.run(credentials=own)
        assert run["status"] == "Completed", run["failureDetails"]
        assert home.models.keys == ["own-first", "own-second", "tenant-first", "tenant-second"]
        assert [entry["priority"] for entry in run["credentials"]] == [2, 1]
        assert [failure["failureReason"] for failure in run["credentialFailures"]] == [
            "Authentication", "Authentication", "QuotaExhausted",
        ]  # fmt: skip
        assert [failure["retryAfterSeconds"] for failure in run["credentialFailures"]] == [600, 600, 600]
        assert run["credentialStack"] is None and run["allowPlatformFallback"] is False
        (call,) = await rows(home, ANSWERED)
        secret = (await home.server.client.get(f"/namespaces/{NAMESPACE}/secrets/by-name/tenant-second")).json()
        assert (call["credential"], call["is_own_license"]) == (secret["id"], False)

    async def test_a_stack_counts_alone_and_the_nearest_is_taken(self, home: Bank) -> None:
        """platform.md: named at the start, else the interaction's, the namespace's, the tenant's."""
        await home.key("of-the-tenants-keys")
        client, places = home.server.client, f"/namespaces/{NAMESPACE}/credential-stacks/default"
        for name in ("tenant", "namespace", "interaction", "start"):
            await home.stack(name, {f"of-{name}": "fine"})
        seen = []
        for source in ("Tenant", "Namespace", "Interaction", "Start"):
            if source == "Tenant":
                await put(client, "/credential-stacks/default", {"credentialStack": f"{NAMESPACE}/tenant"})
            elif source == "Namespace":
                await put(client, places, {"credentialStack": "namespace"})
            elif source == "Interaction":
                await home.panel(credentialStack="interaction")
            body = {"credentialStack": f"{NAMESPACE}/start"} if source == "Start" else {}
            run = await home.run(**body)
            snapshot = run["credentialStack"]
            assert (run["status"], snapshot["source"], snapshot["stackName"]) == ("Completed", source, source.lower())
            assert set(snapshot["entries"][0]) == {
                "id", "credentialId", "provider", "baseUrl", "modelNameOverrides", "isOwnLicense", "priority",
            }  # fmt: skip
            seen.append(home.models.keys[-1])
        assert seen == ["of-tenant", "of-namespace", "of-interaction", "of-start"]
        assert (await client.get(places)).json()["credentialStack"] == f"{NAMESPACE}/namespace"
        # Used up, it is not left for the tenant's keys.
        home.models.plays["of-start"] = "refused"
        run = await home.run(credentialStack="start")
        assert run["status"] == "Failed" and "(NoCredential)" in run["failureDetails"]
        assert "the entry 'of-start' of the credential stack 'start' rests" in run["failureDetails"]
        # Later changes of a stack are for later runs; one that is disabled is no way around it.
        await client.post(f"/namespaces/{NAMESPACE}/credential-stacks/by-name/tenant/versions/1/disable")
        await put(client, places, {"credentialStack": None})
        await home.panel()
        problem = problem_of(await client.put(f"{PANEL}/start", json={}), 422, "bad_input")
        assert "the tenant's default cannot be used" in problem["detail"]

    async def test_the_operators_key_needs_the_runs_word_and_the_tenants(
        self, database_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """platform.md: only if the run says so and the tenant allows it; and only to where the operator lets it go."""
        monkeypatch.setenv(VARIABLE, "the-operators")
        async with bank(database_dsn, tmp_path) as home:
            await home.panel(variable=VARIABLE)
            (tenant,) = await rows(home, "select tenant_id, allow_platform_fallback from tenant")
            assert tenant["allow_platform_fallback"]
            told = {
                "the start does not allow": {},
                f"FOLKMOOT_ALLOW_KEYS={VARIABLE}={home.models.url}": {"allowPlatformFallback": True},
            }
            for words, body in told.items():
                run = await home.run(**body)
                assert run["status"] == "Failed" and words in run["failureDetails"], run["failureDetails"]
            database = home.server.installation.database
            await panels.execute(database, "update tenant set allow_platform_fallback = false")
            run = await home.run(allowPlatformFallback=True)
            assert "this tenant may not use the operator's own" in run["failureDetails"]
            assert home.models.calls == []

    async def test_the_operators_key_is_the_last(
        self, database_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """B44: an own-licence run never falls to the platform's key unasked; asked, it does."""
        monkeypatch.setenv(VARIABLE, "the-operators")
        async with bank(database_dsn, tmp_path, works=False) as home:
            await home.panel(variable=VARIABLE)
            allowed = f"{VARIABLE}={home.models.url}"
            async with bank_at_work(home, database_dsn, tmp_path, allowed):
                await home.key("licensed", play="refused", isOwnLicense=True)
                run = await home.run()
                assert run["status"] == "Failed" and home.models.keys == ["licensed"]
                assert "The operator's key is not used: the start does not allow" in run["failureDetails"]
                assert len(run["tokenUsage"]) == 1  # what was not sent is no call
                run = await home.run(allowPlatformFallback=True)
                assert run["status"] == "Completed" and home.models.keys == ["licensed", "the-operators"]
                (call,) = await rows(home, ANSWERED)
                assert (call["credential"], call["is_own_license"]) == (None, False)

    async def test_a_model_that_needs_no_key_goes_without_or_with_the_first_that_fits(self, home: Bank) -> None:
        run = await home.run()
        assert (run["status"], home.models.keys) == ("Completed", [""])
        # One for another server is none, unless it says what the model is called there.
        await home.key("elsewhere", baseUrl="http://127.0.0.1:9/v1")
        await home.run()
        assert home.models.keys == ["", ""]
        await home.key("renamed", modelNameOverrides={MODEL: "their-big"})
        await home.run()
        assert [(call.key, call.model) for call in home.models.calls[2:]] == [("renamed", "their-big")]


class TestRules:
    async def test_rules_choose_entries_by_participant_and_purpose(self, home: Bank) -> None:
        await home.panel(seats=3)
        rules = [
            {"participant": "Ben", "entries": ["second", "first"]},
            {"purpose": "Compaction", "entries": ["second"]},
            {"participant": "Cid", "model": "another", "entries": ["second"]},
            {"provider": "openai-compatible", "model": MODEL, "purpose": "Agent"},
        ]
        await home.stack("ruled", {"first": "fine", "second": "fine"}, rules=rules)
        run = await home.run(credentialStack="ruled")
        assert run["status"] == "Completed" and home.models.keys == ["first", "second", "first"]

    async def test_what_comes_when_a_rule_is_used_up(self, home: Bank) -> None:
        """platform.md: next, wait, or fail. A wait makes no call, and does not count as tried."""
        only = {"entries": ["limited"]}
        entries = {"limited": "limited-shortly", "spare": "fine"}
        await home.stack("fails", entries, rules=[{**only, "whenUsedUp": "Fail"}, {}])
        run = await home.run(credentialStack="fails")
        assert run["status"] == "Failed" and "(NoCredential)" in run["failureDetails"]
        assert home.models.keys == ["limited"]
        await home.stack("next", entries, rules=[{**only, "whenUsedUp": "Next"}, {}])
        run = await home.run(credentialStack="next")
        assert run["status"] == "Completed" and home.models.keys[-1] == "spare"
        await until(lambda: is_awake(home))
        await home.stack("waits", entries, rules=[{**only, "whenUsedUp": "Wait"}, {}])
        before = len(home.models.keys)
        started = await home.start(credentialStack="waits")
        await until(lambda: len(home.models.keys) > before)
        home.models.plays["limited"] = "fine"
        run = await home.ended(started)
        assert run["status"] == "Completed" and home.models.keys[before:] == ["limited", "limited"]
        calls = await rows(home, "select error_class, voided_at from model_call where run_id = $1", started.run_id)
        assert [call["error_class"] for call in calls if call["voided_at"] is None] == ["RateLimited", None]
        assert any(call["voided_at"] is not None for call in calls)  # it held, and no call was made


async def is_awake(home: Bank) -> bool:
    return not await rows(home, "select from credential_rest where until > folkmoot_now()")


class TestFailures:
    async def test_failures_of_keys_try_the_next(self, home: Bank) -> None:
        """B44: 401, 403, 429, quota, not available for this key."""
        for play, reason in OF_KEYS.items():
            home.models.plays |= {f"{play}-first": play}
            own = [
                {**home.entry(await home.secret(f"{play}-{name}"), "credentialId"), "priority": priority}
                for priority, name in enumerate(("first", "second"))
            ]
            before = len(home.models.keys)
            run = await home.run(credentials=own)
            assert run["status"] == "Completed" and home.models.keys[before:] == [f"{play}-first", f"{play}-second"]
            (failure,) = run["credentialFailures"]
            assert failure["failureReason"] == reason and failure["detail"] and failure["retryAfterSeconds"] >= 60
            # The next run does not try it: it rests, for all of the tenant.
            run = await home.run(credentials=own)
            assert home.models.keys[before + 2 :] == [f"{play}-second"] and run["credentialFailures"] == []

    async def test_other_failures_do_not_try_the_next(self, home: Bank) -> None:
        """B44: other errors do not; the place is overloaded for every key there."""
        await home.key("a-first", play="invalid")
        await home.key("b-second")
        run = await home.run()
        assert run["status"] == "Failed" and "(InvalidRequest)" in run["failureDetails"]
        assert home.models.keys == ["a-first"] and run["credentialFailures"] == []
        for play in ("overloaded", "broken"):
            home.models.plays["a-first"] = play
            before = len(home.models.calls)
            started = await home.start()
            await until(lambda before=before: len(home.models.calls) > before)
            home.models.plays["a-first"] = "fine"
            run = await home.ended(started)
            assert run["status"] == "Completed" and set(home.models.keys[before:]) == {"a-first"}
            assert run["credentialFailures"] == []

    async def test_what_befell_other_keys_makes_no_wait_longer(
        self, home: Bank, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """platform.md, backoff: it doubles with each time that was waited, and trying the next key is no wait."""
        backoff, waits = ended_calls.backoff_seconds, list[int]()

        def noted(options: WorkerOptions, attempt: int, chance: float) -> float:
            waits.append(attempt)
            return backoff(options, attempt, chance) / 100

        monkeypatch.setattr(ended_calls, "backoff_seconds", noted)
        for name in ("a-first", "b-second", "c-third"):
            await home.key(name, play="refused")
        await home.key("d-last", play="overloaded")
        started = await home.start()
        await until(lambda: home.models.keys.count("d-last") >= 2)
        home.models.plays["d-last"] = "fine"
        assert (await home.ended(started))["status"] == "Completed"
        assert waits[:2] == [1, 2]

    async def test_when_all_are_used_up_each_is_listed(self, home: Bank) -> None:
        """B44: the error lists each, a deleted one too, and gives nothing of them away."""
        for name, play in (
            ("a-refused", "refused"),
            ("b-quota", "quota"),
            ("c-gone", "fine"),
            ("d-missing", "missing"),
        ):
            await home.key(name, play=play)
        gone = f"/namespaces/{NAMESPACE}/secrets/by-name/c-gone"
        assert (await home.server.client.delete(gone)).status_code == 204
        await home.key("e-sealed")
        database = home.server.installation.database
        await panels.execute(
            database, "update secret set sealed = 'of another key', sealed_by = 'x' where name = 'e-sealed'"
        )
        run = await home.run()
        assert run["status"] == "Failed" and home.models.keys == ["a-refused", "b-quota", "d-missing"]
        for words in (
            "'a-refused' rests", "'b-quota' rests", "'c-gone' names a secret that was deleted", "'d-missing' rests", "'e-sealed' cannot be opened (A secret was sealed with another key", "(NoCredential)",
        ):  # fmt: skip
            assert words in run["failureDetails"], run["failureDetails"]
        reasons = [failure["failureReason"] for failure in run["credentialFailures"]]
        assert sorted(reasons) == ["Authentication", "Authentication", "Authentication", "QuotaExhausted"]
        again = await home.run()
        assert again["status"] == "Failed" and again["credentialFailures"] == [] and len(home.models.calls) == 3


class TestChanges:
    async def test_a_changed_key_counts_at_the_next_call(self, home: Bank) -> None:
        """platform.md: keys are read live at each call. Rotated, it no longer rests; withdrawn, it is taken no more."""
        await home.key("rotated", play="refused")
        started = await home.run()
        assert started["status"] == "Failed"
        await home.secret("rotated", "new-value")
        run = await home.run()
        assert run["status"] == "Completed" and home.models.keys == ["rotated", "new-value"]
        # In the midst of a run: Ann has the old value, Ben the new one, Cid another key.
        await home.panel(seats=3)
        home.models.gate.clear()
        before = len(home.models.calls)
        live = await home.start()
        for count, change in ((1, self.rotate), (2, self.withdraw)):
            await until(lambda count=count: len(home.models.calls) == before + count)
            await change(home)
            home.models.gate.set()
            home.models.gate.clear()
        await until(lambda: len(home.models.calls) == before + 3)
        home.models.gate.set()
        assert (await home.ended(live))["status"] == "Completed"
        assert home.models.keys[before:] == ["new-value", "newer-value", "another"]

    async def rotate(self, home: Bank) -> None:
        await home.secret("rotated", "newer-value")

    async def withdraw(self, home: Bank) -> None:
        await home.key("another", priority=9)
        found = (await home.server.client.get("/model-keys")).json()["items"]
        (id_,) = [key["id"] for key in found if key["name"] == "rotated"]
        assert (await home.server.client.delete(f"/model-keys/by-id/{id_}")).status_code == 204


class TestStarts:
    async def test_what_a_start_names_is_checked_before_the_run_exists(self, home: Bank) -> None:
        """interactions.md: secrets of another tenant, unknown ones; each with its pointer. Another tenant's is as none (F40)."""
        mine = await home.secret("mine")
        _, key = await stranger_key(home.server.installation.database)
        async with home.server.of(key) as theirs:
            path = f"/namespaces/{NAMESPACE}/secrets/by-name/theirs"
            foreign = (await put(theirs, path, {"value": "theirs"}))["id"]
        told = []
        for id_ in (foreign, str(NEW_ID())):
            body = {"credentials": [home.entry(mine, "credentialId"), home.entry(id_, "credentialId")]}
            problem = problem_of(await home.server.client.put(f"{PANEL}/start", json=body), 422, "bad_input")
            assert [error["pointer"] for error in problem["errors"]] == ["/credentials/1/credentialId"]
            told.append(str(problem).replace(id_, "ID"))
        assert told[0] == told[1]
        wrong = {
            "credentials": [{"provider": "scripted"}, {"provider": "openai-compatible"}, {"provider": "openai"}],
            "credentialStack": "nothing",
        }
        problem = problem_of(await home.server.client.put(f"{PANEL}/start", json=wrong), 422)
        assert {error["pointer"] for error in problem["errors"]} == {
            "/credentials/0/provider", "/credentials/1/baseUrl", "/credentials/2/credentialId", "/credentialStack",
        }  # fmt: skip
        await home.stack("only", {"stacked": "fine"})
        both = {"credentials": [home.entry(mine, "credentialId")], "credentialStack": "only"}
        problem = problem_of(await home.server.client.put(f"{PANEL}/start", json=both), 422)
        assert [error["pointer"] for error in problem["errors"]] == ["/credentials"]
        assert (await home.server.client.get(RUNS)).json()["items"] == []

    async def test_whoever_may_only_start_sends_no_secret_to_a_place_of_theirs(self, home: Bank) -> None:
        """F42, B52: else a secret of the tenant could be had by starting a run with it."""
        mine = await home.secret("mine")
        made = await home.server.client.post("/keys", json={"name": "starter", "scopes": ["read", "start"]})
        async with home.server.of(made.json()["key"]) as starter:
            body = {"credentials": [home.entry(mine, "credentialId")]}
            problem_of(await starter.put(f"{PANEL}/start", json=body), 403, "not_permitted")
            official = {"credentials": [{"provider": "openai", "credentialId": mine}]}
            assert (await starter.put(f"{PANEL}/start", json=official)).status_code == 201


def bank_at_work(home: Bank, dsn: str, folder: Path, allowed: str) -> Any:
    """A worker for a bank that has none, with settings of its own."""
    found = settings.read(
        {
            "FOLKMOOT_DATABASE_URL": dsn,
            "FOLKMOOT_DATA_DIR": str(folder),
            "FOLKMOOT_ALLOW_KEYS": allowed,
            "FOLKMOOT_POLL_SECONDS": "0.2",
        }
    )
    return working_beside(replace(home.server.installation, settings=found))
