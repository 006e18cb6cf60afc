"""Sealing, the texts of secrets, and the mask (platform.md, Tenancy; F44, F45; B52)."""

from __future__ import annotations

import base64
import copy
import io
import json
import logging
import pickle
import re
import secrets
import traceback
from collections.abc import Callable
from urllib.parse import quote, quote_plus
from uuid import UUID

import pytest

from folkmoot.kernel.errors import SecretFault
from folkmoot.services import consent_secrets
from folkmoot.vault.keys import SealingKey, key_of, read_keys, write_key
from folkmoot.vault.masks import OF_PROCESS, Mask, MaskingFormatter
from folkmoot.vault.sealing import Place, Vault
from folkmoot.vault.texts import SecretText

HERE = Place(UUID(int=1), "secret", UUID(int=2))
CANARY = 'c4n/ry+"ß?\\ \n=&%'
FIRST, SECOND = key_of(b"1" * 32), key_of(b"2" * 32)


def vault(*keys: SealingKey, mask: Mask | None = None) -> Vault:
    return Vault(keys, random_bytes=secrets.token_bytes, mask=mask or Mask())


class TestSealing:
    def test_what_was_sealed_opens_in_its_place(self) -> None:
        sealed = vault(FIRST).seal(SecretText(CANARY), HERE)
        assert vault(FIRST).open(sealed, HERE).reveal() == CANARY
        assert CANARY.encode() not in sealed
        assert vault(FIRST).seal(SecretText(CANARY), HERE) != sealed

    @pytest.mark.parametrize(
        "place",
        [
            Place(UUID(int=9), "secret", HERE.row_id),
            Place(HERE.tenant_id, "webhook", HERE.row_id),
            Place(HERE.tenant_id, "secret", UUID(int=9)),
            Place(HERE.row_id, "secret", HERE.tenant_id),
        ],
        ids=("another tenant", "another kind", "another row", "changed about"),
    )
    def test_moved_to_another_row_it_does_not_open(self, place: Place) -> None:
        """F45."""
        sealed = vault(FIRST).seal(SecretText(CANARY), HERE)
        with pytest.raises(SecretFault, match="moved from another row") as caught:
            vault(FIRST).open(sealed, place)
        assert CANARY not in "".join(traceback.format_exception(caught.value))

    def test_an_altered_one_does_not_open(self) -> None:
        """F45: each byte counts, those of the head too."""
        sealed = vault(FIRST).seal(SecretText(CANARY), HERE)
        for index in range(len(sealed)):
            altered = bytearray(sealed)
            altered[index] ^= 1
            with pytest.raises(SecretFault):
                vault(FIRST).open(bytes(altered), HERE)
        for cut in (0, 1, 8, 20, 21, len(sealed) - 1):
            with pytest.raises(SecretFault):
                vault(FIRST).open(sealed[:cut], HERE)

    def test_all_keys_open_and_the_first_seals(self) -> None:
        """F45: rotation."""
        old = vault(FIRST).seal(SecretText(CANARY), HERE)
        both = vault(SECOND, FIRST)
        assert both.open(old, HERE).reveal() == CANARY
        new = both.seal(SecretText(CANARY), HERE)
        assert vault(SECOND).open(new, HERE).reveal() == CANARY
        with pytest.raises(SecretFault, match="another key"):
            vault(FIRST).open(new, HERE)

    def test_without_a_key_it_says_what_to_set(self) -> None:
        sealed = vault(FIRST).seal(SecretText(CANARY), HERE)
        for act in (lambda: vault().seal(SecretText(CANARY), HERE), lambda: vault().open(sealed, HERE)):
            with pytest.raises(SecretFault, match="Set FOLKMOOT_SECRET_KEY"):
                act()
        assert not vault().has_keys

    def test_the_check_value_knows_its_key(self) -> None:
        check = vault(FIRST).make_check()
        vault(SECOND, FIRST).check(check)
        for other in (vault(SECOND), vault()):
            with pytest.raises(SecretFault, match="not the one that this database was begun with; nothing was changed"):
                other.check(check)
        with pytest.raises(SecretFault):
            vault(FIRST).check(vault(FIRST).seal(SecretText("folkmoot"), HERE))


