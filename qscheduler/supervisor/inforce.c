#include "qscheduler/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/io.h"
#include "daemon/daemon.h"

#define NAME     CONF_IN_FORCE_NAME
#define TEMP     NAME ".new"
#define ROUTING  "routing"
#define PROGRAMS "programs"
#define ALIASES  "aliases"
#define COPY_MAX (64u << 20) /* as much as routing may have */

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

/* ---- the files that it names ---- */

/* Readers of the operator's file may read the copy, and so may the users of the
 * mail system. */
static int
put_copy(const struct base *b, const char *name, const char *source,
    const struct buf *text)
{
	const mode_t mode = b->owner.private ? 0600 : 0640;
	struct stat st;
	int r = stat(source, &st) < 0 ? -errno : 0;

	if (r == 0)
		r = file_replace(b->fd, name, mode, text);
	if (r < 0 || b->owner.private)
		return r;
	if (fchownat(b->fd, name, (uid_t)-1, b->owner.qmail, 0) < 0 ||
	    fchmodat(b->fd, name, mode | (st.st_mode & S_IROTH), 0) < 0)
		return -errno;
	return 0;
}

/* The path of the copy, or of the file itself where there is none: a file that
 * is absent has a meaning too. */
static int
copy(const struct base *b, const char *name, const char *source,
    char **ret_path, struct buf *ret_error)
{
	struct buf text = { 0 }, why = { 0 };
	char *path = NULL;
	int r = asprintf(&path, "%s/%s", b->path, name) < 0 ? -ENOMEM : 0;

	/* A file in force that is used after an error is its own copy. */
	if (r == 0 && strcmp(path, source) != 0) {
		r = file_read(source, COPY_MAX, &text, &why);
		if (r == -ENOENT) {
			buf_reset(&why);
			r = asprintf(ret_path, "%s", source) < 0 ? -ENOMEM : 1;
		}
		if (r == 0)
			r = put_copy(b, name, source, &text);
	}
	if (r == 0) {
		*ret_path = path;
		path = NULL;
	} else if (why.len > 0) {
		(void)buf_printf(ret_error, "%s: %s", source, buf_str(&why));
	} else if (r < 0) {
		(void)buf_printf(
		    ret_error, "%s/%s: %s", b->path, name, strerror(-r));
	}
	free(path);
	buf_done(&text);
	buf_done(&why);
	return r < 0 ? r : 0;
}

/* Copies first, so that the file that names them finds them. */
static int
with_copies(const struct base *b, const struct conf *conf,
    struct conf *ret_named, struct buf *ret_error)
{
	int r;

	*ret_named = *conf;
	ret_named->routing_file = NULL;
	ret_named->programs_file = NULL;
	ret_named->alias_file = NULL;
	r = copy(b, ROUTING, conf->routing_file, &ret_named->routing_file,
	    ret_error);
	if (r == 0)
		r = copy(b, PROGRAMS, conf->programs_file,
		    &ret_named->programs_file, ret_error);
	if (r == 0 && !files_have_aliases(conf, b->owner.private))
		r = (ret_named->alias_file = strdup("")) == NULL ? -ENOMEM : 0;
	else if (r == 0)
		r = copy(b, ALIASES, conf->alias_file, &ret_named->alias_file,
		    ret_error);
	return r;
}

/* ---- all of it ---- */

int
inforce_write(
    const struct base *b, const struct conf *conf, struct buf *ret_error)
{
	struct conf named;
	int r = with_copies(b, conf, &named, ret_error);

	if (r == 0)
		r = dump(b->fd, &named, b->owner.private ? 0600 : 0644);
	free(named.routing_file);
	free(named.programs_file);
	free(named.alias_file);
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

/* ---- in memory ---- */

static const char *const kept_names[] = { NAME, ROUTING, PROGRAMS, ALIASES };
_Static_assert(ARRAY_LEN(kept_names) == INFORCE_NFILES, "inforce.h");

void
inforce_let_go(struct inforce_kept *kept)
{
	size_t i;

	for (i = 0; i < INFORCE_NFILES; i++) {
		struct inforce_file *file = &kept->file[i];

		if (file->text != NULL)
			(void)munmap(file->text, file->len);
		if (file->open)
			io_close(&file->fd);
		*file = (struct inforce_file){ 0 };
	}
}

/* A page that is mapped and locked stays, and so does the name of an open
 * file. */
static void
keep(const struct base *b, const char *name, struct inforce_file *file)
{
	struct stat st;
	void *text;

	file->fd = openat(b->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	file->open = file->fd >= 0;
	if (!file->open || fstat(file->fd, &st) < 0 || st.st_size <= 0)
		return;
	text =
	    mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, file->fd, 0);
	if (text == MAP_FAILED)
		return;
	file->text = text;
	file->len = (size_t)st.st_size;
	(void)mlock(text, file->len);
}

void
inforce_keep(const struct base *b, struct inforce_kept *kept)
{
	size_t i;

	inforce_let_go(kept);
	for (i = 0; i < INFORCE_NFILES; i++)
		keep(b, kept_names[i], &kept->file[i]);
}

char *
inforce_variable(const struct base *b)
{
	char *variable = NULL;

	if (asprintf(&variable, DAEMON_CONF_VARIABLE "=%s/" NAME, b->path) < 0)
		return NULL;
	return variable;
}
