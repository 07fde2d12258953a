# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash source=runners/packages/common.sh
# Unpacks packages of Debian and its relatives, for the root of an image: see README.md. apt resolves what the image's packages lack. It
# installs nothing, which would need root and a writable root: no script of a package runs, and files are below the layer.
. "${BASH_SOURCE[0]%/*}/common.sh"

target=/workspace/layer/apt
place=/opt/millibox/packages/apt
public=http://deb.debian.org/debian
apt=/workspace/apt
if [ ! -r /var/lib/dpkg/status ] || ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
    fail "apt is not in this root: packages of apt are for templates of Debian's and Ubuntu's images"
fi
check_registry "$MILLIBOX_REGISTRY"
mkdir -p "$target" /workspace/tmp "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/log" "$apt/empty"
cd "$apt" || exit 1
export TMPDIR=/workspace/tmp APT_CONFIG=$apt/apt.conf LC_ALL=C DEBIAN_FRONTEND=noninteractive
cat >"$APT_CONFIG" <<END
Dir::State "$apt/state"; Dir::State::status "/var/lib/dpkg/status"; Dir::Cache "$apt/cache"; Dir::Log "$apt/log";
APT::Sandbox::User ""; Debug::NoLocking "true"; APT::Install-Recommends "false"; Acquire::Retries "0"; Acquire::Languages "none";
END
# The sources of the image, unless the operator has a mirror, which the image's keys must vouch for, too.
if [ "${MILLIBOX_REGISTRY%/}" != "$public" ]; then
    release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    [ -n "$release" ] || fail "/etc/os-release of this root does not name its release"
    printf 'deb %s %s main\n' "$MILLIBOX_REGISTRY" "$release" >sources.list
    printf 'Dir::Etc::sourcelist "%s/sources.list"; Dir::Etc::sourceparts "%s/empty";\n' "$apt" "$apt" >>"$APT_CONFIG"
fi

blame() {
    local said named
    # " NAME : Depends: OTHER (>= 2) but it is not installable"
    said=$(sed -nE 's/^ +([a-z0-9.+-]+) : ([A-Z][A-Za-z-]*: .*)/\1: \2/p' "$log" | head -n 1)
    [ -z "$said" ] || fail "cannot install $said"
    said=$(grep -E '^E: ' "$log" | head -n 1)
    named=$(grep -oE "(locate package|' for) '?[a-z0-9][a-z0-9.+-]+" "$log" | head -n 1 | sed "s/.* '\?//")
    fail "cannot install ${named:-$*}: ${said#E: }"
}

words=()
declare -A hashes # of a lock: NAME[:ARCHITECTURE]==VERSION to " HASH..."
package_name='[a-z0-9][a-z0-9.+-]*(:[a-z0-9-]+)?'
package_version='[0-9A-Za-z][0-9A-Za-z.+:~-]*'

# add_locked LINE: a line that cannot be checked is refused, not installed unchecked.
add_locked() {
    local word fields
    read -r -a fields <<<"$1"
    [[ ${fields[0]} =~ ^$package_name==$package_version$ ]] || fail "lock: '${fields[0]}' is not NAME==VERSION"
    [ ${#fields[@]} -gt 1 ] || fail "lock: '${fields[0]}' needs --hash=sha256:..."
    for word in "${fields[@]:1}"; do
        [[ $word =~ ^--hash=sha256:[0-9a-f]{64}$ ]] || fail "lock: '$word' of '${fields[0]}' is not --hash=sha256:..."
        hashes[${fields[0]}]+=" ${word#--hash=sha256:}"
    done
    words+=("${fields[0]/==/=}")
}

# check_locked FILE NAME VERSION HASH
check_locked() {
    local known=${hashes[$2:$(dpkg-deb -f "$1" Architecture)==$3]:-${hashes[$2==$3]:-}}
    [ -n "$known" ] || fail "cannot install $2==$3: the lock does not have it"
    [[ "$known " == *" $4 "* ]] || fail "cannot install $2==$3: the hash differs from that of the lock"
}

if [ -n "$MILLIBOX_LOCK" ]; then
    while IFS= read -r line || [ -n "$line" ]; do
        [[ $line =~ ^[[:space:]]*(#|$) ]] || add_locked "$line"
    done <"/workspace/$MILLIBOX_LOCK"
else
    for package in "$@"; do
        words+=("${package/==/=}")
        [[ ${words[-1]} =~ ^$package_name(=$package_version)?$ ]] || fail "'$package' is not NAME or NAME==VERSION"
    done
fi
logged apt-get -q update || blame "the packages: the lists of packages cannot be read"
grep -qE '^(W|E): .*(not signed|NO_PUBKEY|invalid|Failed to fetch)' "$log" && blame "the packages: $(grep -E '^(W|E): ' "$log" | head -n 1)"
if [ ${#words[@]} -gt 0 ]; then
    logged apt-get -q -y --download-only --no-upgrade install -- "${words[@]}" || blame "$*"
fi
for file in cache/archives/*.deb; do
    [ -f "$file" ] || continue
    name=$(dpkg-deb -f "$file" Package)
    version=$(dpkg-deb -f "$file" Version)
    # Its loader stays that of the image, and does not fit.
    [ "$name" != libc6 ] || fail "cannot install $*: they need libc6 $version, which is newer than that of the image"
    hash=$(sha256sum "$file" | cut -d ' ' -f 1)
    [ -z "$MILLIBOX_LOCK" ] || check_locked "$file" "$name" "$version" "$hash"
    dpkg-deb -x "$file" "$target" || fail "cannot install $name: the package is damaged"
    printf '%s==%s --hash=sha256:%s\n' "$name" "$version" "$hash" >>lock
done
# Links to files of these packages lead there.
while IFS= read -r link; do
    to=$(readlink "$link")
    [ -e "$target$to" ] && ln -sfn "$place$to" "$link"
done < <(find "$target" -type l -lname '/*')
export PATH=$target/usr/bin:$target/bin:$PATH
run_script
printf '# %s\n' "$(sed -n 's/^PRETTY_NAME=//p' /etc/os-release | tr -d '"') $(dpkg --print-architecture)"
[ ! -f lock ] || sort lock
