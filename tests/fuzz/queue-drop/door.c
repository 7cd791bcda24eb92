/* The records that anybody may write to queue-drop: what is accepted is what a
 * plain reader of the records finds, whole and no more; what is refused has a
 * reason with a status code and leaves no file. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/address.h"
#include "base/io.h"
#include "queue-drop/door.h"
#include "spool/door.h"

#define RCPTS_MAX 4
#define SIZE_MAX_ 300 /* message_size_limit, ACCEPT_ADDED_MAX on top */

/* ---- a plain reader ---- */

struct mail {
	struct buf content, sender, rcpts; /* addresses ended by LF */
	struct buf wishes; /* "Hid\n" of the message, then of recipients */
	uint32_t nrcpts;
};

static bool
fits(const char *s, size_t len, bool may_be_empty)
{
	return len == 0 ? may_be_empty : address_check(s, len) == 0;
}

/* A wish as it is noted: its value in decimal, its text. One that says nothing
 * is none. */
static bool
takes_wish(const char *s, size_t len, bool of_rcpt, struct buf *out)
{
	const uint8_t value = len == 0 ? 0 : (uint8_t)s[0];

	if (len == 0 || len > DSN_ORCPT_MAX + 1)
		return false;
	if (of_rcpt ? !dsn_notify_is_valid(value) : !dsn_ret_is_valid(value))
		return false;
	if (len > 1 &&
	    (of_rcpt ? dsn_orcpt_check(s + 1, len - 1)
		     : dsn_envid_check(s + 1, len - 1)) < 0)
		return false;
	if (value != 0 || len > 1)
		MUST(buf_printf(out, "%c%u %.*s\n", of_rcpt ? 'N' : 'M', value,
			 (int)len - 1, s + 1) == 0);
	return true;
}

/* Is all of it one message? */
static bool
model(const uint8_t *p, size_t left, struct mail *m)
{
	char state = 'C';

	while (left >= 5) {
		uint32_t len;
		const char *s = (const char *)p + 5;
		char type = (char)p[0];

		memcpy(&len, p + 1, sizeof(len));
		if (type == 'E')
			return (state == 'T' || state == 'N') && len == 0 &&
			    left == 5 && m->nrcpts <= RCPTS_MAX;
		if (len > left - 5)
			return false;
		if (type == 'C' && state == 'C')
			MUST(buf_add(&m->content, s, len) == 0);
		else if (type == 'F' && state == 'C' && fits(s, len, true))
			MUST(buf_add(&m->sender, s, len) == 0);
		else if (type == 'T' && state != 'C' && fits(s, len, false))
			MUST(buf_add(&m->rcpts, s, len) == 0 &&
			    buf_add_char(&m->rcpts, '\n') == 0);
		else if (!(type == 'M' && state == 'F' &&
			     takes_wish(s, len, false, &m->wishes)) &&
		    !(type == 'N' && state == 'T' &&
			takes_wish(s, len, true, &m->wishes)))
			return false;
		m->nrcpts += type == 'T';
		state = type;
		p += 5 + len;
		left -= 5 + len;
	}
	return false;
}

static void
mail_done(struct mail *m)
{
	buf_done(&m->content);
	buf_done(&m->sender);
	buf_done(&m->rcpts);
	buf_done(&m->wishes);
}

/* ---- what lies in maildrop/ ---- */

/* Its only file, open; -1: none. The name is taken away. */
static int
take_drop(int dir)
{
	DIR *d = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY));
	const struct dirent *e;
	int fd = -1;

	MUST(d != NULL);
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		MUST(fd < 0);
		fd = openat(dir, e->d_name, O_RDONLY | O_CLOEXEC);
		MUST(fd >= 0 && unlinkat(dir, e->d_name, 0) == 0);
	}
	closedir(d);
	return fd;
}

static void
check_content(int fd, const struct queue_file *file, const struct buf *want)
{
	struct buf got = { 0 };
	size_t added;

	MUST(buf_reserve(&got, file->content_len) == 0);
	MUST(io_pread_all(fd, got.data, file->content_len,
		 (int64_t)file->content_off) == (int64_t)file->content_len);
	MUST(file->content_len >= want->len);
	added = file->content_len - want->len;
	MUST(added > 10 && memcmp(got.data, "Received:", 9) == 0);
	MUST(got.data[added - 1] == '\n');
	MUST(memcmp(got.data + added, buf_str(want), want->len) == 0);
	buf_done(&got);
}

