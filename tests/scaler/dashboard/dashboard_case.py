"""A fake job's server and a browser for the tests of the dashboard."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request

from webdriver import Browser

SERVER = sys.argv[1] if len(sys.argv) > 1 else "build/dev/tests/scaler/rest/server/rest_fake_server"


class FakeServer:
    """rest_fake_server with a live job, on a port that stays the same over restarts."""

    def __init__(self, shards=100, topic_partitions=0, epochs=0, group=False):
        self.shards = shards
        self.topic_partitions = topic_partitions
        self.epochs = epochs
        self.group = group
        self.folder = tempfile.TemporaryDirectory(prefix="muster-dashboard-")
        self.token_file = os.path.join(self.folder.name, "token")
        self.port = 0
        self.start()
        with open(self.token_file, encoding="utf-8") as file:
            self.token = file.read().strip()

    def start(self):
        command = [SERVER, self.token_file, str(self.port), "--live", str(self.shards), str(self.topic_partitions), str(self.epochs),
                   str(int(self.group))]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().strip()
        self.port = int(self.url.rsplit(":", 1)[1])

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def ask(self, path, body=None):
        """What the interface answers: to a question, or with a body to an order."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, body, headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def act(self, path):
        """An order behind the page's back."""
        return self.ask(f"/api/v1/{path}", b"{}")

    @property
    def address(self):
        return f"{self.url}/#token={self.token}"


class DashboardCase(unittest.TestCase):
    """One browser for all tests of a class; a fresh server and a fresh page for each."""

    SHARDS = 100
    TOPIC_PARTITIONS = 0  # 0: no dataset is a topic
    EPOCHS = 0  # 0: two, and no metrics of a test
    GROUP = False

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.server = FakeServer(self.SHARDS, self.TOPIC_PARTITIONS, self.EPOCHS, self.GROUP)
        self.addCleanup(self.server.folder.cleanup)
        self.addCleanup(self.server.kill)
        self.browser.look()

    def show(self):
        """Opens the page and waits until there is something on every part of it."""
        self.browser.open("about:blank")
        self.browser.console()
        self.browser.open(self.server.address)
        self.browser.until("document.getElementById('connection').dataset.state === 'live'")
        for part in ("nodes-rows", "events-list", "policies-list", "partitions-heat"):
            self.browser.until("document.getElementById(arguments[0]).childElementCount > 0", part)
        self.browser.until("!document.getElementById('shard-map').hidden")

    def assert_quiet(self, but=()):
        """Nothing in the console but lines that have one of the texts."""
        lines = [line for line in self.browser.console() if not any(text in line for text in but)]
        self.assertEqual(lines, [])


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
