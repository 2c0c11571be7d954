"""A W&B backend on the loopback interface: enough of the service for real clients, with faults on demand.

It speaks HTTP/1.0, one connection a request, so that an outage leaves no connection open.
"""

import base64
import contextlib
import gzip
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.mirror.backend.faults import FINISH, STREAM, UPLOAD, Fault, Faults, Kind
from tests.mirror.backend.operations import Conflict, answer
from tests.mirror.backend.pages import page
from tests.mirror.backend.store import HISTORY, Store, StoredRun

KEY = "0123456789abcdef0123456789abcdef01234567"
HANG_SECONDS = 600.0
_OPERATION = re.compile(r"\b(?:query|mutation)\s+(\w+)")
_STREAM = re.compile(r"/files/([^/]+)/([^/]+)/([^/]+)/file_stream")
_ARTIFACT = re.compile(r"/artifact/([^/]+)/(.+)")
_STORAGE = re.compile(r"/storage/([^/]+)/([^/]+)/([^/]+)/(.+)")


class Backend:
    """A running backend. `store` is what it keeps, `faults` what goes wrong."""

    def __init__(self, port: int = 0) -> None:
        self.store, self.faults = Store(), Faults()
        self._server: ThreadingHTTPServer | None = None
        self.port = port
        self.up()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def up(self) -> None:
        """Listen (again, on the same port)."""
        assert self._server is None
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), _handler(self))
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def down(self) -> None:
        """Stop listening: connections are refused from now on."""
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()
        self._server = None

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        """Refuse every connection meanwhile."""
        self.down()
        try:
            yield
        finally:
            self.up()

    def close(self) -> None:
        """Let go of what hangs, and stop."""
        self.faults.clear()
        if self._server is not None:
            self.down()

    def fail(
        self,
        where: str,
        kind: Kind = Kind.status,
        code: int = 500,
        *,
        first: int = 1,
        times: int | None = None,
    ) -> Fault:
        """Inject a fault; see `Fault`."""
        return self.faults.add(Fault(where, kind, code, first, times))

    def run(self, project: str, name: str) -> StoredRun:
        """A run. Raises KeyError with what there is."""
        found = self.store.run(project, name)
        if found is None:
            raise KeyError(f"no run {project}/{name} among {sorted(self.store.runs)}")
        return found

    def runs(self, project: str) -> list[StoredRun]:
        return self.store.of_project(project)


class _Dropped(Exception):
    """The request gets no answer."""


def _handler(backend: Backend) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            if match := _STORAGE.fullmatch(path):
                run = backend.store.run(unquote(match[2]), unquote(match[3]))
                body = None if run is None else run.files.get(unquote(match[4]))
                self._send(404 if body is None else 200, body or b"")
            else:
                self._send(200, page(backend.store, unquote(path)).encode(), "text/plain; charset=utf-8")

        def do_POST(self) -> None:
            body = self._body()
            path = urlsplit(self.path).path
            with contextlib.suppress(_Dropped, BrokenPipeError, ConnectionResetError):
                if not self._known():
                    self._json({"errors": [{"message": "invalid API key"}]}, 401)
                elif path == "/graphql":
                    self._graphql(json.loads(body))
                elif match := _STREAM.fullmatch(path):
                    entity, project, name = map(unquote, match.groups())
                    self._stream(entity, project, name, json.loads(body))
                else:
                    backend.store.unknown.append(f"POST {path}")
                    self._json({"errors": [{"message": f"no {path}"}]}, 404)

        def do_PUT(self) -> None:
            body = self._body()
            path = urlsplit(self.path).path
            with contextlib.suppress(_Dropped, BrokenPipeError, ConnectionResetError):
                if self._struck(backend.faults.strike(UPLOAD)):
                    return
                if match := _ARTIFACT.fullmatch(path):
                    backend.store.artifacts[match[1]]["files"][unquote(match[2])] = body
                else:
                    match = _STORAGE.fullmatch(path)
                    assert match is not None, path
                    run, _ = backend.store.open_run(*map(unquote, match.groups()[:3]))
                    run.files[unquote(match[4])] = body
                self._send(200, b"")

        def _graphql(self, request: dict[str, Any]) -> None:
            named = _OPERATION.search(request.get("query") or "")
            operation = request.get("operationName") or (named[1] if named else "")
            backend.store.requests.append(operation)
            if self._struck(backend.faults.strike(operation)):
                return
            try:
                self._json(answer(backend.store, operation, request.get("variables") or {}, backend.url))
            except Conflict as error:
                self._json({"errors": [{"message": str(error)}]}, 409)

        def _stream(self, entity: str, project: str, name: str, request: dict[str, Any]) -> None:
            complete = bool(request.get("complete"))
            backend.store.requests.append(FINISH if complete else STREAM)
            fault = backend.faults.strike(STREAM, *([FINISH] if complete else []))
            half = fault is not None and fault.kind in (Kind.partial, Kind.lossy)
            if not half and self._struck(fault):
                return
            with backend.store.lock:
                _keep(backend.store.open_run(entity, project, name)[0], request, half)
            if fault is not None and fault.kind == Kind.partial:
                raise _Dropped
            stopped = fault is not None and fault.kind == Kind.stopped
            self._json({"exitcode": None, "limits": {}, "stopped": stopped})

        def _struck(self, fault: Fault | None) -> bool:
            """Let the fault happen; False if the request is to be carried out."""
            if fault is None or fault.kind == Kind.stopped:
                return False
            if fault.kind == Kind.status:
                self._json({"errors": [{"message": f"injected {fault.code}"}]}, fault.code)
                return True
            if fault.kind == Kind.hang:
                fault.over.wait(HANG_SECONDS)
            raise _Dropped

        def _known(self) -> bool:
            scheme, _, word = (self.headers.get("Authorization") or "").partition(" ")
            if scheme == "Basic":
                word = base64.b64decode(word).decode().partition(":")[2]
            return word == KEY

        def _body(self) -> bytes:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            return gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body

        def _json(self, obj: object, status: int = 200) -> None:
            self._send(status, json.dumps(obj).encode(), "application/json")

        def _send(self, status: int, body: bytes, kind: str = "application/octet-stream") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler


def _keep(run: StoredRun, request: dict[str, Any], half: bool) -> None:
    """Take in what a stream request brings; with `half`, only the first half of the new rows."""
    for file, part in (request.get("files") or {}).items():
        content = part["content"]
        if half and file == HISTORY:
            content = content[: len(content) // 2]
        run.append(file, int(part["offset"]), content)
    if request.get("complete") and not half:
        run.exit_code = int(request.get("exitcode") or 0)
        run.state = "finished" if run.exit_code == 0 else "failed"
