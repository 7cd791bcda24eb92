/* Listings: the form of `postqueue -p`, and objects with the members of
 * `postqueue -j`. */
#include "qctl/show/show.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

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
	struct out out, reason, last;
	bool any;
};

static void
rows_done(struct rows *r)
{
	out_done(&r->out);
	out_done(&r->reason);
	out_done(&r->last);
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
	struct out id = { 0 };
	char when[32] = "";

	out_clean(&id, m->id, QUEUE_ID_SIZE);
	if (whole)
		format_time(m->file.arrival_wall, when);
	out_str(&id,
	    m->dir == SPOOL_ACTIVE     ? "*"
		: m->dir == SPOOL_HOLD ? "!"
				       : "");
	out_str(&id, message_is_given_up(m) ? "#" : "");
	out_printf(&r->out, "%-29s %8" PRIu64 " %20.20s ", buf_str(&id.text),
	    whole ? m->file.content_len : m->file_size, when);
	out_clean(&r->out, sender, ADDRESS_MAX);
	out_str(&r->out, "\n");
	out_take_error(&r->out, &id);
	out_done(&id);
}

static void
add_reason(struct rows *r)
{
	const int pad = REASON_COLUMN - (int)r->reason.text.len;

	out_printf(&r->out, "%*s(%s)\n", pad < 0 ? 0 : pad, "",
	    buf_str(&r->reason.text));
}

/* A reason stands once above the recipients that share it. */
static int
add_recipient(const struct recipient *one, void *arg)
{
	struct rows *r = arg;

	if (one->rcpt->mark == RCPT_DONE)
		return 0;
	out_reset(&r->reason);
	if (one->reason != NULL)
		out_clean(&r->reason, one->reason, TEXT_MAX);
	if (r->reason.text.len > 0 &&
	    strcmp(buf_str(&r->reason.text), buf_str(&r->last.text)) != 0)
		add_reason(r);
	out_reset(&r->last);
	out_str(&r->last, buf_str(&r->reason.text));
	out_take_error(&r->out, &r->reason);
	out_take_error(&r->out, &r->last);
	out_printf(&r->out, "%60s", "");
	out_clean(&r->out, one->rcpt->address, ADDRESS_MAX);
	out_str(&r->out, "\n");
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
		out_str(&r.reason, "damaged: ");
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
list_total(const struct worker_totals *t, struct out *out)
{
	out_printf(out, "-- %" PRIu64 " Kbytes in %" PRIu64 " Request%s.\n",
	    t->bytes / 1024, t->messages, t->messages == 1 ? "" : "s");
}

/* ---- for programs ---- */

static void
add_number(struct out *out, const char *name, int64_t value)
{
	out_printf(out, ", \"%s\": %" PRId64, name, value);
}

/* Nothing, where the sender gave nothing. */
static void
add_given(struct out *out, const char *name, const char *value)
{
	out_member(out, name, value[0] == '\0' ? NULL : value);
}

static void
add_envelope(struct out *out, const struct message *m)
{
	const bool whole = m->damage[0] == '\0';

	add_number(out, "arrival_time", m->file.arrival_wall / USEC_PER_SEC);
	add_number(out, "message_size",
	    (int64_t)(whole ? m->file.content_len : m->file_size));
	out_printf(out, ", \"forced_expire\": %s",
	    message_is_given_up(m) ? "true" : "false");
	out_member(out, "sender",
	    m->sender.len > 0 || !whole ? buf_str(&m->sender) : NULL_SENDER);
	add_given(out, "ret", dsn_ret_name(m->dsn.ret));
	add_given(out, "envid", m->dsn.envid);
	add_number(out, "queue", m->sp->queue);
	if (m->due_wall != 0)
		add_number(out, "due_time", m->due_wall / USEC_PER_SEC);
	add_given(out, "damage", damage_of(m));
	out_str(out, ", \"recipients\": [");
}

static int
add_object(const struct recipient *one, void *arg)
{
	struct rows *r = arg;
	char notify[DSN_NOTIFY_MAX];

	if (one->rcpt->mark == RCPT_DONE)
		return 0;
	dsn_notify_format(one->rcpt->dsn.notify, notify);
	out_printf(&r->out, "%s{\"address\": ", r->any ? ", " : "");
	r->any = true;
	out_json(&r->out, one->rcpt->address);
	out_member(&r->out, "delay_reason", one->reason);
	if (one->rcpt->mark == RCPT_FAILED)
		out_str(&r->out, ", \"failed\": true");
	add_given(&r->out, "notify", notify);
	add_given(&r->out, "orcpt", one->rcpt->dsn.orcpt);
	out_str(&r->out, "}");
	return out_send(&r->out, r->w);
}

int
list_json(
    struct worker *w, const struct message *m, const struct view *v UNUSED)
{
	struct rows r = { .w = w };
	int rc;

	out_printf(
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
