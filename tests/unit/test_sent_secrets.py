"""What was sent as a secret does not come back, whichever protocol carried it (B52, F44)."""

from __future__ import annotations

import json
from urllib.parse import quote

import mcp_types as types
import pytest

from folkmoot.tools.mcp import answers
from folkmoot.tools.sent_secrets import SentSecrets
from folkmoot.vault.masks import SHORTEST

KEY_FILE = '-----BEGIN KEY-----\nc4n"ry/+~line one\nline two\n-----END KEY-----'


@pytest.mark.parametrize(
    ("value", "said", "shown"),
    [
        ("Bearer abc-123-def", "401 for 'Bearer abc-123-def' (abc-123-def)", "401 for '[secret]' ([secret])"),
        ("Digest user abc-123", "user abc-123, abc-123", "[secret], [secret]"),
        ('c4n"ry/+', json.dumps({"sent": 'c4n"ry/+'}), '{"sent": "[secret]"}'),
        ("c4n ry/+", f"?a={quote('c4n ry/+', safe='')}&b={quote('c4n ry/+')}", "?a=[secret]&b=[secret]"),
        (KEY_FILE, "it wrote line two", "it wrote [secret]"),
        ("secret\ud800", "secret\ud800", "[secret]"),
        ("x" * SHORTEST, "x" * SHORTEST, "[secret]"),
        ("x" * (SHORTEST - 1), "x" * SHORTEST, "x" * SHORTEST),
    ],
)
def test_a_secret_is_taken_out_in_each_form_from_the_shortest_length_on(value: str, said: str, shown: str) -> None:
    sent = SentSecrets(["a", value])
    assert sent.masked(said) == shown
    assert sent.masked("a to b") == "a to b"


def test_the_longest_form_is_known_to_whoever_cuts() -> None:
    assert SentSecrets([]).longest == SentSecrets(["short"]).longest == 0
    assert SentSecrets(["a secret/+"]).longest == len(quote("a secret/+", safe=""))


def test_a_tools_result_is_masked_as_json_too() -> None:
    """Escaped by the server, it is found as well."""
    told = types.CallToolResult(content=[types.TextContent(text=json.dumps({"k": 'c4n"ry/+'}))])
    made = answers.result_of(told, subject="It", limit_bytes=1_000, secrets=SentSecrets(['Bearer c4n"ry/+']))
    assert made.text == '{"k": "[secret]"}'
