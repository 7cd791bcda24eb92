#include "report/parts.h"

#include <ctype.h>
#include <string.h>

#include "base/date.h"

#define ENHANCED_MAX 3  /* digits of each number of a status code */
#define TYPE_MAX     40 /* an address type */

/* ---- of the message ---- */

static int
field_date(struct buf *out, const char *name, usec_t wall)
{
	char date[DATE_SIZE];

	date_format(wall, date);
	return buf_printf(out, "%s: %s\n", name, date);
}

static int
field_envid(struct buf *out, const char *xtext)
{
	struct buf id = { 0 };
	int e = xtext_decode(&id, xtext);

	if (e == 0)
		e = field_text(
		    out, "Original-Envelope-Id", buf_str(&id), id.len);
	buf_done(&id);
	return e;
}

int
status_begin(const struct report_facts *r, struct buf *out)
{
	int e = buf_add_str(out,
	    "Content-Description: Delivery report\n"
	    "Content-Type: message/delivery-status\n\n");

	if (e == 0)
		e = field_address(out, "Reporting-MTA", "dns", r->host);
	if (e == 0 && r->envid != NULL && r->envid[0] != '\0')
		e = field_envid(out, r->envid);
	if (e == 0)
		e = field_text(
		    out, "X-Qscheduler-Queue-Id", r->id, strlen(r->id));
	if (e == 0)
		e = field_address(
		    out, "X-Qscheduler-Sender", "rfc822", r->sender);
	return e < 0 ? e : field_date(out, "Arrival-Date", r->arrival_wall);
}

/* ---- of a recipient ---- */

static const struct action {
	const char *name;
	char class;      /* of a status that is missing or wrong */
	const char *may; /* classes of a status that is right */
} actions[REPORT_NACTIONS] = {
	[REPORT_FAILED] = { "failed", '5', "45" },
	[REPORT_DELAYED] = { "delayed", '4', "4" },
	[REPORT_DELIVERED] = { "delivered", '2', "2" },
	[REPORT_RELAYED] = { "relayed", '2', "2" },
	[REPORT_EXPANDED] = { "expanded", '2', "2" },
};

static const char *
after_number(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return n == 0 || n > ENHANCED_MAX ? NULL : s + n;
}

static bool
is_status(const char *s, const char *classes)
{
	if (s[0] == '\0' || strchr(classes, s[0]) == NULL || s[1] != '.')
		return false;
	s = after_number(s + 2);
	if (s == NULL || *s != '.')
		return false;
	s = after_number(s + 1);
	return s != NULL && *s == '\0';
}

static int
field_status(struct buf *out, const struct report_rcpt *to)
{
	const struct action *action = &actions[to->action];

	if (is_status(to->dsn, action->may))
		return buf_printf(out, "Status: %s\n", to->dsn);
	return buf_printf(out, "Status: %c.0.0\n", action->class);
}

static bool
is_atom(const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '-')
			return false;
	return len > 0 && len <= TYPE_MAX;
}

/* "rfc822;alice+2Bnews@example.org" as the sender's system wrote it. */
static int
field_orcpt(struct buf *out, const char *orcpt)
{
	const char *type_end = strchr(orcpt, ';');
	const size_t len = type_end == NULL ? 0 : (size_t)(type_end - orcpt);
	struct buf type = { 0 }, address = { 0 };
	int e;

	if (!is_atom(orcpt, len))
		return field_address(
		    out, "Original-Recipient", "unknown", orcpt);
	e = buf_add(&type, orcpt, len);
	if (e == 0)
		e = xtext_decode(&address, type_end + 1);
	if (e == 0)
		e = field_address(out, "Original-Recipient", buf_str(&type),
		    buf_str(&address));
	buf_done(&type);
	buf_done(&address);
	return e;
}

/* "mx.example.org[192.0.2.1]:25": the name, or the address alone. */
static int
field_remote(struct buf *out, const char *relay)
{
	const char *open = strchr(relay, '[');
	struct buf name = { 0 };
	int e;

	if (open == NULL)
		return 0;
	e = buf_add(&name, relay,
	    open > relay ? (size_t)(open - relay) : strcspn(relay, "]") + 1);
	if (e == 0)
		e = field_address(out, "Remote-MTA", "dns", buf_str(&name));
	buf_done(&name);
	return e;
}

/* The reply of a server in a text such as
 * "host h[ip] said: 550 5.1.1 no (in reply to RCPT TO)"; NULL: none. */
static const char *
reply_in(const char *text, size_t *ret_len)
{
	static const char before[] = " said: ", after[] = " (in reply to ";
	const char *reply = strstr(text, before), *next, *end = NULL;

	if (reply == NULL)
		return NULL;
	reply += sizeof(before) - 1;
	if (strspn(reply, "0123456789") != 3)
		return NULL;
	for (next = reply; (next = strstr(next, after)) != NULL; next++)
		end = next;
	*ret_len = end == NULL ? strlen(reply) : (size_t)(end - reply);
	return reply;
}

static int
field_diagnostic(struct buf *out, const struct report_rcpt *to)
{
	const bool remote = strchr(to->relay, '[') != NULL;
	size_t len = strlen(to->text);
	const char *reply = remote ? reply_in(to->text, &len) : NULL;
	struct buf value = { 0 };
	int e =
	    buf_add_str(&value, reply != NULL ? "smtp; " : "X-Qscheduler; ");

	if (e == 0)
		e = buf_add(&value, reply != NULL ? reply : to->text, len);
	if (e == 0)
		e = field_text(out, "Diagnostic-Code", value.data, value.len);
	buf_done(&value);
	return e;
}

int
status_rcpt(
    const struct report_facts *r, const struct report_rcpt *to, struct buf *out)
{
	int e = buf_add_char(out, '\n');

	if (e == 0 && to->orcpt != NULL && to->orcpt[0] != '\0')
		e = field_orcpt(out, to->orcpt);
	if (e == 0)
		e = field_address(
		    out, "Final-Recipient", "rfc822", to->address);
	if (e == 0)
		e = buf_printf(out, "Action: %s\n", actions[to->action].name);
	if (e == 0)
		e = field_status(out, to);
	if (e == 0)
		e = field_remote(out, to->relay);
	if (e == 0 && to->text[0] != '\0')
		e = field_diagnostic(out, to);
	if (e == 0 && to->when_wall > 0)
		e = field_date(out, "Last-Attempt-Date", to->when_wall);
	if (e == 0 && to->action == REPORT_DELAYED && r->until_wall > 0)
		e = field_date(out, "Will-Retry-Until", r->until_wall);
	return e;
}
