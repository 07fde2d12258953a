#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compile.sh COMPILER [WORD...]: a word may be -millibox-compiler=NAME, a compiler beside it.
compiler=$1
shift
for word in "$@"; do
	shift
	case $word in
	-millibox-compiler="${compiler##*/}") ;;
	-millibox-compiler=g++) ;;
	-millibox-compiler=*)
		compiler=${compiler%/*}/${word#*=}
		if [ ! -x "$compiler" ]; then
			echo "options.compiler: the box has no $compiler" >&2
			exit 1
		fi
		;;
	*) set -- "$@" "$word" ;;
	esac
done
exec "$compiler" "$@"
