/* base/dsn.h - what a sender asks of reports: NOTIFY, RET, ENVID and ORCPT of
 * RFC 3461, as envelopes carry them.
 *
 * ENVID and the address of ORCPT are xtext (RFC 3461 section 4) on every way:
 * on command lines, at the door, on disk. Only reports decode them. */
#ifndef BASE_DSN_H
#define BASE_DSN_H

#include "base/base.h"

#define DSN_ENVID_MAX  100 /* RFC 3461 section 5.4 */
#define DSN_ORCPT_MAX  500
#define DSN_NOTIFY_MAX 24 /* "success,failure,delay" */

/* Events of NOTIFY; 0: not given. NEVER stands alone. */
enum dsn_notify {
	DSN_NEVER = 1 << 0,
	DSN_SUCCESS = 1 << 1,
	DSN_FAILURE = 1 << 2,
	DSN_DELAY = 1 << 3,
};

enum dsn_ret {
	DSN_RET_NONE = 0, /* not given */
	DSN_RET_FULL = 'F',
	DSN_RET_HDRS = 'H',
};

/* Of a message. All zero: nothing was asked for. */
struct dsn_mail {
	uint8_t ret; /* enum dsn_ret */
	char envid[DSN_ENVID_MAX + 1];
};

/* Of a recipient. All zero: nothing was asked for. */
struct dsn_rcpt {
	uint8_t notify;                /* enum dsn_notify */
	char orcpt[DSN_ORCPT_MAX + 1]; /* "rfc822;" and xtext */
};

bool dsn_mail_is_empty(const struct dsn_mail *dsn);
bool dsn_rcpt_is_empty(const struct dsn_rcpt *dsn);

/* A value that NOTIFY or RET can have, 0 included. */
bool dsn_notify_is_valid(unsigned notify);
bool dsn_ret_is_valid(unsigned ret);
/* 0; -EINVAL: no xtext of printable ASCII, or empty, or for ORCPT no address
 * type; -ENAMETOOLONG. */
int dsn_envid_check(const char *envid, size_t len);
int dsn_orcpt_check(const char *orcpt, size_t len);

/* The octet of "+XX" at the start of xtext of `left' octets; -1: there is none.
 */
int dsn_encoded_octet(const char *xtext, size_t left);
/* "never", or some of "success,failure,delay", without case. -EINVAL. */
int dsn_notify_parse(const char *text, uint8_t *ret_notify);
/* "full" or "hdrs", without case. -EINVAL. */
int dsn_ret_parse(const char *text, uint8_t *ret_ret);
/* -EINVAL, -ENAMETOOLONG: as the checks. */
int dsn_envid_set(struct dsn_mail *dsn, const char *envid, size_t len);
int dsn_orcpt_set(struct dsn_rcpt *dsn, const char *orcpt, size_t len);
/* The ORCPT of an address as somebody wrote it: of type rfc822. -EINVAL: there
 * is none, or it is not ASCII; -ENAMETOOLONG. */
int dsn_orcpt_write(struct dsn_rcpt *dsn, const char *address);

/* Does the sender want to hear of this event? Without NOTIFY: of failures and
 * delays. */
bool dsn_wants(unsigned notify, enum dsn_notify event);
/* As dsn_notify_parse() reads it; "" for 0. */
void dsn_notify_format(unsigned notify, char out[DSN_NOTIFY_MAX]);
/* "full", "hdrs" or "". */
const char *dsn_ret_name(unsigned ret);

#endif
