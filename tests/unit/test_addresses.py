"""The guard: what may be connected to, where redirects lead, how much of a body is read (F50, F51, F52)."""

from __future__ import annotations

import asyncio
import gzip
import resource
import ssl
import zlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpcore2
import httpx2
import pytest
import pytest_asyncio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from recording_server import Received, RecordingServer, reply, saying

from folkmoot.tools import addresses
from folkmoot.tools.addresses import AddressRefused, Guard, RedirectRefused, guarded_client
from folkmoot.tools.bodies import BodyTooLarge, read_body
from folkmoot.tools.networks import UnfitAllowance, is_public, read_allowance
from folkmoot.tools.redirects import next_hop

LOOPBACK = Guard(("127.0.0.0/8",))


@pytest_asyncio.fixture
async def server() -> AsyncIterator[RecordingServer]:
    async with RecordingServer() as opened:
        yield opened


INSIDE = [
    "127.0.0.1",
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "169.254.169.254",
    "172.31.255.255",
    "192.0.0.192",
    "192.168.1.1",
    "198.18.0.1",
    "192.88.99.1",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "3fff::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "4000::1",
]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "172.32.0.1",
    "100.128.0.1",
    "223.255.255.255",
    "2606:4700::1111",
    "2a00:1450::1",
    "2400:cb00::1",
]


def test_only_addresses_of_the_public_internet_are_public() -> None:
    """F50"""
    assert [text for text in INSIDE if is_public(ip_address(text))] == []
    assert [text for text in PUBLIC if not is_public(ip_address(text))] == []


SPELLINGS = (
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "0",
    "0.0.0.0",
    "127。0。0。1",
    "１２７.０.０.１",
    "①②⑦.0.0.1",
    "%31%32%37.0.0.1",
    "127.0.0.1.",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::127.0.0.1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "[fec0::1]",
    "[fe80::1%25lo]",
    "[::1%lo]",
    "user:password@127.0.0.1",
    "1.1.1.1@127.0.0.1",
)


async def test_no_spelling_of_an_address_reaches_a_private_listener(server: RecordingServer) -> None:
    """F50"""
    reached = []
    async with guarded_client(Guard(), timeout=5) as client:
        for host in SPELLINGS:
            try:
                await client.get(f"http://{host}:{server.port}/")
            except (AddressRefused, httpx2.InvalidURL, httpx2.ConnectError):
                continue
            reached.append(host)
    assert (reached, server.connections) == ([], 0)


