"""The consent page in a real browser: a person signs in, sees what is asked, approves by keyboard, and the run goes on (api.md, Console; B14, B16; F48, F64)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import agents_at_hand as agents
import browser_at_hand
import pytest
import pytest_asyncio
from api_at_hand import Served, served
from browser_at_hand import Browser, browsing
from crews import crew, until
from web_at_hand import CODE, Waiting, consent_row, waiting_run

from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.ids import NewId
from folkmoot.services import keys

AXE = Path(__file__).parents[1] / "peers" / "node_modules" / "axe-core" / "axe.min.js"
HOSTILE = "</pre><img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script> \u202e42"
ENTER, TAB = "\ue007", "\ue004"
pytestmark = pytest.mark.skipif(browser_at_hand.missing() is not None, reason=browser_at_hand.missing() or "")


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    async with served(database_dsn, data_dir=tmp_path) as server:
        yield server


@pytest_asyncio.fixture
async def asked(server: Served, new_id: NewId) -> Waiting:
    owner = await keys.owner(server.installation.database)
    return await waiting_run(server.installation.database, owner, new_id, what=HOSTILE, code=CODE)


async def sign_in(browser: Browser, server: Served) -> None:
    """From whatever page is open, which asks for it."""
    await browser.write("#key", server.key)
    await browser.press(ENTER)


async def settled(browser: Browser, heading: str) -> None:
    async def condition() -> bool:
        return (
            await browser.run("return document.readyState === 'complete' && document.querySelector('h1')?.innerText")
            == heading
        )

    await until(condition)


async def test_a_person_approves_and_the_run_goes_on_to_its_answer(
    server: Served, asked: Waiting, new_id: NewId
) -> None:
    """All of the way, with the browser's own cookies, forms and policies; what the model wrote runs nowhere."""
    database = server.installation.database
    owner: Caller = await keys.owner(database)
    async with browsing() as browser:
        await browser.open(f"{server.url}{asked.path}")
        page = await browser.text()
        assert "Bo" not in page and "Choose one of the buttons" not in page
        await browser.write("#code", CODE + ENTER)  # which is no button, and decides nothing
        await browser.click("main a.button")
        await sign_in(browser, server)
        await settled(browser, "Consent to a call")
        card = await browser.text("main")
        assert "Calls tell with" in card and r"\u202e42" in card and "onerror" in card
        assert (await browser.run("return document.title")).startswith("Consent to a call")
        assert (await consent_row(database, asked))["status"] == "pending"
        await browser.run("document.querySelector('#reason').focus()")
        await browser.press(TAB, ENTER)  # the first button after it is Approve
        await settled(browser, "Done")
        bench = asked.deeds.bench(asked.rules)
        async with crew(database, new_id, bench=bench, functions=asked.deeds.functions):
            await until(agents.ended(database, owner, asked.run))
        await browser.click("main a")
        await settled(browser, f"Agent run {asked.run.id}")
        page = await browser.text("main")
        assert (
            "completed" in page
            and "Approved by owner" in page
            and "Bo was told." in await browser.text(".chat li:last-child")
        )
    assert asked.deeds.done == [("tell", ("Bo", HOSTILE))]


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not there; 'make peers' says why.")
async def test_nothing_serious_is_in_the_way_of_anybody(server: Served, asked: Waiting, tmp_path: Path) -> None:
    """Every page, in light and dark, on a phone and on a screen: axe finds nothing serious, and nothing is wider than the window."""
    run = asked.run
    signed_in = (
        "/web/agent-runs",
        f"/web/agent-runs/{run.id}",
        asked.path,
        "/web/new",
        f"/web/conversations/{run.conversation_id}",
        "/web/consent/none",
    )
    async with browsing() as browser:
        await browser.open(f"{server.url}{asked.path}")
        await looked_at(browser, "code")
        await browser.open(f"{server.url}/web/sign-in")
        await looked_at(browser, "sign-in")
        await sign_in(browser, server)
        await settled(browser, "Agent runs")
        for path in signed_in:
            await browser.open(f"{server.url}{path}")
            await browser.run("for (const folded of document.querySelectorAll('details')) folded.open = true")
            await looked_at(browser, path)


async def looked_at(browser: Browser, name: str) -> None:
    await browser.run(AXE.read_text(encoding="utf-8"))
    for scheme, width, options in (("light", 360, {}), ("dark", 1200, {"runOnly": ["color-contrast"]})):
        await browser.devtools(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
        )
        await browser.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        assert await browser.run("return document.documentElement.scrollWidth <= innerWidth"), (name, width)
        found = await browser.run_later(
            "const done = arguments[1]; axe.run(arguments[0]).then(found => done([found.violations, found.passes.length]))",
            options,
        )
        told = [(each["id"], each["impact"], [node["html"][:200] for node in each["nodes"]]) for each in found[0]]
        assert [each for each in told if each[1] in ("serious", "critical")] == [], (name, scheme)
        assert found[1], "the negative control: rules were looked at"
