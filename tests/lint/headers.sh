#!/bin/sh
# Every header compiles by itself.
cd "$(dirname "$0")/../.." || exit 1
status=0
for h in $(find common -name '*.h'; ls qscheduler/*.h queue-send/*.h \
    todo-proc/*.h queue-inject/*.h queue-drop/*.h deliver-local/*.h deliver-smtp/*.h \
    setqload/*.h qtop/*.h qsim/*.h 2>/dev/null); do
	if ! "${CC:-gcc}" -std=c17 -D_GNU_SOURCE -Icommon -I. -Wall -Wextra \
	    -Werror -fsyntax-only -x c -include "$h" /dev/null; then
		echo "$h: does not stand alone"
		status=1
	fi
done
exit $status
