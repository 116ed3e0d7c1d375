"""A process that serves like an engine, enough for a failure's timeline: ``python restart_stub.py PORT [DELAY_S]``.

Every answer streams two chunks and the server's counts. ``DELAY_S``: seconds of 503 at /health after the start.
"""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

STARTED = time.time()
_DELAY_S = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0


class Handler(BaseHTTPRequestHandler):
    """Answers what the collector asks."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Health, the model's name, the process's start."""
        if self.path == "/health":
            self._send(200 if time.time() - STARTED >= _DELAY_S else 503, b"", "text/plain")
        elif self.path == "/v1/models":
            self._send(200, json.dumps({"data": [{"id": "stub"}]}).encode(), "application/json")
        else:
            self._send(200, f"process_start_time_seconds {STARTED}\n".encode(), "text/plain")

    def do_POST(self) -> None:
        """Stream an answer of the tokens asked for."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tokens = asked["max_tokens"]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        usage = {"prompt_tokens": 7, "completion_tokens": tokens, "total_tokens": 7 + tokens}
        for word, finish in (("a", None), ("b", "length")):
            self._event({"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": finish}]})
            time.sleep(0.02)
        self._event({"choices": [], "usage": usage})
        self._chunk(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, value: dict[str, Any]) -> None:
        self._chunk(b"data: " + json.dumps(value).encode() + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer.allow_reuse_address = True
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
