"""Options as words."""

from __future__ import annotations

from moeplan.manifests.words import option_words


def test_options_as_words() -> None:
    options = {"--port": 8000, "--enable-x": True, "--config": {"method": "mtp", "sizes": (1, 2)}, "--off": False}
    assert option_words(options) == [
        *("--port", "8000"),
        "--enable-x",
        *("--config", '{"method": "mtp", "sizes": [1, 2]}'),
        *("--off", "False"),
    ]
