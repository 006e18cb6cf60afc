"""Definitions as YAML files: what is read, and that every fault names file, line and field (interactions.md, issue 'Bad input')."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from folkmoot.api.definition_files import MAX_FILE_BYTES, Document, check, read_files
from folkmoot.domain.connectors import McpConnectorVersion, OpenApiConnectorVersion
from folkmoot.domain.definitions import (
    AgentBinding,
    AiModelVersion,
    DefinitionKind,
    InteractionType,
    InteractionVersion,
    Reference,
)
from folkmoot.domain.operations import Stdio
from folkmoot.domain.routers import RouterCandidate, RouterRule, RouterVersion
from folkmoot.domain.swarms import SwarmSettings
from folkmoot.kernel.errors import BadDefinition, BadInput, Fault

MODEL = """\
kind: AiModel
namespace: examples
name: small
version: {provider: local, modelName: toy}
"""
AGENT = """\
kind: Agent
namespace: examples
name: optimist
version:
  prompts: [Look up.]
  model: small
"""
INTERACTION = """\
kind: Interaction
namespace: examples
name: panel
version:
  type: RoundRobin
  agents:
    - {name: Ann, agent: optimist}
  prompt: Decide.
  isSolutionProposalAllowed: true
"""
ROUTER = """\
kind: Router
namespace: examples
name: chooser
version:
  candidates:
    - {agent: optimist, description: For hope.}
    - {router: inner, name: others}
  rules:
    - {candidate: others, turnNumber: 2}
  fallback: optimist
"""
INNER = """\
kind: Router
namespace: examples
name: inner
version:
  candidates:
    - agent: optimist
  fallback: optimist
"""
TEAM = """\
kind: Interaction
namespace: examples
name: team
version:
  type: Managed
  manager: {name: Boss, agent: optimist}
  agents:
    - {agent: chooser, description: Knows whom to ask.}
  prompt: Decide.
  maximumConcurrentDispatches: 2
  swarm: {interactions: [panel], participants: [Boss], maxDepth: 1}
