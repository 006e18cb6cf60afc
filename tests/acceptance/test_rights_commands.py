"""Users, narrowed keys, secrets and the audit log as somebody types them; a secret's value is on no screen (F44)."""

from __future__ import annotations

import base64
import json

from shell import Shell

KEYS = {"FOLKMOOT_SECRET_KEY": base64.b64encode(b"1" * 32).decode()}
ROTATED = {"FOLKMOOT_SECRET_KEY": f"{base64.b64encode(b'2' * 32).decode()},{KEYS['FOLKMOOT_SECRET_KEY']}"}


def test_users_keys_and_the_log_of_what_was_done(shell: Shell) -> None:
    ann = json.loads(shell.run("users", "add", "Ann", "--role", "operator", "--json").out)
    key = json.loads(shell.run("keys", "create", "--user", "Ann", "--scope", "read", "--scope", "start", "--json").out)
    assert (key["userId"], key["scopes"]) == (ann["id"], ["read", "start"])
    assert shell.run("users", "role", "Ann", "viewer").err.endswith("(Ann, viewer) is viewer now.\n")
    refused = shell.run("users", "remove", "owner")
    assert refused.code == 1 and "last owner" in refused.err
    assert shell.run("users", "remove", ann["id"]).code == 0
    gone = shell.run("users", "role", "Ann", "admin")
    assert gone.code == 3 and "There is no user 'Ann'" in gone.err
    assert [line.split()[1:] for line in shell.run("users", "list").out.splitlines()] == [
        ["name", "role"],
        ["owner", "owner"],
    ]
    entries = [json.loads(line) for line in shell.run("audit", "--user", "owner", "--json").out.splitlines()]
    assert [entry["action"] for entry in entries] == ["user.removed", "user.role_changed", "key.made", "user.added"]
    assert {(entry["channel"], entry["keyId"]) for entry in entries} == {("command", None)}


def test_a_secret_is_set_and_sealed_under_another_key_and_never_shown(shell: Shell) -> None:
    """F44, F45: from a pipe; nothing that a command prints holds it."""
    without = shell.run("secrets", "set", "team/api", typed="canary-on-a-pipe\n")
    assert without.code == 2 and "Set FOLKMOOT_SECRET_KEY" in without.err
    done = [
        shell.run("secrets", "set", "team/api", typed="canary-on-a-pipe\n", env=KEYS),
        shell.run("secrets", "list", "--namespace", "team", "--json", env=KEYS),
        shell.run("secrets", "rotate", "--json", env=ROTATED),
    ]
    assert [one.code for one in done] == [0, 0, 0]
    assert done[0].err.endswith("Secret team/api was made.\n")
    assert json.loads(done[1].out)["name"] == "api"
    assert json.loads(done[2].out) == {"sealed": 1}
    refused = shell.run("secrets", "list", "--namespace", "team", env=KEYS)
    assert refused.code == 2 and "not the one that this database was begun with" in refused.err
    done += [refused, shell.run("secrets", "delete", "team/api", env=ROTATED)]
    assert done[-1].err == "Secret team/api is gone.\n"
    assert "canary" not in "".join(one.out + one.err for one in [without, *done])
