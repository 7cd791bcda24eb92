#!/bin/sh
# make check: the parts of tests/check/list.sh, the output of each in
# build/check/, one line of result each; what failed is shown whole. Ends with a
# line for each test that failed, and the sum, whatever has failed.
# tests/check/parts.sh says when a test is run again.
#
# The parts run in a session of their own. A signal to this process ends all of
# it. A second check in the same tree is refused as long as a process of the
# first one is there: both would build the same variants.
#
# CHECK_PARTS and CHECK_OUT name another list and another directory.
cd "$(dirname "$0")/.." || exit 1
export CHECK_PARTS="${CHECK_PARTS:-tests/check/list.sh}"
export CHECK_OUT="${CHECK_OUT:-build/check}"
out=$CHECK_OUT
# Those of a make that has started this check are for its own targets.
unset MAKEFLAGS MAKELEVEL MFLAGS
# Warnings of a compiler are errors here; they are none in a user's build.
export WERROR=1

mkdir -p "$(dirname "$out")"
exec 8>"$out.lock"
if ! flock -n 8; then
	echo "check: another check runs in this tree, and has locked $out.lock"
	echo '0 passed, 1 failed, 0 skipped'
	exit 1
fi
rm -rf "$out"
mkdir -p "$out"
# shellcheck source=tests/check/parts.sh
. tests/check/parts.sh

# Ends the session: a test ends its instances when it gets SIGTERM.
session=
# shellcheck disable=SC2317,SC2329 # the traps call it
ended() { # SIGNAL
	trap '' TERM INT HUP
	if [ -n "$session" ]; then
		kill -s TERM -- "-$session"
		wait "$session"
		tries=0
		while kill -s 0 -- "-$session" && [ $tries -lt 300 ]; do
			tries=$((tries + 1))
			sleep 0.1
		done
		kill -s KILL -- "-$session"
	fi 2>"$out/.ended"
	echo "check: ended by SIG$1" | tee -a "$out/failures"
	echo '0 1 0' >>"$out/sums"
	CI='' finish
	exit 1
}
for signal in TERM INT HUP; do
	# shellcheck disable=SC2064 # this signal
	trap "ended $signal" $signal
done

# A background process of a shell ignores SIGINT, one of nohup SIGHUP: tests are
# about both.
# shellcheck disable=SC2016 # expanded in the session
setsid env --default-signal sh -c '
	out=$CHECK_OUT began=$(date +%s)
	. tests/check/parts.sh
	. "$CHECK_PARTS"
	echo "check: $(($(date +%s) - began)) s in all; the output of each part is in $out"
	finish' &
session=$!
wait $session
