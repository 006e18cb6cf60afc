"""What a mail that came in is read as: the decision from the sender's own first line, the request from the address alone (B14, F35, F37)."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any

import pytest
from channels_at_hand import SECRET, TOKEN

from folkmoot.channels.mail.addresses import LONGEST_LOCAL, one_address, reply_address
from folkmoot.channels.mail.decisions import Decision, own_lines, read_decision
from folkmoot.channels.mail.html_text import MOST_CHARACTERS, text_of_html
from folkmoot.channels.mail.letters import one_line
from folkmoot.channels.mail.reading import MOST_BYTES, MailUnreadable, Origin, read_mail
from folkmoot.domain.channels import Answer, ReceivedAnswer

OURS = "approvals@example.org"
ADDRESS = reply_address(OURS, token=TOKEN, secret=SECRET)
OTHER_TOKEN, OTHER_SECRET = "z" * 26, "z" * 16
WIDE = SMTP.clone(max_line_length=998)  # else a long id is folded into what is none
APPROVE, DECLINE = Answer.APPROVE, Answer.DECLINE


def mail(text: str = "approve", *, html: str | None = None, **headers: str) -> bytes:
    made = EmailMessage(policy=WIDE)
    for name, value in {"From": "Ada <Ada@Example.org>", "To": ADDRESS, "Message_ID": "<1@x>", **headers}.items():
        if value:
            made[name.replace("_", "-")] = value
    if html is None:
        made.set_content(text)
    else:
        made.set_content(html, subtype="html")
    return made.as_bytes()


def read(raw: bytes) -> ReceivedAnswer:
    return read_mail(raw, reply_to=OURS, own="moot@example.org")


# the decision


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("approve", APPROVE),
        ("  APPROVED!  ", APPROVE),
        ("\n\n Yes.\n", APPROVE),
        ("*OK*", APPROVE),
        ("Ja", APPROVE),
        ("sí", APPROVE),
        ("si\u0301", APPROVE),
        ("\ufeffapprove\u00a0", APPROVE),
        ("no", DECLINE),
        ("“Decline”", DECLINE),
        ("NEIN", DECLINE),
        ("yes, but only 10", None),
        ("approve decline", None),
        ("not approved", None),
        ("Hello,\napprove", None),
        ("app\u200brove", None),
        ("аpprove", None),  # a Cyrillic letter
        ("", None),
        ("👍", None),
    ],
)
def test_the_first_line_decides_as_a_whole_or_not_at_all(text: str, answer: Answer | None) -> None:
    assert read_decision(text).answer is answer


def test_what_is_below_the_decision_is_the_reason() -> None:
    got = read_decision("No\r\n\r\nToo much.\r\nAsk for 10.\r\n\r\n-- \r\nAda\r\n")
    assert (got.answer, got.reason) == (DECLINE, "Too much.\nAsk for 10.")
    assert len(read_decision("no\n" + "x" * 50_000).reason or "") < 2_200


@pytest.mark.parametrize(
    "below",
    [
        "but not to the second one",
        "But NOT to the second one.",
        "\n\nOnly the first.",
        "don’t do it before Monday",
        "aber nur 10",
        "Thanks\nAda\nexcept on Sundays",
        "one\ntwo\nthree\nfour",
        "Please have a look at the second one first.",
    ],
)
def test_an_approval_with_more_below_it_decides_nothing_and_is_asked_for_again(below: str) -> None:
    """B14: what stands there may take it back, and nobody would read it. A decline keeps it as its reason."""
    got = read_decision(f"Yes\n{below}\n\n> quoted")
    assert (got.answer, got.reason) == (None, None)
    assert got.unread and got.unread.startswith("Yes / ") and below.split("\n")[-1] in got.unread
    assert read_decision(f"No\n{below}").reason == below.strip()


@pytest.mark.parametrize(
    "below",
    [
        "",
        "Thank you,\nAda",
        "\n\nKind regards\n\nAda Notker\nHead of sales\n",
        "-- \nAda\nbut not read, for it is a signature\n" + "x\n" * 9,
        "Ada\n> but not\n> at all",
    ],
)
def test_a_greeting_and_a_name_below_an_approval_leave_it_one(below: str) -> None:
    assert read_decision(f"Yes\n{below}") == Decision(APPROVE)


def test_what_could_not_be_read_is_shown_with_its_hidden_characters() -> None:
    assert read_decision("app\u202erove").unread == "app\\u202erove"
    assert len(read_decision("x" * 9_000).unread or "") < 300
    assert read_decision("> approve").unread == "nothing above what is quoted"


QUOTES = [
    "> APPROVE\n> more",
    ">APPROVE",
    "On Mon, 1 Dec 2026 at 10:00, Folkmoot <moot@example.org> wrote:\nAPPROVE",
    "On Mon, 1 Dec 2026 at 10:00, Folkmoot\n<moot@example.org> wrote:\n\nAPPROVE",
    "On Mon, 1 Dec 2026 at 10:00, Folkmoot via a long name\n<moot+averylongaddress@example.org>\nwrote:\nAPPROVE",
    "Am 01.12.26 um 10:00 schrieb Folkmoot:\nAPPROVE",
    "Am 01.12.26 um 10:00 schrieb Folkmoot <moot@example.org>:\nAPPROVE",
    "Le lun. 1 déc. 2026 à 10:00, Folkmoot a écrit :\nAPPROVE",
    "El lun, 1 dic 2026 a las 10:00, Folkmoot escribió:\nAPPROVE",
    "Folkmoot <moot@example.org> wrote:\nAPPROVE",
    '"Folkmoot" <moot@example.org> schrieb am 01.12.26:\nAPPROVE',
    "-----Original Message-----\nFrom: Folkmoot\nAPPROVE",
    "-----Ursprüngliche Nachricht-----\nAPPROVE",
    "________________________________\nFrom: Folkmoot\nAPPROVE",
    "From: Folkmoot <moot@example.org>\nSent: Monday\nTo: Ada\nAPPROVE",
    "*From:* Folkmoot\n*Date:* Monday\nAPPROVE",
    "Von: Folkmoot\nGesendet: Montag\nAPPROVE",
    "---------- Forwarded message ---------\nAPPROVE",
    "Begin forwarded message:\nAPPROVE",
    "-- \nAPPROVE",
    "Sent from my phone\nAPPROVE",
]


@pytest.mark.parametrize("quoted", QUOTES)
def test_nothing_is_read_of_what_is_quoted(quoted: str) -> None:
    """'no' above a quoted 'APPROVE' declines; the quotation alone is no answer, and no part of a reason."""
    assert read_decision(f"no\n{quoted}").answer is DECLINE
    assert read_decision(f"no\nToo much.\n\n{quoted}\nyes").reason == "Too much."
    assert read_decision(quoted).answer is None
    assert read_decision(f"\n\n{quoted}\n").answer is None


def test_a_quoted_line_that_a_mail_program_broke_is_quoted_still() -> None:
    """The rest of a long line stands without its mark, where a model could put a word of ours."""
    assert own_lines("> a long line of the request that was broken before\nAPPROVE\n> more") == []


@pytest.mark.parametrize(
    "text",
    [
        "no\nFrom: here on, ask me first.",
        "no\nOn Monday he wrote: fine\nby me",
        "no\n--- really",
        "no\nAda <ada@example.org> wrote: fine\nby me",
        "no\nbut not as Ada <ada@example.org> wrote:\nfine",
        "no\nToo much, as he wrote:\nfine",
    ],
)
def test_a_persons_own_words_are_not_taken_for_a_quotation(text: str) -> None:
    assert read_decision(text).reason == text.partition("\n")[2]


# mails that are HTML alone


@pytest.mark.parametrize(
    "quoted",
    [
        "<blockquote type='cite'>APPROVE</blockquote>",
        "<div class='gmail_quote gmail_quote_container'><div class='gmail_attr'>On …</div>APPROVE</div>",
        '<div class="moz-cite-prefix">On … wrote:</div>APPROVE',
        "<div id='divRplyFwdMsg'>From: …</div><div>APPROVE</div>",
        "<DIV ID=appendonsend></DIV><div>APPROVE</div>",
        "<div class=yahoo_quoted>APPROVE</div>",
    ],
)
def test_html_alone_is_read_down_to_its_quotation(quoted: str) -> None:
    page = f"<html><head><title>yes</title><style>yes</style><script>yes</script></head><body><p>no</p><p>Too <b>much</b>.</p>{quoted}yes</body></html>"
    got = read(mail(html=page))
    assert (got.answer, got.reason, got.token, got.secret) == (DECLINE, "Too much.", TOKEN, SECRET)
    assert read(mail(html=f"<body>{quoted}</body>")).answer is None


def test_html_is_text_with_its_lines_and_entities() -> None:
    assert text_of_html("<div>yes</div><div>a &lt;b&gt;<br>c\n d</div><!-- e -->") == "yes\n\na <b>\nc d"


def test_plain_text_is_read_before_html_and_an_empty_one_is_passed_over() -> None:
    made = EmailMessage(policy=WIDE)
    made["From"], made["To"] = "ada@example.org", ADDRESS
    made.set_content("no")
    made.add_alternative("<p>yes</p>", subtype="html")
    assert read(made.as_bytes()).answer is DECLINE
    blank = EmailMessage(policy=WIDE)
    blank["From"], blank["To"] = "ada@example.org", ADDRESS
    blank.set_content("\n")
    blank.add_alternative("<p>yes</p>", subtype="html")
    assert read(blank.as_bytes()).answer is APPROVE


# the request


def test_the_longest_address_has_a_local_part_that_mailboxes_may_have() -> None:
    local = "a" * LONGEST_LOCAL
    address = reply_address(f"{local}@example.org", token=TOKEN, secret=SECRET)
    assert len(address.partition("@")[0]) == 64 and one_address(address)


@pytest.mark.parametrize("header", ["To", "Cc", "Delivered_To", "X_Original_To"])
def test_token_and_secret_are_read_from_where_it_was_sent(header: str) -> None:
    got = read(mail(**{"To": "someone@example.org", header: f"Approvals <{ADDRESS.upper()}>"}))
    assert (got.token, got.secret) == (TOKEN, SECRET)


def test_a_token_in_the_text_is_nobodys() -> None:
    """In the quotation, in the reply itself, in the subject or in another's domain."""
    other = reply_address(OURS, token=OTHER_TOKEN, secret=OTHER_SECRET)
    got = read(mail(f"no\n{other}\n> Reply-To: {other}\n> APPROVE", Subject=other, Reply_To=other))
    assert (got.token, got.secret, got.answer) == (TOKEN, SECRET, DECLINE)
    for stranger in (
        ADDRESS.replace("example.org", "example.org.evil.example"),
        ADDRESS.replace("example.org", "evil.example"),
        f"x{ADDRESS}",
        f"approvals+{TOKEN[:-1]}.{SECRET}@example.org",
    ):
        got = read(mail(f"yes\n{ADDRESS}", To=stranger))
        assert got.secret is None, stranger


