#!/bin/sh
# Every header compiles by itself.
cd "$(dirname "$0")/../.." || exit 1
status=0
# shellcheck disable=SC2044 # names without blanks
for h in $(find common qscheduler queue-send todo-proc queue-inject queue-drop \
    deliver-local deliver-smtp setqload qtop qsim -name '*.h'); do
	if ! "${CC:-gcc}" -std=c17 -D_GNU_SOURCE -Icommon -I. -Wall -Wextra \
	    -Werror -fsyntax-only -x c -include "$h" /dev/null; then
		echo "$h: does not stand alone"
		status=1
	fi
done
exit $status
