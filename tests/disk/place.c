#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

#define LOOP_TRIES          20
/* linux/fs.h of Debian 12 has no name for it; EXT4_IOC_SHUTDOWN and
 * XFS_IOC_GOINGDOWN are the same. */
#define FS_IOC_SHUTDOWN     _IOR('X', 125, __u32)
#define SHUTDOWN_NOLOGFLUSH 2

static char top[64];

void
place(const char *name, char out[PLACE_MAX])
{
	snprintf(out, PLACE_MAX, "%s/%s", top, name);
}

int
mount_tmpfs(const char *where, const char *options)
{
	if (mkdir(where, 0755) < 0 && errno != EEXIST)
		return -errno;
	return mount("spool-test", where, "tmpfs", MS_NOSUID | MS_NODEV,
		   options) < 0
	    ? -errno
	    : 0;
}

int
mount_readonly(const char *where, bool readonly)
{
	unsigned long flags = MS_REMOUNT | (readonly ? MS_RDONLY : 0);

	return mount(NULL, where, NULL, flags, NULL) < 0 ? -errno : 0;
}

int
unmount(const char *where)
{
	return umount2(where, UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
}

const char *
place_open(void)
{
	const char *tmp = getenv("TMPDIR");

	if (geteuid() != 0)
		return "needs root to mount";
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return "may not mount here";
	snprintf(top, sizeof(top), "%.40s/disk-test-XXXXXX",
	    tmp == NULL ? "/tmp" : tmp);
	if (mkdtemp(top) == NULL)
		return "no directory for temporary files";
	if (mount_tmpfs(top, "size=512m,mode=0755") < 0) {
		rmdir(top);
		return "may not mount a tmpfs here";
	}
	return NULL;
}

void
place_close(void)
{
	umount2(top, MNT_DETACH);
	rmdir(top);
}

static int
make_ext4(const char *path)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		setenv("PATH", "/usr/sbin:/sbin:/usr/bin:/bin", 1);
		execlp(
		    "mkfs.ext4", "mkfs.ext4", "-q", "-F", path, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Between asking for a free device and taking it another may be quicker. */
static int
attach(struct image *im)
{
	struct loop_config config = {
		.fd = (__u32)im->file,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR,
	};
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int i, n, r = -EBUSY;

	if (control < 0)
		return -errno;
	for (i = 0; i < LOOP_TRIES && r == -EBUSY; i++) {
		n = ioctl(control, LOOP_CTL_GET_FREE);
		if (n < 0) {
			r = -errno;
			break;
		}
		snprintf(im->device, sizeof(im->device), "/dev/loop%d", n);
		im->loop = open(im->device, O_RDWR | O_CLOEXEC);
		r = im->loop < 0 ? -errno : 0;
		if (r == 0 && ioctl(im->loop, LOOP_CONFIGURE, &config) < 0) {
			r = -errno;
			io_close(&im->loop);
		}
	}
	close(control);
	return r;
}

static int
new_file(const char *path, off_t size)
{
	int r, fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, size) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

const char *
image_open(struct image *im, unsigned mbytes)
{
	const char *why = NULL;
	char path[PLACE_MAX];

	place("image", path);
	im->loop = -1;
	im->file = new_file(path, (off_t)mbytes << 20);
	if (im->file < 0)
		why = "no space for an image";
	else if (make_ext4(path) != 0)
		why = "mkfs.ext4 does not work";
	else if (attach(im) < 0)
		why = "no loop device";
	unlink(path);
	return why;
}

/* All data of one file in another, holes left out. */
static int
copy_data(int from, int to)
{
	off_t at = 0, end;
	ssize_t n;

	while ((at = lseek(from, at, SEEK_DATA)) >= 0) {
		end = lseek(from, at, SEEK_HOLE);
		if (end < 0 || lseek(to, at, SEEK_SET) < 0)
			return -errno;
		while (at < end) {
			n = sendfile(to, from, &at, (size_t)(end - at));
			if (n <= 0)
				return n < 0 ? -errno : -EIO;
		}
	}
	return errno == ENXIO ? 0 : -errno;
}

/* The copy is taken before the unmount, which writes once more; another loop
 * device has nothing of the old one's cache. */
int
image_revive(struct image *im, const char *where)
{
	char path[PLACE_MAX];
	struct stat st;
	int copy, r;

	place("image", path);
	if (fstat(im->file, &st) < 0)
		return -errno;
	copy = new_file(path, st.st_size);
	if (copy < 0)
		return copy;
	unlink(path);
	r = copy_data(im->file, copy);
	if (r == 0)
		r = unmount(where);
	image_close(im);
	im->file = copy;
	if (r == 0)
		r = attach(im);
	return r == 0 ? image_mount(im, where) : r;
}

int
image_mount(const struct image *im, const char *where)
{
	if (mkdir(where, 0755) < 0 && errno != EEXIST)
		return -errno;
	return mount(im->device, where, "ext4", MS_NOSUID | MS_NODEV, NULL) < 0
	    ? -errno
	    : 0;
}

int
image_cut(int fd)
{
	__u32 how = SHUTDOWN_NOLOGFLUSH;

	return ioctl(fd, FS_IOC_SHUTDOWN, &how) < 0 ? -errno : 0;
}

void
image_close(struct image *im)
{
	io_close(&im->loop);
	io_close(&im->file);
}
