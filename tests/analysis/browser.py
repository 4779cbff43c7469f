"""Headless Chromium, driven by the DevTools protocol over a pipe."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


def browser_here() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """A running browser. Use it as a context manager."""

    def __init__(self, profile: Path):
        # the browser reads commands from its descriptor 3 and answers on 4
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        command = [browser_here(), *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-pipe"]
        plumbing = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", plumbing, "bash", *command],
            pass_fds=(to_browser, from_browser),
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._asked, self._text, self.events = 0, b"", []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)
        os.close(self._read)
        os.close(self._write)

    def _message(self) -> dict:
        while b"\0" not in self._text:
            part = os.read(self._read, 1 << 20)
            assert part, "the browser has ended"
            self._text += part
        first, self._text = self._text.split(b"\0", 1)
        return json.loads(first)

    def call(self, method: str, session: str = "", **parameters: object) -> dict:
        self._asked += 1
        asked = {"id": self._asked, "method": method, "params": parameters}
        asked |= {"sessionId": session} if session else {}
        os.write(self._write, json.dumps(asked).encode() + b"\0")
        while (told := self._message()).get("id") != self._asked:
            self.events.append(told)
        assert "error" not in told, (method, told["error"])
        return told["result"]

    def wait_for(self, method: str) -> None:
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._message())

    def page(self, url: str, width: int, *, dark: bool = False) -> Page:
        """A loaded page in a window of that width."""
        return Page(self, url, width, dark)


class Page:
    def __init__(self, browser: Browser, url: str, width: int, dark: bool):
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.media("", dark=dark)
        browser.events.clear()
        self.call("Page.navigate", url=url)
        browser.wait_for("Page.loadEventFired")
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")

    def call(self, method: str, **parameters: object) -> dict:
        return self._browser.call(method, self._session, **parameters)

    def media(self, kind: str, *, dark: bool = False) -> None:
        """Shows the page as on `kind` ("print", or "" for a screen)."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=kind, features=[scheme])

    def evaluate(self, script: str) -> object:
        """The value of a JavaScript expression; of a promise what it becomes."""
        told = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def point_at(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x - 3, y=y)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click_at(self, x: float, y: float) -> None:
        button = {"x": x, "y": y, "button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type="mousePressed", **button)
        self.call("Input.dispatchMouseEvent", type="mouseReleased", **button)

    def press(self, key: str) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            code = {"Tab": 9, "Enter": 13}[key]
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)

    def faults(self) -> list[str]:
        """What the page has said on the console as a warning or an error, and what it threw."""
        self.evaluate("0")
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            what = event["params"]
            if event["method"] == "Runtime.consoleAPICalled" and what["type"] in (
                "error",
                "warning",
            ):
                found.append(str(what["args"]))
            elif event["method"] == "Runtime.exceptionThrown":
                found.append(str(what["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded" and what["entry"]["level"] == "error":
                found.append(str(what["entry"]))
        return found

    def screenshot(self, file: Path) -> None:
        told = self.call("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(told["data"]))

    def pdf(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF")["data"])
