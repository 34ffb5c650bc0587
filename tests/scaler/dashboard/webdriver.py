"""A small client of the W3C WebDriver protocol (https://www.w3.org/TR/webdriver2/), for Debian's chromium-driver. Python's
standard library only.
"""

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars"
).split()
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "Space": " ", "Shift": "\ue008", "Down": "\ue015"}


class WebDriverError(Exception):
    pass


class Browser:
    """One chromium with one page. Use as a context manager."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="muster-browser-")
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.url = f"http://127.0.0.1:{self._port()}"
        capabilities = {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": [*FLAGS, f"--user-data-dir={self.folder}", "--window-size=1280,900"]},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        try:
            made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        except BaseException:
            self.driver.kill()
            raise
        self.session = f"/session/{made['sessionId']}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            self._ask("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait(10)
            shutil.rmtree(self.folder, ignore_errors=True)

    def _port(self):
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                return int(line.rstrip(".\n").split()[-1])
        raise WebDriverError("chromedriver did not start; is the package chromium-driver installed?")

    def _ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.loads(error.read())["value"]
            raise WebDriverError(f"{value['error']}: {value['message'].splitlines()[0]}") from None

    def ask(self, method, path, body=None):
        return self._ask(method, self.session + path, body)

    def open(self, url):
        self.ask("POST", "/url", {"url": url})

    def reload(self):
        self.ask("POST", "/refresh", {})

    def script(self, text, *arguments):
        """What `return ...` in `text` gives; `arguments` are its arguments[i]."""
        return self.ask("POST", "/execute/sync", {"script": text, "args": list(arguments)})

    def module(self, name, text, *arguments):
        """What `return ...` in `text` gives, where `m` is a module of the page."""
        body = f"const [m, ...args] = [await import('/dashboard/{name}'), ...arguments]; {text}"
        return self.script(f"return (async function () {{ {body} }}).apply(null, arguments);", *arguments)

    def until(self, text, *arguments, timeout_s=10):
        """Waits until `text`, a JavaScript expression, is true in the page; its value."""
        deadline = time.monotonic() + timeout_s
        while True:
            value = self.script(f"return ({text});", *arguments)
            if value:
                return value
            if time.monotonic() > deadline:
                raise WebDriverError(f"not true after {timeout_s} s: {text} {arguments or ''}")
            time.sleep(0.03)

    def text(self, selector):
        return self.script("const e = document.querySelector(arguments[0]); return e && e.innerText;", selector)

    def find(self, selector):
        return self.ask("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        """As a person would: scrolls there; refused where something else is in the way."""
        element = self.find(selector)
        self.script("arguments[0].scrollIntoView({ block: 'center' })", {ELEMENT: element})
        self.ask("POST", f"/element/{element}/click", {})

    def type(self, selector, text):
        element = self.find(selector)
        self.ask("POST", f"/element/{element}/clear", {})
        self.ask("POST", f"/element/{element}/value", {"text": text})

    def press(self, *keys):
        """Keys by name ("Tab", "Enter") or character, wherever the focus is; "Shift+Tab" holds the first."""
        actions = []
        for key in keys:
            parts = [KEYS.get(part, part) for part in key.split("+")]
            actions += [{"type": "keyDown", "value": part} for part in parts]
            actions += [{"type": "keyUp", "value": part} for part in reversed(parts)]
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def devtools(self, command, **parameters):
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def look(self, dark=False, width=1280, height=900):
        """How the page is to be seen from now on."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.devtools("Emulation.setEmulatedMedia", features=scheme)
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )

    def screenshot(self, path):
        """The whole page, also what is below the fold."""
        picture = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))

    def console(self):
        """What the page has written to the console since the last call, as texts."""
        entries = self.ask("POST", "/se/log", {"type": "browser"})
        return [f"{entry['level']}: {entry['message']}" for entry in entries]
