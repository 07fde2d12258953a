# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash source=runners/packages/common.sh
# Installs Go modules: see README.md; "std" alone is the standard library, compiled, if the toolchain
# comes without. runners/go/compile.sh uses what it leaves:
#   mod     the module cache
#   build   compiled packages
#   need    go.mod and go.sum of this installation, named so that several in one session stay apart
. "${BASH_SOURCE[0]%/*}/common.sh"

target=/workspace/layer/go
PATH=/usr/lib/go/bin:$PATH:/usr/local/go/bin
command -v go >/dev/null || lacks go go
mkdir -p "$target" /workspace/tmp /workspace/work
cd /workspace/work || exit 1
# Compiled packages are known by the directory of their sources: this name is the same in every box (runners/go/compile.sh).
ln -sfn "$target/mod" /tmp/go-mod
export GOMODCACHE=/tmp/go-mod GOCACHE=$target/build GOPATH=/workspace/gopath GOTMPDIR=/workspace/tmp HOME=/workspace
export GOPROXY=$MILLIBOX_REGISTRY GOFLAGS='-mod=mod -modcacherw' GOTOOLCHAIN=local GOTELEMETRY=off GOVCS='*:off' CGO_ENABLED=0
# A mirror is the operator's choice, and may have modules that the public sums lack.
case $MILLIBOX_REGISTRY in https://proxy.golang.org*) ;; *) export GOSUMDB=off ;; esac

# Debian's has it.
compiled=("$(go env GOROOT)"/pkg/*/fmt.a)
if [ "$*" = std ]; then
    mkdir -p "$target/build"
    if [ ! -e "${compiled[0]}" ]; then
        go mod init layer 2>/dev/null
        logged go build std || fail "the standard library does not compile: $(tail -n 1 "$log")"
        rm -rf "$target/build/fuzz" "$target/build/trim.txt"
    fi
    printf '# %s\n' "$(go version)"
    exit
fi

check_registry "$MILLIBOX_REGISTRY"
mkdir -p "$target/need" "$target/mod"
# A copy: what is compiled here goes there, too.
[ ! -d /opt/millibox/packages/go/build ] || cp -r /opt/millibox/packages/go/build "$target/build"

blame() {
    local said named
    said=$(grep -vE '^(go: (downloading|added|finding|upgraded)|\s*$)' "$log" | head -n 1)
    named=$(grep -oE '[A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)+@v[A-Za-z0-9.+-]+' "$log" | head -n 1)
    fail "cannot install ${named:-$*}: ${said#go: }"
}

modules=()
if [ -n "$MILLIBOX_LOCK" ]; then
    split_lock go.mod go.sum
    sed -i 's/^module .*/module layer/' go.mod
    cp go.sum go.sum.given
    logged go mod download || blame "the modules of go.mod"
    # What was not in go.sum was not checked.
    while read -r name version _; do
        [ -z "$name" ] || grep -qF "$name $version " go.sum.given || fail "lock: go.sum lacks $name $version"
    done <go.sum
elif [ $# -gt 0 ]; then
    go mod init layer 2>/dev/null
    for package in "$@"; do
        name=${package%%[@=]*}
        version=${package#"$name"}
        version=${version##*[@=]}
        case $version in [0-9]*) version=v$version ;; esac
        modules+=("$name")
        # With what all its packages need, if that is possible.
        if go get "$name/...${version:+@$version}" </dev/null >/workspace/first.log 2>&1; then
            cat /workspace/first.log >&2
        else
            logged go get "$name${version:+@$version}" || blame "$package"
        fi
    done
    echo "go: compiling ${modules[*]}" >&2
    timeout 120 go build "${modules[@]/%//...}" </dev/null >&2 || echo "go: some packages do not compile here" >&2
else
    go mod init layer 2>/dev/null
fi
touch go.sum
run_script
stem=$(cat go.mod go.sum | cksum | tr ' ' -)
cp go.mod "$target/need/$stem.mod"
cp go.sum "$target/need/$stem.sum"
chmod -R u+w "$target"
rm -rf "$target/mod/cache/lock" "$target/build/fuzz" "$target/build/trim.txt"
printf '# %s\n' "$(go version)"
for name in "${modules[@]}"; do
    go list -m -f '{{.Path}}=={{.Version}}' "$name"
done
show_lock go.mod go.sum
