#!/usr/bin/env python3
"""A fast stub of S3 for benchmarks: what a store asks for, and no checks. As a program, it serves until its standard input ends.

moto takes milliseconds of CPU for a request and copies every body several times, so it measures itself. This keeps objects as files in
memory, sends them with sendfile, and can answer as late and as slowly as a service on the other side of a network: so many milliseconds
until an answer begins, and so many MB/s on each connection. Python's standard library only.
"""

import argparse
import os
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import xml.sax.saxutils as xml

SLICE = 256 << 10


class Objects:
    """Objects and unfinished uploads. An object is its entity tag and its files, one for each part; a replaced one stays readable."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="muster-s3-stub-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.lock = threading.Lock()
        self.objects, self.uploads, self.last = {}, {}, 0

    def number(self):
        """A number that is new."""
        with self.lock:
            self.last += 1
            return self.last


class Handler(socketserver.StreamRequestHandler):
    """One connection."""

    rbufsize = SLICE
    disable_nagle_algorithm = True

    def handle(self):
        try:
            while self.one():
                pass
        except (ConnectionError, ValueError):
            pass  # the client went away

    def one(self):
        """Reads and answers one request."""
        words = self.rfile.readline().split()
        if len(words) != 3:
            return False
        headers = {}
        while line := self.rfile.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        if headers.get("expect"):
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        path, _, query = words[1].decode().partition("?")
        query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        body = self.take_body(int(headers.get("content-length", 0)))
        time.sleep(self.server.first_byte_s)
        getattr(self, "do_" + words[0].decode().lower())(urllib.parse.unquote(path).lstrip("/"), query, headers, body)
        return True

    def pace(self, begin, done):
        """Waits until so many bytes may have passed since then."""
        if self.server.bytes_per_s:
            time.sleep(max(begin + done / self.server.bytes_per_s - time.monotonic(), 0))

    def take_body(self, length):
        """The body, as a file, and its size."""
        path = os.path.join(self.server.objects.folder, str(self.server.objects.number()))
        if length == 0:
            return path, 0
        buffer = memoryview(bytearray(min(SLICE, length)))
        begin, done = time.monotonic(), 0
        with open(path, "wb", buffering=0) as file:
            while done < length:
                count = self.rfile.readinto1(buffer[: length - done])
                if count == 0:
                    raise ConnectionError
                file.write(buffer[:count])
                done += count
                self.pace(begin, done)
        return path, length

    def answer(self, status, body=b"", headers=()):
        """Answers with a body in memory."""
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers, "", ""]
        self.wfile.write("\r\n".join(lines).encode() + body)

    def do_put(self, key, query, _, body):
        """A bucket, an object, or a part of one."""
        objects = self.server.objects
        tag = f'"{os.path.basename(body[0])}"'
        with objects.lock:
            if "uploadId" in query:
                objects.uploads[query["uploadId"]][1][int(query["partNumber"])] = body
            elif "/" in key:
                objects.objects[key] = (tag, [body])
        self.answer(200, headers=[f"ETag: {tag}"])

    def do_post(self, key, query, _, body):
        """Begins an upload in parts, or ends it."""
        objects = self.server.objects
        number = str(objects.number())
        with objects.lock:
            if "uploads" in query:
                objects.uploads[number] = (key, {})
                root = "InitiateMultipartUploadResult"
            else:
                _, parts = objects.uploads.pop(query["uploadId"])
                objects.objects[key] = (f'"{number}-{len(parts)}"', [parts[i] for i in sorted(parts)])
                root = "CompleteMultipartUploadResult"
        self.answer(200, f"<{root}><UploadId>{number}</UploadId></{root}>".encode())

    def do_delete(self, key, query, _, _body):
        """Forgets an object or an upload."""
        objects = self.server.objects
        with objects.lock:
            objects.uploads.pop(query.get("uploadId"), None)
            if "uploadId" not in query:
                objects.objects.pop(key, None)
        self.answer(204)

    def do_get(self, key, query, headers, _):
        """An object or a range of it, or a listing."""
        objects = self.server.objects
        with objects.lock:
            listing = "/" not in key.rstrip("/")
            names = sorted(objects.objects)
            found = objects.objects.get(key)
        if "uploads" in query:
            return self.answer(200, b"<ListMultipartUploadsResult></ListMultipartUploadsResult>")
        if listing:
            prefix = key.rstrip("/") + "/"
            names = [name[len(prefix):] for name in names if name.startswith(prefix + query.get("prefix", ""))]
            entries = "".join(f"<Contents><Key>{xml.escape(name)}</Key></Contents>" for name in names)
            return self.answer(200, f"<ListBucketResult>{entries}</ListBucketResult>".encode())
        if found is None:
            return self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        tag, files = found
        if headers.get("if-match", tag) != tag:
            return self.answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        size = sum(bytes_ for _, bytes_ in files)
        first, last, status = 0, size - 1, 200
        if "range" in headers:
            first, last = (int(end) for end in headers["range"].removeprefix("bytes=").split("-"))
            last, status = min(last, size - 1), 206
            if first >= size:
                return self.answer(416, b"<Error><Code>InvalidRange</Code></Error>")
        head = [f"HTTP/1.1 {status} X", f"Content-Length: {last + 1 - first}", f"ETag: {tag}", f"Content-Range: bytes {first}-{last}/{size}"]
        self.wfile.write("\r\n".join([*head[: 4 if status == 206 else 3], "", ""]).encode())
        return self.send(files, first, last + 1)

    def send(self, files, begin, end):
        """Bytes `begin` to `end` of the files, one after the other."""
        started, sent = time.monotonic(), 0
        for path, size in files:
            if begin < size and end > 0:
                with open(path, "rb") as file:
                    at = max(begin, 0)
                    while at < min(end, size):
                        count = os.sendfile(self.connection.fileno(), file.fileno(), at, min(SLICE, min(end, size) - at))
                        at, sent = at + count, sent + count
                        self.pace(started, sent)
            begin, end = begin - size, end - size


class Service(socketserver.ThreadingTCPServer):
    """Listens on a free port of loopback."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, first_byte_ms, connection_mb):
        super().__init__(("127.0.0.1", 0), Handler)
        self.first_byte_s, self.bytes_per_s = first_byte_ms / 1e3, connection_mb * 1e6
        self.objects = Objects()


class Stub:
    """The stub as a process of its own; a context manager. `endpoint` is its URL."""

    def __init__(self, first_byte_ms=0, connection_mb=0):
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--first-byte-ms", str(first_byte_ms), "--connection-mb", str(connection_mb)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.endpoint = f"http://127.0.0.1:{int(self.process.stdout.readline())}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first-byte-ms", type=float, default=0, help="until an answer begins (default: %(default)s)")
    parser.add_argument("--connection-mb", type=float, default=0, help="MB/s on each connection; 0: no limit (default: %(default)s)")
    args = parser.parse_args()
    with Service(args.first_byte_ms, args.connection_mb) as service:
        threading.Thread(target=service.serve_forever, daemon=True).start()
        print(service.server_address[1], flush=True)
        sys.stdin.read()
        shutil.rmtree(service.objects.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
