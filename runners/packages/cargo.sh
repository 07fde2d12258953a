# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash source=runners/packages/common.sh
# Installs crates: see README.md. runners/rust/compile.sh uses what it leaves:
#   deps     the crates, compiled, and all that they need
#   extern   a file for each crate that programs may name, with the name of its file in deps
#   vendor   the sources, for cargo itself: cargo build --offline --config config.toml
. "${BASH_SOURCE[0]%/*}/common.sh"

target=/workspace/layer/cargo
command -v cargo >/dev/null || lacks cargo rust
check_registry "${MILLIBOX_REGISTRY%/}/config.json"
mkdir -p "$target/deps" "$target/extern" /workspace/tmp /workspace/work/src
cd /workspace/work || exit 1
export CARGO_HOME=/workspace/cargo TMPDIR=/workspace/tmp HOME=/workspace CARGO_NET_RETRY=0 CARGO_TERM_COLOR=never CARGO_TARGET_DIR=/workspace/target
mkdir -p "$CARGO_HOME"
export CARGO_REGISTRIES_CRATES_IO_PROTOCOL=sparse
case $MILLIBOX_REGISTRY in
    https://index.crates.io | https://index.crates.io/) ;; # cargo knows it, and accepts no second name for it
    *) printf '[source.crates-io]\nreplace-with = "registry"\n[source.registry]\nregistry = "sparse+%s/"\n' "${MILLIBOX_REGISTRY%/}" >"$CARGO_HOME/config.toml" ;;
esac
printf 'fn main() {}\n' >src/main.rs
: >src/lib.rs

# A sparse index is stable since 1.68.
fetch() {
    local version
    version=$(cargo --version | cut -d . -f 2)
    if [ "$version" -lt 68 ]; then
        RUSTC_BOOTSTRAP=1 logged cargo -Z sparse-registry "$@"
    else
        logged cargo "$@"
    fi
}

# shellcheck disable=SC2016
# cargo's words: "no matching package named `x` found", "could not compile `x`", "failed to run custom build command for `x v1.0`"
blame() {
    local said named
    said=$(grep -E '^(error|Caused by)' "$log" | grep -v 'Caused by:' | head -n 1)
    grep -q '^error: failed to \(sync\|get\|load\)' "$log" && said=$(grep -vE '^(error|Caused by:|\s*$)' "$log" | grep -E '^ ' | tail -n 1)
    named=$(grep -oE '(package named|compile|build command for|requirement|package|verify that|download of) `[^` ]+' "$log" | head -n 1 | sed 's/.*`//')
    fail "cannot install ${named:-$*}: $(printf '%s' "${said:-cargo failed}" | sed 's/^error: //; s/^ *//')"
}

# word PACKAGE: a line of [dependencies]. "serde[derive,rc]==1.0", "rand>=0.8,<0.9", "itoa@1.0"
word() {
    local name=${1%%[[@=<>^~*]*} rest features=''
    rest=${1#"$name"}
    case $rest in
        '['*']'*)
            features=${rest%%]*}
            features=${features#[}
            rest=${rest#*]}
            ;;
    esac
    case $rest in
        ==*) rest="=${rest#==}" ;;
        @*) rest=${rest#@} ;;
        '') rest='*' ;;
    esac
    printf '%s = { version = "%s", features = [%s] }\n' "$name" "$rest" "$([ -z "$features" ] || printf '"%s"' "${features//,/\",\"}")"
}

if [ -n "$MILLIBOX_LOCK" ]; then
    split_lock Cargo.toml Cargo.lock
    fetch vendor --respect-source-config --locked "$target/vendor" || blame "the crates of Cargo.lock"
else
    printf '[package]\nname = "layer"\nversion = "0.0.0"\nedition = "2021"\n\n[dependencies]\n' >Cargo.toml
    for package in "$@"; do
        word "$package" >>Cargo.toml
    done
    fetch vendor --respect-source-config "$target/vendor" || blame "$*"
fi
mkdir -p "$target/vendor"
printf '[source.crates-io]\nreplace-with = "layer"\n[source.layer]\ndirectory = "%s/vendor"\n' "$target" >"$CARGO_HOME/config.toml"
# Compiled here once, so that programs are not slowed down by it. Build scripts run here, too.
logged cargo build --release --offline --locked --verbose || blame "$*"
made=$(grep -E 'Running `.*rustc .*src/main\.rs' "$log" | tail -n 1)
cp "$CARGO_TARGET_DIR"/release/deps/*.rlib "$CARGO_TARGET_DIR"/release/deps/*.so "$target/deps/" 2>/dev/null
rm -f "$target/deps"/liblayer-*
while read -r _ pair; do
    [ "${pair%%=*}" = layer ] || printf '%s\n' "${pair##*/}" >"$target/extern/${pair%%=*}"
done < <(grep -oE -- '--extern [A-Za-z0-9_]+=[^ `]+' <<<"$made")
printf '[source.crates-io]\nreplace-with = "layer"\n[source.layer]\ndirectory = "/opt/millibox/packages/cargo/vendor"\n' >"$target/config.toml"
run_script
printf '# %s %s\n' "$(rustc --version)" "$(uname -m)"
for package in "$@"; do
    name=${package%%[[@=<>^~*]*}
    grep -A 1 -xF "name = \"$name\"" Cargo.lock | sed -n "s/^version = \"\(.*\)\"/$name==\1/p"
done
show_lock Cargo.toml Cargo.lock
