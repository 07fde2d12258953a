# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC1091,SC2046,SC2264
. ./util.sh
case $1 in
hello) echo "hello $(answer)" ;;
stdin) cat ;;
env) echo "$WORD $(pwd)" ;;
args) shift; printf "[%s]" "$@"; cat data.txt ;;
signal) kill -KILL $$ ;;
exit) exit 3 ;;
error) no-such-command || exit ;;
timeout) while :; do :; done ;;
memory) x=xxxxxxxx; while :; do x=$x$x; done ;;
fork) bomb() { bomb | bomb & }; bomb; while :; do :; done ;;
unicode) echo 'grüße 日本語 🎉' ;;
output) i=0; while [ $i -lt 16384 ]; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; i=$((i + 1)); done ;;
sort) set -- $(awk 'BEGIN { x = 42; for (i = 0; i < 1000000; i++) { x = (x * 1664525 + 1013904223) % 4294967296; printf "%.0f\n", x } }' |
	sort -n | sed -n '500001p;1000000p'); echo "$1 $2" ;;
esac
