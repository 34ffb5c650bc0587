"""A real S3 server (moto, from PyPI) for tests and benchmarks: one process on loopback, its objects in memory.

moto is in a virtual environment outside the clone (scripts/s3 install). Python's standard library only.
"""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as tree

import ports

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "muster-s3")
PYTHON = os.path.join(CACHE, "venv", "bin", "python")
PACKAGES = ("moto[server]==5.2.5",)
KEYS = {"AWS_ACCESS_KEY_ID": "test-key", "AWS_SECRET_ACCESS_KEY": "test-secret"}
# moto gives an object to anybody who signs, and checks no signature.
SOMEBODY = {"Authorization": "AWS4-HMAC-SHA256 Credential=test-key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"}
# moto asks for nothing on the machine or in the cloud.
QUIET = {"AWS_EC2_METADATA_DISABLED": "true", "MOTO_S3_DEFAULT_KEY_BUFFER_SIZE": str(1 << 30)}


class Missing(Exception):
    """moto is not installed; says how to install it."""


def find():
    """Raises Missing if there is no moto."""
    if not os.path.exists(PYTHON):
        raise Missing(f"no moto in {CACHE}: scripts/s3 install")


def install():
    """Makes the virtual environment with moto, unless it is there."""
    if os.path.exists(PYTHON) and subprocess.run([PYTHON, "-c", "import moto.server"], capture_output=True, check=False).returncode == 0:
        return
    os.makedirs(CACHE, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", os.path.join(CACHE, "venv")], check=True)
    subprocess.run([PYTHON, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *PACKAGES], check=True)


class Server:
    """moto on a free port of loopback; a context manager. `endpoint` is its URL."""

    def __init__(self, log=os.devnull):
        find()
        self.port = ports.free_ports(1)[0]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        with open(log, "ab") as output:
            self.process = subprocess.Popen(
                [PYTHON, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
                stdout=output, stderr=output, env=os.environ | QUIET | KEYS)
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def _wait(self):
        end = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(self.endpoint + "/moto-api/", timeout=5).close()
                return
            except (OSError, urllib.error.URLError):
                if self.process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError("moto does not start") from None
                time.sleep(0.1)

    def _ask(self, method, path, data=None):
        """The body of the answer."""
        request = urllib.request.Request(f"{self.endpoint}/{path}", method=method, data=data, headers=SOMEBODY)
        with urllib.request.urlopen(request) as answer:
            return answer.read()

    def make_bucket(self, name):
        """Makes a bucket, unless it is there."""
        self._ask("PUT", name, b"")

    def delete(self, bucket, key):
        """Deletes an object."""
        self._ask("DELETE", f"{bucket}/{key}")

    def get(self, bucket, key):
        """The bytes of an object."""
        return self._ask("GET", f"{bucket}/{key}")

    def put(self, bucket, key, data):
        """Makes an object, or replaces it."""
        self._ask("PUT", f"{bucket}/{key}", data)

    def keys(self, bucket):
        """The keys of a bucket, by moto's own listing, sorted."""
        keys, token = [], ""
        while True:
            root = tree.fromstring(self._ask("GET", f"{bucket}?list-type=2{token}"))
            space = root.tag[: root.tag.index("}") + 1] if root.tag.startswith("{") else ""
            keys += [entry.find(space + "Key").text for entry in root.findall(space + "Contents")]
            next_token = root.find(space + "NextContinuationToken")
            if next_token is None or not next_token.text:
                return sorted(keys)
            token = "&continuation-token=" + urllib.parse.quote(next_token.text, safe="")

    def begin_upload(self, bucket, key):
        """Begins an upload in parts, and leaves it so."""
        self._ask("POST", f"{bucket}/{key}?uploads", b"")

    def uploads(self, bucket):
        """How many uploads in parts have begun and not ended."""
        return self._ask("GET", f"{bucket}?uploads").count(b"<UploadId>")

    def close(self):
        """Ends the server; its objects are gone."""
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
