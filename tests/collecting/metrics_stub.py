"""A process whose metrics tell warm, loaded and warm again: ``python metrics_stub.py PORT``.

It ends by itself after two seconds.
"""

from __future__ import annotations

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

STARTED = time.time()


class Handler(BaseHTTPRequestHandler):
    """Answers a page of metrics."""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """The gauges of the moment."""
        age = time.time() - STARTED
        page = (
            f'vllm:num_requests_running{{engine="0"}} {2.0 if 0.6 < age < 1.3 else 0.0}\n'
            'vllm:num_requests_waiting{engine="0"} 0.0\n'
            f'vllm:prompt_tokens_total{{engine="0"}} {int(age * 1000)}\n'
            'vllm:cache_config_info{engine="0",kv_cache_size_tokens="4096"} 1.0\n'
            f"process_start_time_seconds {STARTED}\n"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    threading.Timer(2.0, server.shutdown).start()
    server.serve_forever()
