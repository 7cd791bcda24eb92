/* config/param.h - the rows of param.def and the functions of each type.
 * Private to common/config.
 *
 * Soft: -errno; -EINVAL with the reason in why, to follow "NAME: ".
 */
#ifndef CONFIG_PARAM_H
#define CONFIG_PARAM_H

#include "config/conf.h"

/* Packages of systems with another place for spools define it. */
#ifndef QUEUE_BASE_DEFAULT
#define QUEUE_BASE_DEFAULT "/var/qscheduler/queue"
#endif

enum param_type {
	PARAM_SECTION, /* a heading, not a parameter */
	PARAM_U32,
	PARAM_U64,
	PARAM_SIZE,
	PARAM_DURATION,
	PARAM_PERCENT,
	PARAM_DECIMAL,
	PARAM_FEEDBACK,
	PARAM_BOOL,
	PARAM_WORD,
	PARAM_CHOICE, /* the place of a word in a list */
	PARAM_PATH,   /* absolute */
	PARAM_DIR,    /* absolute, or empty */
	PARAM_HOST,   /* a name, or the path of a file that has it */
	PARAM_DOMAINS,
	PARAM_NEXTHOP, /* or empty */
	PARAM_USER,
	PARAM_ADDRESS, /* of one mailbox, or empty */
	PARAM_USERS,
	PARAM_INSTANCE,
	PARAM_MAILDIR,
	PARAM_FORWARD,
	PARAM_SOURCE4, /* an address of this host, or empty */
	PARAM_SOURCE6,
	PARAM_HELO, /* a name, or empty */
	PARAM_TRANSPORTS,
	PARAM_KEYWORDS,   /* of EHLO, a bit each */
	PARAM_MECHANISMS, /* of AUTH, a bit each */
	PARAM_FALLBACK,   /* next hops, or empty */
	PARAM_NTYPES,
};

enum param_change {
	PARAM_RELOAD,
	PARAM_RESTART
};

struct param {
	enum param_type type;
	bool per_transport; /* the field is of struct conf_transport */
	const char *name;
	size_t offset; /* of the field in its struct */
	const char *fallback, *fallback_local;
	const char *min, *max;
	enum param_change change;
	const char *env;
	const char *help;
};

extern const struct param params[];
extern const size_t nparams;

/* The row of a name without a transport; NULL. */
const struct param *param_find(const char *name);
/* The row of TRANSPORT_X, with the length of TRANSPORT; NULL. */
const struct param *
param_find_override(const char *name, size_t *ret_transport_len);
/* The name of our parameter that does what this parameter of Postfix's main.cf
 * does, or NULL. docs/MIGRATION.md has the whole table. */
const char *param_of_postfix(const char *name);
/* X of TRANSPORT_X. */
const char *param_suffix(const struct param *p);

/* base is the struct with the field of the row. A previous text is freed. */
int param_set(
    const struct param *p, void *base, const char *value, struct buf *why);
int param_format(const struct param *p, const void *base, struct buf *out);
void param_free(const struct param *p, void *base);
/* A value alone, of a parameter that is no list of transports: *ret_text is
 * replaced. */
int param_check(
    const char *name, const char *value, struct buf *ret_text, struct buf *why);
/* "NUMBER", "TIME", … for the manual. */
const char *param_type_word(enum param_type type);

/* A text of letters, digits and the characters of others, that does not begin
 * with `-', which tools take for an option, nor with `.'. Otherwise -EINVAL:
 * why names the character and its place. */
int param_check_chars(const char *value, const char *others, struct buf *why);
/* A name of a host in U-labels is written into ascii in A-labels, and *value
 * points there. -EINVAL with why: the name has none; -ENOMEM. */
int param_host_to_ascii(
    const char **value, char ascii[CONF_HOST_SIZE], struct buf *why);

/* A text of a length that the row allows. */
int param_set_text(
    const struct param *p, void *field, const char *value, struct buf *why);

/* The text itself. -ENOMEM. */
int param_store_text(void *field, const char *value);

/* The reader and the writer of a type, of the field of the row. */
typedef int param_parse_fn(
    const struct param *p, void *field, const char *value, struct buf *why);
typedef int
param_format_fn(const struct param *p, const void *field, struct buf *out);

/* Words (word.c). */
param_parse_fn word_parse, choice_parse;
param_format_fn choice_format;

/* Own domains, the next hop of mail for others, and the next hops after one
 * (destination.c). */
param_parse_fn domains_parse, relay_parse, fallback_parse;

/* Addresses to connect from, and the name for EHLO (source.c). */
param_parse_fn source4_parse, source6_parse, helo_parse;

/* How SMTP deals with what a server offers (esmtp.c). */
param_parse_fn keywords_parse, mechanisms_parse;
param_format_fn keywords_format, mechanisms_format;

/* The list of transports (transport.c). */
param_parse_fn transports_parse;
param_format_fn transports_format;

/* The origin of each value, a row each; and the values that transports inherit.
 */
struct conf_origin {
	enum conf_source source;
	uint32_t line; /* CONF_FROM_FILE */
};
struct conf_origins {
	char *file, *control; /* paths */
	struct conf_transport inherited;
	struct conf_origin *all;      /* [nparams] */
	struct conf_origin *override; /* [CONF_TRANSPORTS_MAX][nparams] */
};

/* Adds "FILE:LINE: WHY", or without a line (0), the path made printable, since
 * somebody may have typed it; -EINVAL. */
int
conf_fail(struct buf *error, const char *path, uint32_t line, const char *why);
/* Adds "FILE:LINE: NAME: ", as far as known; transport -1 for all. */
int conf_add_origin(const struct conf *conf, const struct param *p,
    int transport, struct buf *out);
/* The value of a control file, added to ret_value. 1: it was read; 0: there is
 * none; -errno with the text in error. */
int control_read(const char *path, struct buf *ret_value, struct buf *error);
/* Checks of several values together (check.c). */
int conf_check(struct conf *conf, struct buf *error);
/* The default of queue_count: one for each two processor cores, at least two;
 * not above most, which is queue_max. */
uint32_t conf_queues_for(uint32_t cores, uint32_t most);

#endif
