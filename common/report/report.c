#include "report/parts.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/address.h"
#include "base/date.h"

#define TOKEN_MAX 40
#define HOST_MAX  255

/* ---- the boundary ---- */

/* `=_` stands in no line of quoted-printable, and fields begin with a name or
 * a blank: only a message that is returned as it is can have the boundary. */
static void
make_boundary(struct report_facts *r)
{
	char token[TOKEN_MAX + 1];
	size_t n = 0;
	unsigned turn = 0;
	const char *s;

	for (s = r->token; *s != '\0' && n < TOKEN_MAX; s++)
		if (isalnum((unsigned char)*s))
			token[n++] = *s;
	token[n] = '\0';
	ASSERT(n > 0);
	do
		snprintf(
		    r->boundary, sizeof(r->boundary), "%s=_%u", token, turn++);
	while (r->content_len > 0 &&
	    memmem(r->content, r->content_len, r->boundary,
		strlen(r->boundary)) != NULL);
}

static void
add_boundary(const struct report_facts *r, struct buf *out)
{
	buf_printf(out, "\n--%s\n", r->boundary);
}

/* ---- the header ---- */

static bool
is_atext(char c)
{
	return isalnum((unsigned char)c) ||
	    (c != '\0' && strchr("!#$%&'*+-/=?^_`{|}~", c) != NULL);
}

/* Atoms with a dot between each two. */
static bool
is_dot_atom(const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!is_atext(s[i]) &&
		    (s[i] != '.' || i == 0 || i + 1 == len || s[i - 1] == '.'))
			return false;
	return len > 0;
}

static bool
is_quoted(const char *s, size_t len)
{
	size_t i;

	if (len < 2 || s[0] != '"' || s[len - 1] != '"')
		return false;
	for (i = 1; i < len - 1; i++) {
		if (s[i] == '\\')
			i++;
		else if (s[i] == '"')
			return false;
		if (i == len - 1 || s[i] < ' ' || s[i] > '~')
			return false;
	}
	return true;
}

/* An address that a header can have as it is (RFC 5322 section 3.4.1). */
static bool
is_addr_spec(const char *s)
{
	const char *at = strrchr(s, '@');
	const size_t len = at == NULL ? 0 : (size_t)(at - s);

	return at != NULL && strlen(s) <= ADDRESS_MAX &&
	    (is_dot_atom(s, len) || is_quoted(s, len)) &&
	    is_dot_atom(at + 1, strlen(at + 1));
}

/* Another address stands in the words alone: the envelope has the recipient. */
static void
add_address(struct buf *out, const char *field, const char *display,
    const char *address, const char *otherwise)
{
	if (is_addr_spec(address))
		buf_printf(out, "%s: %s<%s>\n", field, display, address);
	else
		buf_printf(out, "%s: %s\n", field, otherwise);
}

static void
add_header(const struct report_facts *r, struct buf *out)
{
	const size_t len = strlen(r->host);
	char date[DATE_SIZE];

	date_format(r->now_wall, date);
	add_address(out, "From", "Mail Delivery System ", r->from,
	    "Mail Delivery System <MAILER-DAEMON@localhost>");
	add_address(out, "To", "", r->to, "undisclosed-recipients:;");
	buf_printf(out,
	    "Subject: %s\n"
	    "Date: %s\n"
	    "Message-ID: <%.*s@%s>\n"
	    "Auto-Submitted: auto-replied\n"
	    "MIME-Version: 1.0\n"
	    "Content-Type: multipart/report;\n"
	    "\treport-type=delivery-status;\n"
	    "\tboundary=\"%s\"\n"
	    "Content-Transfer-Encoding: %s\n"
	    "\n"
	    "This is a message in MIME format.\n",
	    prose_subject(r), date, (int)strcspn(r->boundary, "="), r->boundary,
	    len <= HOST_MAX && is_dot_atom(r->host, len) ? r->host
							 : "localhost",
	    r->boundary, original_is_8bit(r) ? "8bit" : "7bit");
}

/* ---- the parts ---- */

uint64_t
report_rcpts_limit(uint64_t size_limit)
{
	const uint64_t limit = 10 * size_limit;

	return limit < REPORT_RCPTS_MIN ? REPORT_RCPTS_MIN : limit;
}

int
report_begin(struct report_facts *r, struct buf *out)
{
	ASSERT(r->kind < REPORT_NKINDS);
	r->said = 0;
	r->form = (int)original_judge(r);
	make_boundary(r);
	add_header(r, out);
	add_boundary(r, out);
	prose_begin(r, out);
	return out->error;
}

/* A program or a mailbox of an alias. */
static bool
is_program(const char *address)
{
	static const char include[] = ":include:";

	return address[0] == '|' || address[0] == '/' ||
	    strncmp(address, ":forward:", 9) == 0 ||
	    strncmp(address, include, sizeof(include) - 1) == 0;
}

/* The address that was written, of a name of this host or of a list. "": it is
 * not known. A program of an alias is shown as that: its command is of no use
 * to the sender, and not for everybody to read. */
static struct report_rcpt
as_written(
    const struct report_rcpt *to, struct buf *ret_written, struct buf *out)
{
	static const char type[] = "rfc822;";
	struct report_rcpt shown = *to;

	if (to->orcpt != NULL &&
	    strncasecmp(to->orcpt, type, sizeof(type) - 1) == 0)
		xtext_decode(ret_written, to->orcpt + sizeof(type) - 1);
	if (ret_written->len > 0 && is_program(to->address))
		shown.address = buf_str(ret_written);
	buf_note(out, ret_written->error);
	return shown;
}

int
report_say(
    struct report_facts *r, const struct report_rcpt *to, struct buf *out)
{
	struct report_rcpt shown;
	struct buf written = { 0 };

	ASSERT(to->action < REPORT_NACTIONS);
	if (r->said++ >= REPORT_SAID_MAX)
		return 0;
	shown = as_written(to, &written, out);
	prose_rcpt(&shown, buf_str(&written), out);
	buf_done(&written);
	return out->error;
}

int
report_middle(struct report_facts *r, struct buf *out)
{
	prose_end(r, out);
	add_boundary(r, out);
	status_begin(r, out);
	return out->error;
}

int
report_state(
    struct report_facts *r, const struct report_rcpt *to, struct buf *out)
{
	struct buf written = { 0 };
	const struct report_rcpt shown = as_written(to, &written, out);

	status_rcpt(r, &shown, out);
	buf_done(&written);
	return out->error;
}

int
report_end(struct report_facts *r, struct buf *out)
{
	add_boundary(r, out);
	original_add(r, out);
	buf_printf(out, "\n--%s--\n", r->boundary);
	return out->error;
}