class TestKeys:
    def test_keys_are_read_as_they_are_written(self) -> None:
        texts = [write_key(bytes([n]) * 32) for n in (251, 252)]
        keys = read_keys(f" {texts[0]} ,\n{texts[1].rstrip('=')},{texts[0]}\n", source="X")
        assert keys == (key_of(bytes([251]) * 32), key_of(bytes([252]) * 32))
        assert read_keys(base64.urlsafe_b64encode(bytes([251]) * 32).decode(), source="X") == keys[:1]

    @pytest.mark.parametrize("text", ["", " , ", "hunter22hunter22", "zu kürz", "a" * 43 + "!", write_key(b"k" * 31)])
    def test_what_is_no_key_is_refused_without_being_shown(self, text: str) -> None:
        with pytest.raises(SecretFault, match=r"^X holds .*openssl rand -base64 32") as caught:
            read_keys(text, source="X")
        assert not text.strip(" ,") or text not in str(caught.value)

    def test_a_key_does_not_print(self) -> None:
        material = b"k" * 32
        assert "kkk" not in repr(key_of(material)) and material[:8] != key_of(material).key_id


class TestTexts:
    def test_a_text_never_prints(self) -> None:
        text = SecretText("hunter22")
        shown = [repr(text), str(text), f"{text}", f"{text:>40}", f"{text} {text!r}", repr([text]), format(text)]
        assert not [words for words in shown if "hunter" in words]
        assert text.reveal() == "hunter22"

    def test_it_is_not_written_anywhere(self) -> None:
        text = SecretText("hunter22")
        for write in (pickle.dumps, copy.copy, copy.deepcopy, json.dumps):
            with pytest.raises(TypeError):
                write(text)

    def test_texts_are_compared_by_their_values(self) -> None:
        assert SecretText("a") == SecretText("a") != SecretText("b")
        assert len({SecretText("a"), SecretText("a")}) == 1


# Each form, and how many characters of it may be left: what stands around a value, and characters that hold bits of both.
FORMS: dict[str, tuple[int, Callable[[str], str]]] = {
    "plain": (0, lambda value: value),
    "JSON": (2, json.dumps),
    "JSON with letters as they are": (2, lambda value: json.dumps(value, ensure_ascii=False)),
    "JSON in JSON": (17, lambda value: json.dumps(json.dumps({"key": value}))),
    "JSON three deep": (22, lambda value: json.dumps(json.dumps(json.dumps(value)))),
    "JSON with its slashes escaped": (3, lambda value: json.dumps(value).replace("/", "\\/")),
    "JSON with all but letters escaped": (
        1,
        lambda value: re.sub("[^a-zA-Z0-9]", lambda found: f"\\u{ord(found[0]):04X}", value),
    ),
    "bytes as Python shows them": (4, lambda value: repr(value.encode())),
    "base64": (0, lambda value: base64.b64encode(value.encode()).decode()),
    "base64 for URLs": (0, lambda value: base64.urlsafe_b64encode(value.encode()).decode()),
    "base64 after one byte": (8, lambda value: base64.b64encode(b":" + value.encode() + b"x").decode()),
    "base64 of user and password": (8, lambda value: base64.b64encode(b"me:" + value.encode()).decode()),
    "base64 after two bytes": (10, lambda value: base64.b64encode(b"u:" + value.encode() + b"yz").decode()),
    "hexadecimal": (0, lambda value: value.encode().hex()),
    "a URL": (25, lambda value: f"https://example/?key={quote(value, safe='')}&x=1"),
    "a path": (0, quote),
    "a form": (0, quote_plus),
    "a URL with small digits": (0, lambda value: re.sub("%..", lambda found: found[0].lower(), quote(value, safe=""))),
}