"""
PANEL = Path(__file__).parents[2] / "docs" / "spec" / "examples" / "panel.yaml"


def written(folder: Path, text: str, name: str = "set.yaml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def faults_of(folder: Path, text: str) -> tuple[Fault, ...]:
    file = written(folder, text)
    with pytest.raises(BadInput) as caught:
        read_files([file])
    assert all(fault.file == str(file) for fault in caught.value.faults)
    return caught.value.faults


def checked(documents: list[Document], **how: Any) -> tuple[Fault, ...]:
    with pytest.raises(BadDefinition) as caught:
        check(documents, **how)
    return caught.value.faults


def the_fault(folder: Path, text: str) -> Fault:
    (fault,) = faults_of(folder, text)
    return fault


def interaction(documents: list[Document]) -> InteractionVersion:
    version = documents[-1].version
    assert isinstance(version, InteractionVersion)
    return version


def test_the_example_of_the_spec_is_read_and_without_fault() -> None:
    """interactions.md: examples/panel.yaml is the form of such a file."""
    documents = read_files([PANEL])
    assert [document.kind for document in documents] == [
        DefinitionKind.AI_MODEL, DefinitionKind.AGENT, DefinitionKind.AGENT, DefinitionKind.AGENT, DefinitionKind.INTERACTION,
    ]  # fmt: skip
    check(documents)
    version = interaction(documents)
    assert version.duration_auto_termination == timedelta(minutes=5)
    assert json.loads(version.solution_schema or "")["required"] == ["answer", "reason"]
    assert [binding.agent for binding in version.agents] == [
        Reference("optimist"), Reference("sceptic"), Reference("chair"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written_as", "meant"),
    [
        ("5m", timedelta(minutes=5)),
        ("1d2h", timedelta(days=1, hours=2)),
        ("90s", timedelta(seconds=90)),
        ("00:05:00", timedelta(minutes=5)),
        ("1.02:00:00", timedelta(days=1, hours=2)),
    ],
)
def test_a_timespan_is_written_short_or_long(tmp_path: Path, written_as: str, meant: timedelta) -> None:
    file = written(tmp_path, INTERACTION + f"  durationAutoTermination: {written_as}\n")
    assert interaction(read_files([file])).duration_auto_termination == meant


@pytest.mark.parametrize("written_as", ["5", "soon", "5 minutes", "[5m]", "99999999999999999d"])
def test_what_is_no_timespan_is_refused_with_its_line(tmp_path: Path, written_as: str) -> None:
    fault = the_fault(tmp_path, INTERACTION + f"  durationAutoTermination: {written_as}\n")
    assert (fault.pointer, fault.line) == ("/durationAutoTermination", 10)


def test_a_reference_is_a_name_or_has_a_namespace_or_a_version(tmp_path: Path) -> None:
    links = ["optimist", "others/optimist", "optimist@3", "others/optimist@3", "0199aaaa-0000-7000-8000-000000000000@2"]
    agents = "".join(f"    - {{name: A{index}, agent: '{link}'}}\n" for index, link in enumerate(links))
    file = written(tmp_path, INTERACTION.replace("    - {name: Ann, agent: optimist}\n", agents))
    found = [binding.agent for binding in interaction(read_files([file])).agents]
    assert [str(link) for link in found] == links
    assert found[3] == Reference("optimist", "others", version=3)


def test_every_fault_of_every_file_is_found_at_once(tmp_path: Path) -> None:
    first = written(tmp_path, MODEL.replace("provider", "providor") + "---\n" + AGENT + "  colour: red\n", "a.yaml")
    second = written(
        tmp_path, INTERACTION.replace("agent: optimist", "agent: 'x@y'") + "  maximumRounds: many\n", "b.yaml"
    )
    with pytest.raises(BadInput) as caught:
        read_files([first, second])
    places = [(fault.file, fault.line, fault.pointer) for fault in caught.value.faults]
    assert places == [
        (str(first), 4, "/provider"),
        (str(first), 4, "/providor"),
        (str(first), 12, "/colour"),
        (str(second), 10, "/maximumRounds"),
    ]


def test_a_reference_that_is_none_is_refused_with_its_line(tmp_path: Path) -> None:
    fault = the_fault(tmp_path, INTERACTION.replace("agent: optimist", "agent: 'x@y'"))
    assert (fault.pointer, fault.line) == ("/agents/0/agent", 7)


def test_a_tab_is_named_with_its_line(tmp_path: Path) -> None:
    fault = the_fault(tmp_path, MODEL + "---\nkind: Agent\nversion:\n\tprompts: []\n")
    assert "tab" in fault.message and fault.line == 8


def test_text_that_is_no_yaml_is_named_with_its_line(tmp_path: Path) -> None:
    assert the_fault(tmp_path, "kind: Agent\nname: [unclosed\n").line in (2, 3)


def test_a_field_that_is_there_twice_is_refused_with_both_lines(tmp_path: Path) -> None:
    fault = the_fault(tmp_path, AGENT + "  model: other\n")
    assert (fault.pointer, fault.line) == ("/model", 7) and "line 6" in fault.message


def test_two_definitions_of_one_name_are_refused_across_files(tmp_path: Path) -> None:
    """Issue, 'Bad input': two agents of one name."""
    first, second = written(tmp_path, AGENT, "a.yaml"), written(tmp_path, MODEL + "---\n" + AGENT, "b.yaml")
    with pytest.raises(BadInput) as caught:
        read_files([first, second])
    (fault,) = caught.value.faults
    assert (fault.file, fault.line) == (str(second), 8)
    assert "examples/optimist" in fault.message and f"{first}:3" in fault.message


def test_a_model_and_an_agent_may_share_a_name(tmp_path: Path) -> None:
    assert len(read_files([written(tmp_path, MODEL + "---\n" + AGENT.replace("optimist", "small"))])) == 2


@pytest.mark.parametrize(
    ("text", "pointer", "line", "words"),
    [
        (MODEL.replace("AiModel", "Robot"), "/kind", 1, "Robot"),
        (MODEL.replace("namespace: examples\n", ""), "", 1, "namespace"),
        (MODEL.replace("name: small\n", ""), "", 1, "name"),
        (MODEL + "owner: me\n", "/owner", 5, "owner"),
        (MODEL.replace("name: small", "name: 5"), "/name", 3, "quotes"),
        (MODEL.replace("name: small", "name: a/b"), "/name", 3, "'/'"),
        (MODEL.replace("namespace: examples", "namespace: ' x'"), "/namespace", 2, "blank"),
        ("[1, 2]\n", "", 1, "mapping"),
        ("kind: Agent\nnamespace: a\nname: b\nversion: 3\n", "/version", 4, "mapping"),
        (INTERACTION.replace("  type: RoundRobin\n", ""), "", 4, "type"),
        (INTERACTION.replace("RoundRobin", "Debate"), "/type", 5, "RoundRobin or Managed"),
        (INTERACTION.replace("true", "no"), "/isSolutionProposalAllowed", 9, "boolean"),
        (AGENT + "  settings: {temperature: hot}\n", "/settings/temperature", 7, "number"),
        (AGENT + "  prompt: !!python/object:os.system x\n", "/prompt", 7, "tag"),
        (AGENT + "  ? [a]\n  : b\n", "/version", 7, "word"),
        (AGENT + "  <<: {model: x}\n", "/<<", 7, "<<"),
        (INTERACTION + "  solutionSchema: {type: strin}\n", "/solutionSchema/type", 10, "type"),
        (INTERACTION + "  solutionSchema:\n    $ref: http://x.test/s\n", "/solutionSchema/$ref", 11, "fetched"),
    ],
)  # fmt: skip
def test_a_fault_names_file_line_and_field(tmp_path: Path, text: str, pointer: str, line: int, words: str) -> None:
    """interactions.md: errors name the file, line and field."""
    fault = the_fault(tmp_path, text)
    assert (fault.pointer, fault.line) == (pointer, line)
    assert words in fault.message


def test_words_that_yaml_once_took_for_booleans_and_dates_are_text(tmp_path: Path) -> None:
    values = "[no, on, y, 2026-10-26, 12:30, 0123abc, .inf]"
    file = written(tmp_path, INTERACTION + f"  solutionSchema: {{enum: {values}}}\n")
    schema = json.loads(interaction(read_files([file])).solution_schema or "")
    assert schema["enum"] == ["no", "on", "y", "2026-10-26", "12:30", "0123abc", ".inf"]


def test_numbers_truth_and_null_are_read_as_such(tmp_path: Path) -> None:
    values = "[1, -2, 0x1F, 0o17, 1.5, 2e3, true, False, null, ~, '5', \"true\", !!str 7]"
    file = written(tmp_path, INTERACTION + f"  solutionSchema: {{enum: {values}}}\n")
    schema = json.loads(interaction(read_files([file])).solution_schema or "")
    assert schema["enum"] == [1, -2, 31, 15, 1.5, 2000.0, True, False, None, None, "5", "true", "7"]


def test_a_schema_may_be_text(tmp_path: Path) -> None:
    file = written(tmp_path, INTERACTION + '  solutionSchema: \'{"type": "string"}\'\n')
    assert interaction(read_files([file])).solution_schema == '{"type": "string"}'


def test_aliases_that_multiply_are_refused(tmp_path: Path) -> None:
    """F52: a small file that stands for a large one."""
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "aliases" in the_fault(tmp_path, "\n".join(levels) + "\n").message


def test_an_alias_of_a_long_text_counts_each_time(tmp_path: Path) -> None:
    text = "a: &a " + "x" * 100_000 + "\nb: [" + ", ".join(["*a"] * 30) + "]\n"
    assert "characters" in the_fault(tmp_path, text).message


def test_a_list_that_contains_itself_is_refused(tmp_path: Path) -> None:
    assert "contains itself" in the_fault(tmp_path, "kind: Agent\nversion: &v [*v]\n").message


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    assert "deeper" in the_fault(tmp_path, "[" * 20_000).message


def test_a_large_file_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "large.yaml"
    with file.open("wb") as stream:
        stream.truncate(10 * MAX_FILE_BYTES)
    with pytest.raises(BadInput, match="more than 1,000,000 bytes"):
        read_files([file])


@pytest.mark.parametrize(("content", "line"), [(b"kind: A\nname: \xff\n", 2), (b"kind: A\nname: a\x00b\n", 2)])
def test_what_is_no_text_is_refused_with_its_line(tmp_path: Path, content: bytes, line: int) -> None:
    file = tmp_path / "odd.yaml"
    file.write_bytes(content)
    with pytest.raises(BadInput) as caught:
        read_files([file])
    assert [fault.line for fault in caught.value.faults] == [line]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"gone\.yaml: The file cannot be read: No such file"):
        read_files([tmp_path / "gone.yaml"])


def test_a_folder_is_read_with_all_below_it_but_scripts(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    written(tmp_path, MODEL, "b.yaml")
    written(tmp_path, AGENT, "deep/a.yml")
    written(tmp_path, "rules: []", "b.script.yaml")
    written(tmp_path, "nothing", "notes.txt")
    assert [document.name for document in read_files([tmp_path])] == ["small", "optimist"]


def test_a_folder_or_file_without_definitions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no \.yaml file"):
        read_files([tmp_path])
    assert "no definition" in the_fault(tmp_path, "# nothing\n---\n").message


def test_a_relative_path_of_a_model_is_taken_from_the_files_folder(tmp_path: Path) -> None:
    text = MODEL.replace("provider: local, modelName: toy", "provider: scripted, modelName: s, path: s.script.yaml")
    version = read_files([written(tmp_path, text)])[0].version
    assert isinstance(version, AiModelVersion) and version.path == str(tmp_path / "s.script.yaml")


def test_check_finds_links_that_lead_nowhere_in_the_set(tmp_path: Path) -> None:
    """Issue, 'Bad input': a model that does not exist."""
    file = written(tmp_path, AGENT + "---\n" + INTERACTION.replace("agent: optimist", "agent: pessimist"))
    found = checked(read_files([file]))
    assert [(fault.pointer, fault.file, fault.line) for fault in found] == [
        ("/model", str(file), 6),
        ("/agents/0/agent", str(file), 14),
    ]
    assert "examples/small" in found[0].message and "examples/pessimist" in found[1].message


def test_the_model_that_compacts_is_a_link_like_any_other(tmp_path: Path) -> None:
    settings = "  contextSettings: {compactionType: DedicatedModel, compactionModel: small}\n"
    documents = read_files([written(tmp_path, f"{AGENT}---\n{INTERACTION}{settings}")])
    assert interaction(documents[1:]).compaction_model == Reference("small")
    assert [(fault.pointer, fault.line) for fault in checked(documents)] == [
        ("/model", 6),
        ("/contextSettings/compactionModel", 17),
    ]


def test_a_team_with_a_router_and_a_swarm_is_read_and_checked_offline(tmp_path: Path) -> None:
    documents = read_files([written(tmp_path, "---\n".join((MODEL, AGENT, ROUTER, INNER, INTERACTION, TEAM)))])
    check(documents)
    team, router = interaction(documents), documents[2].version
    assert team.manager == AgentBinding(Reference("optimist"), "Boss") and team.type is InteractionType.MANAGED
    assert team.agents == (AgentBinding(Reference("chooser"), description="Knows whom to ask."),)
    assert team.swarm == SwarmSettings((Reference("panel"),), ("Boss",), max_depth=1)
    assert isinstance(router, RouterVersion)
    assert router.candidates == (
        RouterCandidate(agent=Reference("optimist"), description="For hope."),
        RouterCandidate(router=Reference("inner"), name="others"),
    )
    assert router.rules == (RouterRule("others", turn_number=2),)


def test_check_finds_what_a_teams_links_lack_in_the_set(tmp_path: Path) -> None:
    team = TEAM.replace("agent: chooser", "agent: nobody").replace("[panel]", "[gone]")
    found = checked(read_files([written(tmp_path, "---\n".join((MODEL, AGENT, ROUTER, team)))]))
    assert [(fault.pointer, fault.line) for fault in found] == [
        ("/candidates/1/router", 19), ("/agents/0/agent", 31), ("/swarm/interactions/0", 34),
    ]  # fmt: skip
    assert "no agent or router 'examples/nobody'" in found[1].message


def test_check_finds_routers_that_choose_each_other(tmp_path: Path) -> None:
    """conversation.md, Routers: a circle is an error when saved."""
    closing = INNER.replace("agent: optimist", "router: chooser").replace("fallback: optimist", "fallback: chooser")
    found = checked(read_files([written(tmp_path, "---\n".join((MODEL, AGENT, ROUTER, closing)))]))
    assert [fault.pointer for fault in found] == ["/candidates", "/candidates"]
    assert "examples/chooser -> examples/inner -> examples/chooser" in found[0].message


def test_check_leaves_ids_to_the_server(tmp_path: Path) -> None:
    file = written(tmp_path, AGENT.replace("model: small", "model: 0199aaaa-0000-7000-8000-000000000000"))
    check(read_files([file]))


def test_check_finds_a_mistyped_input_also_in_an_agents_prompt(tmp_path: Path) -> None:
    """interactions.md, inputsPrompt: an unknown %%name%% in a prompt is an error when the definition is saved."""
    agent = AGENT.replace("Look up.", "Look at %%typo%%.")
    file = written(tmp_path, MODEL + "---\n" + agent + "---\n" + INTERACTION.replace("Decide.", '"Decide: %%other%%"'))
    found = checked(read_files([file]))
    assert [(fault.pointer, fault.line) for fault in found] == [("/prompt", 20), ("/agents/0/agent", 19)]
    assert "%%typo%%" in found[1].message


def test_check_refuses_a_conversation_that_can_never_end(tmp_path: Path) -> None:
    file = written(tmp_path, MODEL + "---\n" + AGENT + "---\n" + INTERACTION.replace("true", "false"))
    (fault,) = checked(read_files([file]))
    assert fault.line == 16 and "never end" in fault.message


def test_check_reads_scripts_where_it_is_given_a_reader(tmp_path: Path) -> None:
    text = MODEL.replace("provider: local, modelName: toy", "provider: scripted, modelName: s, path: gone.yaml")
    documents = read_files([written(tmp_path, text)])
    (fault,) = checked(documents, read_script=lambda path: Path(path).read_text())
    assert fault.pointer == "/path" and "No such file" in fault.message
    check(documents, read_script=lambda _: {})


CONNECTORS = """\
kind: McpConnector
namespace: examples
name: bench
version:
  command: npx
  arguments: [-y, server]
  environment: {MODE: quiet}
