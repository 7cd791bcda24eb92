/* route/credentials.h - smtp_password_file: what deliver-smtp proves itself
 * with, by next hop, as qscheduler-passwords(5) describes it.
 *
 *	NEXTHOP USER SECRET [oauthbearer | xoauth2]
 *
 * A next hop has the row of hop_key.h. Words are split at blanks; "double
 * quotes" group, and within them \" and \\ stand for themselves; `#` at the
 * start of a line comments.
 *
 * The file is read by base/file.h, and is refused if others may read it: it has
 * no rights for others, and none for its group, but that root may let a group
 * read. A table does not change once
 * loaded, and is wiped when it is freed. Soft: -errno, with "FILE:LINE: what is
 * wrong", never with a word of the line. Never logs.
 */
#ifndef ROUTE_CREDENTIALS_H
#define ROUTE_CREDENTIALS_H

#include "base/buf.h"

#define CREDENTIALS_FILE_MAX   ((size_t)1 << 20)
#define CREDENTIALS_LINE_MAX   8192
#define CREDENTIALS_USER_MAX   255
#define CREDENTIALS_SECRET_MAX 4096

struct credential {
	char *key, *user, *secret;
	/* The secret is a token of OAuth 2, for OAUTHBEARER and XOAUTH2; else a
	 * password, for the other mechanisms. */
	bool token;
	uint32_t line;
};

struct credentials;

/* path "": an empty table. -ENOENT, -EACCES: others may read it, -EINVAL, and
 * the errors of file_read(). */
int credentials_load(const char *path, struct credentials **ret_credentials,
    struct buf *ret_error);
void credentials_free(struct credentials **credentials);
/* NULL: there is no row for it. */
const struct credential *
credentials_find(const struct credentials *credentials, const char *nexthop);

/* The row with this number, from 0 on; NULL: there are no more. */
const struct credential *
credentials_row(const struct credentials *credentials, size_t number);

#endif
