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

static int
load(const struct base *b, const char *name, struct conf *ret_conf,
    struct buf *ret_error)
{
	char *path = NULL;
	int r;

	if (asprintf(&path, "%s/%s", b->path, name) < 0)
		return -ENOMEM;
	r = conf_load(path, ret_conf, ret_error);
	free(path);
	return r;
}

int
inforce_load(const struct base *b, struct conf *ret_conf, struct buf *ret_error)
{
	return load(b, NAME, ret_conf, ret_error);
}

/* ---- the files that it names ----
 *
 * A file may change between its judgement and its copy. So a copy lies under a
 * name of its own until its own bytes are judged. */

#define NEXT ".next" /* behind the name of a copy */

struct copy {
	char *path; /* of the copy; of the file where there is none */
	char *next; /* that is to become the copy; NULL: none */
};

/* Readers of the operator's file may read the copy, and so may the users of the
 * mail system; of some the agents, too, which are not in its group; and what is
 * secret the agents alone. */
static int
put_copy(const struct base *b, const struct files_row *row, const char *name,
    const char *source, const struct buf *text)
{
	const gid_t group = row->secret ? b->agents : b->owner.qmail;
	mode_t mode = row->mode;
	struct stat st;
	int r = stat(source, &st) < 0 ? -errno : 0;

	if (r == 0)
		r = file_replace(b->fd, name, 0600, text);
	if (r < 0 || b->owner.private)
		return r;
	if (!row->secret)
		mode |= st.st_mode & S_IROTH;
	if (fchownat(b->fd, name, (uid_t)-1, group, 0) < 0 ||
	    fchmodat(b->fd, name, mode, 0) < 0)
		return -errno;
	return 0;
}

/* 0; -ENOENT: there is no such file, which has a meaning too; other errors with
 * the words in *ret_error. */
static int
read_and_put(const struct base *b, const struct files_row *row,
    const char *source, const char *next, struct buf *ret_error)
{
	struct buf text = { 0 }, why = { 0 };
	int r = file_read(source, COPY_MAX, &text, &why);

	if (r == 0) {
		r = put_copy(b, row, strrchr(next, '/') + 1, source, &text);
		if (r < 0)
			(void)buf_printf(
			    ret_error, "%s: %s", next, strerror(-r));
	} else if (r != -ENOENT) {
		(void)buf_printf(ret_error, "%s: %s", source, buf_str(&why));
	}
	buf_done(&text);
	buf_done(&why);
	return r;
}

/* A file in force that is used after an error is its own copy. */
static int
copy(const struct base *b, const struct files_row *row, const char *source,
    struct copy *c, struct buf *ret_error)
{
	int r = 0;

	if (asprintf(&c->path, "%s/%s", b->path, row->copy) < 0 ||
	    asprintf(&c->next, "%s" NEXT, c->path) < 0)
		return -ENOMEM;
	if (strcmp(c->path, source) != 0)
		r = read_and_put(b, row, source, c->next, ret_error);
	if (r == 0 && strcmp(c->path, source) != 0)
		return 0;
	free(c->next);
	c->next = NULL;
	if (r != -ENOENT)
		return r;
	free(c->path);
	c->path = strdup(source);
	return c->path == NULL ? -ENOMEM : 0;
}

/* next: with the copies that are to be. */
static void
name_copies(const struct conf *conf, const struct copy *copies, bool next,
    struct conf *ret_named)
{
	size_t i;

	*ret_named = *conf;
	for (i = 0; i < FILES_N; i++)
		*files_path(ret_named, &files_rows[i]) =
		    next && copies[i].next != NULL ? copies[i].next
						   : copies[i].path;
}

/* All of them, or those that follow the first that the disk refuses are old. */
static int
take_copies(const struct copy *copies, struct buf *ret_error)
{
	size_t i;

	for (i = 0; i < FILES_N; i++) {
		if (copies[i].next == NULL ||
		    rename(copies[i].next, copies[i].path) == 0)
			continue;
		(void)buf_printf(
		    ret_error, "%s: %s", copies[i].path, strerror(errno));
		return -errno;
	}
	return 0;
}

static void
drop_copies(struct copy *copies)
{
	size_t i;

	for (i = 0; i < FILES_N; i++) {
		if (copies[i].next != NULL)
			(void)unlink(copies[i].next);
		free(copies[i].next);
		free(copies[i].path);
	}
}

/* Copies first, so that the file that names them finds them. */
static int
make_copies(const struct base *b, const struct conf *conf, struct copy *copies,
    struct buf *ret_error)
{
	struct conf named;
	struct buf why = { 0 };
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < FILES_N; i++) {
		const struct files_row *row = &files_rows[i];

		if (files_are_read(conf, row, b->owner.private))
			r = copy(b, row, *files_path(conf, row), &copies[i],
			    ret_error);
		else
			r = (copies[i].path = strdup("")) == NULL ? -ENOMEM : 0;
	}
	if (r < 0)
		return r;
	name_copies(conf, copies, true, &named);
	r = files_judge(&named, b->owner.private, NULL, &why);
	if (r < 0 && r != -ENOMEM)
		(void)buf_printf(
		    ret_error, "changed meanwhile: %s", buf_str(&why));
	buf_done(&why);
	return r < 0 ? r : take_copies(copies, ret_error);
}

/* ---- all of it ---- */

int
inforce_write(
    const struct base *b, const struct conf *conf, struct buf *ret_error)
{
	struct copy copies[FILES_N] = { 0 };
	struct conf named;
	int r = make_copies(b, conf, copies, ret_error);

	if (r == 0) {
		name_copies(conf, copies, false, &named);
		r = dump(b->fd, &named, b->owner.private ? 0600 : 0644);
	}
	drop_copies(copies);
	/* As a child will. */
	if (r == 0)
		r = load(b, TEMP, &named, ret_error);
	if (r == 0)
		conf_done(&named);
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
	for (i = 0; i < FILES_N; i++)
		keep(b, files_rows[i].copy, &kept->file[i]);
	keep(b, NAME, &kept->file[i]);
}

char *
inforce_variable(const struct base *b)
{
	char *variable = NULL;

	if (asprintf(&variable, DAEMON_CONF_VARIABLE "=%s/" NAME, b->path) < 0)
		return NULL;
	return variable;
}
