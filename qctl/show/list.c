/* Listings: the form of `postqueue -p`, and objects with the members of
 * `postqueue -j`. */
#include "qctl/show/show.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#define NULL_SENDER   "MAILER-DAEMON"
#define ID_COLUMN     29 /* the width of ids */
#define REASON_COLUMN 76 /* the right end of reasons */
#define TEXT_MAX      2100

/* ---- for people ---- */

/* The columns of rows below are as wide. */
const char list_head[] =
    "-Queue ID-                    --Size-- ----Arrival Time---- "
    "-Sender/Recipient-------\n";

struct rows {
	struct worker *w;
	struct buf out, reason, last;
	bool any;
};

static void
rows_done(struct rows *r)
{
	buf_done(&r->out);
	buf_done(&r->reason);
	buf_done(&r->last);
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

/* Behind an id stands "*" of an active message, "!" of one on hold, "#" of one
 * that was given up. */
static void
add_row(struct rows *r, const struct message *m)
{
	const bool whole = m->damage[0] == '\0';
	const char *sender = m->sender.len > 0 ? buf_str(&m->sender)
	    : whole                            ? NULL_SENDER
					       : "";
	const size_t begin = r->out.len;
	char when[32] = "";
	int pad;

	out_clean(&r->out, m->id, QUEUE_ID_SIZE);
	if (whole)
		format_time(m->file.arrival_wall, when);
	buf_add_str(&r->out,
	    m->dir == SPOOL_ACTIVE     ? "*"
		: m->dir == SPOOL_HOLD ? "!"
				       : "");
	buf_add_str(&r->out, message_is_given_up(m) ? "#" : "");
	pad = ID_COLUMN - (int)(r->out.len - begin);
	buf_printf(&r->out, "%*s %8" PRIu64 " %20.20s ", pad < 0 ? 0 : pad, "",
	    whole ? m->file.content_len : m->file_size, when);
	out_clean(&r->out, sender, ADDRESS_MAX);
	buf_add_str(&r->out, "\n");
}

static void
add_reason(struct rows *r)
{
	const int pad = REASON_COLUMN - (int)r->reason.len;

	buf_printf(
	    &r->out, "%*s(%s)\n", pad < 0 ? 0 : pad, "", buf_str(&r->reason));
}

/* A reason stands once above the recipients that share it. */
static int
add_recipient(const struct recipient *one, void *arg)
{
	struct rows *r = arg;
	struct buf was;

	if (one->rcpt->mark == RCPT_DONE)
		return 0;
	buf_reset(&r->reason);
	if (one->reason != NULL)
		out_clean(&r->reason, one->reason, TEXT_MAX);
	if (r->reason.len > 0 &&
	    strcmp(buf_str(&r->reason), buf_str(&r->last)) != 0)
		add_reason(r);
	if (r->reason.error < 0)
		return r->reason.error;
	was = r->last;
	r->last = r->reason;
	r->reason = was;
	buf_printf(&r->out, "%60s", "");
	out_clean(&r->out, one->rcpt->address, ADDRESS_MAX);
	buf_add_str(&r->out, "\n");
	return out_send(&r->out, r->w);
}

/* A list reads no content: the check that fails is found by `explain'. */
static const char *
damage_of(const struct message *m)
{
	return m->damage[0] == '\0' && m->dir == SPOOL_CORRUPT
	    ? "`qctl explain' says which check fails"
	    : m->damage;
}

int
list_text(
    struct worker *w, const struct message *m, const struct view *v UNUSED)
{
	struct rows r = { .w = w };
	const char *damage = damage_of(m);
	int rc;

	add_row(&r, m);
	if (damage[0] != '\0') {
		buf_add_str(&r.reason, "damaged: ");
		out_clean(&r.reason, damage, TEXT_MAX);
		add_reason(&r);
	}
	rc = out_send(&r.out, w);
	if (rc == 0 && m->damage[0] == '\0')
		rc = message_recipients(m, true, add_recipient, &r);
	if (rc == 0 || rc == -EBADMSG)
		rc = worker_text(w, "\n", 1);
	rows_done(&r);
	return rc;
}

void
list_total(const struct worker_totals *t, struct buf *out)
{
	buf_printf(out, "-- %" PRIu64 " Kbytes in %" PRIu64 " Request%s.\n",
	    t->bytes / 1024, t->messages, t->messages == 1 ? "" : "s");
}

/* ---- for programs ---- */

static void
add_number(struct buf *out, const char *name, int64_t value)
{
	buf_printf(out, ", \"%s\": %" PRId64, name, value);
}

/* Nothing, where the sender gave nothing. */
static void
add_given(struct buf *out, const char *name, const char *value)
{
	out_member(out, name, value[0] == '\0' ? NULL : value);
}

static void
add_envelope(struct buf *out, const struct message *m)
{
	const bool whole = m->damage[0] == '\0';

	add_number(out, "arrival_time", m->file.arrival_wall / USEC_PER_SEC);
	add_number(out, "message_size",
	    (int64_t)(whole ? m->file.content_len : m->file_size));
	buf_printf(out, ", \"forced_expire\": %s",
	    message_is_given_up(m) ? "true" : "false");
	out_member(out, "sender",
	    m->sender.len > 0 || !whole ? buf_str(&m->sender) : NULL_SENDER);
	add_given(out, "ret", dsn_ret_name(m->dsn.ret));
	add_given(out, "envid", m->dsn.envid);
	add_number(out, "queue", m->sp->queue);
	if (m->due_wall != 0)
		add_number(out, "due_time", m->due_wall / USEC_PER_SEC);
	add_given(out, "damage", damage_of(m));
	buf_add_str(out, ", \"recipients\": [");
}

static int
add_object(const struct recipient *one, void *arg)
{
	struct rows *r = arg;
	char notify[DSN_NOTIFY_MAX];

	if (one->rcpt->mark == RCPT_DONE)
		return 0;
	dsn_notify_format(one->rcpt->dsn.notify, notify);
	buf_printf(&r->out, "%s{\"address\": ", r->any ? ", " : "");
	r->any = true;
	out_json(&r->out, one->rcpt->address, one->rcpt->len);
	out_member(&r->out, "delay_reason", one->reason);
	if (one->rcpt->mark == RCPT_FAILED)
		buf_add_str(&r->out, ", \"failed\": true");
	add_given(&r->out, "notify", notify);
	add_given(&r->out, "orcpt", one->rcpt->dsn.orcpt);
	buf_add_str(&r->out, "}");
	return out_send(&r->out, r->w);
}

int
list_json(
    struct worker *w, const struct message *m, const struct view *v UNUSED)
{
	struct rows r = { .w = w };
	int rc;

	buf_printf(
	    &r.out, "{\"queue_name\": \"%s\"", message_state_name(m->dir));
	out_member(&r.out, "queue_id", m->id);
	add_envelope(&r.out, m);
	rc = out_send(&r.out, w);
	if (rc == 0 && m->damage[0] == '\0')
		rc = message_recipients(m, true, add_object, &r);
	if (rc == 0 || rc == -EBADMSG)
		rc = worker_text(w, "]}\n", 3);
	rows_done(&r);
	return rc;
}
