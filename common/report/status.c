#include "report/parts.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/date.h"

#define ENHANCED_MAX 3  /* digits of each number of a status code */
#define TYPE_MAX     40 /* an address type */

/* ---- of the message ---- */

static void
field_date(struct buf *out, const char *name, usec_t wall)
{
	char date[DATE_SIZE];

	date_format(wall, date);
	buf_printf(out, "%s: %s\n", name, date);
}

static void
field_envid(struct buf *out, const char *xtext)
{
	struct buf id = { 0 };

	xtext_decode(&id, xtext);
	field_text(out, "Original-Envelope-Id", buf_str(&id), id.len);
	buf_note(out, id.error);
	buf_done(&id);
}

void
status_begin(const struct report_facts *r, struct buf *out)
{
	buf_add_str(out,
	    "Content-Description: Delivery report\n"
	    "Content-Type: message/delivery-status\n\n");
	field_address(out, "Reporting-MTA", "dns", r->host);
	if (r->envid != NULL && r->envid[0] != '\0')
		field_envid(out, r->envid);
	field_text(out, "X-Qscheduler-Queue-Id", r->id, strlen(r->id));
	field_address(out, "X-Qscheduler-Sender", "rfc822", r->sender);
	field_date(out, "Arrival-Date", r->arrival_wall);
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

static void
field_status(struct buf *out, const struct report_rcpt *to)
{
	const struct action *action = &actions[to->action];

	if (is_status(to->dsn, action->may))
		buf_printf(out, "Status: %s\n", to->dsn);
	else
		buf_printf(out, "Status: %c.0.0\n", action->class);
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
static void
field_orcpt(struct buf *out, const char *orcpt)
{
	const char *type_end = strchr(orcpt, ';');
	const size_t len = type_end == NULL ? 0 : (size_t)(type_end - orcpt);
	char type[TYPE_MAX + 1] = "unknown";
	struct buf address = { 0 };

	if (is_atom(orcpt, len)) {
		snprintf(type, sizeof(type), "%.*s", (int)len, orcpt);
		xtext_decode(&address, type_end + 1);
	} else
		buf_add_str(&address, orcpt);
	field_address(out, "Original-Recipient", type, buf_str(&address));
	buf_note(out, address.error);
	buf_done(&address);
}

/* "mx.example.org[192.0.2.1]:25": the name, or the address alone. */
static void
field_remote(struct buf *out, const char *relay)
{
	const char *open = strchr(relay, '[');
	struct buf name = { 0 };

	if (open == NULL)
		return;
	buf_add(&name, relay,
	    open > relay ? (size_t)(open - relay) : strcspn(relay, "]") + 1);
	field_address(out, "Remote-MTA", "dns", buf_str(&name));
	buf_note(out, name.error);
	buf_done(&name);
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

static void
field_diagnostic(struct buf *out, const struct report_rcpt *to)
{
	const bool remote = strchr(to->relay, '[') != NULL;
	size_t len = strlen(to->text);
	const char *reply = remote ? reply_in(to->text, &len) : NULL;
	struct buf value = { 0 };

	buf_add_str(&value, reply != NULL ? "smtp; " : "X-Qscheduler; ");
	buf_add(&value, reply != NULL ? reply : to->text, len);
	field_text(out, "Diagnostic-Code", value.data, value.len);
	buf_note(out, value.error);
	buf_done(&value);
}

void
status_rcpt(
    const struct report_facts *r, const struct report_rcpt *to, struct buf *out)
{
	buf_add_char(out, '\n');
	if (to->orcpt != NULL && to->orcpt[0] != '\0')
		field_orcpt(out, to->orcpt);
	field_address(out, "Final-Recipient", "rfc822", to->address);
	buf_printf(out, "Action: %s\n", actions[to->action].name);
	field_status(out, to);
	field_remote(out, to->relay);
	if (to->text[0] != '\0')
		field_diagnostic(out, to);
	if (to->when_wall > 0)
		field_date(out, "Last-Attempt-Date", to->when_wall);
	if (to->action == REPORT_DELAYED && r->until_wall > 0)
		field_date(out, "Will-Retry-Until", r->until_wall);
}
