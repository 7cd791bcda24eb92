#!/bin/sh
# The second look at tests that failed (parts.sh), with parts that are made up.
cd "$(dirname "$0")/../.." || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

# fake NAME FAILS [REPORTS]: one test of this name. Its runs whose numbers are
# in the list FAILS fail; those in REPORTS print a report of a sanitizer.
cat >"$scratch/fake" <<'END'
#!/bin/sh
name=$1 fails=$2 reports=${3-}
runs=${0%/*}/case/runs
printf "%s\n" "$name" >>"$runs"
run=$(grep -cFx -e "$name" "$runs")
[ "$run" = 1 ] || cat >/dev/null # what is left of a list of tests
case " $reports " in *" $run "*)
	echo '==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1' ;;
esac
case " $fails " in *" $run "*)
	quoted=$(printf %s "$name" | sed "s/'/'\\\\''/g")
	printf 'FAILED\t%s\t%s\tin run %s\n' "$name" "$0 '$quoted' '$fails' '$reports'" "$run"
	echo "0 passed, 1 failed"
	exit 1 ;;
esac
echo "1 passed, 0 failed"
END
chmod +x "$scratch/fake"
fake=$scratch/fake

# A check in a directory of its own. The parts are lines of shell.
check() { # CI PARTS
	out=$scratch/case
	rm -rf "$out"
	mkdir "$out"
	(
		export CI="$1"
		. tests/check/parts.sh
		part good "$fake" good ''
		eval "$2"
		finish
	) >"$scratch/said" 2>&1
	status=$?
}
want() { # WHAT COMMAND...
	what=$1
	shift
	if "$@" >"$scratch/why" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'again: %s: FAILED: %s\n' "$what" "$*"
		sed 's/^/    /' "$scratch/why" "$scratch/said"
	fi
}
# Exit status, last line, and how often the test ran.
ends() { # STATUS SUM TEST RUNS
	set -- "$@" "$(tail -n 1 "$scratch/said")" \
		"$(grep -cFx -e "$3" "$scratch/case/runs")"
	[ "$status" = "$1" ] && [ "$5" = "$2, 0 skipped" ] && [ "$6" = "$4" ]
}
says() { # LINE
	grep -qFx -e "$1" "$scratch/said"
}
silent_of() { # WORDS
	! grep -F -e "$1" "$scratch/said"
}

check true "part p $fake t ''"
want 'no test fails' ends 0 '2 passed, 0 failed' t 1

check true "part p $fake t '1 2 3'"
want 'a test fails always' ends 1 '1 passed, 1 failed' t 2
want 'and is named' says 'check: p: FAILED AGAIN: t'

check true "part p $fake t 1"
want 'a test fails once' ends 0 '2 passed, 0 failed' t 3
want 'and is named with the first failure' says 'UNSTABLE p: t: in run 1'

check true "part p $fake t '1 2'"
want 'a test fails twice, and would pass then' ends 1 '1 passed, 1 failed' t 2
want 'and is not unstable' silent_of UNSTABLE

check true "part p $fake t '1 3'"
want 'a test fails, passes, and fails' ends 1 '1 passed, 1 failed' t 3

for ci in '' false; do
	check "$ci" "part p $fake t 1"
	want "CI='$ci' runs nothing again" ends 1 '1 passed, 1 failed' t 1
done

check true "part p $fake t 1; part q $fake u 1"
want 'two unstable tests' ends 0 '3 passed, 0 failed' u 3
check true "part p $fake t 1; part q $fake u '1 2'"
want 'an unstable test beside one that fails' ends 1 '2 passed, 1 failed' t 3

check true "part p $fake t '' 1"
want 'a report of a test that passes' ends 1 '2 passed, 1 failed' t 1
check true "part p $fake t 1 1"
want 'a report of a test that fails' ends 1 '1 passed, 1 failed' t 1
check true "part p $fake t 1 2"
want 'a report when it is run again' ends 1 '1 passed, 1 failed' t 2
check true "part p $fake t 1 3"
want 'a report when it is run a third time' ends 1 '1 passed, 1 failed' t 3
check true "part p $fake t '' 1; part q $fake u 1"
want 'a report, and another test' ends 1 '2 passed, 2 failed' u 1

for report in '==1==ERROR: LeakSanitizer: detected memory leaks' \
    'WARNING: ThreadSanitizer: data race (pid=1)' \
    'a.c:1:2: runtime error: signed integer overflow' \
    '==1== ERROR: libFuzzer: deadly signal'; do
	check true "part p echo '$report' '9 passed, 0 failed'"
	want "$report" test "$status" = 1
done

check true "part build false; part p $fake t 1"
want 'a part that names no test' ends 1 '1 passed, 2 failed' t 1
want 'and says so' says \
	'check: no test is run again: build failed and names no test'
crash() {
	"$fake" t 1 | grep FAILED
	false
}
check true 'part p crash'
want 'a runner that crashes behind a test' ends 1 '1 passed, 1 failed' t 1
miscount() {
	"$fake" t 1
	echo '0 passed, 1 failed'
	false
}
check true 'part p miscount'
want 'a runner that counts a failure without a name' \
	ends 1 '1 passed, 2 failed' t 1
counts_log() {
	"$fake" t 1 | grep FAILED
	echo 'postfix/smtpd: of 9 messages 8 passed, 1 failed in vain'
	echo '   [====] Synthesis: Tested: 3 | Passing: 2 | Failing: 1'
	false
}
check true 'part p counts_log'
want 'a line of a log is no line of results' ends 1 '1 passed, 1 failed' t 1
want 'and the runner has crashed' says \
	'check: no test is run again: p names 1 tests that failed, and counts 0'
cat >"$scratch/Makefile" <<END
all: flake crash
flake:; @$fake t 1
crash:; @sh -c 'kill -SEGV \$\$\$\$'
END
unset MAKEFLAGS MAKELEVEL MFLAGS
check true "part p make -k -f $scratch/Makefile all"
want 'a target of make that crashes beside an unstable test' \
	ends 1 '1 passed, 1 failed' t 1
want 'and says so' says \
	'check: no test is run again: p: make failed where no result counts a test'
check true "part p make -k -f $scratch/Makefile flake"
want 'a target of make that is unstable' ends 0 '2 passed, 0 failed' t 3

no_command() {
	printf 'FAILED\tt\n0 passed, 1 failed\n'
	false
}
check true 'part p no_command'
want 'a test without its command' test "$status" = 1
nothing() {
	printf 'FAILED\tt\techo 0 passed, 0 failed\twhy\n0 passed, 1 failed\n'
	false
}
check true 'part p nothing'
want 'a command that runs no test' test "$status" = 1
hangs() {
	printf 'FAILED\tt\tsleep 1000; echo 1 passed, 0 failed\twhy\n0 passed, 1 failed\n'
	false
}
check true 'AGAIN_SECONDS=1; part p hangs'
want 'a command that hangs' test "$status" = 1

many() {
	for i in $1; do "$fake" "t$i" 1; done
	false
}
check true "part p many '1 2 3 4 5'"
want 'five unstable tests' ends 0 '6 passed, 0 failed' t5 3
check true "part p many '1 2 3 4 5 6'"
want 'six tests that fail' ends 1 '1 passed, 6 failed' t6 1

# Ten wants of one script are one command.
script() { # FAILS
	for i in 1 2 3 4 5 6 7 8 9 10; do
		printf 'FAILED\twant %s\t%s t "%s"\tin run 1\n' "$i" "$fake" "$1"
	done
	"$fake" t 1 >"$scratch/first"
	echo '3 passed, 10 failed'
	false
}
check true 'part p script 1'
want 'ten tests of one command' ends 0 '14 passed, 0 failed' t 3
want 'and each of them is named' says 'UNSTABLE p: want 10: in run 1'
check true 'part p script "1 3"'
want 'ten tests of one command, which fails again' \
	ends 1 '4 passed, 10 failed' t 3
want 'and each of these is named' says 'check: p: FAILED AGAIN: want 10'

# shellcheck disable=SC2016 # nothing is expanded
strange='a  b'\''s "c" $(touch x) `touch x` \n ; | & * [a-z] %s <>ä'
strange_part() {
	"$fake" "$strange" 1
}
check true 'part p strange_part'
want 'strange characters' ends 0 '2 passed, 0 failed' "$strange" 3
want 'and all of them are named' says "UNSTABLE p: $strange: in run 1"
want 'and none is a command' test ! -e x

# What Criterion says becomes tests with commands (tests/unit/run.sh).
cat >"$scratch/criterion" <<'END'
#!/bin/sh
printf '\033[0;34m[----]\033[0m t.c:6: Assertion Failed\n[----]   no: 3\n'
printf '[FAIL] s::bad: (0.00s)\n[----] t.c:8: Unexpected signal caught\n'
printf '[FAIL] s::crash: CRASH!\n[FAIL] s::slow: Timed out. (1.02s)\n'
echo '[====] Synthesis: Tested: 4 | Passing: 1 | Failing: 3 | Crashing: 1'
exit 1
END
printf '#!/bin/sh\nkill -SEGV $$\n' >"$scratch/crashes"
chmod +x "$scratch/criterion" "$scratch/crashes"
check true "part p tests/unit/run.sh $scratch/criterion"
named() { # TEST NAME REASON
	printf '%s\t%s\t%s\t%s\n' p "criterion: $1" \
		"$scratch/criterion --filter $1" "$2" |
		grep -qFx -f - "$scratch/case/failed"
}
want 'an assertion' named s/bad 't.c:6: Assertion Failed no: 3'
want 'a crash' named s/crash 't.c:8: Unexpected signal caught'
want 'a test that hangs' named s/slow 'Timed out. (1.02s)'
want 'as many as Criterion counts' says 'check: p: FAILED: criterion: s/slow: Timed out. (1.02s)'
want 'and they can be run again' silent_of 'no test is run again'
check true "part p tests/unit/run.sh $scratch/crashes"
want 'a program that crashes' says \
	'check: p: FAILED: crashes: exit 139 without a test that failed'
want 'and can be run again' says 'check: p: FAILED AGAIN: crashes'

# The whole of tests/check.sh, with another list of parts.
whole() { # PARTS
	echo "$1" >"$scratch/list"
	CHECK_PARTS=$scratch/list CHECK_OUT=$scratch/whole tests/check.sh
}
until_true() { # COMMAND...
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || return 1
		sleep 0.1
	done
}
last_line() { # TEXT
	[ "$(tail -n 1 "$scratch/said")" = "$1" ]
}
cat >"$scratch/wrong.c" <<'END'
int f(void) { int unused; return 0; }
END
whole "part build gcc -Wall -Werror -c -o /dev/null $scratch/wrong.c" \
	>"$scratch/said" 2>&1
want 'an error of a compiler is named' grep -q \
	'^check: build: FAILED: .*wrong.c:1:.* error: ' "$scratch/said"
want 'and the last line is the sum' last_line '0 passed, 1 failed, 0 skipped'
cat >"$scratch/interrupted" <<'END'
#!/bin/sh
trap 'echo "1 passed, 0 failed"; exit 0' INT
kill -s INT $$
echo '0 passed, 1 failed'
END
whole "part signals sh $scratch/interrupted" >"$scratch/said" 2>&1
want 'parts do not ignore SIGINT' last_line '1 passed, 0 failed, 0 skipped'

# Flags are a part of what is built; warnings become errors in a tree that was
# built without that.
compiles() { # WERROR
	make B="$scratch/b" CC=gcc SAN= WERROR="$1" "$scratch/b/common/base/num.o" |
		grep '^CC'
}
want 'an object is made' compiles ''
want 'and not once more' eval '! compiles ""'
want 'and made again with WERROR=1' compiles 1
want 'and that not once more' eval '! compiles 1'
want 'make check builds nothing before its parts' \
	test "$(make -n check)" = tests/check.sh

# Two lanes of a minute. One of them ignores SIGHUP, as a program may.
cat >"$scratch/lane" <<'END'
#!/bin/sh
trap '' HUP
echo $$ >"$1.new" && mv "$1.new" "$1"
sleep 60
:
END
for signal in TERM INT HUP; do
	rm -f "$scratch/first" "$scratch/second"
	echo "part first sh $scratch/lane $scratch/first &
		part second sh $scratch/lane $scratch/second" >"$scratch/list"
	# In the background a shell ignores SIGINT, nohup SIGHUP.
	CHECK_PARTS=$scratch/list CHECK_OUT=$scratch/whole \
		env --default-signal tests/check.sh >"$scratch/said" 2>&1 &
	check=$!
	want 'the first lane runs' until_true test -s "$scratch/first"
	want 'the second lane runs' until_true test -s "$scratch/second"
	if [ $signal = TERM ]; then
		CHECK_OUT=$scratch/whole tests/check.sh >"$scratch/refused" 2>&1
		want 'a second check is refused' test $? = 1
		want 'and says why' grep -q 'another check runs in this tree' \
			"$scratch/refused"
		want 'and changes nothing' test -e "$scratch/whole/first"
	fi
	kill -s $signal $check
	wait $check
	want "SIG$signal fails the check" test $? = 1
	want 'its last line is the sum' last_line '0 passed, 1 failed, 0 skipped'
	for lane in first second; do
		want "the $lane lane has ended" \
			sh -c "! kill -s 0 $(cat "$scratch/$lane")"
	done
done
whole 'part p echo 1 passed, 0 failed' >"$scratch/said" 2>&1
want 'the next check runs' last_line '1 passed, 0 failed, 0 skipped'

# A report of a sanitizer fails a system test that passes otherwise.
cat >"$scratch/reported.py" <<'END'
import subprocess
import sys

from case import SystemTest

REPORT = "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1"


class Report(SystemTest):
    def test_none(self):
        self.instance().log_file.write_text("qscheduler: ready\n")

    def test_log(self):
        self.instance().log_file.write_text(f"{REPORT}\nqscheduler: ready\n")

    def test_destroyed(self):
        i = self.instance()
        i.log_file.write_text(REPORT)
        i.destroy()

    def test_other_output(self):
        (self.instance().dir / "said").write_text(REPORT)

    def test_command(self):
        subprocess.run([sys.executable, "-c", f"print('{REPORT}')"], capture_output=True, check=True)
END
report() { # TEST
	PYTHONPATH=tests/system:$scratch python3 -B -m unittest \
		"reported.Report.$1" >"$scratch/said" 2>&1
}
want 'a system test without a report' report test_none
for test in log destroyed other_output command; do
	want "a report: $test" eval "! report test_$test"
	want "and is named: $test" grep -q \
		'a sanitizer has reported: .*AddressSanitizer' "$scratch/said"
done

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
