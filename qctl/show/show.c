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
	struct buf line;
};

static int
send_line(struct page *p)
{
	int rc = buf_add_char(&p->line, '\n');

	if (rc == 0)
		rc = worker_text(p->w, buf_str(&p->line), p->line.len);
	buf_reset(&p->line);
	return rc;
}

/* "NAME: value"; the value is cleaned. */
static int
add_field(struct page *p, const char *name, const char *value)
{
	int rc = buf_printf(&p->line, "%s: ", name);

	if (rc == 0)
		rc = text_clean(&p->line, value, strlen(value), TEXT_MAX);
	return rc < 0 ? rc : send_line(p);
}

static int
add_address(struct page *p, const char *name, const char *address)
{
	int rc = buf_printf(&p->line, "%s: <", name);

	if (rc == 0)
		rc =
		    text_clean(&p->line, address, strlen(address), ADDRESS_MAX);
	if (rc == 0)
		rc = buf_add_char(&p->line, '>');
	return rc < 0 ? rc : send_line(p);
}

/* A time with its distance from now. */
static int
add_time(struct page *p, const char *name, usec_t wall)
{
	const usec_t away = wall - p->v->now_wall;
	char date[DATE_SIZE];
	int rc;

	date_format(wall, date);
	rc = buf_printf(
	    &p->line, "%s: %s (%s", name, date, away > 0 ? "in " : "");
	if (rc == 0)
		rc = num_add_span(&p->line, away > 0 ? away : -away);
	if (rc == 0)
		rc = buf_add_str(&p->line, away > 0 ? ")" : " ago)");
	return rc < 0 ? rc : send_line(p);
}

static int
add_place(struct page *p, const struct message *m)
{
	struct buf path = { 0 };
	int rc =
	    buf_printf(&path, "%s/%s/", m->sp->path, spool_dirs[m->dir].name);

	if (rc == 0 && spool_dirs[m->dir].split)
		rc = buf_printf(&path, "%" PRIu64 "/", m->inode % m->sp->split);
	if (rc == 0)
		rc = buf_add_str(&path, m->name);
	if (rc == 0)
		rc = add_field(p, "File", buf_str(&path));
	buf_done(&path);
	return rc;
}

static int
add_numbers(struct page *p, const struct message *m)
{
	int rc = buf_printf(&p->line,
	    "Size: %" PRIu64 " bytes of content, %" PRIu64 " of the file",
	    m->file.content_len, m->file.size);

	if (rc == 0)
		rc = send_line(p);
	if (rc == 0)
		rc = buf_printf(&p->line,
		    "Submitted by: uid %" PRIu32 ", to queue %" PRIu32,
		    m->file.uid, m->file.queue);
	return rc < 0 ? rc : send_line(p);
}

static int
add_due(struct page *p, const struct message *m)
{
	if (m->dir == SPOOL_DELETED)
		return add_time(p, "Removed", m->due_wall);
	if (m->dir != SPOOL_DEFERRED)
		return 0;
	if (m->due_wall <= p->v->now_wall)
		return add_field(p, "Due", "now");
	return add_time(p, "Due", m->due_wall);
}

/* Nothing, where the sender gave nothing. */
static int
add_given(struct page *p, const char *name, const char *value)
{
	return value[0] == '\0' ? 0 : add_field(p, name, value);
}

/* By whom, since when, until when, and why. */
static int
add_hold(struct page *p, const struct message *m)
{
	char who[MESSAGE_WHO_SIZE], rule[16];
	struct hold_note note;
	int rc;

	if (message_hold(m, &note, who) < 0)
		return 0;
	rc = add_field(p, "Held by", who);
	snprintf(rule, sizeof(rule), "%" PRIu32, note.rule);
	if (rc == 0 && note.rule != 0)
		rc = add_field(p, "Held by rule", rule);
	if (rc == 0)
		rc = add_time(p, "Held since", note.since_wall);
	if (rc == 0 && note.until_wall > 0)
		rc = add_time(p, "Held until", note.until_wall);
	return rc < 0 || note.reason[0] == '\0'
	    ? rc
	    : add_field(p, "Held because", note.reason);
}

