"""`python -m example.web [FIRST_PORT]` serves the little web until Ctrl-C."""

from __future__ import annotations

import sys
import threading

from example.settings import EXAMPLE_WEB_PORT
from example.web import open_web


def main() -> None:
    with open_web(int(sys.argv[1]) if sys.argv[1:] else EXAMPLE_WEB_PORT) as web:
        for name, origin in web.origins.items():
            print(f"{name:10} {origin.url}/")
        print("Press Ctrl-C to stop.", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print(f"\n{len(web.log)} requests served.")


if __name__ == "__main__":
    main()
