"""A real browser, spoken to by the WebDriver protocol, on a screen that nobody sees.

Deliberately absent: a library for it; a dozen commands are all that is needed. Without Chromium and its driver on the machine tests are skipped, which
the report says.
"""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # by which the protocol names an element
_FLAGS = (
    "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
_PATIENCE = 30.0


def missing() -> str | None:
    """Why there is no browser to test with."""
    for names in (("chromium", "chromium-browser", "google-chrome"), ("chromedriver",)):
        if not any(shutil.which(name) for name in names):
            return f"There is no {names[0]} on this machine."
    return None


class Browser:
    def __init__(self, client: httpx2.AsyncClient, session: str) -> None:
        self._client = client
        self._session = f"/session/{session}"

    async def _ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = await self._client.request(method, f"{self._session}{path}", json=body)
        value = answer.json()["value"]
        assert answer.status_code == 200, value
        return value

    async def open(self, url: str) -> None:
        await self._ask("POST", "/url", {"url": url})

    async def url(self) -> str:
        return str(await self._ask("GET", "/url"))

    async def find(self, selector: str) -> str:
        found = await self._ask("POST", "/element", {"using": "css selector", "value": selector})
        return str(found[_ELEMENT])

    async def click(self, selector: str) -> None:
        await self._ask("POST", f"/element/{await self.find(selector)}/click", {})

    async def write(self, selector: str, text: str) -> None:
        await self._ask("POST", f"/element/{await self.find(selector)}/value", {"text": text})

    async def press(self, *keys: str) -> None:
        """Keys one after the other, to whatever has the focus."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        await self._ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    async def text(self, selector: str = "body") -> str:
        return str(await self._ask("GET", f"/element/{await self.find(selector)}/text"))

    async def run(self, script: str, *arguments: Any) -> Any:
        return await self._ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    async def run_later(self, script: str, *arguments: Any) -> Any:
        """A script that calls its last argument with what it found."""
        return await self._ask("POST", "/execute/async", {"script": script, "args": list(arguments)})

    async def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(await self._ask("GET", "/screenshot")))

    async def devtools(self, command: str, **parameters: Any) -> Any:
        return await self._ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """A new browser with nothing in it, closed with its driver after the block."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    driver = await asyncio.create_subprocess_exec(
        shutil.which("chromedriver") or "", f"--port={port}", "--silent",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    profile = tempfile.mkdtemp(prefix="folkmoot-browser-")
    try:
        async with httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", timeout=_PATIENCE, trust_env=False
        ) as client:
            await _until_ready(client)
            flags = [*_FLAGS, f"--user-data-dir={profile}", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
            wanted = {"browserName": "chrome", "goog:chromeOptions": {"args": flags}}
            answer = await client.post("/session", json={"capabilities": {"alwaysMatch": wanted}})
            made = answer.json()["value"]
            assert answer.status_code == 200, made
            browser = Browser(client, made["sessionId"])
            try:
                yield browser
            finally:
                await client.delete(f"/session/{made['sessionId']}")
    finally:
        driver.terminate()
        await driver.wait()
        shutil.rmtree(profile, ignore_errors=True)


async def _until_ready(client: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(_PATIENCE):
        while True:
            try:
                if (await client.get("/status")).json()["value"]["ready"]:
                    return
            except httpx2.TransportError:
                await asyncio.sleep(0.02)  # it does not listen yet