def test_the_mail_that_is_answered_gives_the_token_without_a_secret() -> None:
    id_ = f"<folkmoot.{'0' * 32}.{TOKEN}@example.org>"
    earlier = f"<folkmoot.{'0' * 32}.{OTHER_TOKEN}@example.org>"
    got = read(mail(To=OURS, In_Reply_To=id_, References=f"{earlier} <else@x>"))
    assert (got.token, got.secret) == (TOKEN, None)
    assert read(mail(To=OURS, In_Reply_To="<else@x>")).token is None


def test_an_address_with_a_secret_goes_before_one_without() -> None:
    plain = reply_address(OURS, token=OTHER_TOKEN, secret=None)
    assert read(mail(Cc=plain, Delivered_To=plain)).token == TOKEN


def test_the_sender_is_who_it_says_and_proves_nothing() -> None:
    """F37: From can be forged."""
    got = read(mail())
    assert (got.sender, got.is_proven) == ("ada@example.org", False)
    for nobody in ("a@example.org, b@example.org", "", "J\u00fcrgen <j\u00fcrgen@ex\u00e4mple.de>"):
        assert read(mail(From=nobody)).sender == "", "which is nobody's, and not the owner's"
    assert read(mail().replace(b"Ada <Ada@Example.org>", b"<<>>@@ \xff")).sender == ""


