#include "report/parts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <strings.h>

#include "base/date.h"

static const struct kind {
	const char *subject;
	const char *what; /* paragraphs */
} kinds[] = {
	[REPORT_FAILURE] = { "Undelivered Mail Returned to Sender",
	    "Your message could not be delivered to the recipients below. "
	    "These failures are final: the message is not tried again for "
	    "them. To reach them you have to send it again, when the reason "
	    "is gone." },
	[REPORT_DELAY] = { "Delayed Mail (still being retried)",
	    "Your message has not been delivered yet to the recipients below. "
	    "You need not send it again: delivery goes on being tried." },
	[REPORT_SUCCESS] = { "Successful Mail Delivery Report",
	    "This is the report that was asked for: your message has been "
	    "delivered, or handed on, to the recipients below." },
	[REPORT_DOUBLE] = { "Postmaster Copy: Undelivered Mail",
	    "A message with no sender to report to, such as a report of this "
	    "system, could not be delivered to the recipients below. No other "
	    "report of this is sent, and the message is not tried again." },
};

const char *
prose_subject(const struct report_facts *r)
{
	return r->damaged && r->kind == REPORT_DELAY
	    ? "Delayed Mail (damaged, waits for the administrator)"
	    : kinds[r->kind].subject;
}

static const char *
prose_what(const struct report_facts *r)
{
	return r->damaged && r->kind == REPORT_DELAY
	    ? "Your message has not been delivered to the recipients below, "
	      "and is not being tried: it was damaged on the disk of this "
	      "mail system. Its administrator can deliver what is left of it, "
	      "or remove it. If it matters, send it again."
	    : kinds[r->kind].what;
}

PRINTF(3, 4)
static void
say(struct buf *out, const char *indent, const char *fmt, ...)
{
	struct buf text = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_note(out, buf_vprintf(&text, fmt, ap));
	va_end(ap);
	quoted_fill(out, indent, buf_str(&text));
	buf_done(&text);
}

static void
say_blank(struct buf *out)
{
	buf_add_char(out, '\n');
}

static void
say_message(const struct report_facts *r, struct buf *out)
{
	char date[DATE_SIZE];

	date_format(r->arrival_wall, date);
	say(out, "", "The message: queue id %s, from <%s>, accepted on %s.",
	    r->id, r->sender, date);
	if (r->kind == REPORT_DELAY && r->until_wall > 0) {
		date_format(r->until_wall, date);
		say(out, "", "It is tried until %s.", date);
	}
}

void
prose_begin(const struct report_facts *r, struct buf *out)
{
	buf_add_str(out,
	    "Content-Description: Notification\n"
	    "Content-Type: text/plain; charset=utf-8\n"
	    "Content-Transfer-Encoding: quoted-printable\n\n");
	say(out, "", "This is the mail system at host %s.", r->host);
	say_blank(out);
	say(out, "", "%s", prose_what(r));
	if (r->mixed)
		say(out, "",
		    "Others below have it, which you asked to be told of: "
		    "they say so.");
	say_blank(out);
	say_message(r, out);
	say_blank(out);
}

void
prose_rcpt(const struct report_rcpt *to, const char *written, struct buf *out)
{
	static const char *const became[REPORT_NACTIONS] = {
		[REPORT_FAILED] = "",
		[REPORT_DELAYED] = "",
		[REPORT_DELIVERED] = "delivered: ",
		[REPORT_RELAYED] =
		    "handed on to a system that sends no such reports: ",
		[REPORT_EXPANDED] = "handed on to the recipients of an alias: ",
	};
	const bool other =
	    written[0] != '\0' && strcasecmp(written, to->address) != 0;

	say(out, "    ", "<%s>%s%s%s: %s%s%s%s%s", to->address,
	    other ? " (sent to <" : "", other ? written : "", other ? ">)" : "",
	    became[to->action], to->text, to->dsn[0] != '\0' ? " (status " : "",
	    to->dsn, to->dsn[0] != '\0' ? ")" : "");
	say_blank(out);
}

static void
say_return(const struct report_facts *r, struct buf *out)
{
	const enum original_form form = (enum original_form)r->form;
	const bool header =
	    form == ORIGINAL_HEADER || form == ORIGINAL_HEADER_ENCODED;

	if (header && r->whole)
		say(out, "",
		    "The header of the message is below; its content cannot "
		    "be returned unchanged by mail.");
	else
		say(out, "",
		    "The %s below, behind the same facts for programs.",
		    header ? "header of the message is" : "message is");
}

/* A report has a bounded size. */
static void
say_more(const struct report_facts *r, struct buf *out)
{
	if (r->more == 0)
		return;
	if (r->kind == REPORT_DELAY)
		say(out, "",
		    "Recipients that wait as well, for whom this report has no "
		    "room: %" PRIu32 ". The log of this system has them, under "
		    "the queue id %s.",
		    r->more, r->id);
	else
		say(out, "",
		    "Recipients that further reports tell of: %" PRIu32 ".",
		    r->more);
	say_blank(out);
}

void
prose_end(const struct report_facts *r, struct buf *out)
{
	say_more(r, out);
	if (r->said > REPORT_SAID_MAX) {
		say(out, "",
		    "Recipients that are not named here: %" PRIu32
		    ". The part for programs has all of them.",
		    r->said - REPORT_SAID_MAX);
		say_blank(out);
	}
	say_return(r, out);
	say_blank(out);
	say(out, "",
	    "For help write to postmaster of this system, and "
	    "include this report; you may leave out your own "
	    "text.");
}