class TestMask:
    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("value", [CANARY, "sk-4f9aA7", "p?/~~~>>>", "密码密码密码", "x" * 5000])
    def test_a_value_is_masked_in_each_form(self, value: str, form: str) -> None:
        """F44: plain and encoded."""
        most_left, write = FORMS[form]
        mask = Mask()
        text = f"before {write(value)} after"
        assert mask.mask(text) == text
        mask.add(value)
        masked = mask.mask(text)
        left = masked.removeprefix("before ").removesuffix(" after")
        assert left.count("•••") == 1 and len(left) - 3 <= most_left, masked
        assert value not in masked

    def test_a_value_that_is_part_of_another_leaves_nothing_of_it(self) -> None:
        mask = Mask()
        mask.add("secret")
        mask.add("secret-and-more")
        assert mask.mask("a secret-and-more b secret c") == "a ••• b ••• c"

    def test_short_values_are_left_alone(self) -> None:
        mask = Mask()
        mask.add("abcde")
        assert mask.mask("abcde") == "abcde"

    def test_the_oldest_are_forgotten_when_there_are_too_many(self) -> None:
        mask = Mask(most_characters=100)
        for number in range(30):
            mask.add(f"value-{number:04}")
        assert mask.mask("value-0000 value-0029") == "value-0000 •••"

    def test_values_of_one_use_are_few_and_push_out_no_lasting_one(self) -> None:
        mask = Mask(most_characters=100, most_of_one_use=5)
        mask.add("lasting-value")
        for number in range(30):
            mask.add(f"value-{number:04}", is_of_one_use=True)
        assert mask.mask("lasting-value value-0024 value-0025 value-0029") == "••• value-0024 ••• •••"

    def test_the_codes_of_ten_thousand_requests_leave_a_secret_known(self) -> None:
        """One of them is made for each request for consent: nothing grows with these, and the newest are masked as others are."""
        mask, tenant_id = Mask(), UUID(int=1)
        own = vault(FIRST, mask=mask)
        own.seal(SecretText("hunter22"), HERE)
        codes = [f"{number:016}" for number in range(10_000)]
        sealed = [consent_secrets.seal(own, tenant_id, UUID(int=n), code) for n, code in enumerate(codes)]
        for number in (0, 1):
            assert consent_secrets.opened(own, tenant_id, UUID(int=number), sealed[number] or b"") == codes[number]
        assert mask.mask(f"hunter22 {codes[0]} {codes[-1]} {codes[5000]}") == f"••• ••• ••• {codes[5000]}"

    def test_what_a_vault_seals_or_opens_is_known_to_the_mask(self) -> None:
        sealing, opening = Mask(), Mask()
        sealed = vault(FIRST, mask=sealing).seal(SecretText("hunter22"), HERE)
        vault(FIRST, mask=opening).open(sealed, HERE)
        assert sealing.mask("hunter22") == opening.mask("hunter22") == "•••"

    def test_a_log_shows_no_known_value(self) -> None:
        """F44: neither in a message, nor in its values, nor in the traceback of what failed."""
        value = f"canary-{secrets.token_hex(8)}"
        OF_PROCESS.add(value)
        out = io.StringIO()
        handler = logging.StreamHandler(out)
        handler.setFormatter(MaskingFormatter("%(name)s: %(message)s"))
        log = logging.getLogger("folkmoot.test.masked")
        log.addHandler(handler)
        log.propagate = False
        try:
            try:
                raise RuntimeError(f"refused: {value}")
            except RuntimeError:
                log.exception("a call with %s failed", {"key": value})
        finally:
            log.removeHandler(handler)
        assert value not in out.getvalue()
        assert out.getvalue().count("•••") == 2 and "RuntimeError: refused" in out.getvalue()
