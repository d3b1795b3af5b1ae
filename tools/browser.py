"""Pages in Chromium, by its own protocol over pipes: what they say on the console, what is cut off, how they look.

with Browser() as browser:
    seen = browser.look("file:///tmp/report.html", View(390, 800, dark=True), picture=Path("phone.png"))
"""

import base64
import json
import os
import re
import selectors
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
"""Where it is; ``None`` where it is not."""

SECONDS = 120
"""How long an answer may take, on a machine that does much else."""

CLIPPED = """(() => {
  const found = [], wide = document.documentElement;
  if (wide.scrollWidth > window.innerWidth + 1) found.push("the page is " + wide.scrollWidth + " wide");
  for (const e of document.querySelectorAll("body *")) {
    const style = getComputedStyle(e), box = e.getBoundingClientRect();
    if (style.visibility === "hidden" || style.opacity === "0" || !box.width || !box.height) continue;
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    let clipped = ["hidden", "clip"].includes(style.overflowX) && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 1
      && style.textOverflow !== "ellipsis";
    let out = box.right > window.innerWidth + 1 || box.left < -1;
    for (let p = e; out && p && p !== document.body; p = p.parentElement) {
      const s = getComputedStyle(p);
      if (["auto", "scroll"].includes(s.overflowX) || s.position === "fixed") out = false;
      if (["hidden", "clip"].includes(s.overflowX) && p !== e) { out = false; }
    }
    if (clipped || out) found.push(e.tagName + ": " + e.textContent.trim().slice(0, 60));
  }
  return found;
})()"""
"""Returns which texts are wider than what shows them, and cannot be scrolled to."""


@dataclass(frozen=True)
class View:
    """How a page is looked at."""

    width: int
    height: int = 900
    dark: bool = False

    @property
    def name(self) -> str:
        return f"{self.width}-{'dark' if self.dark else 'light'}"


VIEWS = [View(width, dark=dark) for width in (1300, 390) for dark in (False, True)]
"""A desk and a phone, by day and by night."""


@dataclass(frozen=True)
class Seen:
    """What a page is like.

    ``console`` has errors and warnings, ``clipped`` the texts that are cut off, ``background`` the colour behind, and
    ``value`` what the script returned.
    """

    console: list[str]
    clipped: list[str]
    background: str
    value: Any = None

    @property
    def is_dark(self) -> bool:
        """Whether what is behind it all is darker than half."""
        return sum(map(int, re.findall(r"\d+", self.background)[:3])) < 3 * 128

    def wrong(self, view: View) -> list[str]:
        """Return what is wrong with a page that is looked at so."""
        said = [f"console: {text}" for text in self.console] + [f"cut off: {text}" for text in self.clipped]
        return said if self.is_dark is view.dark else [*said, f"the background is {self.background}"]


class Browser:
    """A Chromium without a window, until the end of a ``with`` block."""

    def __init__(self) -> None:
        if CHROMIUM is None:
            raise RuntimeError("there is no Chromium on PATH")
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        read_theirs, write_ours = os.pipe()
        read_ours, write_theirs = os.pipe()
        self._in, self._out, self._theirs = write_ours, read_ours, (read_theirs, write_theirs)
        options = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync", "--disable-quic",
            "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
            f"--user-data-dir={self._folder.name}", "--remote-debugging-pipe", "about:blank",
        ]  # fmt: skip
        # the browser reads descriptor 3 and writes 4
        command = f'exec "$0" "$@" 3<&{read_theirs} 4>&{write_theirs}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, CHROMIUM, *options], pass_fds=self._theirs, stderr=subprocess.DEVNULL
        )
        for descriptor in self._theirs:
            os.close(descriptor)
        self._buffer, self._count, self._events = b"", 0, []

    _session: str | None = None
    _events: list[dict[str, Any]]

    def __enter__(self) -> "Browser":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._folder.cleanup()

    def look(self, url: str, view: View, picture: Path | None = None, script: str = "null") -> Seen:
        """Open a page and tell what it is like.

        Args:
            url: of the page.
            view: how it is looked at.
            picture: where a picture of what is seen first is written.
            script: an expression that is then evaluated in the page.
        """
        context = self._ask("Target.createBrowserContext")["browserContextId"]  # nothing is kept from page to page
        target = self._ask("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        try:
            return self._look(url, view, picture, script)
        finally:
            self._session = None
            self._ask("Target.disposeBrowserContext", browserContextId=context)

    def _look(self, url: str, view: View, picture: Path | None, script: str) -> Seen:
        for domain in ("Page", "Runtime", "Log"):
            self._ask(f"{domain}.enable")
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=view.width, height=view.height, deviceScaleFactor=1, mobile=view.width < 600,
        )  # fmt: skip
        colours = [{"name": "prefers-color-scheme", "value": "dark" if view.dark else "light"}]
        self._ask("Emulation.setEmulatedMedia", features=colours)
        self._events.clear()
        self._ask("Page.navigate", url=url)
        self._wait_for("Page.loadEventFired")
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 200)))")
        clipped = self.evaluate(CLIPPED)
        background = self.evaluate(
            "[document.body, document.documentElement].map(e => getComputedStyle(e).backgroundColor)"
            ".find(c => c !== 'rgba(0, 0, 0, 0)') || 'none'"
        )
        if picture is not None:
            picture.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot")["data"]))
        value = self.evaluate(script)
        return Seen(list(filter(None, map(complaint, self._events))), clipped, background, value)

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page; of a promise, what it comes to."""
        made = self._ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in made:
            raise RuntimeError(made["exceptionDetails"]["text"])
        return made["result"].get("value")

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._in, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])
            self._events.append(answer)

    def _wait_for(self, method: str) -> None:
        if not any(event.get("method") == method for event in self._events):
            while True:
                self._events.append(self._next())
                if self._events[-1].get("method") == method:
                    return

    def _next(self) -> dict[str, Any]:
        """Return the next message."""
        end = time.monotonic() + SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_READ)
            while b"\0" not in self._buffer:
                if not selector.select(max(0.0, end - time.monotonic())):
                    raise TimeoutError(f"the browser said nothing for {SECONDS} s")
                read = os.read(self._out, 1 << 20)
                if not read:
                    raise RuntimeError("the browser ended")
                self._buffer += read
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))


def complaint(event: dict[str, Any]) -> str | None:
    """Return the error or warning that an event is; ``None`` for others."""
    given = event.get("params", {})
    if event.get("method") == "Runtime.exceptionThrown":
        details = given["exceptionDetails"]
        return str(details.get("exception", details).get("description", "exception"))
    if event.get("method") == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning"):
        return " ".join(str(a.get("value", a.get("description"))) for a in given["args"])
    if event.get("method") == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
        return f"{given['entry']['text']} {given['entry'].get('url', '')}"
    return None