async def test_without_the_guard_the_same_spellings_do_reach_it(
    server: RecordingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the listener listens, and it is the check that keeps them away."""
    monkeypatch.setattr(addresses, "is_public", lambda address: True)
    async with guarded_client(Guard(), timeout=5) as client:
        for host in ("127.0.0.1", "127.1", "2130706433", "[::ffff:127.0.0.1]"):
            assert (await client.get(f"http://{host}:{server.port}/")).status_code == 200
    assert len(server.received) == 4


async def test_a_name_is_refused_if_any_of_its_addresses_is_inside(server: RecordingServer) -> None:
    """F50"""
    for found in (
        ["127.0.0.1"],
        ["93.184.216.34", "127.0.0.1"],
        ["::ffff:127.0.0.1"],
        ["fe80::1%eth0"],
        ["64:ff9b::7f00:1"],
    ):
        asked: list[str] = []

        async def resolve(host: str, port: int, found: list[str] = found, asked: list[str] = asked) -> list[str]:
            asked.append(host)
            return found

        async with guarded_client(Guard(resolve=resolve), timeout=5) as client:
            with pytest.raises(AddressRefused, match=r"'crm\.test' is at an address inside.*FOLKMOOT_ALLOW_ADDRESSES"):
                await client.get(f"http://crm.test:{server.port}/")
        assert asked == ["crm.test"]
    assert server.connections == 0


async def test_a_name_that_changes_its_address_after_the_check_is_asked_once(server: RecordingServer) -> None:
    """F50: rebinding. What was checked is what is connected to, and Host stays the name."""
    answers = iter((["127.0.0.1"], ["10.0.0.1"]))

    async def resolve(host: str, port: int) -> list[str]:
        return next(answers)

    async with guarded_client(Guard(("rebound.test",), resolve=resolve), timeout=5) as client:
        await client.get(f"http://rebound.test:{server.port}/")
    assert server.received[0].header("Host") == f"rebound.test:{server.port}"
    assert next(answers) == ["10.0.0.1"]


def _certified(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Contexts of a server that is certified for the name, and of a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    written = folder / "certificate.pem"
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, *private)
    written.write_bytes(pem + certificate.public_bytes(serialization.Encoding.PEM))
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(written)
    return serving, ssl.create_default_context(cafile=written)


async def test_over_https_the_certificate_is_held_against_the_name(tmp_path: Path) -> None:
    """The connection goes to a checked address; the name in TLS and Host stays what was asked for."""

    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    serving, trusting = _certified(tmp_path, "crm.test")
    asked: list[str | None] = []
    serving.sni_callback = lambda connection, name, context: asked.append(name)
    guard = Guard(("127.0.0.0/8",), resolve=resolve)
    async with RecordingServer(tls=serving) as server, guarded_client(guard, ssl_context=trusting, timeout=5) as client:
        assert (await client.get(f"https://crm.test:{server.port}/")).status_code == 200
        with pytest.raises(httpx2.ConnectError):
            await client.get(f"https://other.test:{server.port}/")
    assert asked == ["crm.test", "other.test"]
    assert [received.header("Host") for received in server.received] == [f"crm.test:{server.port}"]


ALLOWANCES = (
    ("127.0.0.1", "127.0.0.1", 80, True),
    ("127.0.0.0/8", "127.9.9.9", 80, True),
    ("127.0.0.0/8", "::ffff:127.0.0.1", 80, True),
    ("127.0.0.1:8080", "127.0.0.1", 8080, True),
    ("127.0.0.1:8080", "127.0.0.1", 80, False),
    ("10.0.0.0/8:443", "10.1.1.1", 443, True),
    ("[::1]:8080", "::1", 8080, True),
    ("::1", "::1", 1, True),
    ("[fd00::/8]:443", "fd12::1", 443, True),
    ("10.0.0.0/8", "127.0.0.1", 80, False),
    ("::/0", "127.0.0.1", 80, False),
    ("CRM.internal:443", "crm.internal", 443, True),
    ("crm.internal:443", "crm.internal", 80, False),
    ("crm.internal", "evil.crm.internal", 80, False),
)


@pytest.mark.parametrize(("entry", "host", "port", "is_allowed"), ALLOWANCES)
async def test_what_the_operator_allows_is_reached_and_nothing_beside_it(
    entry: str, host: str, port: int, is_allowed: bool
) -> None:
    async def resolve(name: str, port: int) -> list[str]:
        return ["10.0.0.5"]

    guard = Guard((entry,), resolve=resolve)
    if is_allowed:
        assert len(await guard.addresses(host, port)) == 1
    else:
        with pytest.raises(AddressRefused):
            await guard.addresses(host, port)


@pytest.mark.parametrize("entry", ["", "10.0.0.0/99", "crm:0", "crm:70000", "http://crm", "a b", "1.2.3", "*.internal"])
def test_an_allowance_that_cannot_be_read_says_so(entry: str) -> None:
    with pytest.raises(UnfitAllowance, match=r"write it as '"):
        read_allowance(entry)


@pytest.mark.parametrize(
    "url", ["ftp://a.test/", "file:///etc/passwd", "/etc", "", "http://", "gopher://a", "http://a:b@c.test/"]
)
def test_only_http_urls_without_a_user_are_called(url: str) -> None:
    """F50"""
    with pytest.raises(AddressRefused):
        Guard().check(url)


def test_a_refusal_shows_no_more_of_a_url_than_its_host() -> None:
    """B52"""
    for url in (
        "ftp://a.test/?key=hidden",
        "http://me:hidden@a.test/",
        "hidden@a.test/hidden",
        "http://a.test:port/hidden",
    ):
        with pytest.raises(AddressRefused) as caught:
            Guard().check(url)
        assert "hidden" not in str(caught.value)


async def test_credentials_and_bodies_stay_with_their_host(server: RecordingServer) -> None:
    """F51: any header may be a credential; only those that are none go on."""
    async with RecordingServer() as other:
        secrets = {"Authorization": "Bearer s", "X-Api-Key": "s", "Cookie": "a=s", "Accept": "text/plain"}
        async with guarded_client(LOOPBACK, headers=secrets, timeout=5) as client:
            server.answer = saying(reply(status=302, headers=(f"Location: {other.url}/next",)))
            assert (await client.get(server.url)).status_code == 200
            for status in (301, 302, 307, 308):
                server.answer = saying(reply(status=status, headers=(f"Location: {other.url}/next",)))
                assert (await client.post(server.url, content=b"private")).status_code == status
        assert [(r.method, r.header("Accept")) for r in other.received] == [("GET", "text/plain")]
        assert {name.lower() for name, _ in other.received[0].headers} == {
            "host",
            "accept",
            "user-agent",
            "accept-encoding",
        }


@pytest.mark.parametrize(
    ("method", "status", "then"),
    [
        ("GET", 301, "GET"),
        ("HEAD", 302, "HEAD"),
        ("POST", 303, "GET"),
        ("DELETE", 303, "GET"),
        ("PUT", 307, "PUT"),
        ("POST", 308, "POST"),
        ("POST", 301, None),
        ("PUT", 302, None),
    ],
)
async def test_redirects_at_home_keep_what_the_method_means(
    server: RecordingServer, method: str, status: int, then: str | None
) -> None:
    async def answer(received: Received, writer: asyncio.StreamWriter) -> None:
        moved = received.target == "/"
        body = b"" if method == "HEAD" else b"{}"
        writer.write(reply(body, status=status, headers=("Location: next?a=1",)) if moved else reply(body))

    server.answer = answer
    async with guarded_client(LOOPBACK, headers={"X-Api-Key": "s"}, timeout=5) as client:
        response = await client.request(method, server.url, content=b"body" if method in ("POST", "PUT") else None)
    onward = server.received[1:]
    assert response.status_code == (status if then is None else 200)
    assert [(r.method, r.target, r.header("X-Api-Key")) for r in onward] == ([(then, "/next?a=1", "s")] if then else [])
    if then in ("PUT", "POST"):
        assert onward[0].body == b"body"


async def test_a_redirect_to_an_inside_address_is_refused_at_any_hop(server: RecordingServer) -> None:
    """F50"""
    async with RecordingServer(host="127.0.0.2") as inside:
        async with guarded_client(Guard((f"127.0.0.1:{server.port}",)), timeout=5) as client:
            for location in (
                inside.url,
                f"http://localhost:{inside.port}/",
                f"//127.0.0.2:{inside.port}/",
                f"http://[::ffff:127.0.0.2]:{inside.port}",
                "ftp://127.0.0.2/",
                "file:///etc/passwd",
                "http://[::1%lo]/",
            ):
                server.answer = saying(reply(status=302, headers=(f"Location: {location}",)))
                with pytest.raises(AddressRefused):
                    await client.get(server.url)
        assert inside.connections == 0


async def test_at_most_five_redirects_are_followed(server: RecordingServer) -> None:
    server.answer = saying(reply(status=302, headers=("Location: /again",)))
    async with guarded_client(LOOPBACK, timeout=5) as client:
        with pytest.raises(RedirectRefused, match="more than 5 times"):
            await client.get(server.url, follow_redirects=True)
    assert len(server.received) == 6


def test_a_redirect_never_leads_from_https_to_http() -> None:
    request = httpx2.Request("GET", "https://a.test/")
    response = httpx2.Response(302, headers={"Location": "http://a.test/"})
    assert "from https to 'http'" in str(next_hop(request, response))


async def test_no_cookie_is_carried_from_one_call_to_the_next(server: RecordingServer) -> None:
    """B51"""
    server.answer = saying(reply(headers=("Set-Cookie: session=mine",)))
    async with guarded_client(LOOPBACK, timeout=5) as client:
        await client.get(server.url)
        await client.get(server.url, headers={"Cookie": "own=1"})
        await client.get(server.url)
    assert [r.header("Cookie") for r in server.received] == [None, "own=1", None]


async def test_the_environment_sends_nothing_through_a_proxy(
    server: RecordingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with RecordingServer() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        async with guarded_client(LOOPBACK, timeout=5) as client:
            await client.get(server.url)
        assert (proxy.connections, server.connections) == (0, 1)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw", "identity"])
async def test_a_body_is_decoded_and_read_to_its_end(server: RecordingServer, encoding: str) -> None:
    text = b"a few words " * 50_000
    data = {
        "gzip": gzip.compress(text),
        "deflate": zlib.compress(text),
        "raw": zlib.compress(text)[2:-4],
        "identity": text,
    }[encoding]
    name = "deflate" if encoding == "raw" else encoding
    server.answer = saying(reply(data, headers=(f"Content-Encoding: {name}",)))
    async with guarded_client(LOOPBACK, timeout=5) as client:
        assert (await client.get(server.url)).content == text
        async with client.stream("GET", server.url) as response:
            body = await read_body(response, limit_bytes=1_000)
    assert (body.data, body.is_cut) == (text[:1_000], True)
    assert server.received[0].header("Accept-Encoding") == "gzip, deflate"


async def test_a_bomb_is_cut_by_its_bytes_after_decoding(server: RecordingServer) -> None:
    """F52"""
    packed = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    bomb = b"".join(packed.compress(bytes(1_000_000)) for _ in range(100)) + packed.flush()
    server.answer = saying(reply(bomb, headers=("Content-Encoding: gzip",)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with guarded_client(LOOPBACK, timeout=5, limit_bytes=1_000_000) as client:
        with pytest.raises(BodyTooLarge):
            await client.get(server.url)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32_768  # KiB


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "gzip"])
async def test_an_encoding_that_cannot_be_decoded_is_an_error(server: RecordingServer, encoding: str) -> None:
    """F52"""
    server.answer = saying(reply(b"\x00not compressed", headers=(f"Content-Encoding: {encoding}",)))
    async with guarded_client(LOOPBACK, timeout=5) as client:
        with pytest.raises(httpx2.DecodingError):
            await client.get(server.url)


async def test_ten_thousand_headers_and_an_endless_one_are_refused(server: RecordingServer) -> None:
    """F52"""
    async with guarded_client(LOOPBACK, timeout=5) as client:
        for headers in (tuple(f"a{number}: b" for number in range(5_000)), ("a: " + "b" * 1_000_000,)):
            server.answer = saying(reply(headers=headers))
            with pytest.raises(httpx2.RemoteProtocolError):
                await client.get(server.url)


async def test_a_host_without_an_address_is_a_failure_to_connect() -> None:
    async with guarded_client(Guard(), timeout=5) as client:
        for host in ("no-such-host.invalid", "a..b"):
            with pytest.raises((httpx2.ConnectError, httpx2.InvalidURL)):
                await client.get(f"http://{host}/")


async def test_a_slow_name_server_is_bounded_by_the_time_to_connect() -> None:
    async def resolve(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        raise AssertionError

    async with guarded_client(Guard(resolve=resolve), timeout=0.05) as client:
        with pytest.raises(httpx2.ConnectTimeout):
            await client.get("http://slow.test/")


def test_a_unix_socket_is_not_connected_to() -> None:
    backend = addresses._GuardedBackend(Guard())
    with pytest.raises(AddressRefused):
        asyncio.run(backend.connect_unix_socket("/var/run/docker.sock"))
    assert issubclass(type(backend), httpcore2.AsyncNetworkBackend)
