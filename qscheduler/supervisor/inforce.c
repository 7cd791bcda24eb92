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

#define NAME      CONF_IN_FORCE_NAME
#define TEMP      NAME ".new"
#define ROUTING   "routing"
#define SENDERS   "sender-relays"
#define REWRITES  "sender-rewrite"
#define PROGRAMS  "programs"
#define ALIASES   "aliases"
#define TLS       "tls-policy"
#define PASSWORDS "passwords"
#define COPY_MAX  (64u << 20) /* as much as routing may have */

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

/* ---- the files that it names ----
 *
 * A file may change between its judgement and its copy. So a copy lies under a
 * name of its own until its own bytes are judged. */

enum {
	COPY_ROUTING,
	COPY_SENDERS,
	COPY_REWRITES,
	COPY_PROGRAMS,
	COPY_ALIASES,
	COPY_TLS,
	COPY_PASSWORDS,
	NCOPIES
};

#define NEXT ".next" /* behind the name of a copy */

struct copy {
	const char *source;
	char *path; /* of the copy; of the file where there is none */
	bool fresh; /* lies under the name with NEXT */
};

/* Readers of the operator's file may read the copy, and so may the users of the
 * mail system; of some the agents, too, which are not in its group; and what is
 * secret the agents alone. */
static const struct copy_row {
	const char *name;
	mode_t mode; /* beside that of the file for others */
	bool secret;
} copy_rows[NCOPIES] = {
	[COPY_ROUTING] = { ROUTING, 0640, false },
	[COPY_SENDERS] = { SENDERS, 0640, false },
	[COPY_REWRITES] = { REWRITES, 0644, false },
	[COPY_PROGRAMS] = { PROGRAMS, 0640, false },
	[COPY_ALIASES] = { ALIASES, 0640, false },
	[COPY_TLS] = { TLS, 0644, false },
	[COPY_PASSWORDS] = { PASSWORDS, 0640, true },
};

