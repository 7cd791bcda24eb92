/* All that is known of one message. */
#include "qctl/show/show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/date.h"
#include "base/io.h"
#include "base/num.h"
#include "base/text.h"

#define TEXT_MAX 2100

struct page {
	struct worker *w;
	const struct view *v;
	struct buf out;
};

/* "NAME: value"; the value is cleaned. */
static void
add_field(struct page *p, const char *name, const char *value)
{
	buf_printf(&p->out, "%s: ", name);
	out_clean(&p->out, value, TEXT_MAX);
	buf_add_str(&p->out, "\n");
}

/* Nothing, where nothing was given. */
static void
add_given(struct page *p, const char *name, const char *value)
{
	if (value[0] != '\0')
		add_field(p, name, value);
}

static void
add_address(struct page *p, const char *name, const char *address)
{
	buf_printf(&p->out, "%s: <", name);
	out_clean(&p->out, address, ADDRESS_MAX);
	buf_add_str(&p->out, ">\n");
}

/* A time with its distance from now. */
static void
add_time(struct page *p, const char *name, usec_t wall)
{
	buf_printf(&p->out, "%s: ", name);
	out_time(&p->out, wall, p->v->now_wall);
	buf_add_str(&p->out, "\n");
}

static void
add_place(struct page *p, const struct message *m)
{
	buf_add_str(&p->out, "File: ");
	out_clean(&p->out, m->sp->path, TEXT_MAX);
	buf_printf(&p->out, "/%s/", spool_dirs[m->dir].name);
	if (spool_dirs[m->dir].split)
		buf_printf(&p->out, "%" PRIu64 "/", m->inode % m->sp->split);
	out_clean(&p->out, m->name, TEXT_MAX);
	buf_add_str(&p->out, "\n");
}

static void
add_due(struct page *p, const struct message *m)
{
	if (m->dir == SPOOL_DELETED)
		add_time(p, "Removed", m->due_wall);
	else if (m->dir == SPOOL_DEFERRED && m->due_wall <= p->v->now_wall)
		add_field(p, "Due", "now");
	else if (m->dir == SPOOL_DEFERRED)
		add_time(p, "Due", m->due_wall);
}

/* By whom, since when, until when, and why. */
static void
add_hold(struct page *p, const struct message *m)
{
	char who[MESSAGE_WHO_SIZE];
	struct hold_note note;

	if (message_hold(m, &note, who) < 0)
		return;
	add_field(p, "Held by", who);
	if (note.rule != 0)
		buf_printf(&p->out, "Held by rule: %" PRIu32 "\n", note.rule);
	add_time(p, "Held since", note.since_wall);
	if (note.until_wall > 0)
		add_time(p, "Held until", note.until_wall);
	add_given(p, "Held because", note.reason);
}

/* In corrupt/ all checks are made, of the content, too. */
static int
add_damage(struct page *p, const struct message *m)
{
	struct corrupt_parts parts = { 0 };
	const int rc = m->dir == SPOOL_CORRUPT
	    ? corrupt_check(m->sp, m->fd, m->name, &parts)
	    : 0;

	if (rc == 0)
		add_given(p, "Damaged",
		    m->dir == SPOOL_CORRUPT ? parts.why : m->damage);
	return rc;
}

static int
add_head(struct page *p, const struct message *m)
{
	int rc;

	add_field(p, "ID", m->id);
	add_field(p, "State", message_state_name(m->dir));
	add_place(p, m);
	rc = add_damage(p, m);
	if (rc < 0 || m->damage[0] != '\0')
		return rc;
	add_time(p, "Arrived", m->file.arrival_wall);
	add_due(p, m);
	add_hold(p, m);
	if (message_is_given_up(m))
		add_field(p, "Expires", "by an operator, in its next attempt");
	buf_printf(&p->out,
	    "Size: %" PRIu64 " bytes of content, %" PRIu64 " of the file\n"
	    "Submitted by: uid %" PRIu32 ", to queue %" PRIu32 "\n",
	    m->file.content_len, m->file.size, m->file.uid, m->file.queue);
	add_address(p, "Sender", buf_str(&m->sender));
	add_given(p, "Return", dsn_ret_name(m->dsn.ret));
	add_given(p, "Envelope id", m->dsn.envid);
	return 0;
}

