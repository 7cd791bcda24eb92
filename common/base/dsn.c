#include "base/dsn.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define TYPE_MAX 40 /* letters of an address type */

bool
dsn_mail_is_empty(const struct dsn_mail *dsn)
{
	return dsn->ret == DSN_RET_NONE && dsn->envid[0] == '\0';
}

bool
dsn_rcpt_is_empty(const struct dsn_rcpt *dsn)
{
	return dsn->notify == 0 && dsn->orcpt[0] == '\0';
}

/* ---- xtext ---- */

static int
hex_value(char c)
{
	return c >= '0' && c <= '9' ? c - '0'
	    : c >= 'A' && c <= 'F'  ? c - 'A' + 10
				    : -1;
}

int
dsn_encoded_octet(const char *s, size_t left)
{
	const int high = left < 3 || *s != '+' ? -1 : hex_value(s[1]);
	const int low = high < 0 ? -1 : hex_value(s[2]);

	return low < 0 ? -1 : high << 4 | low;
}

static bool
is_xtext(const char *s, size_t len)
{
	size_t i;
	int c;

	for (i = 0; i < len; i++) {
		if (s[i] == '+') {
			c = dsn_encoded_octet(s + i, len - i);
			if (c < ' ' || c > '~')
				return false;
			i += 2;
		} else if (s[i] <= ' ' || s[i] > '~' || s[i] == '=') {
			return false;
		}
	}
	return len > 0;
}

int
dsn_envid_check(const char *envid, size_t len)
{
	if (len > DSN_ENVID_MAX)
		return -ENAMETOOLONG;
	return is_xtext(envid, len) ? 0 : -EINVAL;
}

int
dsn_orcpt_check(const char *orcpt, size_t len)
{
	size_t n = 0;

	if (len > DSN_ORCPT_MAX)
		return -ENAMETOOLONG;
	while (n < len && (isalnum((unsigned char)orcpt[n]) || orcpt[n] == '-'))
		n++;
	if (n == 0 || n > TYPE_MAX || n == len || orcpt[n] != ';')
		return -EINVAL;
	return is_xtext(orcpt + n + 1, len - n - 1) ? 0 : -EINVAL;
}

int
dsn_envid_set(struct dsn_mail *dsn, const char *envid, size_t len)
{
	int r = dsn_envid_check(envid, len);

	if (r < 0)
		return r;
	memcpy(dsn->envid, envid, len);
	dsn->envid[len] = '\0';
	return 0;
}

int
dsn_orcpt_set(struct dsn_rcpt *dsn, const char *orcpt, size_t len)
{
	int r = dsn_orcpt_check(orcpt, len);

	if (r < 0)
		return r;
	memcpy(dsn->orcpt, orcpt, len);
	dsn->orcpt[len] = '\0';
	return 0;
}

int
dsn_orcpt_write(struct dsn_rcpt *dsn, const char *address)
{
	static const char type[] = "rfc822;";
	char text[DSN_ORCPT_MAX + 4];
	size_t n = sizeof(type) - 1;

	memcpy(text, type, n);
	for (; *address != '\0'; address++) {
		const unsigned char c = (unsigned char)*address;

		if (n > DSN_ORCPT_MAX)
			return -ENAMETOOLONG;
		if (c > ' ' && c < 0x7f && c != '+' && c != '=')
			text[n++] = *address;
		else
			n += (size_t)snprintf(
			    text + n, sizeof(text) - n, "+%02X", c);
	}
	return dsn_orcpt_set(dsn, text, n);
}

/* ---- NOTIFY and RET ---- */

static const struct event {
	const char *name;
	enum dsn_notify value;
} events[] = {
	{ "never", DSN_NEVER },
	{ "success", DSN_SUCCESS },
	{ "failure", DSN_FAILURE },
	{ "delay", DSN_DELAY },
};

bool
dsn_notify_is_valid(unsigned notify)
{
	const unsigned some = DSN_SUCCESS | DSN_FAILURE | DSN_DELAY;

	return notify == DSN_NEVER || (notify & ~some) == 0;
}

bool
dsn_ret_is_valid(unsigned ret)
{
	return ret == DSN_RET_NONE || ret == DSN_RET_FULL ||
	    ret == DSN_RET_HDRS;
}

static unsigned
event_of(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(events); i++)
		if (strlen(events[i].name) == len &&
		    strncasecmp(events[i].name, name, len) == 0)
			return events[i].value;
	return 0;
}

int
dsn_notify_parse(const char *text, uint8_t *ret_notify)
{
	unsigned all = 0;

	for (;;) {
		const size_t len = strcspn(text, ",");
		const unsigned event = event_of(text, len);

		if (event == 0 || !dsn_notify_is_valid(all | event))
			return -EINVAL;
		all |= event;
		if (text[len] == '\0')
			break;
		text += len + 1;
	}
	*ret_notify = (uint8_t)all;
	return 0;
}

int
dsn_ret_parse(const char *text, uint8_t *ret_ret)
{
	if (strcasecmp(text, "full") == 0)
		*ret_ret = DSN_RET_FULL;
	else if (strcasecmp(text, "hdrs") == 0)
		*ret_ret = DSN_RET_HDRS;
	else
		return -EINVAL;
	return 0;
}

bool
dsn_wants(unsigned notify, enum dsn_notify event)
{
	const unsigned by_default = DSN_FAILURE | DSN_DELAY;

	return ((notify == 0 ? by_default : notify) & event) != 0;
}

void
dsn_notify_format(unsigned notify, char out[DSN_NOTIFY_MAX])
{
	size_t i, len = 0;

	out[0] = '\0';
	for (i = 0; i < ARRAY_LEN(events); i++)
		if ((notify & events[i].value) != 0)
			len += (size_t)snprintf(out + len, DSN_NOTIFY_MAX - len,
			    "%s%s", len > 0 ? "," : "", events[i].name);
}

const char *
dsn_ret_name(unsigned ret)
{
	return ret == DSN_RET_FULL ? "full" : ret == DSN_RET_HDRS ? "hdrs" : "";
}