/* In corrupt/ all checks are made, of the content, too. */
static int
add_damage(struct page *p, const struct message *m)
{
	struct corrupt_parts parts = { 0 };
	const char *why = m->damage;
	int rc = 0;

	if (m->dir == SPOOL_CORRUPT) {
		rc = message_check(m, &parts);
		why = parts.why;
	}
	return rc < 0 || why[0] == '\0' ? rc : add_field(p, "Damaged", why);
}

static int
add_head(struct page *p, const struct message *m)
{
	int rc = add_field(p, "ID", m->id);

	if (rc == 0)
		rc = add_field(p, "State", message_state_name(m->dir));
	if (rc == 0)
		rc = add_place(p, m);
	if (rc == 0)
		rc = add_damage(p, m);
	if (rc < 0 || m->damage[0] != '\0')
		return rc;
	rc = add_time(p, "Arrived", m->file.arrival_wall);
	if (rc == 0)
		rc = add_due(p, m);
	if (rc == 0)
		rc = add_hold(p, m);
	if (rc == 0 && message_is_given_up(m))
		rc = add_field(
		    p, "Expires", "by an operator, in its next attempt");
	if (rc == 0)
		rc = add_numbers(p, m);
	if (rc == 0)
		rc = add_address(p, "Sender", buf_str(&m->sender));
	if (rc == 0)
		rc = add_given(p, "Return", dsn_ret_name(m->dsn.ret));
	return rc < 0 ? rc : add_given(p, "Envelope id", m->dsn.envid);
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

/* Wishes of the sender about reports. */
static int
add_wishes(struct page *p, const struct dsn_rcpt *dsn)
{
	char notify[DSN_NOTIFY_MAX];
	int rc;

	dsn_notify_format(dsn->notify, notify);
	rc = add_given(p, "  Notify", notify);
	return rc < 0 ? rc : add_given(p, "  Original", dsn->orcpt);
}

static int
add_recipient(const struct recipient *one, void *arg)
{
	struct page *p = arg;
	char name[32];
	int rc;

	snprintf(name, sizeof(name), "Recipient (%s)", mark_name(one->rcpt));
	rc = add_address(p, name, one->rcpt->address);
	if (rc == 0)
		rc = add_wishes(p, &one->rcpt->dsn);
	/* A reason from before the delivery says nothing any more. */
	if (rc < 0 || one->reason == NULL || one->rcpt->mark == RCPT_DONE)
		return rc;
	rc = add_time(p, "  Tried", one->when_wall);
	if (rc == 0)
		rc = add_field(p, "  Relay", one->relay);
	return rc < 0 ? rc : add_field(p, "  Reply", one->reason);
}

/* ---- content ---- */

/* For a terminal, cleaned but for line ends and tabs. A NUL follows data. */
static int
add_clean(struct page *p, const char *data, size_t len)
{
	size_t used = 0;
	int rc = 0;

	while (rc == 0 && used < len) {
		const char c = data[used];
		const size_t plain = strcspn(data + used, "\n\t");

		if (c == '\n' || c == '\t') {
			rc = buf_add_char(&p->line, c);
			used++;
			continue;
		}
		/* A NUL ends strcspn(), and is one more byte to clean. */
		rc = text_clean(
		    &p->line, data + used, plain == 0 ? 1 : plain, SIZE_MAX);
		used += plain == 0 ? 1 : plain;
	}
	return rc;
}

static int
send_content(struct page *p, const char *data, size_t len)
{
	int rc;

	if (!p->v->clean)
		return worker_text(p->w, data, len);
	rc = add_clean(p, data, len);
	if (rc == 0)
		rc = worker_text(p->w, buf_str(&p->line), p->line.len);
	buf_reset(&p->line);
	return rc;
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
	int rc = add_head(&p, m);

	if (rc == 0 && whole)
		rc = message_recipients(m, true, add_recipient, &p);
	if (rc == -EBADMSG && m->dir == SPOOL_CORRUPT)
		rc = 0; /* told above */
	if (rc == 0 && v->options->content &&
	    (whole || message_may_be_damaged(m->dir)))
		rc = add_content(&p, m);
	if (rc == 0)
		rc = worker_text(w, "\n", 1);
	buf_done(&p.line);
	return rc;
}
