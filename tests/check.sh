#!/bin/sh
# make check: its parts, the output of each in build/check/, one line of result
# each; what failed is shown whole. Ends with a line for each test that failed,
# and the sum. tests/check/parts.sh says when a test is run again.
#
# Two lanes of parts run beside each other: those that build other variants, and
# those that use the plain one and mostly wait. A variant belongs to one lane,
# since make reads what the other one would be writing.
#
# Warnings of a compiler are errors here; they are none in a user's build.
cd "$(dirname "$0")/.." || exit 1
out=build/check
rm -rf "$out"
mkdir -p "$out"
began=$(date +%s)
export WERROR=1
. tests/check/parts.sh

other_variants() {
	part unit-clang make -j2 -k -Otarget CC=clang check-unit
	part unit-gcc-sanitized make -j2 -k -Otarget SAN=address,undefined check-unit
	part unit-clang-sanitized make -j2 -k -Otarget CC=clang SAN=address,undefined check-unit
	part threads make -j2 check-tsan
	part fuzz make -j2 fuzz-check J=4
	part report make -j2 check-report
	part system-sanitized make -j2 SAN=address,undefined check-system T="-j 2 --as-root test_road"
}

plain_variant() {
	part system make check-system
	part steps make -j2 check-steps
	part peers make -s check-peers
	part model make check-model
	part disk make -j2 check-disk
	part install tests/install.sh
	part storm make storm S=40 SEED=20261122 STORM_OPTIONS="--relaxed --controls"
}

part again tests/check/test.sh
part build-gcc make -j2 all
part build-clang make -j2 CC=clang all
part lint tests/lint/lint.sh
part unit-gcc make -j2 -k -Otarget check-unit
other_variants &
plain_variant
if ! wait $!; then
	part other-variants false
fi

echo "check: $(($(date +%s) - began)) s in all; the output of each part is in $out"
finish
