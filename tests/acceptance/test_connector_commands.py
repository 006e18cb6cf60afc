"""Connectors and files of definitions as somebody types them: apply with a look at the server, prune, export, refresh."""

from __future__ import annotations

import json
from pathlib import Path

from connectors_at_hand import SHOP
from shell import Shell

FILES = """\
kind: OpenApiConnector
namespace: team
name: shop
version: {documentFile: shop.json, baseUrl: "https://shop.example.com/v1"}
---
kind: AiModel
namespace: team
name: small
version: {provider: scripted, modelName: talk, path: talk.script.yaml}
---
kind: Agent
namespace: team
name: clerk
version:
  model: small
  externalOperationsOpenApi:
    - {name: orders, connector: shop, operation: orders/list, pathBindings: [{name: customerId, value: "7"}]}
"""
OLD = """
---
kind: Agent
namespace: team
name: old
version: {model: small}
"""


def test_files_with_a_connector_are_applied_pruned_and_exported_again(shell: Shell, tmp_path: Path) -> None:
    """interactions.md: apply, idempotent, with a diff first and `--prune`; exported back."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "shop.json").write_text(json.dumps(SHOP), encoding="utf-8")
    (folder / "talk.script.yaml").write_text("rules: [{reply: {text: Well.}}]", encoding="utf-8")
    (folder / "all.yaml").write_text(FILES + OLD, encoding="utf-8")
    at = str(folder)
    assert shell.run("check", at).err == "4 definitions, no faults.\n"
    assert shell.run("apply", "-f", at).code == 0
    again = shell.run("apply", "-f", at, "--prune")
    assert again.code == 0 and [line[0] for line in again.out.splitlines()] == ["="] * 4
    (folder / "all.yaml").write_text(FILES, encoding="utf-8")
    unasked = shell.run("apply", "-f", at, "--prune")
    assert unasked.code == 2 and "- Agent team/old@1 deleted" in unasked.out and "--yes" in unasked.err
    done = shell.run("apply", "-f", at, "--prune", "--yes", "--json")
    outcomes = [json.loads(line)["outcome"] for line in done.out.splitlines()]
    assert (done.code, outcomes) == (0, ["unchanged"] * 3 + ["deleted"])
    out = tmp_path / "out"
    written = json.loads(shell.run("export", "team", "--out", str(out), "--json").out)
    assert written["definitions"] == 3 and {Path(name).parent for name in written["files"]} == {out}
    assert shell.run("check", str(out)).code == 0
    same = shell.run("apply", "-f", str(out), "--prune")
    assert same.code == 0 and "0 of 3 changed." in same.err
    assert shell.run("export", "team", "--out", str(out)).code == 2
    printed = shell.run("export", "team")
    assert printed.code == 0 and "kind: OpenApiConnector" in printed.out and "kind:" not in printed.err
    assert shell.run("export", "nowhere").code == 3
    listed = shell.run("connectors", "list", "--namespace", "team").out
    assert "OpenApiConnector" in listed and "https://shop.example.com/v1" in listed
    found = shell.run("connectors", "operations", "team/shop").out.splitlines()
    assert [line.split()[0] for line in found[1:]] == ["orders/add", "orders/list"]
    assert "wait for approval" in found[1] and "go at once" in found[2]
    assert shell.run("connectors", "refresh", "team/shop").err == "0 operations changed.\n"
    (folder / "shop.json").write_text(json.dumps(SHOP | {"servers": []}), encoding="utf-8")
    refused = shell.run("apply", "-f", str(folder / "gone.yaml"))
    assert refused.code == 2
    (folder / "all.yaml").write_text(FILES.replace(', baseUrl: "https://shop.example.com/v1"', ""), encoding="utf-8")
    broken = shell.run("apply", "-f", at)
    assert broken.code == 2 and "all.yaml:" in broken.err and "baseUrl" in broken.err
