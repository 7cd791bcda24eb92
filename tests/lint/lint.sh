#!/bin/sh
# make lint: every check that reads the sources. Says what is refused and where.
cd "$(dirname "$0")/../.." || exit 1
status=0
count=0
# Other versions break lines in other places.
FORMAT_VERSION=14

check() { # NAME COMMAND...
	name=$1
	shift
	count=$((count + 1))
	if out=$("$@" 2>&1); then
		echo "lint: $name: ok"
	else
		printf '%s\n' "$out"
		echo "lint: $name: FAILED"
		status=1
	fi
}

c_files() {
	find common qscheduler queue-send todo-proc queue-inject queue-drop deliver-local \
	    deliver-smtp setqload qtop qctl qsim tests -name '*.[ch]' "$@"
}

# shellcheck disable=SC2046 # names without blanks
check_format() {
	is=$(clang-format --version | sed -n 's/.* version \([0-9]*\)\..*/\1/p')
	if [ "$is" = $FORMAT_VERSION ]; then
		check format clang-format --dry-run -Werror $(c_files)
	else
		echo "SKIP lint.format: the format is that of clang-format" \
			"$FORMAT_VERSION (Debian 12), and this is ${is:-none}"
	fi
}
check_format
check sizes python3 tests/lint/sizes.py
check words sh tests/lint/words.sh
for lint in layers floors circles users comments references rows events manuals macros quotes; do
	check $lint python3 -B tests/lint/$lint.py
	check $lint-control python3 -B tests/lint/$lint.py --control
done
check mutants python3 -B tests/mutants/run.py --check
check mutants-control python3 -B tests/mutants/run.py --control
check headers sh tests/lint/headers.sh
check fuzz-targets sh tests/lint/targets.sh
# shellcheck disable=SC2046
check cppcheck cppcheck -q -j2 --std=c11 -D_GNU_SOURCE -Icommon -I. \
	--enable=warning,portability --inline-suppr --error-exitcode=1 \
	--suppress=missingIncludeSystem --suppress=unknownMacro \
	--suppress=nullPointerOutOfMemory --suppress=normalCheckLevelMaxBranches \
	--suppressions-list=tests/lint/cppcheck.suppress \
	$(c_files -name '*.c' ! -path 'tests/unit/*')
# shellcheck disable=SC2046
check shellcheck shellcheck -x bootstrap .ci/run $(find tests -name '*.sh') \
	$(find etc -name run -type f) etc/system-mta etc/make-users debian/preinst debian/postinst debian/prerm debian/postrm debian/service.sh
# shellcheck disable=SC2046
check mandoc mandoc -Tlint -Wwarning $(find etc/man -name '*.[1-8]')
# shellcheck disable=SC2046
check python python3 -c 'import ast,sys
for f in sys.argv[1:]: ast.parse(open(f).read(), f)' \
	$(find tests -name '*.py')
echo "lint: $count checks"
exit $status
