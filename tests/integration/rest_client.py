"""The REST interface of a job, as another program would call it. Not a test: rest_test.py uses it.

Python's standard library only.
"""

import contextlib
import http.client
import json
import os
import ssl


class Refused(Exception):
    """An answer that is no success: its status and its problem document."""

    def __init__(self, status, problem):
        super().__init__(f"{status}: {problem}")
        self.status, self.problem = status, problem


class RestClient:
    def __init__(self, state):
        with open(os.path.join(state, "run", "rest.json"), encoding="utf-8") as file:
            address = json.load(file)
        self.port = address["port"]
        # The scaler's certificate names 127.0.0.1, too, so it is checked as any browser does.
        ca = os.path.join(address["certificates"], "ca.crt") if address.get("certificates") else None
        self.tls = ssl.create_default_context(cafile=ca) if ca else None
        with open(os.path.join(state, "scaler", "token"), encoding="utf-8") as file:
            self.token = file.read().strip()

    def _open(self, method, path, body=None, headers=None, timeout=10):
        if self.tls is None:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        else:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=self.tls)
        own = {"Authorization": f"Bearer {self.token}"} | ({"Content-Type": "application/json"} if body is not None else {})
        connection.request(method, path, body=body, headers=own | (headers or {}))
        answer = connection.getresponse()
        if answer.status >= 300:
            with contextlib.closing(connection):
                raise Refused(answer.status, json.loads(answer.read()))
        return connection, answer

    def _ask(self, *arguments):
        connection, answer = self._open(*arguments)
        with contextlib.closing(connection):
            return json.loads(answer.read())

    def get(self, path):
        return self._ask("GET", f"/api/v1/{path}")

    def act(self, path, **body):
        """Gives an order; returns the event that it caused."""
        return self._ask("POST", f"/api/v1/{path}", json.dumps(body))

    def node(self, name):
        return self.get(f"nodes/{name}")

    def nodes(self):
        return {node["name"]: node for node in self.get("nodes")["nodes"]}

    def events(self, after=0):
        """All of them, page by page."""
        found = []
        while page := self.get(f"events?after={after}&limit=100")["events"]:
            found += page
            after = page[-1]["id"]
        return found

    def stream(self, after=None):
        """Events as they happen, until the connection ends; `after` is the value of Last-Event-ID."""
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        connection, answer = self._open("GET", "/api/v1/stream?topics=events", None, headers, 30)
        with contextlib.closing(connection), contextlib.suppress(ConnectionError, http.client.HTTPException):
            for line in answer:
                if line.startswith(b"data:"):
                    yield json.loads(line[5:])
