# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash source=runners/packages/common.sh
# Installs artifacts of a Maven repository: see README.md. runners/java/compile.sh uses lib/*.jar.
. "${BASH_SOURCE[0]%/*}/common.sh"

target=/workspace/layer/maven
here=${BASH_SOURCE[0]%/*}
{ command -v java && command -v javac; } >/dev/null || lacks "a JDK" java
libraries=
for folder in /usr/share/maven/lib /opt/maven/lib "$(dirname "$(dirname "$(readlink -f "$(command -v mvn)")")")/lib"; do
    if compgen -G "$folder/maven-resolver-api*.jar" >/dev/null; then
        libraries=$folder
        break
    fi
done
[ -n "$libraries" ] || fail "maven is not installed in this root (on Debian: apt-get install maven)"
check_registry "$MILLIBOX_REGISTRY"
mkdir -p "$target/lib" /workspace/tmp
cd /workspace || exit 1
# Maven's own resolver, without its plugins, which a repository would have to have, too.
logged java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xmx512m -Djava.io.tmpdir=/workspace/tmp -Duser.home=/workspace \
    -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp "$libraries/*" "$here/Resolve.java" \
    "$MILLIBOX_REGISTRY" "$target/lib" /workspace/lock.out ${MILLIBOX_LOCK:+"-lock=/workspace/$MILLIBOX_LOCK"} "$@" || {
    said=$(sed -n 's/^FAILED //p' "$log" | tail -n 1)
    fail "cannot install ${said:-$*: the resolver failed}"
}
run_script
printf '# %s\n' "$(javac --version)"
cat /workspace/lock.out
