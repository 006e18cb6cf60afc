"""The documents and the code say the same. A setting, error code, route, command, option or fault point that no document
names fails here, and so does a document that names what is not there.
"""

from __future__ import annotations

import functools
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from folkmoot import __version__, settings
from folkmoot.api import app, problems
from folkmoot.api.definition_files import faults_in, read_files
from folkmoot.cli import commands as tree
from folkmoot.cli import exits
from folkmoot.kernel import errors, fault_points
from folkmoot.llm.script_rules import parse_script
from folkmoot.tools.functions import FunctionTools

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
ADRS = DOCS / "adr"
SPEC = DOCS / "spec"

_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_REGISTRIES = r"(?:pypi|pythonhosted|npmjs|crates|rubygems|huggingface|docker|ghcr|golang)\.(?:org|io|com|co|dev)\b"
_PATHS_OF_A_MACHINE = r"(?<![\w.])/(?:home|Users|root|work|mnt)/\w"
_UNFINISHED = r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X|T" + r"BD)\b"


def documents() -> list[Path]:
    found = [
        *ROOT.glob("*.md"),
        *DOCS.rglob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
        *(ROOT / "bench").glob("*.md"),
    ]
    return sorted(found)


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


# settings and errors


@pytest.mark.parametrize("setting", settings.SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_is_documented_with_its_default(setting: settings.Setting) -> None:
    row = re.search(rf"^\| `{settings.PREFIX}{setting.name}` \| (\S.*?) \|", text_of("docs/settings.md"), re.MULTILINE)
    assert row is not None, f"docs/settings.md has no row for {settings.PREFIX}{setting.name}: {setting.meaning}"
    if setting.default:
        assert row[1] == f"`{setting.default}`"


def test_documents_name_no_setting_that_is_not_there() -> None:
    for document in documents():
        for name in re.findall(rf"\b{settings.PREFIX}[A-Z_]*[A-Z]\b", document.read_text(encoding="utf-8")):
            settings.read({name: ""})


def kinds_of_errors(kind: type[errors.FolkmootError] = errors.FolkmootError) -> Iterator[type[errors.FolkmootError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from kinds_of_errors(below)


def error_row(code: str) -> list[str]:
    row = re.search(rf"^\| `{code}` \|(.+)\|$", text_of("docs/errors.md"), re.MULTILINE)
    assert row is not None, f"docs/errors.md has no row for the code {code}"
    return [cell.strip() for cell in row[1].split("|")]


@pytest.mark.parametrize("kind", list(kinds_of_errors()), ids=lambda kind: kind.code)
def test_every_error_code_is_documented_with_its_exit_code(kind: type[errors.FolkmootError]) -> None:
    assert error_row(kind.code)[1] == str(exits.of_error(kind("a sentence")))


@pytest.mark.parametrize("kind", list(kinds_of_errors()), ids=lambda kind: kind.code)
def test_every_error_code_is_documented_with_its_http_status(kind: type[errors.FolkmootError]) -> None:
    status = problems.status_of(kind("a sentence"))
    assert error_row(kind.code)[0] == ("-" if kind is errors.LeaseLost else str(status))


@functools.cache
def document() -> dict[str, Any]:
    """The API's, made once: it takes two seconds."""
    return app.make_app().openapi()


def test_every_status_that_the_api_answers_an_error_with_is_documented() -> None:
    paths = document()["paths"]
    answered = {
        int(s) for operations in paths.values() for operation in operations.values() for s in operation["responses"]
    }
    told = {int(s) for s in re.findall(r"^\| `\w+` \| (\d{3}) \|", text_of("docs/errors.md"), re.MULTILINE)}
    assert {status for status in answered if status >= 400} <= told


def test_every_exit_code_is_documented() -> None:
    rows = re.findall(r"^\| (\d+) \|", text_of("docs/errors.md"), re.MULTILINE)
    numbers = [exits.DONE, exits.FAILED, exits.WRONG_INPUT, exits.NOT_FOUND, exits.UNREACHABLE, exits.INTERRUPTED]
    assert rows == [str(number) for number in numbers]


# routes, commands, fault points


def test_every_route_is_documented_and_no_other() -> None:
    """docs/http-api.md has a row `METHOD /path` for each; KIND stands for the kinds of definitions."""
    paths = document()["paths"]
    offered = {f"{method.upper()} {path}" for path, operations in paths.items() for method in operations}
    rows = re.findall(r"^\| `((?:GET|POST|PUT|DELETE|PATCH) [^`]+)` \|", text_of("docs/http-api.md"), re.MULTILINE)
    kinds = (
        "agents",
        "routers",
        "ai-models",
        "interactions",
        "connectors/mcp",
        "connectors/open-api",
        "credential-stacks",
        "channels",
    )
    told = {row.replace("KIND", kind) for row in rows for kind in (kinds if "KIND" in row else ("",))}
    assert sorted(told) == sorted(offered)


def commands_below(group: TyperGroup, path: str) -> Iterator[tuple[str, TyperCommand]]:
    for name, below in group.commands.items():
        if isinstance(below, TyperGroup):
            yield from commands_below(below, f"{path} {name}")
        elif isinstance(below, TyperCommand) and not below.hidden:
            yield f"{path} {name}", below


def commands() -> dict[str, TyperCommand]:
    root = typer.main.get_command(tree.make_app(()))
    assert isinstance(root, TyperGroup)
    return dict(commands_below(root, "folkmoot"))


def documented_commands() -> dict[str, str]:
    """Each command with its section of docs/commands.md."""
    parts = re.split(r"^#+ `(folkmoot [a-z -]+)`$", text_of("docs/commands.md"), flags=re.MULTILINE)
    return {name: body.split("\n## ", 1)[0] for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def test_every_command_is_documented_and_no_other() -> None:
    assert sorted(documented_commands()) == sorted(commands())


def test_every_option_and_argument_of_a_command_is_documented_and_no_other() -> None:
    sections = documented_commands()
    for path, command in commands().items():
        told = set(re.findall(r"^\| `([^`]+)` \|", sections.get(path, ""), re.MULTILINE))
        there = set()
        for parameter in command.params:
            if isinstance(parameter, TyperOption) and not parameter.hidden and parameter.name != "help":
                there.add(", ".join([*parameter.opts, *parameter.secondary_opts]))
            elif isinstance(parameter, TyperArgument):
                there.add((parameter.metavar or parameter.name or "").strip("[]").upper())
        assert told == there, path


def test_every_fault_point_is_documented_and_no_other() -> None:
    assert re.findall(r"^\| `([a-z_]+)` \|", text_of("docs/testing.md"), re.MULTILINE) == list(fault_points.POINTS)


# examples in documents


def blocks_of(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def yaml_examples() -> list[Path | str]:
    return [
        *sorted((ROOT / "examples").glob("*.yaml")),
        *(block for path in documents() for block in blocks_of(path, "yaml")),
    ]


@pytest.mark.parametrize("example", yaml_examples(), ids=lambda example: str(example).splitlines()[0][-40:])
def test_every_definition_and_script_in_a_document_is_accepted(example: Path | str, tmp_path: Path) -> None:
    path = example if isinstance(example, Path) else tmp_path / "example.yaml"
    if isinstance(example, str):
        path.write_text(example, encoding="utf-8")
    text = path.read_text(encoding="utf-8")
    if re.search("^rules:", text, re.MULTILINE):
        parse_script(text, str(path))
    else:
        faults = faults_in(read_files([path]))
        # a document may show an agent alone, and refer to what another block defines
        assert [fault for fault in faults if "in these files" not in fault.message] == []
        assert isinstance(example, str) or not faults


def test_the_function_of_the_quickstart_can_be_offered(tmp_path: Path) -> None:
    (code,) = blocks_of(DOCS / "quickstart.md", "python")
    (tmp_path / "tools.py").write_text(code, encoding="utf-8")
    names = runpy.run_path(str(tmp_path / "tools.py"))
    offered = FunctionTools.discover({"price_of": names["price_of"]}).offered("price_of")
    assert offered.is_read_only and offered.description.startswith("What a dish costs")


# links, indexes, words


def slug(heading: str) -> str:
    """The anchor that readers of Markdown give a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def prose_of(document: Path) -> str:
    """The text without what stands in fences."""
    return _FENCED.sub("", document.read_text(encoding="utf-8"))


def broken_links(document: Path, *, root: Path = ROOT) -> list[str]:
    def is_broken(link: str) -> bool:
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or not target.is_relative_to(root):
            return True
        return bool(anchor) and anchor not in {slug(heading) for heading in _HEADING.findall(prose_of(target))}

    links = [link for link in _LINK.findall(prose_of(document)) if not re.match(r"[a-z]+:", link)]
    return [link for link in links if is_broken(link)]


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_resolve(document: Path) -> None:
    assert broken_links(document) == []


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    """The negative control of the test above."""
    document = tmp_path / "a.md"
    document.write_text(
        "# Here\n[one](b.md) [two](#there) [three](#here) [four](a.md#here) [five](../c.md)\n", encoding="utf-8"
    )
    assert broken_links(document, root=tmp_path) == ["b.md", "#there", "../c.md"]


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_document_is_unfinished_or_names_a_registry_or_a_path_of_somebodys_machine(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for pattern in (_UNFINISHED, _REGISTRIES, _PATHS_OF_A_MACHINE):
        assert re.findall(pattern, text) == []


def test_every_file_that_the_map_of_the_code_names_is_there() -> None:
    text = text_of("ARCHITECTURE.md") + text_of("CONTRIBUTING.md")
    source = ROOT / "src" / "folkmoot"
    named = re.findall(r"`((?:\w+/)*\w+\.(?:py|sql))`", text)
    missing = [
        name for name in named if not any((base / name).exists() for base in (source, source / "store/sql", ROOT))
    ]
    assert named and missing == []


def test_every_package_is_on_the_map_of_the_code() -> None:
    there = {path.parent.name for path in (ROOT / "src" / "folkmoot").glob("*/__init__.py")}
    headings = set(re.findall(r"^### (\w+)$", text_of("ARCHITECTURE.md"), re.MULTILINE))
    assert there <= headings


def test_every_document_is_in_the_index_of_its_folder() -> None:
    for folder in (DOCS, ADRS, SPEC):
        listed = set(_LINK.findall((folder / "README.md").read_text(encoding="utf-8")))
        there = {path.name for path in folder.iterdir() if path.is_file() and path.name != "README.md"}
        assert there <= listed, folder


@pytest.mark.parametrize("adr", sorted(ADRS.glob("0*.md")), ids=lambda path: path.stem)
def test_every_decision_says_why_what_follows_and_what_else_there_was(adr: Path) -> None:
    text = adr.read_text(encoding="utf-8")
    assert text.startswith(f"# {adr.name[:4]}: ")
    assert _HEADING.findall(text)[1:] == ["Context", "Decision", "Consequences", "Alternatives"]


def test_every_line_of_the_specification_that_a_test_cites_is_there() -> None:
    spec = {
        key
        for name in ("behaviours.md", "faults.md")
        for key in re.findall(r"^- ([BF]\d\d) ", (SPEC / name).read_text(encoding="utf-8"), re.MULTILINE)
    }
    for test in (ROOT / "tests").rglob("test_*.py"):
        cited = set(re.findall(r"\b[BF]\d\d\b", test.read_text(encoding="utf-8")))
        assert cited <= spec, test.name


def test_the_newest_entry_of_the_changelog_is_this_version() -> None:
    assert re.findall(r"^## \[(.+?)\]", text_of("CHANGELOG.md"), re.MULTILINE)[:2] == ["Unreleased", __version__]


def test_the_readme_names_the_command_that_ci_runs() -> None:
    assert "make check" in text_of("README.md")
    assert "make check" in text_of(".ci/run")