static int
put_copy(const struct base *b, const struct copy_row *row, const char *name,
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
read_and_put(const struct base *b, const struct copy_row *row,
    const char *source, struct buf *ret_error)
{
	struct buf text = { 0 }, why = { 0 };
	char next[32];
	int r = file_read(source, COPY_MAX, &text, &why);

	snprintf(next, sizeof(next), "%s" NEXT, row->name);
	if (r == 0) {
		r = put_copy(b, row, next, source, &text);
		if (r < 0)
			(void)buf_printf(ret_error, "%s/%s: %s", b->path, next,
			    strerror(-r));
	} else if (r != -ENOENT) {
		(void)buf_printf(ret_error, "%s: %s", source, buf_str(&why));
	}
	buf_done(&text);
	buf_done(&why);
	return r;
}

static int
copy(const struct base *b, const struct copy_row *row, struct copy *c,
    struct buf *ret_error)
{
	int r;

	if (*c->source == '\0') {
		c->path = strdup("");
		return c->path == NULL ? -ENOMEM : 0;
	}
	if (asprintf(&c->path, "%s/%s", b->path, row->name) < 0) {
		c->path = NULL;
		return -ENOMEM;
	}
	/* A file in force that is used after an error is its own copy. */
	if (strcmp(c->path, c->source) == 0)
		return 0;
	r = read_and_put(b, row, c->source, ret_error);
	c->fresh = r == 0;
	if (r != -ENOENT)
		return r;
	free(c->path);
	c->path = strdup(c->source);
	return c->path == NULL ? -ENOMEM : 0;
}

static int
judge_copies(const struct base *b, const struct conf *conf,
    const struct copy *copies, struct buf *ret_error)
{
	struct conf next = *conf;
	char *path[NCOPIES] = { 0 };
	struct buf why = { 0 };
	int i, r = 0;

	for (i = 0; r == 0 && i < NCOPIES; i++)
		if (asprintf(&path[i], "%s%s", copies[i].path,
			copies[i].fresh ? NEXT : "") < 0) {
			path[i] = NULL;
			r = -ENOMEM;
		}
	next.routing_file = path[COPY_ROUTING];
	next.sender_dependent_relayhost = path[COPY_SENDERS];
	next.sender_rewrite = path[COPY_REWRITES];
	next.programs_file = path[COPY_PROGRAMS];
	next.alias_file = path[COPY_ALIASES];
	next.smtp_tls_policy_file = path[COPY_TLS];
	next.smtp_password_file = path[COPY_PASSWORDS];
	if (r == 0)
		r = files_judge(&next, b->owner.private, &why);
	if (r < 0 && r != -ENOMEM)
		(void)buf_printf(
		    ret_error, "changed meanwhile: %s", buf_str(&why));
	buf_done(&why);
	for (i = 0; i < NCOPIES; i++)
		free(path[i]);
	return r;
}

/* All of them, or those that follow the first that the disk refuses are old. */
static int
take_copies(
    const struct base *b, const struct copy *copies, struct buf *ret_error)
{
	char next[32];
	int i;

	for (i = 0; i < NCOPIES; i++) {
		snprintf(next, sizeof(next), "%s" NEXT, copy_rows[i].name);
		if (!copies[i].fresh ||
		    renameat(b->fd, next, b->fd, copy_rows[i].name) == 0)
			continue;
		(void)buf_printf(ret_error, "%s/%s: %s", b->path,
		    copy_rows[i].name, strerror(errno));
		return -errno;
	}
	return 0;
}

static void
drop_copies(const struct base *b, struct copy *copies)
{
	char next[32];
	int i;

	for (i = 0; i < NCOPIES; i++) {
		snprintf(next, sizeof(next), "%s" NEXT, copy_rows[i].name);
		(void)unlinkat(b->fd, next, 0);
		free(copies[i].path);
	}
}

/* Copies first, so that the file that names them finds them. */
static int
with_copies(const struct base *b, const struct conf *conf, struct copy *copies,
    struct buf *ret_error)
{
	int i, r = 0;

	copies[COPY_ROUTING].source = conf->routing_file;
	copies[COPY_SENDERS].source = conf->sender_dependent_relayhost;
	copies[COPY_REWRITES].source = conf->sender_rewrite;
	copies[COPY_PROGRAMS].source = conf->programs_file;
	copies[COPY_ALIASES].source =
	    files_have_aliases(conf, b->owner.private) ? conf->alias_file : "";
	copies[COPY_TLS].source = conf->smtp_tls_policy_file;
	copies[COPY_PASSWORDS].source = conf->smtp_password_file;
	for (i = 0; r == 0 && i < NCOPIES; i++)
		r = copy(b, &copy_rows[i], &copies[i], ret_error);
	if (r == 0)
		r = judge_copies(b, conf, copies, ret_error);
	return r < 0 ? r : take_copies(b, copies, ret_error);
}

/* ---- all of it ---- */

static int
dump_with_copies(
    const struct base *b, const struct conf *conf, const struct copy *copies)
{
	struct conf named = *conf;

	named.routing_file = copies[COPY_ROUTING].path;
	named.sender_dependent_relayhost = copies[COPY_SENDERS].path;
	named.sender_rewrite = copies[COPY_REWRITES].path;
	named.programs_file = copies[COPY_PROGRAMS].path;
	named.alias_file = copies[COPY_ALIASES].path;
	named.smtp_tls_policy_file = copies[COPY_TLS].path;
	named.smtp_password_file = copies[COPY_PASSWORDS].path;
	return dump(b->fd, &named, b->owner.private ? 0600 : 0644);
}

int
inforce_write(
    const struct base *b, const struct conf *conf, struct buf *ret_error)
{
	struct copy copies[NCOPIES] = { 0 };
	int r = with_copies(b, conf, copies, ret_error);

	if (r == 0)
		r = dump_with_copies(b, conf, copies);
	drop_copies(b, copies);
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

_Static_assert(INFORCE_NFILES == NCOPIES + 1, "the copies, and NAME");

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
	for (i = 0; i < NCOPIES; i++)
		keep(b, copy_rows[i].name, &kept->file[i]);
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
