#!/bin/sh
# make deb RELEASE=bookworm|trixie: the package for that release of Debian, built
# in a bare root of the release, left in build/deb-RELEASE. Needs root, the
# network of apt, and a bare root in DEB_ROOT, or debootstrap.
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=tests/bare-root.sh
. tests/bare-root.sh

if [ "$release" = "$(codename '')" ]; then
	exec make deb RELEASE=
fi
scratch=$(mktemp -d /var/tmp/build-deb.XXXXXX) || exit 1
trap 'rm -rf "$scratch"' EXIT
root=$scratch/root
{
	make_root && mkdir "$root/source" && cp /etc/resolv.conf "$root/etc" &&
	    tar -cf - --exclude=./build --exclude='./.git*' \
		--exclude=__pycache__ . | tar -xf - -C "$root/source"
} || exit 1
cat >"$scratch/build" <<-END
	set -e
	mount --make-rprivate /
	cd "$root"
	mount -t proc proc proc
	exec chroot . env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \\
	    DEBIAN_FRONTEND=noninteractive http_proxy="${http_proxy-}" sh -c '
	set -e
	apt="apt-get -q -y -o APT::Sandbox::User=root"
	\$apt update
	\$apt install --no-install-recommends build-essential lintian
	cd /source
	\$apt build-dep --no-install-recommends .
	make deb'
END
unshare --mount --pid --fork --kill-child sh "$scratch/build" || exit 1
rm -rf "build/deb-$release"
mkdir -p "build/deb-$release"
cp "$root"/source/build/deb/qscheduler_*.deb "build/deb-$release"
ls "build/deb-$release"/*.deb
