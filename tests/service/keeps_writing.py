"""A process that writes to a store until it is killed, and prints what was answered."""

from __future__ import annotations

import sys

from nocta.service.store import Request, Store

if __name__ == "__main__":
    store, me = Store(sys.argv[1]), Request("me", "model")
    if not store.cases():
        store.add_case("a", "A", {}, me)
    while True:
        store.add_events("a", me, lambda _: [("entered", {"text": "x" * 500})])
        print(store.case("a").version, flush=True)
