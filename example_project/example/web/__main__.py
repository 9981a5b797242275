"""`python -m example.web` serves the little web until Ctrl-C."""

from __future__ import annotations

import argparse
import threading
from pathlib import Path

from example.settings import EXAMPLE_WEB_PORT
from example.web import open_web


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m example.web", description=__doc__)
    parser.add_argument("--port", type=int, default=EXAMPLE_WEB_PORT, help="port of the first site")
    parser.add_argument("--log", type=Path, help="append a line of JSON per request to this file")
    options = parser.parse_args()
    with open_web(options.port, options.log) as web:
        for name, origin in web.origins.items():
            print(f"{name:10} {origin.url}/")
        print("Press Ctrl-C to stop.", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print(f"\n{len(web.log)} requests served.")


if __name__ == "__main__":
    main()
