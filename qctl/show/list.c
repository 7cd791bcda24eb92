/* Listings: the form of `postqueue -p`, and objects with the members of
 * `postqueue -j`. */
#include "qctl/show/show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

#define NULL_SENDER   "MAILER-DAEMON"
#define REASON_COLUMN 76 /* the right end of reasons */
#define TEXT_MAX      2100

/* ---- for people ---- */

/* The columns of rows below are as wide. */
const char list_head[] =
    "-Queue ID-                    --Size-- ----Arrival Time---- "
    "-Sender/Recipient-------\n";

struct rows {
	struct worker *w;
	struct buf line, reason, last;
	bool json, any;
};

static void
rows_done(struct rows *r)
{
	buf_done(&r->line);
	buf_done(&r->reason);
	buf_done(&r->last);
}

static int
send_line(struct rows *r)
{
	int rc = worker_text(r->w, buf_str(&r->line), r->line.len);

	buf_reset(&r->line);
	return rc;
}

/* "*", "!#": what stands behind an id. */
static int
add_marks(struct buf *out, const struct message *m)
{
	int rc = 0;

	if (m->dir == SPOOL_ACTIVE || m->dir == SPOOL_HOLD)
		rc = buf_add_char(out, m->dir == SPOOL_ACTIVE ? '*' : '!');
	return rc == 0 && message_is_given_up(m) ? buf_add_char(out, '#') : rc;
}

/* "Sat Nov 22 11:25:01", local time. */
static void
format_time(usec_t wall, char out[32])
{
	const time_t seconds = (time_t)(wall / USEC_PER_SEC);
	struct tm tm;

	out[0] = '\0';
	if (localtime_r(&seconds, &tm) != NULL)
		(void)strftime(out, 32, "%a %b %e %H:%M:%S", &tm);
}

static int
clean_id(const struct message *m, struct buf *out)
{
	return text_clean(out, m->id, strlen(m->id), QUEUE_ID_SIZE);
}

static int
add_row(struct rows *r, const struct message *m)
{
	const bool whole = m->damage[0] == '\0';
	const char *sender = m->sender.len > 0 ? buf_str(&m->sender)
	    : whole                            ? NULL_SENDER
					       : "";
	struct buf id = { 0 };
	char when[32] = "";
	int rc = clean_id(m, &id);

	if (whole)
		format_time(m->file.arrival_wall, when);
	if (rc == 0)
		rc = add_marks(&id, m);
	if (rc == 0)
		rc = buf_printf(&r->line, "%-29s %8" PRIu64 " %20.20s ",
		    buf_str(&id), whole ? m->file.content_len : m->file_size,
		    when);
	if (rc == 0)
		rc = text_clean(&r->line, sender, strlen(sender), ADDRESS_MAX);
	if (rc == 0)
		rc = buf_add_char(&r->line, '\n');
	buf_done(&id);
	return rc < 0 ? rc : send_line(r);
}

static int
add_reason(struct rows *r)
{
	int pad = REASON_COLUMN - (int)r->reason.len;
	int rc = buf_printf(
	    &r->line, "%*s(%s)\n", pad < 0 ? 0 : pad, "", buf_str(&r->reason));

	return rc < 0 ? rc : send_line(r);
}

static int
clean_reason(struct rows *r, const char *reason)
{
	buf_reset(&r->reason);
	return reason == NULL
	    ? 0
	    : text_clean(&r->reason, reason, strlen(reason), TEXT_MAX);
}

/* A reason stands once above the recipients that share it. */
static int
add_recipient(const struct recipient *one, void *arg)
{
	struct rows *r = arg;
	int rc;

	if (one->rcpt->mark == RCPT_DONE)
		return 0;
	rc = clean_reason(r, one->reason);
	if (rc == 0 && r->reason.len > 0 &&
	    strcmp(buf_str(&r->reason), buf_str(&r->last)) != 0)
		rc = add_reason(r);
	buf_reset(&r->last);
	if (rc == 0)
		rc = buf_add(&r->last, buf_str(&r->reason), r->reason.len);
	if (rc == 0)
		rc = buf_printf(&r->line, "%60s", "");
	if (rc == 0)
		rc = text_clean(
		    &r->line, one->rcpt->address, one->rcpt->len, ADDRESS_MAX);
	if (rc == 0)
		rc = buf_add_char(&r->line, '\n');
	return rc < 0 ? rc : send_line(r);
}

/* A list reads no content: the check that fails is found by `explain'. */
static const char *
damage_of(const struct message *m)
{
	return m->damage[0] == '\0' && m->dir == SPOOL_CORRUPT
	    ? "`qctl explain' says which check fails"
	    : m->damage;
}

