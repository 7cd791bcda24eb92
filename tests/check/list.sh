# shellcheck shell=sh disable=SC2154 # $out is a directory of the caller
# The parts of make check (tests/check.sh). A part that runs tests has one
# runner, and finds the programs of its tests built.
#
# Two lanes of parts run beside each other: those that build other variants, and
# those that use the plain one and mostly wait. A variant belongs to one lane,
# since make reads what the other one would be writing.

other_variants() {
	part build-clang-units make -j2 -k CC=clang units
	part unit-clang make -j2 -k -Otarget CC=clang check-unit
	part build-gcc-sanitized make -j2 -k SAN=address,undefined units
	part unit-gcc-sanitized make -j2 -k -Otarget SAN=address,undefined check-unit
	part build-clang-sanitized make -j2 -k CC=clang SAN=address,undefined units
	part unit-clang-sanitized make -j2 -k -Otarget CC=clang SAN=address,undefined check-unit
	part threads make -j2 check-tsan
	part fuzz make -j2 fuzz-check J=4
	part report make -j2 check-report
	part system-sanitized make -j2 SAN=address,undefined check-system T="-j 2 --as-root test_road"
}

plain_variant() {
	[ "$(id -u)" != 0 ] || part system-root make check-system T=--as-root
	part system-user make check-system T=--as-user
	part steps make -j2 check-steps
	part peers make -s check-peers
	part model make check-model
	part disk-cuts make -j2 check-disk-cuts
	part disk-whole make -j2 check-disk-whole
	part install tests/install.sh
	part hostile make hostile S=25 SEED=20261128 STORM_OPTIONS="--relaxed \
		--behaviours expand,reports,mailbox,memory,silent,unknown"
	part storm make storm S=40 SEED=20261122 STORM_OPTIONS="--relaxed --controls"
}

part build-gcc make -j2 -k all units
part build-clang make -j2 -k CC=clang all
# Nothing that is not built can be tested.
[ ! -e "$out/failures" ] || return 0
part again tests/check/test.sh
part lint tests/lint/lint.sh
part unit-gcc make -j2 -k -Otarget check-unit
other_variants &
plain_variant
wait $! || part other-variants false
