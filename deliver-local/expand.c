#include "deliver-local/expand.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/header.h"
#include "base/io.h"
#include "ipc/bell.h"
#include "spool/prepared.h"
#include "spool/reason.h"
#include "submit/submit.h"

#define IDS_TOLD 10 /* in the text of the result */

/* One run; the steps are those of docs/ALIASES.md. */
struct run {
	const struct expansion *x;
	struct verdict *verdict;
	struct parent parent;
	/* the message that is written */
	struct accept accept;
	char name[PREPARED_NAME_MAX];
	bool writing;
	char *chunk;
	struct inherit inherit;
	struct charge charge;
	/* done */
	uint32_t nmessages, nrcpts;
	struct buf ids, why;
	const char *step; /* that failed */
};

static int
progress(void *arg)
{
	const struct run *u = arg;

	return u->x->progress == NULL ? 0 : u->x->progress(u->x->arg);
}

static int
at(struct run *u, const char *step, int r)
{
	if (r < 0)
		u->step = step;
	return r;
}

/* ---- 4: messages ---- */

/* "\r\n" where the first line of the message ends so. */
static const char *
line_end(const struct run *u)
{
	const size_t len = u->parent.file.content_len < MESSAGE_CHUNK
	    ? (size_t)u->parent.file.content_len
	    : MESSAGE_CHUNK;
	const bool read =
	    io_pread_all(u->parent.fd, u->chunk, len,
		(int64_t)u->parent.file.content_off) == (int64_t)len;

	return header_line_end(u->chunk, read ? len : 0);
}

static int
add_received(struct run *u)
{
	char line[SUBMIT_RECEIVED_MAX];
	const char *end = line_end(u);
	int n = submit_received(&u->accept, u->x->host, end, line);
	int r = n < 0 ? n : accept_content(&u->accept, line, (size_t)n);

	if (r < 0 || u->x->of.forward == NULL)
		return r;
	n = snprintf(line, sizeof(line), "Delivered-To: %s%s",
	    u->x->of.forward->delivered_to, end);
	return n < 0 || n >= (int)sizeof(line)
	    ? -ENAMETOOLONG
	    : accept_content(&u->accept, line, (size_t)n);
}

static int
copy_content(struct run *u)
{
	uint64_t off, left;
	int64_t n;
	int r = 0;

	for (off = 0; r == 0 && off < u->parent.file.content_len;
	     off += (uint64_t)n) {
		left = u->parent.file.content_len - off;
		n = io_pread_all(u->parent.fd, u->chunk,
		    left < MESSAGE_CHUNK ? (size_t)left : MESSAGE_CHUNK,
		    (int64_t)(u->parent.file.content_off + off));
		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		r = accept_content(&u->accept, u->chunk, (size_t)n);
		if (r == 0)
			r = progress(u);
	}
	return r;
}

static void
note_id(struct run *u, const struct queue_id *id)
{
	char text[QUEUE_ID_SIZE];

	queue_id_format(id, text);
	if (u->nmessages < IDS_TOLD)
		(void)buf_printf(
		    &u->ids, "%s%s", u->nmessages == 0 ? "" : ", ", text);
	u->nmessages++;
}

static int
commit_message(struct run *u, bool last)
{
	struct queue_id id;
	int r;

	if (!u->writing)
		return 0;
	r = inherit_end(&u->inherit, &u->accept.writer, last);
	if (r == 0)
		r = accept_commit(&u->accept, &id);
	accept_end(&u->accept);
	u->writing = false;
	if (r == 0)
		note_id(u, &id);
	return r < 0 ? at(u, "write its message", r) : progress(u);
}

/* Mail that an operator released is not held again in another form, and a
 * report is one to whomever it goes. */
static uint32_t
kept_flags(const struct run *u)
{
	const int marks = reason_marks(u->x->sp, &u->parent.id);
	const uint32_t kept =
	    QUEUE_FILE_FINAL | QUEUE_FILE_REPORT | QUEUE_FILE_RELEASED;

	return (u->parent.file.flags & kept) |
	    (marks > 0 && (marks & REASON_RELEASED) != 0 ? QUEUE_FILE_RELEASED
							 : 0);
}

