#!/bin/sh
# bare.sh RELEASE [WORDS...]: run ./bootstrap WORDS (check) in a bare Debian of
# this release, bookworm or trixie, in namespaces that go with the command.
#
#   make check-bare RELEASE=trixie
#   tests/bare.sh bookworm demo
#   KEEP=1 tests/bare.sh trixie check    keep the root, and say where
#   tests/bare.sh trixie --shell 'make -j2 WERROR=1 all'
#
# The root is a copy of DEB_ROOT, or is made by debootstrap, once, in
# build/bare-RELEASE. The tree is a clone: what is not committed is not tested.
# Needs root, and the network of apt. What the host lacks is a line that begins
# with SKIP; the tests that want it skip themselves.
set -eu
cd "$(dirname "$0")/.."

usage() {
	sed -n '2,9s/^# \{0,1\}//p' "$0"
	exit 64
}
cannot() {
	echo "SKIP bare: $*"
	exit 77
}

release=${1-}
case $release in bookworm | trixie) shift ;; *) usage ;; esac
[ $# -gt 0 ] || set -- check

[ "$(id -u)" = 0 ] || cannot 'needs root'
unshare --mount --ipc --pid --uts --fork true 2>/dev/null ||
	cannot 'no namespaces'
pristine=${DEB_ROOT-build/bare-$release}
if [ ! -d "$pristine" ]; then
	[ -z "${DEB_ROOT-}" ] || cannot "no directory $DEB_ROOT"
	PATH=$PATH:/usr/sbin:/sbin
	command -v debootstrap >/dev/null ||
		cannot 'no bare root: DEB_ROOT, or debootstrap and the network'
	mkdir -p build
	rm -rf "$pristine.new"
	debootstrap --variant=minbase "$release" "$pristine.new" >&2 ||
		cannot 'debootstrap failed'
	mv "$pristine.new" "$pristine"
fi
is=$(sed -n 's/^VERSION_CODENAME=//p' "$pristine/etc/os-release")
[ "$is" = "$release" ] || {
	echo "bare: $pristine is ${is:-no Debian}, not $release"
	exit 1
}
[ -z "$(git status --porcelain 2>/dev/null)" ] ||
	echo 'bare: changes that are not committed are left out' >&2

# Not below /root: the tests' ordinary user has to reach the tree.
top=$(mktemp -d "${TMPDIR:-/var/tmp}/qsched-bare.XXXXXX")
chmod 755 "$top"
root=$top/root
# shellcheck disable=SC2317 # the trap calls it
end() {
	if [ -n "${KEEP-}" ]; then
		echo "bare: kept: $root"
	else
		rm -rf --one-file-system "$top"
	fi
}
trap end EXIT
trap 'exit 143' TERM INT HUP
cp -a --reflink=auto "$pristine" "$root"
git clone -q --no-hardlinks . "$root/qscheduler"
cp /etc/resolv.conf "$root/etc/resolv.conf"
printf '127.0.0.1 localhost\n::1 localhost\n127.0.1.1 host.example.test host\n' \
	>"$root/etc/hosts"

for device in fuse loop-control; do
	[ -c "/dev/$device" ] ||
		echo "SKIP bare: this host has no /dev/$device: tests of disks that fail"
done
# pivot_root, not chroot: a test that enters the namespace of its instance comes
# to the root of this namespace.
cat >"$top/enter" <<'END'
set -e
cd "$1"
shift
mount --make-rprivate /
mount --bind . .
cd "$PWD"
hostname host
mount -t proc proc proc
mount -t sysfs sysfs sys 2>/dev/null || mount --bind /sys sys
mount -t tmpfs -o mode=755 tmpfs dev
for d in null zero full random urandom tty fuse loop-control; do
	[ ! -c /dev/$d ] || cp -a /dev/$d dev/
done
n=0
while [ $n -lt 64 ]; do
	mknod -m 660 dev/loop$n b 7 $n
	n=$((n + 1))
done
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
mkdir dev/shm dev/mqueue dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t mqueue mqueue dev/mqueue
mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
pivot_root . mnt
exec chroot . env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb \
	CI="${CI-}" http_proxy="${http_proxy-}" https_proxy="${https_proxy-}" \
	sh -c 'umount -l /mnt && cd /qscheduler && exec "$@"' sh "$@"
END
if [ "$1" = --shell ]; then
	shift
	set -- sh -c "$*"
else
	set -- ./bootstrap "$@"
fi
began=$(date +%s)
status=0
unshare --mount --ipc --pid --uts --fork --kill-child \
	sh "$top/enter" "$root" "$@" || status=$?
echo "bare: $release: $*: exit $status after $(($(date +%s) - began)) s" >&2
exit $status
