/* route/tls_policy.h - smtp_tls_policy_file: the level of TLS by next hop, as
 * qscheduler-tls(5) describes it.
 *
 *	NEXTHOP|.DOMAIN LEVEL [match=NAME ...] [implicit]
 *
 * A next hop has the row of hop_key.h; else that of the longest `.DOMAIN` that
 * it is below, brackets or not. `#` at the start of a line or behind a blank
 * begins a comment.
 *
 * The file is read by base/file.h: whole before it is parsed, and as root only
 * if no other user may write it. A table does not change once loaded. Soft:
 * -errno, with "FILE:LINE: what is wrong". Never logs.
 */
#ifndef ROUTE_TLS_POLICY_H
#define ROUTE_TLS_POLICY_H

#include "base/buf.h"
#include "route/keyed.h"

#define TLS_POLICY_FILE_MAX  ((size_t)16 << 20)
#define TLS_POLICY_LINE_MAX  4096
#define TLS_POLICY_NAMES_MAX 8

/* A higher level is stricter. The words are the values of
 * default_tls_security_level, too, in this order. */
enum tls_level {
	TLS_LEVEL_NONE,    /* never */
	TLS_LEVEL_MAY,     /* where it is offered and works */
	TLS_LEVEL_ENCRYPT, /* or the mail waits */
	TLS_LEVEL_VERIFY,  /* with a certificate that proves the name */
	TLS_NLEVELS,
};
#define TLS_LEVEL_WORDS "none may encrypt verify"

/* "none", … */
const char *tls_level_word(enum tls_level level);

struct tls_policy {
	struct keyed at;
	enum tls_level level;
	bool implicit; /* TLS from the first octet, without STARTTLS */
	const char *names[TLS_POLICY_NAMES_MAX]; /* match=, in lower case */
	size_t nnames;
};

struct tls_policies;

/* path "": an empty table. -ENOENT, -EINVAL, and the errors of file_read(). */
int tls_policies_load(const char *path, struct tls_policies **ret_policies,
    struct buf *ret_error);
void tls_policies_free(struct tls_policies **policies);
/* NULL: no row is for it. */
const struct tls_policy *
tls_policies_find(const struct tls_policies *policies, const char *nexthop);
/* The strictest level of a row; TLS_LEVEL_NONE without rows. */
enum tls_level tls_policies_strictest(const struct tls_policies *policies);

#endif
