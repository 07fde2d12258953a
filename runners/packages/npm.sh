# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash source=runners/packages/common.sh
# Installs packages of npm: see README.md.
. "${BASH_SOURCE[0]%/*}/common.sh"

target=/workspace/layer/npm
log=/workspace/npm.log

command -v npm >/dev/null || fail "npm is not installed in this root (on Debian: apt-get install npm)"
check_registry "$MILLIBOX_REGISTRY"
mkdir -p "$target" /workspace/tmp
cd "$target" || exit 1
export TMPDIR=/workspace/tmp npm_config_cache=/workspace/cache npm_config_registry=$MILLIBOX_REGISTRY
export npm_config_fetch_retries=0 npm_config_fund=false npm_config_audit=false npm_config_update_notifier=false
export npm_config_userconfig=/dev/null npm_config_progress=false npm_config_loglevel=http
[ -e /etc/ssl/certs/ca-certificates.crt ] && export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
printf '{"name": "layer", "version": "1.0.0", "private": true}\n' >package.json

words=()
for package in "$@"; do
    words+=("${package/==/@}")
done
if [ -n "$MILLIBOX_LOCK" ]; then
    cp "/workspace/$MILLIBOX_LOCK" package-lock.json
    # npm ci compares it with package.json: take that from the lock.
    node -e '
        const fs = require("fs"), lock = JSON.parse(fs.readFileSync("package-lock.json", "utf8"));
        const { dependencies = {}, devDependencies = {}, optionalDependencies = {} } = (lock.packages || {})[""] || {};
        fs.writeFileSync("package.json", JSON.stringify({ name: lock.name || "layer", version: lock.version || "1.0.0",
            dependencies, devDependencies, optionalDependencies }));' || fail "lock: not a package-lock.json of version 2 or 3"
    npm ci --omit=dev 2>&1 | tee "$log" >&2
elif [ ${#words[@]} -gt 0 ]; then
    npm install "${words[@]}" 2>&1 | tee "$log" >&2
fi
if [ "${PIPESTATUS[0]:-0}" -ne 0 ]; then
    # npm names the package in "404 Not Found - GET URL", "notarget No matching version found for NAME" or "path .../node_modules/NAME".
    said=$(grep -E 'npm (ERR!|error)' "$log" | sed -E 's/^npm (ERR!|error) ?//' | grep -vE '^(code|A complete log|$)' | head -n 1)
    blamed=$(grep -oE "(matching version found for|'[^']+' is not in|node_modules/)[^ ']*[^ ]*" "$log" | head -n 1 |
        sed -E "s/.*(found for |node_modules\/)//; s/^'//; s/' is not in.*//; s/\.$//")
    fail "cannot install ${blamed:-$*}: ${said:-npm failed}"
fi
export NODE_PATH=$target/node_modules
run_script
printf '# node %s %s\n' "$(node -p 'process.version')" "$(node -p 'process.platform + "-" + process.arch')"
cat package-lock.json
