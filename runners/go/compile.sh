#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compile.sh GO ARTIFACT [FLAG...]: all files of the directory are one package of a module.
go=$1 artifact=$2
shift 2
module=main version=
for word in "$@"; do
	shift
	case $word in
	-millibox-module=*) module=${word#*=} ;;
	-millibox-go=*) version=${word#*=} ;;
	*) set -- "$@" "$word" ;;
	esac
done

# go build itself accepts a version of the language that it does not know.
if [ -n "$version" ]; then
	has=$("$go" env GOVERSION)
	has=${has#go}
	if [ "$(printf '%s\n%s\n' "$version" "$has" | sort -V | head -n 1)" != "$version" ]; then
		echo "options.go_version: the box has Go $has, not $version: ask for its version or an earlier one" >&2
		exit 1
	fi
fi

# The standard library, and modules that were installed (runners/packages/go.sh): in a layer, or into the session.
layer=/opt/millibox/packages/go
session=/workspace/.local/share/millibox/go
given=
for folder in "$layer" "$session"; do
	# The cache of compiled packages must be writable: links. A layer does not change.
	if [ -d "$folder/build" ] && { [ "$folder" = "$session" ] || [ ! -e "$GOCACHE/.linked" ]; }; then
		mkdir -p "$GOCACHE"
		cp -rsn "$folder/build/." "$GOCACHE/"
		[ "$folder" = "$session" ] || : >"$GOCACHE/.linked"
	fi
	[ -d "$folder/need" ] || continue
	given="$given $folder"
	# The name under which its packages were compiled.
	ln -sfn "$folder/mod" /tmp/go-mod
	export GOMODCACHE=/tmp/go-mod GOSUMDB=off
done
case $given in
*' '*' '*) export GOPROXY="file://$layer/mod/cache/download,off" ;; # the other one is the cache
esac
if [ ! -f go.mod ]; then
	printf 'module %s\n%s\n' "$module" "${version:+go $version}" >go.mod
	for folder in $given; do
		for need in "$folder"/need/*.mod; do
			# Requirements of all count; the version of the language is that of the first.
			if grep -q '^go ' go.mod; then
				sed '/^module /d; /^go /d' "$need" >>go.mod
			else
				sed '/^module /d' "$need" >>go.mod
			fi
			cat "${need%.mod}.sum" >>go.sum
		done
	done
fi
exec "$go" build -buildvcs=false "-ldflags=-s -w" "$@" -o "$artifact" .