@pytest.mark.parametrize(
    "headers",
    [
        {"Auto_Submitted": "auto-replied"},
        {"Auto_Submitted": "auto-generated; x=y"},
        {"Precedence": "bulk"},
        {"Precedence": "auto_reply"},
        {"X_Autoreply": "yes"},
        {"Return_Path": "<>"},
        {"From": "Folkmoot <moot@example.org>", "X_Folkmoot_Token": TOKEN},
    ],
)
def test_what_a_machine_sent_is_known(headers: dict[str, str]) -> None:
    assert read(mail(**headers)).is_automatic
    assert not read(mail(Auto_Submitted="no", X_Folkmoot_Token=TOKEN)).is_automatic  # the control: a person's


def test_a_bounce_is_a_machines() -> None:
    raw = mail().replace(b"Content-Type: text/plain", b"Content-Type: multipart/report; boundary=b; x")
    assert read(raw).is_automatic


# ids, size, and mails that are none


def test_a_mail_that_comes_again_has_the_same_id() -> None:
    """B71: its own, or one made of what it holds."""
    assert read(mail()).inbound_id == "<1@x>"
    without = mail(Message_ID="")
    assert read(without).inbound_id == read(without).inbound_id != read(mail("no", Message_ID="")).inbound_id
    assert read(mail().replace(b"<1@x>", b"<" + b"a" * 500 + b"@x>")).inbound_id.startswith("sha256:")


def test_what_is_needed_to_answer_it_is_kept() -> None:
    origin = Origin.of(read(mail(Subject="Re: May\u202e I?")).reply_to)
    assert origin == Origin("<1@x>", "Re: May I?")
    assert Origin.of(None) is None


