/* route/alias.h - names whose mail goes to other recipients (docs/ALIASES.md).
 *
 * The file has the form of /etc/aliases: `name: member, member`, continued by
 * lines that begin with a blank, `#` comments. A table does not change once
 * loaded; a reload loads another one and swaps.
 *
 * A wrong line makes the alias that the line belongs to wrong, and nothing
 * else: mail for that name is deferred with the reason. A line without a usable
 * name is ignored. alias_complaints() names every such line.
 *
 * Soft: -errno, with the text in *ret_error, for a file that cannot be read as
 * a whole; -ENOENT for no file. Never logs. One owner; results of a lookup
 * point into the table.
 */
#ifndef ROUTE_ALIAS_H
#define ROUTE_ALIAS_H

#include "base/buf.h"

#include <sys/types.h>

enum alias_member_kind {
	ALIAS_ADDRESS, /* name or name@domain, as an envelope has it */
	ALIAS_PROGRAM, /* the command behind `|` */
	ALIAS_INCLUDE, /* the absolute path of a file of members */
	ALIAS_NOTHING, /* /dev/null */
	ALIAS_FILE,    /* the absolute path of an mbox; of a maildir where it
			* ends in a slash */
	ALIAS_REFUSAL, /* the text of a bounce */
};

struct alias_member {
	enum alias_member_kind kind;
	const char *text;
};

struct alias {
	const char
	    *key; /* folded (base/domain.h), in lower case, without quotes */
	size_t nmembers;
	const struct alias_member *members;
	uint32_t line;
	const char *wrong;   /* reason of the first wrong line, or NULL */
	uint32_t wrong_line; /* number of that line */
};

struct alias_table;

#define ALIAS_INCLUDE_PREFIX ":include:"
/* The longest key, which is a next hop. Each member but a refusal fits in an
 * address of ADDRESS_MAX bytes, with the `|` or `:include:` in front. */
#define ALIAS_KEY_MAX        255

int alias_load(
    const char *path, struct alias_table **ret_table, struct buf *ret_error);
void alias_free(struct alias_table **table);
/* The wrong lines, up to 20, as lines "FILE:LINE: reason" without a line end
 * behind the last; "" when every line is right. */
const char *alias_complaints(const struct alias_table *table);
/* The owner of the file, for its programs and include files. */
uid_t alias_owner(const struct alias_table *table);

/* Each of these returns NULL if there is no such alias, or no table. The first
 * looks for the whole address, `a+x@d`, then for the address without the
 * extension, `a@d`. domain: the domain of the address by domain_fold(). */
const struct alias *alias_find_address(
    const struct alias_table *table, const char *address, const char *domain);
/* The local part of an address of an account: `a+x`, `a`. */
const struct alias *
alias_find_account(const struct alias_table *table, const char *address);
/* `@domain`. domain: by domain_fold(). */
const struct alias *
alias_find_domain(const struct alias_table *table, const char *domain);
/* By its key. */
const struct alias *
alias_find_key(const struct alias_table *table, const char *key);
/* The alias is right and has a member of the kind ALIAS_REFUSAL, so that all
 * its mail is returned. NULL has none. */
bool alias_refuses(const struct alias *alias);
/* Alias number i, for checks; NULL behind the last. */
const struct alias *alias_at(const struct alias_table *table, size_t i);

/* The members of one line of an include file: kinds and quotes as in the alias
 * file, no key, `#` comments. Calls `each` for each member, which lives as long
 * as the call; a negative result ends the line. -EINVAL and -ENOMEM with
 * *ret_why. */
int alias_parse_members(const char *line, size_t len,
    int (*each)(void *arg, const struct alias_member *member), void *arg,
    const char **ret_why);

/* One line of either file, cut in place (alias_line.c). alias_line_uncomment():
 * cuts a comment, which is `#` at the start or behind a blank, outside quotes.
 * alias_line_key():
 * `key:` at *at, which moves behind the colon; NULL, or the complaint.
 * alias_line_member(): 1: the next member, and *at moves behind it; 0: there is
 * none; -EINVAL with the complaint. */
void alias_line_uncomment(char *line);
const char *alias_line_key(char **at, const char **ret_key);
int
alias_line_member(char **at, struct alias_member *ret, const char **ret_why);

#endif
