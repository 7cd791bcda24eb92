#include "tests/unit/files.h"

#include "spool_scratch.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

const struct accept_options scratch_options = { .dir = SPOOL_INCOMING };

static const char *const two_rcpts[] = { "b@example.org", "c@example.net",
	NULL };
const struct scratch_mail scratch_mail = {
	.content = "Subject: one\n\nhello\n",
	.sender = "a@example.com",
	.rcpts = two_rcpts,
};

static void
open_with(struct scratch *s, const struct spool_owner *owner)
{
	const char *tmp = getenv("TMPDIR");
	int r;

	memset(s, 0, sizeof(*s));
	fault_reset();
	s->owner = *owner;
	snprintf(s->top, sizeof(s->top), "%.40s/spool-test-XXXXXX",
	    tmp == NULL ? "/tmp" : tmp);
	cr_assert_not_null(mkdtemp(s->top));
	cr_assert_eq(chmod(s->top, 0755), 0);
	snprintf(s->base, sizeof(s->base), "%s/base", s->top);
	r = spool_create(s->base, 1, SCRATCH_SPLIT, owner);
	cr_assert_eq(r, 0, "%s: %s", strerror(-r), queue_file_reason());
	r = spool_open(&s->sp, &fault_sys, s->base, 1);
	cr_assert_eq(r, 0, "%s", strerror(-r));
}

void
scratch_open(struct scratch *s)
{
	const struct spool_owner owner = {
		.qmailq = geteuid(),
		.qmails = geteuid(),
		.qmail = getegid(),
		.qdrop = getegid(),
		.private = true,
	};

	open_with(s, &owner);
}

void
scratch_open_shared(struct scratch *s)
{
	const struct spool_owner owner = {
		.qmailq = 61001,
		.qmails = 61002,
		.qmail = 61003,
		.qdrop = 61004,
	};

	open_with(s, &owner);
}

void
scratch_close(struct scratch *s)
{
	spool_close(&s->sp);
	unit_remove_tree(s->top);
}

static int
fill(struct queue_file_writer *w, const struct scratch_mail *mail,
    const struct scratch_wishes *wishes)
{
	const char *const *rcpt;
	int r = queue_file_add_content(w, mail->content, strlen(mail->content));

	if (r == 0)
		r = queue_file_add_sender(
		    w, mail->sender, strlen(mail->sender));
	if (r == 0 && wishes != NULL)
		r = queue_file_add_dsn(w, &wishes->mail);
	for (rcpt = mail->rcpts; r == 0 && *rcpt != NULL; rcpt++) {
		r = queue_file_add_rcpt(w, *rcpt, strlen(*rcpt));
		if (r == 0 && wishes != NULL)
			r = queue_file_add_rcpt_dsn(
			    w, &wishes->rcpts[rcpt - mail->rcpts]);
	}
	return r;
}

const struct scratch_wishes scratch_wishes = {
	.mail = { .ret = DSN_RET_HDRS, .envid = "QQ+2B314159" },
	.rcpts = {
		{ .notify = DSN_SUCCESS | DSN_FAILURE,
		    .orcpt = "rfc822;Bob+40example.org" },
		{ .notify = DSN_NEVER },
	},
};

int
scratch_accept(struct scratch *s, const struct accept_options *opt,
    const struct scratch_mail *mail, struct queue_id *ret_id)
{
	struct accept a;
	int r = accept_begin(&a, &s->sp, opt, clock_wall(), getuid());

	if (r == 0)
		r = fill(&a.writer, mail, NULL);
	if (r == 0)
		r = accept_commit(&a, ret_id);
	accept_end(&a);
	return r;
}

struct queue_id
scratch_put(struct scratch *s)
{
	struct queue_id id = { 0 };
	int r = scratch_accept(s, &scratch_options, &scratch_mail, &id);

	cr_assert_eq(r, 0, "%s", strerror(-r));
	return id;
}

int
scratch_write(int fd, const struct spool_sys *sys,
    const struct scratch_mail *mail, struct queue_file *ret_file)
{
	return scratch_write_wishes(fd, sys, mail, NULL, ret_file);
}

int
scratch_write_wishes(int fd, const struct spool_sys *sys,
    const struct scratch_mail *mail, const struct scratch_wishes *wishes,
    struct queue_file *ret_file)
{
	struct queue_file_writer w;
	int r = queue_file_writer_init(&w, sys, fd, 0);

	if (r == 0) {
		w.file.arrival_wall = 1700000000123456;
		w.file.queue = 7;
		w.file.uid = 1000;
		w.file.nonce = 0xa5;
		r = fill(&w, mail, wishes);
	}
	if (r == 0)
		r = queue_file_finish(&w);
	if (ret_file != NULL)
		*ret_file = w.file;
	queue_file_writer_done(&w);
	return r;
}

static unsigned nfiles;

static int
count_one(const char *path UNUSED, const struct stat *st UNUSED, int type,
    struct FTW *ftw UNUSED)
{
	nfiles += type != FTW_D && type != FTW_DNR;
	return 0;
}

unsigned
scratch_files(const struct scratch *s)
{
	char path[128];

	nfiles = 0;
	snprintf(path, sizeof(path), "%s/queue1", s->base);
	cr_assert_eq(nftw(path, count_one, 16, FTW_PHYS), 0);
	return nfiles - 1;
}

const char *
scratch_path(const struct scratch *s, enum spool_dir dir, uint64_t inode)
{
	static char path[256];
	char rest[SPOOL_PATH_MAX];

	spool_path(&s->sp, dir, inode, rest, sizeof(rest));
	snprintf(path, sizeof(path), "%s/%s", s->sp.path, rest);
	return path;
}

void
scratch_spill(const char *path, const char *content)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert_geq(fd, 0, "%s: %s", path, strerror(errno));
	cr_assert_eq(io_write_all(fd, content, strlen(content)), 0);
	close(fd);
}
