#include "qscheduler/inforce.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "daemon/daemon.h"

#define NAME CONF_IN_FORCE_NAME
#define TEMP NAME ".new"

static int
dump(int dir, const struct conf *conf, mode_t mode)
{
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
	int r, fd = openat(dir, TEMP, flags, 0600);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");

	if (out == NULL) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	r = conf_dump(conf, out);
	if (r == 0 && fflush(out) != 0)
		r = -errno;
	if (r == 0 && fchmod(fd, mode) < 0)
		r = -errno;
	if (fclose(out) != 0 && r == 0)
		r = -errno;
	return r;
}

/* As a child will. */
static int
try(const struct base *b, struct buf *ret_error)
{
	struct conf conf;
	char *path = NULL;
	int r;

	if (asprintf(&path, "%s/" TEMP, b->path) < 0)
		return -ENOMEM;
	r = conf_load(path, &conf, ret_error);
	if (r == 0)
		conf_done(&conf);
	free(path);
	return r;
}

int
inforce_write(
    const struct base *b, const struct conf *conf, struct buf *ret_error)
{
	int r = dump(b->fd, conf, b->owner.private ? 0600 : 0644);

	if (r == 0)
		r = try(b, ret_error);
	if (r == 0 && renameat(b->fd, TEMP, b->fd, NAME) < 0)
		r = -errno;
	if (r == 0)
		return 0;
	(void)unlinkat(b->fd, TEMP, 0);
	if (ret_error->len == 0)
		(void)buf_printf(
		    ret_error, "%s/" NAME ": %s", b->path, strerror(-r));
	return r;
}

void
inforce_let_go(struct inforce_kept *kept)
{
	if (kept->text != NULL)
		(void)munmap(kept->text, kept->len);
	kept->text = NULL;
	io_close(&kept->fd);
}

/* A page that is mapped and locked stays, and so does the name of an open
 * file. */
void
inforce_keep(const struct base *b, struct inforce_kept *kept)
{
	struct stat st;
	void *text;

	inforce_let_go(kept);
	kept->fd = openat(b->fd, NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (kept->fd < 0 || fstat(kept->fd, &st) < 0 || st.st_size <= 0)
		return;
	text =
	    mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, kept->fd, 0);
	if (text == MAP_FAILED)
		return;
	kept->text = text;
	kept->len = (size_t)st.st_size;
	(void)mlock(text, kept->len);
}

char *
inforce_variable(const struct base *b)
{
	char *variable = NULL;

	if (asprintf(&variable, DAEMON_CONF_VARIABLE "=%s/" NAME, b->path) < 0)
		return NULL;
	return variable;
}
