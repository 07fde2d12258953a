#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compile.sh JAVAC ARTIFACT [-main=CLASS] [FLAG...] -- Main.java [FILE...]: makes a jar.
javac=$1 artifact=$2
shift 2
main=
flags=
jvm='-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData'
path=.
while [ $# -gt 0 ] && [ "$1" != -- ]; do
	case $1 in
	-main=*) main=${1#*=} ;;
	-classpath)
		path=$2
		shift
		;;
	-J*) jvm="$jvm ${1#-J}" ;;
	*) flags="$flags $1" ;; # options have no blanks
	esac
	shift
done
shift
# A public class must be in a file of its name.
public=$(sed -n 's/^ *public \(\(final\|abstract\|sealed\|strictfp\) \)*\(class\|interface\|enum\|record\) *\([A-Za-z_$][A-Za-z0-9_$]*\).*/\4/p' "$1" | head -n 1)
if [ -n "$public" ] && [ "$public.java" != "$1" ]; then
	mv "$1" "$public.java"
	shift
	set -- "$public.java" "$@"
fi
first=$1
# Artifacts that were installed (runners/packages/maven.sh): in a layer, or into the session.
printf 'Class-Path: file:/workspace/' >.manifest
for jar in /opt/millibox/packages/maven/lib/*.jar /workspace/.local/share/millibox/maven/lib/*.jar; do
	[ -f "$jar" ] || continue
	path=$path:$jar
	# A line of a manifest is short; the next one continues it after a blank.
	printf '\n  file:%s' "$jar" >>.manifest
done
mkdir .classes || exit 125
if [ -z "$main" ]; then
	package=$(sed -n 's/^ *package  *\([A-Za-z0-9_.]*\) *;.*/\1/p' "$first" | head -n 1)
	if [ -n "$public" ]; then
		main=$public
	else
		# The class above the main method.
		main=$(grep -oE '\<(class|interface|enum|record) +[A-Za-z_$][A-Za-z0-9_$]*|\<void +main *\(' "$first" |
			sed -n '/main *($/{x;s/.* //p;q;};h')
	fi
	main=${package:+$package.}${main:-Main}
fi
printf '\nMain-Class: %s\n' "$main" >>.manifest
# Strings are joined by a StringBuilder: a call site that is linked when it runs costs the first one 10 ms.
# shellcheck disable=SC2086
set -- -XDstringConcat=inline -encoding UTF-8 -proc:none $flags -classpath "$path" -d .classes "$@"
pack="--create --no-compress --file $artifact --manifest .manifest -C .classes ."
bin=$(dirname "$(readlink -f "$javac")")
ready=/opt/millibox/packages/maven/compiler
# shellcheck disable=SC2086
if [ -d $ready ]; then
	# The name under which its classes were archived (runners/packages/maven.sh).
	ln -sfn $ready /tmp/java-compiler
	exec "$bin/java" -Xlog:disable $jvm -XX:SharedArchiveFile=/tmp/java-compiler/classes.jsa -cp /tmp/java-compiler/compile.jar \
		Compile "$@" --jar $pack
fi
# shellcheck disable=SC2046,SC2086
"$javac" $(printf -- '-J%s ' $jvm) "$@" || exit
# shellcheck disable=SC2046,SC2086
exec "$bin/jar" $(printf -- '-J%s ' $jvm) $pack
