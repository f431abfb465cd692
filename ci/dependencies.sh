#!/usr/bin/env bash
# Fails unless every third-party crate comes from the registry and has a licence that this project accepts.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo metadata --locked --format-version 1 | python3 -c '
import json, re, sys

accepted = {"MIT", "Apache-2.0", "ISC", "BSD-3-Clause", "Unicode-3.0", "Unlicense", "Zlib"}
# Evaluates a licence expression: `(MIT OR Apache-2.0) AND Unicode-3.0` becomes `( True or True ) and True` in Python.
def is_accepted(expression):
    words = expression.replace("/", " OR ").replace("(", " ( ").replace(")", " ) ")
    words = words.replace("Apache-2.0 WITH LLVM-exception", "Apache-2.0")
    python = [w.lower() if w in ("AND", "OR") else w if w in "()" else str(w in accepted) for w in words.split()]
    return eval(" ".join(python))

packages = [p for p in json.load(sys.stdin)["packages"] if p["source"]]
wrong = [
    "{name} {version}: {license}, from {source}".format(**p)
    for p in packages
    if not p["source"].startswith("registry+") or not is_accepted(p["license"] or "none")
]
print(len(packages), "third-party crates")
sys.exit("\n".join(["not accepted:"] + wrong) if wrong else 0)
'