static int
begin_message(struct run *u)
{
	const struct prepared name = { u->parent.id, u->x->index,
		u->nmessages };
	struct accept_options opt =
	    submit_accept_options(u->x->conf, SPOOL_PREPARED, ROOM_SYSTEM);

	prepared_name(&name, u->name);
	opt.name = u->name;
	opt.flags = QUEUE_FILE_EXPANDED | kept_flags(u);
	opt.max_content = 0; /* limits bind at acceptance only */
	opt.announced = u->parent.file.content_len;
	u->writing = true;
	return accept_begin(
	    &u->accept, u->x->sp, &opt, clock_wall(), u->parent.submitter);
}

static int
on_sender(void *arg, const char *sender)
{
	struct run *u = arg;
	int r = commit_message(u, false);

	if (r < 0)
		return r;
	r = charge_more(&u->charge, u->parent.file.size);
	if (r < 0)
		return at(u, "count the mail of its user", r);
	r = begin_message(u);
	if (r == 0)
		r = add_received(u);
	if (r == 0)
		r = copy_content(u);
	if (r == 0)
		r = queue_file_add_sender(
		    &u->accept.writer, sender, strlen(sender));
	if (r == 0)
		r = inherit_sender(&u->inherit, &u->accept.writer, sender);
	return at(u, "write its message", r);
}

static int
on_rcpt(void *arg, const char *address)
{
	struct run *u = arg;
	struct queue_file_writer *w = &u->accept.writer;
	int r = inherit_before_rcpt(&u->inherit, w);

	u->nrcpts++;
	if (r == 0)
		r = queue_file_add_rcpt(w, address, strlen(address));
	inherit_after_rcpt(&u->inherit, names_is_instruction(address));
	return at(u, "write its message", r);
}

static int
write_messages(struct run *u)
{
	const struct members_sink sink = { .sender = on_sender,
		.rcpt = on_rcpt,
		.progress = progress,
		.arg = u };
	int r = members_expand(
	    u->x->names, u->x->includes, &u->x->of, &sink, &u->why);

	return r < 0 ? r : commit_message(u, true);
}

/* Names that were taken away do not come back after a power cut, beside the
 * messages of this expansion. */