---
kind: OpenApiConnector
namespace: examples
name: shop
version:
  documentFile: shop.json
  headers:
    - {headerName: Authorization, secret: token, scheme: Bearer}
---
"""
TOOLS = """\
  externalOperationsMcp:
    - {name: look, connector: bench, operation: look}
"""


def test_connectors_and_the_tools_of_agents_are_read_and_checked_offline(tmp_path: Path) -> None:
    """interactions.md: validated offline. Which operations there are is known to the servers alone."""
    (tmp_path / "shop.json").write_text('{"openapi": "3.1.0"}')
    documents = read_files([written(tmp_path, CONNECTORS + MODEL + "---\n" + AGENT + TOOLS)])
    check(documents)
    bench, shop = (document.version for document in documents[:2])
    assert isinstance(bench, McpConnectorVersion) and bench.server == Stdio("npx", ("-y", "server"), {"MODE": "quiet"})
    assert isinstance(shop, OpenApiConnectorVersion) and shop.document_hash is not None
    assert documents[1].content == b'{"openapi": "3.1.0"}'
    (fault,) = checked(read_files([written(tmp_path, MODEL + "---\n" + AGENT + TOOLS)]))
    assert (fault.pointer, fault.line) == ("/externalOperationsMcp/0/connector", 13)
    assert "no MCP connector 'examples/bench' in these files" in fault.message


@pytest.mark.parametrize(
    ("version", "pointer", "words"),
    [
        ("{documentFile: gone.json}", "/documentFile", "cannot be read"),
        ("{documentFile: 5}", "/documentFile", "path"),
        ("{documentFile: shop.json, document: x}", "/documentFile", "twice"),
        ("{baseUrl: 'https://x'}", "/document", "one document"),
        ("{documentUrl: 'ftp://x/y'}", "/documentUrl", "no address"),
        ("{documentUrl: 'https://a:b@x/y'}", "/documentUrl", "secret"),
        (
            "{documentUrl: 'https://x/y', headers: [{headerName: Host, secret: t}]}",
            "/headers/0/headerName",
            "connection",
        ),
        ("{documentUrl: 'https://x/y', headers: [{headerName: X}]}", "/headers/0/secret", "secret"),
        ("{documentUrl: 'https://x/y', headers: [{headerName: X, secret: t@2}]}", "/headers/0/secret", "no version"),
    ],
)
def test_a_fault_of_a_connector_names_file_line_and_field(
    tmp_path: Path, version: str, pointer: str, words: str
) -> None:
    (tmp_path / "shop.json").write_text("{}")
    file = written(tmp_path, f"kind: OpenApiConnector\nnamespace: examples\nname: shop\nversion: {version}\n")
    with pytest.raises(BadInput) as caught:
        check(read_files([file]))
    (fault,) = caught.value.faults
    assert (fault.pointer, fault.file, fault.line) == (pointer, str(file), 4) and words in fault.message
