"""A headless Chromium that tests drive: pages, mouse, scripts, what is asked of the network, what goes wrong.

It speaks the Chrome DevTools Protocol through two pipes, so it needs no port, no driver and no library.
"""

import base64
import itertools
import os
import select
import shutil
import subprocess
import time

import orjson
import pytest

CHROMIUM = shutil.which("chromium")
OPTIONS = ("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
           "disable-component-update", "disable-sync", "disable-features=NetworkTimeServiceQuerying", "mute-audio",
           "hide-scrollbars", "disable-dev-shm-usage", "remote-debugging-pipe", "force-color-profile=srgb")
PATIENCE = 60.0
"""Seconds after which a browser that does not answer fails the test."""

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


class Browser:
    """One tab of Chromium.

    requests: the addresses that it asked for. errors: what its console, scripts and dialogs said.
    """

    def __init__(self, folder, width=1280, height=900):
        # The browser reads its commands from descriptor 3 and answers on 4.
        commands_in, self._out = os.pipe()
        self._in, answers_out = os.pipe()
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{commands_in} 4>&{answers_out}', "bash", CHROMIUM,
             *(f"--{option}" for option in OPTIONS), f"--window-size={width},{height}",
             f"--user-data-dir={folder}", "about:blank"],
            pass_fds=(commands_in, answers_out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": str(folder)}, start_new_session=True)
        os.close(commands_in)
        os.close(answers_out)
        self._numbers, self._buffer, self._session = itertools.count(1), b"", None
        self.requests, self.errors, self._loaded = [], [], False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.bringToFront")
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._out)  # Chromium ends with its pipe
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)

    def call(self, method, **parameters):
        """The result of a command of the protocol."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, orjson.dumps(message) + b"\0")
        while (answer := self._next()).get("id") != number:
            pass
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def _next(self):
        """The next message of the browser, of which events are noted."""
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], PATIENCE)
            assert ready, "the browser does not answer"
            part = os.read(self._in, 1 << 20)
            assert part, "the browser ended"
            self._buffer += part
        content, _, self._buffer = self._buffer.partition(b"\0")
        message = orjson.loads(content)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event, values):
        if event == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            self.errors.append(values["exceptionDetails"])
        elif event == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning", "assert"):
            self.errors.append(values["args"])
        elif event == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            self.errors.append(values["entry"])
        elif event == "Page.loadEventFired":
            self._loaded = True
        elif event == "Page.javascriptDialogOpening":
            self.errors.append(values)
            self.call("Page.handleJavaScriptDialog", accept=True)

    def open(self, path, ready="true"):
        """Open a file; the seconds until the expression `ready` holds."""
        self._loaded = False
        start = time.monotonic()
        self.call("Page.navigate", url=path.as_uri())
        while not self._loaded:
            self._next()
        self.wait(ready)
        return time.monotonic() - start

    def wait(self, expression):
        """Wait until an expression of the page holds."""
        end = time.monotonic() + PATIENCE
        while not self.value(expression):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.02)

    def value(self, expression):
        """The value of an expression in the page, a promise's after it is kept."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def move(self, x, y):
        """Move the mouse to a place of the window."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x, y):
        """Click at a place of the window."""
        self.move(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, name):
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name,
                      windowsVirtualKeyCode={"ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35}[name])

    def picture(self, path):
        """Save what the window shows as a PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