static int
sync_prepared(const struct run *u)
{
	const struct spool *sp = u->x->sp;
	int fd = sp->sys->openat(sp->dir[SPOOL_PREPARED], ".",
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	int r = 0;

	if (fd < 0)
		return -errno;
	if (sp->sys->fsync(fd) < 0)
		r = -errno;
	sp->sys->close(fd);
	return r;
}

/* ---- 5, 6: the mark, and what follows ---- */

/* From the mark on the messages count. A sync that fails changes nothing of
 * that: whether the mark is on disk is not known, so a power cut may have the
 * recipient expanded again, and nothing is lost. */
static int
mark_done(const struct run *u)
{
	const struct spool_sys *sys = u->x->sp->sys;
	int r = queue_file_mark(sys, u->parent.fd, u->parent.rcpt.offset,
	    inherit_mark(&u->inherit, &u->parent.file));

	if (r == 0)
		(void)sys->fsync(u->parent.fd);
	return r;
}

static void
ring(void *arg, uint64_t inode)
{
	const struct run *u = arg;
	const struct spool *sp = u->x->sp;
	const struct bell bell = {
		.pid = (int32_t)getpid(),
		.split = (uint32_t)(inode % sp->split),
		.inode = inode,
	};

	(void)bell_ring(u->x->conf->instance, sp->queue, &bell);
}

/* todo-proc settles names that stay in prepared/. */
static void
release(struct run *u)
{
	(void)spool_settle_message(u->x->sp, u->parent.fd, &u->parent.file,
	    u->parent.id.inode, ring, u);
}

/* ---- the steps ---- */

static int
prepare(struct run *u)
{
	int r = at(u, "clear what an earlier expansion left",
	    spool_drop_prepared(u->x->sp, &u->parent.id, u->x->index));

	if (r == 0)
		r = at(u, "count the mail of its user",
		    charge_begin(&u->charge, u->x->conf, u->x->sp,
			u->parent.submitter,
			(u->parent.file.flags & QUEUE_FILE_EXPANDED) != 0));
	if (r == 0)
		r = write_messages(u);
	if (r == 0 && u->nmessages > 0)
		r = at(u, "sync its messages", sync_prepared(u));
	if (r == 0)
		r = at(u, "note that it is done", mark_done(u));
	return r;
}

/* The recipient is pending: what was prepared does not count. */
static void
undo(struct run *u)
{
	if (u->writing)
		accept_end(&u->accept);
	u->writing = false;
	(void)spool_drop_prepared(u->x->sp, &u->parent.id, u->x->index);
}

/* The kind of thing that was expanded, for results. */
static const char *
what_of(const struct run *u)
{
	return u->x->of.forward == NULL ? "alias " : "forward file of ";
}

static void
tell_done(const struct run *u)
{
	const char *key = u->x->of.key;

	if (u->nmessages == 0)
		verdict_set(u->verdict, AGENT_SENT, "2.0.0",
		    "%s%s: no recipients", what_of(u), key);
	else
		verdict_set(u->verdict, AGENT_SENT, "2.0.0",
		    "%s%s: %" PRIu32 " recipient%s as %s%s", what_of(u), key,
		    u->nrcpts, u->nrcpts == 1 ? "" : "s", buf_str(&u->ids),
		    u->nmessages > IDS_TOLD ? ", …" : "");
}

/* Errors with a reason of their own; the others are of the system. */
static const struct {
	int error;
	enum agent_outcome outcome;
	const char *dsn;
} reasons[] = {
	{ ENOENT, AGENT_DEFERRED, "4.2.4" },  /* reloaded meanwhile */
	{ EUCLEAN, AGENT_DEFERRED, "4.2.4" }, /* a wrong file */
	{ E2BIG, AGENT_FAILED, "5.2.4" },     /* too many recipients */
	{ ELOOP, AGENT_FAILED, "5.4.6" },
};

static void
tell_failed(const struct run *u, int error)
{
	const char *key = u->x->of.key;
	char what[320];
	size_t i;

	if (error == -ECONNREFUSED && u->why.len > 0) {
		verdict_refuse(u->verdict, buf_str(&u->why));
		return;
	}
	/* Of a user's file no mistake returns mail. */
	if (error == -E2BIG && u->x->of.forward != NULL)
		error = -EUCLEAN;
	for (i = 0; u->why.len > 0 && i < ARRAY_LEN(reasons); i++)
		if (error == -reasons[i].error) {
			verdict_set(u->verdict, reasons[i].outcome,
			    reasons[i].dsn, "%s%s: %s", what_of(u), key,
			    buf_str(&u->why));
			return;
		}
	if (error == -EUSERS) {
		verdict_set(u->verdict, AGENT_DEFERRED, "4.7.1", "%s%s: %s",
		    what_of(u), key, u->charge.reason);
		return;
	}
	if (error == -ESHUTDOWN) {
		verdict_set(u->verdict, AGENT_DEFERRED, "4.3.2",
		    "%s%s: the queue is being closed", what_of(u), key);
		return;
	}
	snprintf(what, sizeof(what), "%s%s: %s", what_of(u), key, u->step);
	verdict_error(u->verdict, error, what);
}

static void
run_locked(struct run *u)
{
	int r = 0;

	if (u->parent.rcpt.mark == RCPT_FAILED) {
		verdict_set(u->verdict, AGENT_DEFERRED, "4.3.0",
		    "%s%s: the recipient has failed already", what_of(u),
		    u->x->of.key);
		return;
	}
	if (u->parent.rcpt.mark == RCPT_PENDING)
		r = prepare(u);
	if (r < 0) {
		undo(u);
		charge_end(&u->charge, false);
		tell_failed(u, r);
		return;
	}
	release(u);
	charge_end(&u->charge, true);
	if (u->parent.rcpt.mark == RCPT_PENDING)
		tell_done(u);
	else
		verdict_set(u->verdict, AGENT_SENT, "2.0.0",
		    "%s%s: expanded before", what_of(u), u->x->of.key);
}

static void
tell_no_parent(const struct run *u, int error)
{
	if (error == -EAGAIN)
		verdict_set(u->verdict, AGENT_DEFERRED, "4.3.0",
		    "%s%s: another process works on the message", what_of(u),
		    u->x->of.key);
	else
		tell_failed(u, error);
}

void
expand_run(const struct expansion *x, struct verdict *ret_verdict)
{
	struct run u = { .x = x,
		.verdict = ret_verdict,
		.parent.fd = -1,
		.step = "open the message" };
	int r;

	u.chunk = malloc(MESSAGE_CHUNK);
	r = u.chunk == NULL ? -ENOMEM : parent_take(x, &u.parent);
	if (r == 0)
		r = inherit_begin(&u.inherit, u.parent.fd, &u.parent.file,
		    &u.parent.rcpt, &x->of);
	if (r == 0)
		run_locked(&u);
	else
		tell_no_parent(&u, r);
	free(u.chunk);
	buf_done(&u.ids);
	buf_done(&u.why);
	io_close(&u.parent.fd);
}