static void
check_drop(int fd, const struct mail *m, const struct queue_id *id)
{
	struct queue_rcpt_cursor c;
	struct queue_rcpt rcpt;
	struct queue_file file;
	struct buf sender = { 0 }, rcpts = { 0 }, wishes = { 0 };
	struct dsn_mail dsn;

	MUST(queue_file_read(fd, &file) == 0);
	MUST(queue_file_verify(fd, &file) == 0);
	MUST(file.nonce == id->nonce && file.queue == id->queue);
	MUST(file.arrival_wall == id->arrival_wall);
	MUST(file.uid == (uint32_t)getuid());
	check_content(fd, &file, &m->content);
	MUST(queue_file_sender(fd, &file, &sender) == 0);
	MUST(strcmp(buf_str(&sender), buf_str(&m->sender)) == 0);
	MUST(queue_file_dsn(fd, &file, &dsn) == 0);
	if (!dsn_mail_is_empty(&dsn))
		MUST(buf_printf(&wishes, "M%u %s\n", dsn.ret, dsn.envid) == 0);
	queue_rcpt_begin(&c, &file);
	while (queue_rcpt_next(&c, fd, &rcpt) > 0) {
		MUST(buf_add_str(&rcpts, rcpt.address) == 0 &&
		    buf_add_char(&rcpts, '\n') == 0);
		if (!dsn_rcpt_is_empty(&rcpt.dsn))
			MUST(buf_printf(&wishes, "N%u %s\n", rcpt.dsn.notify,
				 rcpt.dsn.orcpt) == 0);
	}
	MUST(strcmp(buf_str(&wishes), buf_str(&m->wishes)) == 0);
	buf_done(&wishes);
	MUST(strcmp(buf_str(&rcpts), buf_str(&m->rcpts)) == 0);
	buf_done(&sender);
	buf_done(&rcpts);
}

static void
check_refusal(const struct door *d)
{
	const char *s = d->reason;

	MUST(d->status == EX_DATAERR || d->status == EX_TEMPFAIL);
	MUST(s[0] == (d->status == EX_DATAERR ? '5' : '4') && s[1] == '.');
	MUST(strspn(s, "0123456789.") == 5 && s[5] == ' ');
	MUST(fuzz_is_shown(s, strlen(s)));
}

/* ---- */

static void
open_queue(struct spool *sp)
{
	const struct spool_owner owner = {
		.qmailq = geteuid(),
		.qmails = geteuid(),
		.qmail = getegid(),
		.private = true,
	};
	static char base[192];

	snprintf(base, sizeof(base), "%s/base", fuzz_dir_path());
	MUST(spool_create(base, 1, 1, &owner) == 0);
	MUST(spool_open(sp, &spool_sys_real, base, 1) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct door d;
	static bool opened;
	struct mail m = { 0 };
	struct queue_id id = { 0 };
	bool right, large;
	int r, drop;

	if (!opened)
		open_queue(&d.sp);
	opened = true;
	d.sys = &spool_sys_real;
	d.queue = 1;
	d.uid = getuid();
	d.begun = false;
	d.rcpts = 0;
	d.status = 0;
	d.conf.message_size_limit = SIZE_MAX_;
	d.conf.message_recipient_limit = RCPTS_MAX;
	d.share = (struct share){ .conf = &d.conf, .file = -1 };
	memcpy(d.host, "host.example", 13);
	stream_init(&d.in, fuzz_file("stream", data, size));
	right = model(data, size, &m);
	r = door_take(&d, &id);
	/* The limit allows for what is put in front of the content. */
	large = m.content.len + 40 > SIZE_MAX_ + ACCEPT_ADDED_MAX;
	MUST(large || r == (right ? 0 : -1));
	drop = take_drop(d.sp.dir[SPOOL_MAILDROP]);
	MUST((drop >= 0) == (r == 0));
	if (r == 0)
		check_drop(drop, &m, &id);
	else
		check_refusal(&d);
	accept_end(&d.accept);
	io_close(&drop);
	mail_done(&m);
	return 0;
}
