"""A proxy before an S3 server, for tests: checks every signature as S3 does, and makes the faults that it is told to make.

It shares no code with Muster: the signature is computed anew from the request. Python's standard library only.
A fault is a dictionary: "kind", "times" (how often, default 1), "method" and "match" (a part of path, query and the header Range), both
optional.
"""

import hashlib
import hmac
import http.client
import http.server
import json
import threading
import time
import urllib.parse

# Headers that a service does not know.
IGNORED = {"ignore_condition": ("if-none-match", "if-match"), "ignore_range": ("range",)}
HOP = {"connection", "content-length", "transfer-encoding", "keep-alive", "expect"}


def _hmac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def expected_signature(method, path, query, headers, secret):
    """The signature, version 4, that a request must carry; `headers` by lower-case names."""
    fields = dict(part.strip().split("=", 1) for part in headers["authorization"].removeprefix("AWS4-HMAC-SHA256").split(","))
    date, region, service, _ = fields["Credential"].split("/")[1:]
    pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
    canonical_query = "&".join(f"{urllib.parse.quote(k, safe='-_.~')}={urllib.parse.quote(v, safe='-_.~')}" for k, v in pairs)
    signed = fields["SignedHeaders"].split(";")
    canonical = "\n".join([method, path, canonical_query, *(f"{name}:{' '.join(headers.get(name, '').split())}" for name in signed), "",
                           fields["SignedHeaders"], headers["x-amz-content-sha256"]])
    scope = f"{date}/{region}/{service}/aws4_request"
    to_sign = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for word in (date, region, service, "aws4_request"):
        key = _hmac(key, word)
    return hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest(), fields["Signature"]


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.server.owner.count("connections")

    def log_message(self, *_):
        pass

    def _answer(self, status, body=b"", headers=(), cut=False):
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in HOP:
                self.send_header(name, value)
        length = dict((name.lower(), value) for name, value in headers).get("content-length")
        self.send_header("Content-Length", length if self.command == "HEAD" and length else str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if cut else body)

    def _error(self, status, code, headers=()):
        self._answer(status, f"<Error><Code>{code}</Code><Message>made by the test</Message></Error>".encode(), headers)

    def _replace(self, data):
        """Somebody else replaces the object meanwhile."""
        upstream = http.client.HTTPConnection(self.server.owner.host, self.server.owner.upstream, timeout=60)
        upstream.request("PUT", self.path, data, {"Authorization": self.headers["Authorization"]})
        upstream.getresponse().read()
        upstream.close()

    def _forward(self, body, drop=()):
        upstream = http.client.HTTPConnection(self.server.owner.host, self.server.owner.upstream, timeout=60)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP | set(drop)}
        headers["Content-Length"] = str(len(body))
        upstream.request(self.command, self.path, body, headers)
        answer = upstream.getresponse()
        data = answer.read()
        upstream.close()
        return answer.status, data, answer.getheaders()

    def _refused(self, body):
        """True if the request was refused, as S3 refuses it."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        path, _, query = self.path.partition("?")
        if "authorization" not in headers:
            self._error(403, "AccessDenied")
            return True
        expected, got = expected_signature(self.command, path, query, headers, self.server.owner.secret)
        if expected != got:
            self.server.owner.count("bad_signatures")
            self._error(403, "SignatureDoesNotMatch")
            return True
        if headers["x-amz-content-sha256"] != hashlib.sha256(body).hexdigest():
            self.server.owner.count("bad_bodies")
            self._error(400, "XAmzContentSHA256Mismatch")
            return True
        return False

    def _handle(self):
        owner = self.server.owner
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/_faults":
            owner.faults = json.loads(body)
            return self._answer(200)
        if self.path == "/_seen":
            return self._answer(200, json.dumps(owner.seen).encode())
        owner.count("requests")
        fault = owner.take_fault(self.command, f"{self.path} {self.headers.get('Range', '')}")
        kind = fault.get("kind", "")
        if kind == "refuse" or (kind and kind.isdigit()):
            self.close_connection = kind == "refuse"
            return None if kind == "refuse" else self._error(int(kind), fault.get("code", "SlowDown"), fault.get("headers", {}).items())
        if kind == "answer":  # without the server: a lie
            return self._answer(fault.get("status", 200), fault["body"].encode())
        if kind == "slow":
            time.sleep(fault["seconds"])
        if kind == "corrupt" and body:
            body = bytes([body[0] ^ 1]) + body[1:]
        if self._refused(body):
            return None
        if kind == "replace":
            self._replace(b"x" * fault["bytes"])
        status, data, headers = self._forward(body, IGNORED.get(kind, ()))
        if kind == "corrupt_answer" and data:
            data = bytes([data[0] ^ 1]) + data[1:]
        if kind == "lose_answer":
            self.close_connection = True
            return None
        if kind == "cut":
            self.close_connection = True
        return self._answer(status, data, headers, kind == "cut")

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass  # a client or the server went away


class Proxy:
    """Listens on a free port of loopback; a context manager. `endpoint` is its URL, `seen` counts what came."""

    def __init__(self, upstream_port, secret):
        self.host, self.upstream, self.secret = "127.0.0.1", upstream_port, secret
        self.faults = []
        self.seen = {}
        self.lock = threading.Lock()
        self.port = 0
        self.start()
        self.endpoint = f"http://127.0.0.1:{self.port}"

    def start(self):
        """Listens, again on the same port after stop()."""
        self.server = _Server(("127.0.0.1", self.port), _Handler)
        self.server.owner = self
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def stop(self):
        """Refuses connections until start(); requests on open connections fail."""
        with self.lock:
            self.faults = [{"kind": "refuse", "times": 1 << 30}]
        self.server.shutdown()
        self.server.server_close()

    def count(self, what):
        """Counts one more of `what` in `seen`."""
        with self.lock:
            self.seen[what] = self.seen.get(what, 0) + 1

    def take_fault(self, method, asked):
        """The fault for a request, or {}."""
        with self.lock:
            for fault in self.faults:
                if fault.get("times", 1) > 0 and fault.get("method", method) == method and fault.get("match", "") in asked:
                    fault["times"] = fault.get("times", 1) - 1
                    return fault
        return {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
