#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/loop.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

#define LOOP_TRIES 20

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
	if (mount_tmpfs(top, "size=1g,mode=0755") < 0) {
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

const struct disk_fs disk_ext4 = { "ext4", 64, "",
	{ "mkfs.ext4", "-q", "-F", "-E", "nodiscard" } };
const struct disk_fs disk_xfs = { "xfs", 304, "nouuid",
	{ "mkfs.xfs", "-q", "-f", "-K" } };
const struct disk_fs disk_btrfs = { "btrfs", 128, "",
	{ "mkfs.btrfs", "-q", "-f", "-K" } };

static int
make_fs(const struct disk_fs *fs, const char *path)
{
	char *args[ARRAY_LEN(fs->mkfs) + 2];
	int status, n, null;
	pid_t pid = fork();

	if (pid == 0) {
		for (n = 0; fs->mkfs[n] != NULL; n++)
			args[n] = strdup(fs->mkfs[n]);
		args[n++] = strdup(path);
		args[n] = NULL;
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		dup2(null, 1);
		dup2(null, 2);
		/* mkfs.btrfs looks into every loop device, and would hang
		 * in one that does not answer. */
		(void)unshare(CLONE_NEWNS);
		(void)mount("none", "/dev", "tmpfs", 0, NULL);
		setenv("PATH", "/usr/sbin:/sbin:/usr/bin:/bin", 1);
		execvp(args[0], args);
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
		.info.lo_flags = LO_FLAGS_AUTOCLEAR,
	};
	char path[PLACE_MAX + 8];
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int i, n, r = -EBUSY;

	if (control < 0)
		return -errno;
	snprintf(path, sizeof(path), "%s/disk", im->block.dir);
	im->file = open(path, O_RDWR | O_CLOEXEC);
	config.fd = (__u32)im->file;
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

/* The kernel remembers what it has seen of a btrfs, newer than what is left. */
static void
forget_btrfs(const char *device)
{
	struct btrfs_ioctl_vol_args args = { 0 };
	int fd = open("/dev/btrfs-control", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return;
	snprintf(args.name, sizeof(args.name), "%s", device);
	(void)ioctl(fd, BTRFS_IOC_FORGET_DEV, &args);
	close(fd);
}

static int
start_disk(struct image *im)
{
	char image[PLACE_MAX], where[PLACE_MAX];
	int r;

	place("image", image);
	place("block", where);
	r = block_open(&im->block, image, where, NULL);
	return r < 0 ? r : attach(im);
}

const char *
image_open(struct image *im, const struct disk_fs *fs, unsigned mbytes)
{
	char path[PLACE_MAX];
	int fd;

	*im = (struct image){ .fs = fs, .loop = -1, .file = -1 };
	place("image", path);
	fd = new_file(path, (off_t)(mbytes == 0 ? fs->mbytes : mbytes) << 20);
	if (fd < 0)
		return "no space for an image";
	close(fd);
	if (make_fs(fs, path) != 0)
		return "its mkfs does not work here";
	return start_disk(im) < 0 ? "no loop device on a FUSE file" : NULL;
}

static void
stop_disk(struct image *im)
{
	io_close(&im->loop);
	io_close(&im->file);
	if (strcmp(im->fs->name, "btrfs") == 0)
		forget_btrfs(im->device);
	block_close(&im->block);
}

int
image_revive(struct image *im, const char *where)
{
	int r = unmount(where);

	if (r < 0)
		return r;
	stop_disk(im);
	r = start_disk(im);
	return r == 0 ? image_mount(im, where) : r;
}

int
image_mount(const struct image *im, const char *where)
{
	if (mkdir(where, 0755) < 0 && errno != EEXIST)
		return -errno;
	return mount(im->device, where, im->fs->name, MS_NOSUID | MS_NODEV,
		   im->fs->options) < 0
	    ? -errno
	    : 0;
}

void
image_close(struct image *im)
{
	char path[PLACE_MAX];

	stop_disk(im);
	place("image", path);
	unlink(path);
}
