# shellcheck shell=sh disable=SC2034,SC2154 # read by deb.sh and host.sh
# Shared by deb.sh, host.sh and build-deb.sh: steps that are counted, a bare Debian root to
# work in, in namespaces that go with the test, and what a test does in there.
#
# Sourced in the top directory, and by /packages/test within the root. `scratch`
# is the test's directory.

passed=0 failed=0 skipped=0
PATH=$PATH:/usr/sbin:/sbin

codename() { # ROOT, or nothing for this host
	sed -n 's/^VERSION_CODENAME=//p' "$1/etc/os-release"
}
# bookworm or trixie: RELEASE, else that of the root in DEB_ROOT, or of this host.
release=${RELEASE:-$(codename "${DEB_ROOT-}")}

want() { # NAME COMMAND...
	name=$1
	shift
	if "$@" >"$scratch/out" 2>&1; then
		passed=$((passed + 1))
		[ -z "${V-}" ] || echo "$test: $name: ok"
	else
		failed=$((failed + 1))
		echo "$test: $name: FAILED: $*"
		tail -40 "$scratch/out"
	fi
}
skip() { # NAME REASON
	echo "SKIP $1: $2"
	skipped=$((skipped + 1))
}
refused() {
	! "$@"
}
finish() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
	exit
}

# ---- outside --------------------------------------------------------------

# The package for the release: it is built where it is used.
package() {
	built=build/deb
	[ "$release" = "$(codename '')" ] || built=build/deb-$release
	set -- "$built"/qscheduler_*.deb
	if [ ! -f "$1" ]; then
		echo "$test: no package in $built: make deb RELEASE=$release" >&2
		return 1
	fi
	echo "$1"
}
make_root() {
	if [ -n "${DEB_ROOT-}" ]; then
		if [ "$(codename "$DEB_ROOT")" != "$release" ]; then
			echo "DEB_ROOT, $DEB_ROOT, is not of $release"
			return 1
		fi
		cp -a --reflink=auto "$DEB_ROOT" "$root"
		return
	fi
	bare=build/deb-root-$release
	[ -d "$bare" ] || {
		rm -rf "$bare.new"
		debootstrap --variant=minbase "$release" "$bare.new" &&
		    mv "$bare.new" "$bare" || return
	}
	cp -a "$bare" "$root"
}
# The root of $root, with the package, this test and a name of its own. Ends the
# test where that cannot be.
prepare_root() { # WHAT
	if [ "$(id -u)" != 0 ]; then
		skip "$1" 'needs root'
		finish
	fi
	if ! unshare --mount --ipc --pid --uts --fork true 2>/dev/null; then
		skip "$1" 'no namespaces'
		finish
	fi
	if ! make_root >"$scratch/out" 2>&1; then
		tail -3 "$scratch/out"
		skip "$1" 'no bare root: DEB_ROOT, or debootstrap and network'
		finish
	fi
	mkdir -p "$root/packages" &&
	    cp "$deb" "$root/packages/qscheduler.deb" &&
	    cp "$0" "$root/packages/test" &&
	    cp tests/bare-root.sh tests/feed.sh "$root/packages" &&
	    cp /etc/resolv.conf "$root/etc/resolv.conf" &&
	    echo '127.0.1.1 host.example.test host' >>"$root/etc/hosts" || exit 1
}
# This test inside the root: all that a chroot needs, in namespaces.
enter() {
	cat >"$scratch/enter" <<-END
	set -e
	mount --make-rprivate /
	hostname host
	cd "$root"
	mount -t proc proc proc
	mount -t tmpfs -o mode=755 tmpfs dev
	for d in null zero full random urandom tty; do
		cp -a /dev/\$d dev/
	done
	mkdir dev/shm dev/mqueue
	mount -t tmpfs -o mode=1777 tmpfs dev/shm
	mount -t mqueue mqueue dev/mqueue
	exec chroot . env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
	    DEBIAN_FRONTEND=noninteractive V="${V-}" \
	    http_proxy="${http_proxy-}" /bin/sh /packages/test --inside
	END
	unshare --mount --ipc --pid --uts --fork --kill-child \
	    sh "$scratch/enter" >"$scratch/inside" 2>&1
	[ -z "${V-}" ] || cat "$root/packages/log"
	sed '$d' "$scratch/inside"
	# shellcheck disable=SC2046 # three numbers
	set -- $(tail -n 1 "$scratch/inside" | tr -cd '0-9 ')
	[ $# = 3 ] || {
		cat "$scratch/inside"
		set -- 0 1 0
	}
	passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# ---- inside ---------------------------------------------------------------

base=/var/spool/qscheduler/queue
log=/packages/log

apt() { # WORDS OF apt-get...
	apt-get -q -y -o Dpkg::Use-Pty=0 -o APT::Sandbox::User=root \
	    -o APT::Install-Recommends=false -o Dpkg::Options::=--force-confold "$@"
}
# What the package needs, but for itself.
dependencies() { # PACKAGES OF THIS TEST...
	# shellcheck disable=SC2046 # names
	apt update && apt install "$@" $(
		dpkg-deb -f /packages/qscheduler.deb Depends |
		    tr , '\n' | grep -v '|' | sed 's/(.*)//')
}
# The service by runit, as README says.
service=/etc/service/qscheduler
ready() {
	until_true test -s "$service/ready" && until_true sv check "$service"
}
start_service() {
	cp -R /usr/share/qscheduler/runit /etc/sv/qscheduler &&
	    mkdir -p /etc/service &&
	    ln -s /etc/sv/qscheduler "$service" &&
	    { runsv "$service" >>"$log" 2>&1 & } &&
	    ready
}
files() {
	find / -xdev \( -path /packages -o -path /var/cache -o -path /var/log \
	    -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /home \
	    -o -path /tmp -o -path /run \) -prune -o -print | sort
}
exits() { # CODE COMMAND...
	code=$1
	shift
	"$@"
	[ $? = "$code" ]
}
same() { # WHAT EXPECTED
	[ "$1" = "$2" ] || {
		echo "is '$1', not '$2'"
		return 1
	}
}
until_true() { # COMMAND...
	n=0
	until "$@"; do
		n=$((n + 1))
		[ $n -lt "${patience:-150}" ] || return 1
		sleep 0.2
	done
}
as() { # USER COMMAND
	HOME=/home/$1 setpriv --reuid "$1" --regid "$1" --init-groups sh -c "$2"
}
arrived() { # USER TEXT
	grep -rqs "$2" "/home/$1/Maildir/new"
}
delivered() { # USER TEXT
	until_true arrived "$1" "$2" || {
		tail -20 "$log"
		return 1
	}
}
logged() {
	grep -E "$1" "$log"
}
kept_files() {
	files >/packages/after
	diff /packages/before /packages/after | sed -n 's/^> //p' |
	    grep -Ev '^(/etc/(mailname|aliases|passwd-|group-|shadow-|gshadow-|subuid-?|subgid-?)|/var/spool/qscheduler(/.*)?)$'
}
mail_left() {
	find /var/spool/qscheduler -type f ! -name queue \
	    ! -path '*/lock/*' ! -path '*/defer/*' ! -path '*/bounce/*' \
	    ! -name waiting
}
