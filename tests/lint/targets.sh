#!/bin/sh
# Every fuzz target still fits the code that it tests: a change of a parser
# changes its target, though the targets are built by `make fuzz` alone.
cd "$(dirname "$0")/../.." || exit 1
status=0
for c in tests/fuzz/*.c tests/fuzz/*/*.c; do
	if ! "${CC:-gcc}" -std=c17 -D_GNU_SOURCE -Icommon -I. -Wall -Wextra \
	    -Werror -fsyntax-only "$c"; then
		echo "$c: does not compile"
		status=1
	fi
done
exit $status
