# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash source=runners/packages/common.sh
# Installs artifacts of a Maven repository: see README.md; "compiler" alone is a compiler that starts quickly.
# runners/java/compile.sh uses what it leaves:
#   lib       artifacts
#   compiler  compile.jar, and classes.jsa: the classes of javac and jar, ready to be mapped
. "${BASH_SOURCE[0]%/*}/common.sh"

target=/workspace/layer/maven
here=${BASH_SOURCE[0]%/*}
{ command -v java && command -v javac; } >/dev/null || lacks "a JDK" java
if [ "$*" = compiler ]; then
    mkdir -p "$target/compiler" /workspace/work
    cd /workspace/work || exit 1
    printf '%s\n' 'import java.util.*; class Main { interface Shape<T> { T area(); } enum Kind { A, B }' \
        'public static void main(String[] a) { Map<String, List<Integer>> m = new TreeMap<>(); Shape<Double> s = () -> 2.0;' \
        'for (Kind k : Kind.values()) switch (k) { case A: m.put(k + "", List.of(1, 2)); break; default: m.clear(); }' \
        'try { System.out.println(s.area() + m.size()); } catch (RuntimeException e) { throw e; } } }' >Main.java
    # The archive is for this path, and for a jar of this time: 0 is any.
    ln -sfn "$target/compiler" /tmp/java-compiler
    logged javac -d classes "$here/Compile.java" || fail "the compiler does not work: $(tail -n 1 "$log")"
    jar --create --file "$target/compiler/compile.jar" -C classes .
    touch -d @0 "$target/compiler/compile.jar"
    logged java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -XX:ArchiveClassesAtExit=/tmp/java-compiler/classes.jsa \
        -cp /tmp/java-compiler/compile.jar Compile -proc:none -d out Main.java --jar --create --no-compress --file out.jar -C out . ||
        fail "the JVM makes no archive of classes: $(tail -n 1 "$log")"
    printf '# %s\n' "$(javac --version)"
    exit
fi

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