static int
add_damage(struct rows *r, const struct message *m)
{
	const char *why = damage_of(m);
	int rc;

	buf_reset(&r->reason);
	rc = buf_add_str(&r->reason, "damaged: ");
	if (rc == 0)
		rc = text_clean(&r->reason, why, strlen(why), TEXT_MAX);
	return rc < 0 ? rc : add_reason(r);
}

int
list_text(
    struct worker *w, const struct message *m, const struct view *v UNUSED)
{
	struct rows r = { .w = w };
	int rc = add_row(&r, m);

	if (rc == 0 && damage_of(m)[0] != '\0')
		rc = add_damage(&r, m);
	if (rc == 0 && m->damage[0] == '\0')
		rc = message_recipients(m, true, add_recipient, &r);
	buf_reset(&r.line);
	if (rc == 0 || rc == -EBADMSG)
		rc = worker_text(w, "\n", 1);
	rows_done(&r);
	return rc;
}

int
list_total(const struct worker_totals *t, struct buf *out)
{
	return buf_printf(out,
	    "-- %" PRIu64 " Kbytes in %" PRIu64 " Request%s.\n",
	    t->bytes / 1024, t->messages, t->messages == 1 ? "" : "s");
}

/* ---- for programs ---- */

static int
add_number(struct buf *out, const char *name, int64_t value)
{
	return buf_printf(out, ", \"%s\": %" PRId64, name, value);
}

/* Nothing, where the sender gave nothing. */
static int
add_given(struct buf *out, const char *name, const char *value)
{
	return value[0] == '\0' ? 0 : json_add_member(out, name, value);
}

static int
add_envelope(struct buf *out, const struct message *m)
{
	const bool whole = m->damage[0] == '\0';
	int rc = add_number(
	    out, "arrival_time", m->file.arrival_wall / USEC_PER_SEC);

	if (rc == 0)
		rc = add_number(out, "message_size",
		    (int64_t)(whole ? m->file.content_len : m->file_size));
	if (rc == 0)
		rc = buf_printf(out, ", \"forced_expire\": %s",
		    message_is_given_up(m) ? "true" : "false");
	if (rc == 0)
		rc = json_add_member(out, "sender",
		    m->sender.len > 0 || !whole ? buf_str(&m->sender)
						: NULL_SENDER);
	if (rc == 0)
		rc = add_given(out, "ret", dsn_ret_name(m->dsn.ret));
	if (rc == 0)
		rc = add_given(out, "envid", m->dsn.envid);
	if (rc == 0)
		rc = add_number(out, "queue", m->sp->queue);
	if (rc == 0 && m->due_wall != 0)
		rc = add_number(out, "due_time", m->due_wall / USEC_PER_SEC);
	if (rc == 0 && damage_of(m)[0] != '\0')
		rc = json_add_member(out, "damage", damage_of(m));
	return rc < 0 ? rc : buf_add_str(out, ", \"recipients\": [");
}

static int
add_object(const struct recipient *one, void *arg)
{
	struct rows *r = arg;
	char notify[DSN_NOTIFY_MAX];
	int rc;

	if (one->rcpt->mark == RCPT_DONE)
		return 0;
	dsn_notify_format(one->rcpt->dsn.notify, notify);
	rc = buf_printf(&r->line, "%s{\"address\": ", r->any ? ", " : "");
	r->any = true;
	if (rc == 0)
		rc = json_add_string(&r->line, one->rcpt->address);
	if (rc == 0 && one->reason != NULL)
		rc = json_add_member(&r->line, "delay_reason", one->reason);
	if (rc == 0 && one->rcpt->mark == RCPT_FAILED)
		rc = buf_add_str(&r->line, ", \"failed\": true");
	if (rc == 0)
		rc = add_given(&r->line, "notify", notify);
	if (rc == 0)
		rc = add_given(&r->line, "orcpt", one->rcpt->dsn.orcpt);
	if (rc == 0)
		rc = buf_add_char(&r->line, '}');
	return rc < 0 ? rc : send_line(r);
}

int
list_json(
    struct worker *w, const struct message *m, const struct view *v UNUSED)
{
	struct rows r = { .w = w };
	int rc = buf_printf(
	    &r.line, "{\"queue_name\": \"%s\"", message_state_name(m->dir));

	if (rc == 0)
		rc = json_add_member(&r.line, "queue_id", m->id);
	if (rc == 0)
		rc = add_envelope(&r.line, m);
	if (rc == 0)
		rc = send_line(&r);
	if (rc == 0 && m->damage[0] == '\0')
		rc = message_recipients(m, true, add_object, &r);
	if (rc == 0 || rc == -EBADMSG)
		rc = worker_text(w, "]}\n", 3);
	rows_done(&r);
	return rc;
}