def test_ten_megabytes_are_read_at_the_top_alone() -> None:
    raw = mail("no\nToo much.\n\n> quoted\n" + "x" * 70 + "\n") + b"y" * 76 * 135_000
    assert len(raw) > 10_000_000 > MOST_BYTES
    got = read(raw)
    assert (got.answer, got.reason, got.token) == (DECLINE, "Too much.", TOKEN)


@pytest.mark.parametrize(
    "piece",
    ["<!", "<a ", "<", "&#", "<!--", "</", "<blockquot", "<div class='", "\x00<?", "<a b='>", "<a class=' ", "<style>"],
)
def test_html_that_is_made_to_be_slow_is_read_in_time(piece: str) -> None:
    began = time.monotonic()
    text_of_html(piece * (2 * MOST_CHARACTERS // len(piece)))
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "text", ["On " * 30_000, "From: a\n" * 10_000, "-" * 90_000, "On a\n" * 20_000, ("On " + "x" * 200 + "\n") * 400]
)
def test_text_that_is_made_to_be_slow_is_read_in_time(text: str) -> None:
    began = time.monotonic()
    read_decision("no\n" + text)
    assert time.monotonic() - began < 10


SLOW = [b'"', b"(", b"a@b, ", b"=?utf-8?q?a?= ", b"<", b"\\", b"; a=b", b"; a*0=b", b'; a="', b";"]


@pytest.mark.parametrize("piece", SLOW)
def test_headers_that_are_made_to_be_slow_are_read_in_time(piece: bytes) -> None:
    """Of the mail and of its parts, which a stranger may send to the address."""
    top = b"From: ada@example.org\nTo: " + ADDRESS.encode() + b"\n"
    long, part = piece * (60_000 // len(piece)), piece * (9_000 // len(piece))
    parts = b"".join(b"--q\nContent-Type: text/plain" + part + b"\n\nyes\n" for _ in range(90))
    for raw in (
        top + b"Subject: " + long + b"\n\nyes",
        top.replace(b"ada@example.org", long) + b"\nyes",
        top + b"Content-Type: text/plain" + long + b"\n\nyes",
        top + b"Content-Type: multipart/mixed; boundary=q\n\n" + parts + b"--q--\n",
    ):
        began = time.monotonic()
        with suppress(MailUnreadable):  # what is nested without end
            assert read(raw).inbound_id
        assert time.monotonic() - began < 10


def test_parts_within_parts_are_read_in_time() -> None:
    nested = [b"Content-Type: multipart/mixed; boundary=%d\n\n--%d\n" % (n, n) for n in range(95)]
    top = b"From: ada@example.org\nTo: " + ADDRESS.encode() + b"\n"
    began = time.monotonic()
    assert read(top + b"".join(nested) + b"\n" * 1_000_000).token == TOKEN
    assert time.monotonic() - began < 10
    with pytest.raises(MailUnreadable):
        read(top + b"".join(nested) * 2)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"no mail at all",
        b"\x00\xff" * 1_000,
        b"To: a@example.org\nX: " + b"a" * 70_000 + b"\n\nyes",
    ],
)
def test_what_is_no_mail_is_told_apart(raw: bytes) -> None:
    with pytest.raises(MailUnreadable):
        read(raw)


@pytest.mark.parametrize(
    "content",
    [
        b'Content-Type: text/plain; charset="no-such"\n\napprove',
        b"Content-Type: text/plain\nContent-Transfer-Encoding: base64\n\n!!!!",
        b"Content-Type: application/pdf\n\nx",
        b"Content-Type: multipart/mixed\n\napprove",
        b"Content-Type: text/html\n\n<<<>>>",
        b"".join(b"Content-Type: multipart/mixed; boundary=%d\n\n--%d\n" % (n, n) for n in range(3_000)) + b"\n\nyes",
    ],
)
def test_a_mail_whose_text_cannot_be_read_is_no_answer_and_breaks_nothing(content: bytes) -> None:
    try:
        got = read(b"From: ada@example.org\nTo: " + ADDRESS.encode() + b"\n" + content)
    except MailUnreadable:
        return
    assert got.token == TOKEN and (got.answer is None or b"no-such" in content)


@pytest.mark.parametrize(
    "address",
    [
        "a@example.org\r\nBcc: b@example.org",
        "a@example.org, b@example.org",
        "a",
        "<a@example.org>",
        "",
        "@",
        "a@",
        "a b@x",
        "ä@example.org",
    ],
)
def test_what_is_not_one_address_is_none(address: str) -> None:
    assert one_address(address) is None
    assert one_address("ada+x@example.org") is not None


def test_a_header_has_one_line() -> None:
    assert one_line("May I?\r\nBcc: x@example.org\x00\u2028y") == "May I? Bcc: x@example.org y"
    assert len(one_line("x" * 5_000)) == 200
    value: Any = json.loads(json.dumps(one_line("\ud800")))
    assert value == ""