static const char *
mark_name(const struct queue_rcpt *rcpt)
{
	static const char *const done[] = {
		[DONE_DELIVERED] = "delivered",
		[DONE_RELAYED] = "relayed",
		[DONE_EXPANDED] = "expanded",
		[DONE_PASSED] = "passed on",
	};

	return rcpt->mark == RCPT_DONE  ? done[rcpt->done]
	    : rcpt->mark == RCPT_FAILED ? "failed"
					: "pending";
}

static int
add_recipient(const struct recipient *one, void *arg)
{
	struct page *p = arg;
	char name[32], notify[DSN_NOTIFY_MAX];

	snprintf(name, sizeof(name), "Recipient (%s)", mark_name(one->rcpt));
	add_address(p, name, one->rcpt->address);
	/* Wishes of the sender about reports. */
	dsn_notify_format(one->rcpt->dsn.notify, notify);
	add_given(p, "  Notify", notify);
	add_given(p, "  Original", one->rcpt->dsn.orcpt);
	/* A reason from before the delivery says nothing any more. */
	if (one->reason != NULL && one->rcpt->mark != RCPT_DONE) {
		add_time(p, "  Tried", one->when_wall);
		add_field(p, "  Relay", one->relay);
		add_field(p, "  Reply", one->reason);
	}
	return out_send(&p->out, p->w);
}

/* ---- content ---- */

/* For a terminal, cleaned but for line ends and tabs. A NUL follows data. */
static void
add_clean(struct page *p, const char *data, size_t len)
{
	const char *end = data + len;

	while (data < end) {
		const size_t plain = strcspn(data, "\n\t");

		if (*data == '\n' || *data == '\t') {
			buf_printf(&p->out, "%c", *data++);
			continue;
		}
		/* A NUL ends strcspn(), and is one more byte to clean. */
		text_clean(&p->out, data, plain == 0 ? 1 : plain, SIZE_MAX);
		data += plain == 0 ? 1 : plain;
	}
}

static int
send_content(struct page *p, const char *data, size_t len)
{
	if (!p->v->clean)
		return worker_text(p->w, data, len);
	add_clean(p, data, len);
	return out_send(&p->out, p->w);
}

/* Of a file whose trailer is damaged all bytes behind its header are content,
 * as far as anybody can say. */
static uint64_t
content_of(const struct message *m, uint64_t *ret_len)
{
	struct queue_file file = m->file;
	const bool whole = m->damage[0] == '\0' ||
	    queue_file_trailer(m->fd, m->file_size, &file) == 0;

	if (whole)
		*ret_len = file.content_len;
	else
		*ret_len = m->file_size > QUEUE_FILE_HEADER
		    ? m->file_size - QUEUE_FILE_HEADER
		    : 0;
	return whole ? file.content_off : QUEUE_FILE_HEADER;
}

static int
add_content(struct page *p, const struct message *m)
{
	char chunk[16384 + 1];
	uint64_t done = 0, len, off = content_of(m, &len);
	int rc = worker_text(p->w, "\n", 1);

	while (rc == 0 && done < len) {
		const uint64_t left = len - done;
		const size_t want =
		    left < sizeof(chunk) - 1 ? (size_t)left : sizeof(chunk) - 1;
		const int64_t n =
		    io_pread_all(m->fd, chunk, want, (int64_t)(off + done));

		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		chunk[n] = '\0';
		worker_step(p->w);
		rc = send_content(p, chunk, (size_t)n);
		done += (uint64_t)n;
	}
	return rc;
}

int
show_text(struct worker *w, const struct message *m, const struct view *v)
{
	struct page p = { .w = w, .v = v };
	const bool whole = m->damage[0] == '\0';
	int rc = add_head(&p, m), sent = out_send(&p.out, w);

	if (rc == 0)
		rc = sent;
	if (rc == 0 && whole)
		rc = message_recipients(m, true, add_recipient, &p);
	if (rc == -EBADMSG && m->dir == SPOOL_CORRUPT)
		rc = 0; /* told above */
	if (rc == 0 && v->options->content &&
	    (whole || message_may_be_damaged(m->dir)))
		rc = add_content(&p, m);
	if (rc == 0)
		rc = worker_text(w, "\n", 1);
	buf_done(&p.out);
	return rc;
}
