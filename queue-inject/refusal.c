#include "queue-inject/refusal.h"

#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sysexits.h>

struct row {
	int sysexit, qmail;
	const char *dsn;
	unsigned reply;
};

/* clang-format off */
static const struct row rows[REFUSAL_NKINDS] = {
	[REFUSAL_NONE]         = { EX_OK,          0,  "2.0.0", 250 },
	[REFUSAL_USAGE]        = { EX_USAGE,       81, "5.5.4", 554 },
	[REFUSAL_UNSUPPORTED]  = { EX_UNAVAILABLE, 81, "5.3.3", 502 },
	[REFUSAL_NO_RECIPIENT] = { EX_USAGE,       91, "5.5.1", 554 },
	[REFUSAL_ADDRESS]      = { EX_DATAERR,     31, "5.1.3", 553 },
	[REFUSAL_ADDRESS_LONG] = { EX_DATAERR,     11, "5.1.3", 553 },
	[REFUSAL_ENVELOPE]     = { EX_DATAERR,     91, "5.5.2", 554 },
	[REFUSAL_TOO_BIG]      = { EX_DATAERR,     31, "5.3.4", 552 },
	[REFUSAL_TOO_MANY]     = { EX_DATAERR,     31, "5.5.3", 554 },
	[REFUSAL_HEADER]       = { EX_DATAERR,     31, "5.6.0", 554 },
	[REFUSAL_READ]         = { EX_IOERR,       54, "4.3.0", 451 },
	[REFUSAL_TIMEOUT]      = { EX_TEMPFAIL,    52, "4.4.2", 421 },
	[REFUSAL_STOPPED]      = { EX_TEMPFAIL,    71, "4.3.2", 421 },
	[REFUSAL_MEMORY]       = { EX_TEMPFAIL,    51, "4.3.0", 451 },
	[REFUSAL_CONFIG]       = { EX_TEMPFAIL,    55, "4.3.5", 451 },
	[REFUSAL_PERMISSION]   = { EX_NOPERM,      61, "4.7.0", 451 },
	[REFUSAL_CLOSED]       = { EX_TEMPFAIL,    61, "4.3.0", 451 },
	[REFUSAL_SPOOL]        = { EX_TEMPFAIL,    61, "4.3.0", 451 },
	[REFUSAL_DISABLED]     = { EX_TEMPFAIL,    71, "4.3.2", 451 },
	[REFUSAL_CREATE]       = { EX_TEMPFAIL,    63, "4.3.0", 451 },
	[REFUSAL_FULL]         = { EX_TEMPFAIL,    53, "4.3.1", 452 },
	[REFUSAL_SHARE]        = { EX_TEMPFAIL,    71, "4.7.1", 451 },
	[REFUSAL_WRITE]        = { EX_TEMPFAIL,    53, "4.3.0", 451 },
};

/* Errors of the spool; all others are REFUSAL_CREATE. */
static const struct { int error; enum refusal_kind kind; } errors[] = {
	{ ENOSPC,       REFUSAL_FULL },
	{ EDQUOT,       REFUSAL_FULL },
	{ EIO,          REFUSAL_WRITE },
	{ EROFS,        REFUSAL_WRITE },
	{ EUSERS,       REFUSAL_SHARE },
	{ EFBIG,        REFUSAL_TOO_BIG },
	{ E2BIG,        REFUSAL_TOO_MANY },
	{ ENOMEM,       REFUSAL_MEMORY },
	{ EDESTADDRREQ, REFUSAL_NO_RECIPIENT },
	{ EILSEQ,       REFUSAL_ADDRESS },
	{ EINVAL,       REFUSAL_ADDRESS },
	{ EBADRQC,      REFUSAL_USAGE },
	{ ENAMETOOLONG, REFUSAL_ADDRESS_LONG },
	{ EACCES,       REFUSAL_CLOSED },
	{ EPERM,        REFUSAL_CLOSED },
	{ ENOENT,       REFUSAL_SPOOL },
	{ ENOTDIR,      REFUSAL_SPOOL },
	{ EAGAIN,       REFUSAL_DISABLED },
	{ ESHUTDOWN,    REFUSAL_DISABLED },
};
/* clang-format on */

int
refuse(struct refusal *why, enum refusal_kind kind, const char *fmt, ...)
{
	va_list ap;

	why->kind = kind;
	va_start(ap, fmt);
	vsnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
	return -1;
}

int
refuse_error(struct refusal *why, int error, const char *where)
{
	enum refusal_kind kind = REFUSAL_CREATE;
	size_t i;

	for (i = 0; i < ARRAY_LEN(errors); i++)
		if (errors[i].error == -error)
			kind = errors[i].kind;
	return refuse(why, kind, "%s", where);
}

static const char *
address_fault(int error)
{
	switch (error) {
	case -EILSEQ:
		return "control character in the address";
	case -ENAMETOOLONG:
		return "address too long:";
	default:
		return "not an address:";
	}
}

int
refuse_address(struct refusal *why, int error, const char *address, size_t len)
{
	struct buf shown = { 0 };

	/* Shown as far as memory allows; the reason stands without it. */
	if (text_clean(&shown, address, len, 80) < 0)
		buf_reset(&shown);
	refuse_error(why, error, "");
	refuse(why, why->kind, "%s <%s%s>", address_fault(error),
	    buf_str(&shown), len > shown.len ? "…" : "");
	buf_done(&shown);
	return -1;
}

int
refusal_exit(enum refusal_kind kind, bool qmail)
{
	return qmail ? rows[kind].qmail : rows[kind].sysexit;
}

unsigned
refusal_reply(enum refusal_kind kind, const char **ret_dsn)
{
	*ret_dsn = rows[kind].dsn;
	return rows[kind].reply;
}

void
refusal_print(const struct refusal *why, const char *name, FILE *out)
{
	struct buf text = { 0 };

	/* Parts of the text come from outside. */
	if (text_clean(&text, why->text, strlen(why->text), SIZE_MAX) < 0)
		buf_reset(&text);
	fprintf(out, "%s: %s %s\n", name, rows[why->kind].dsn, buf_str(&text));
	buf_done(&text);
}
