#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The API without a library: a program, a session that remembers, a file.
set -eu
url=${MILLIBOX_URL:-http://127.0.0.1:8000}/api/v1
post() { curl -sSf "$url/$1" -H 'Content-Type: application/json' -d "$2"; }
field() { python3 -c "import json, sys; text = sys.stdin.read() or sys.exit(1); print(json.loads(text)['$1'])"; }
post execute '{"code": "print(6 * 7)"}' | field stdout
id=$(post sessions '{"mode": "persistent"}' | field session_id)
post "sessions/$id/execute" '{"code": "x = 41", "wait": true}' | field status
post "sessions/$id/execute" '{"code": "open(\"f\", \"w\").write(str(x + 1))", "wait": true}' | field status
curl -sSf "$url/sessions/$id/files/f" && echo
curl -sSf -X DELETE "$url/sessions/$id" | field message
