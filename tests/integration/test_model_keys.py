"""The tenant's keys of models, stacks and their defaults: over the API, by files, as somebody types them (platform.md; F44)."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from api_at_hand import NAMESPACE, Served, problem_of, put, served
from shell import Shell

from folkmoot.api.definition_export import as_text
from folkmoot.api.definition_files import check, faults_in, read_files
from folkmoot.services import apply, exporting, keys

KEYS = {"FOLKMOOT_SECRET_KEY": b64encode(b"1" * 32).decode()}
STACKS = f"/namespaces/{NAMESPACE}/credential-stacks"
FILE = f"""\
kind: CredentialStack
namespace: {NAMESPACE}
name: production
version:
  entries:
    - {{name: ours, provider: openai, credential: openai-key, isOwnLicense: true}}
    - {{name: here, provider: openai-compatible, baseUrl: "http://127.0.0.1:1/v1", modelNameOverrides: {{big: small}}, priority: 1}}
  rules:
    - {{participant: Ann, entries: [here, ours], whenUsedUp: Wait}}
    - {{}}
  passesToChildren: true
"""


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    async with served(database_dsn, data_dir=tmp_path) as made:
        path = f"/namespaces/{NAMESPACE}/secrets/by-name/openai-key"
        await put(made.client, path, {"value": "canary-of-a-key"})
        yield made


async def test_a_model_key_is_made_replaced_listed_and_withdrawn(server: Served) -> None:
    client = server.client
    body = {"name": "ours", "provider": "openai", "credential": f"{NAMESPACE}/openai-key", "priority": 3}
    answer = await client.post("/model-keys", json=body)
    made = answer.json()
    secret = (await client.get(f"/namespaces/{NAMESPACE}/secrets/by-name/openai-key")).json()["id"]
    assert (made["credentialId"], made["credentialName"]) == (secret, f"{NAMESPACE}/openai-key")
    assert (made["baseUrl"], made["modelNameOverrides"], made["isOwnLicense"], made["priority"]) == (None, {}, False, 3)
    problem_of(await client.post("/model-keys", json=body), 409, "conflict")
    wrong = {"name": "a/b", "provider": "scripted", "credential": "nothing", "modelNameOverrides": {"": "x"}}
    problem = problem_of(await client.post("/model-keys", json=wrong), 422, "bad_input")
    pointers = [error["pointer"] for error in problem["errors"]]
    assert pointers == ["/name", "/provider", "/modelNameOverrides/", "/credential"]
    where = f"/model-keys/by-id/{made['id']}"
    changed = {
        "name": "theirs",
        "provider": "openai-compatible",
        "baseUrl": "http://127.0.0.1:1/v1",
        "isOwnLicense": True,
    }
    shown = await put(client, where, changed)
    assert (shown["name"], shown["credentialId"], shown["isOwnLicense"]) == ("theirs", None, True)
    assert (await client.get(where)).json() == shown
    await client.post("/model-keys", json={**body, "name": "another"})
    page = (await client.get("/model-keys?limit=1")).json()
    rest = (await client.get(f"/model-keys?after={page['next']}")).json()
    assert [key["name"] for key in (*page["items"], *rest["items"])] == ["another", "theirs"]
    problem_of(await client.put(where, json={**changed, "name": "another"}), 409, "conflict")
    assert (await client.delete(where)).status_code == 204
    problem_of(await client.get(where), 404, "not_found")
    audit = (await client.get("/audit?subjectKind=model%20key")).json()["items"]
    assert [entry["action"] for entry in audit] == [
        "model_key.deleted", "model_key.created", "model_key.replaced", "model_key.created",
    ]  # fmt: skip
    assert "canary" not in str(audit) + str(shown)


async def test_a_stack_is_a_definition_like_the_others_and_may_be_the_default(server: Served) -> None:
    client, default = server.client, f"{STACKS}/default"
    entry = {"name": "ours", "provider": "openai", "credential": "openai-key"}
    stack = await put(client, f"{STACKS}/by-name/production", {"entries": [entry]})
    assert stack["latestVersion"]["entries"][0]["credentialId"] is not None
    second = await put(client, f"{STACKS}/by-name/production", {"entries": [{**entry, "priority": 1}]})
    assert (second["id"], second["latestVersion"]["version"]) == (stack["id"], 2)
    lost = {"entries": [{**entry, "credential": "nothing"}], "rules": [{"entries": ["none"]}]}
    problem = problem_of(await client.put(f"{STACKS}/by-name/x", json=lost), 422, "bad_definition")
    assert [error["pointer"] for error in problem["errors"]] == ["/rules/0/entries/0", "/entries/0/credential"]
    nothing = {"credentialStack": None, "credentialStackId": None}
    assert (await client.get(default)).json() == nothing
    problem = problem_of(await client.put(default, json={"credentialStack": "nothing"}), 422, "bad_input")
    assert [error["pointer"] for error in problem["errors"]] == ["/credentialStack"]
    shown = await put(client, default, {"credentialStack": "production"})
    assert shown == {"credentialStack": f"{NAMESPACE}/production", "credentialStackId": stack["id"]}
    assert await put(client, default, {"credentialStack": None}) == nothing
    problem_of(await client.get("/namespaces/nowhere/credential-stacks/default"), 404, "not_found")
    # An interaction names one that there is.
    path = f"/namespaces/{NAMESPACE}/interactions/by-name/panel"
    version = {"agents": [{"agent": "nobody"}], "prompt": "x", "maximumRounds": 1, "credentialStack": "nothing"}
    problem = problem_of(await client.put(path, json=version), 422)
    assert [error["pointer"] for error in problem["errors"]] == ["/credentialStack", "/agents/0/agent"]


async def test_a_stack_in_a_file_is_applied_and_exported_without_a_change(server: Served, tmp_path: Path) -> None:
    """interactions.md: files; a secret is named and never written (F44)."""
    (tmp_path / "stack.yaml").write_text(FILE)
    documents = read_files([tmp_path / "stack.yaml"])
    check(documents)
    installation = server.installation
    owner = await keys.owner(installation.database)
    outcomes = []
    for _ in range(2):
        changes = await apply.apply(installation.database, owner, documents, new_id=installation.new_id)
        outcomes.append(str(changes[0].outcome))
    text = as_text(await exporting.export(installation.database, owner, namespace=NAMESPACE))
    (tmp_path / "stack.yaml").write_text(text)
    again = await apply.diff(
        installation.database, owner, read_files([tmp_path / "stack.yaml"]), new_id=installation.new_id
    )
    assert [*outcomes, *(str(change.outcome) for change in again)] == ["created", "unchanged", "unchanged"]
    assert f"credential: {NAMESPACE}/openai-key" in text and "canary" not in text
    (tmp_path / "stack.yaml").write_text(FILE.replace("[here, ours]", "[here, nobody]"))
    (fault,) = apply_faults(tmp_path / "stack.yaml")
    assert fault.endswith(
        "stack.yaml:9: /rules/0/entries/1: There is no entry 'nobody' in this stack; there are: ours, here."
    )


def apply_faults(file: Path) -> list[str]:
    return [str(fault) for fault in faults_in(read_files([file]))]


def test_keys_are_added_and_stacks_made_the_default_by_commands(database_dsn: str, tmp_path: Path) -> None:
    """api.md, CLI; what a command prints holds no value."""
    shell = Shell(tmp_path, database_dsn)
    try:
        done = [
            shell.run("secrets", "set", f"{NAMESPACE}/openai-key", typed="canary-on-a-pipe\n", env=KEYS),
            shell.run("model-keys", "add", "ours", "openai", "--secret", f"{NAMESPACE}/openai-key", "--model", "big=small", "--json", env=KEYS),
            shell.run("model-keys", "list", env=KEYS),
            shell.run("model-keys", "list", "--json", env=KEYS),
            shell.run("model-keys", "fallback", env=KEYS),
            shell.run("model-keys", "fallback", "no", env=KEYS),
            shell.run("model-keys", "remove", "ours", env=KEYS),
        ]  # fmt: skip
        assert [one.code for one in done] == [0] * 7, done
        made = json.loads(done[1].out)
        assert (made["modelNameOverrides"], json.loads(done[3].out)) == ({"big": "small"}, made)
        assert done[2].out.splitlines()[1].split() == ["ours", "openai", "0", f"{NAMESPACE}/openai-key", "-"]
        assert [done[4].out, done[5].out] == ["yes\n", "no\n"]
        (tmp_path / "stack.yaml").write_text(FILE)
        assert shell.run("apply", "-f", str(tmp_path / "stack.yaml"), env=KEYS).code == 0
        told = [
            shell.run("credential-stacks", "default", *arguments, env=KEYS).out
            for arguments in ((), (f"{NAMESPACE}/production",), ("--namespace", NAMESPACE), ("--none",))
        ]
        assert told == ["none\n", f"{NAMESPACE}/production\n", "none\n", "none\n"]
        refused = shell.run("model-keys", "add", "x", "openai", env=KEYS)
        assert refused.code == 2 and "Only a server of one's own needs no key" in refused.err
        assert "canary" not in "".join(one.out + one.err for one in [*done, refused])
    finally:
        shell.close()
