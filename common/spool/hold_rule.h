/* spool/hold_rule.h - rules that put mail on hold before its first attempt:
 * the file QUEUE_BASE/rules/hold, which all queues read (docs/SPOOL.md).
 *
 * Soft: -errno. Never logs. The file is replaced whole, by one writer at a time
 * (a lock on its directory); a reader has the old rules or the new ones.
 */
#ifndef SPOOL_HOLD_RULE_H
#define SPOOL_HOLD_RULE_H

#include "spool/hold_note.h"
#include "spool/sys.h"

#include <sys/stat.h>

#define HOLD_RULES_MAX     1000
#define HOLD_RULE_TEXT_MAX 512 /* of a pattern */

/* The patterns of a rule; those that are given all fit. */
enum hold_rule_key {
	RULE_SENDER,      /* "<>": the null sender */
	RULE_RECIPIENT,   /* from here on: one recipient fits all of them */
	RULE_DOMAIN,      /* of a recipient */
	RULE_DESTINATION, /* NEXTHOP, or TRANSPORT/NEXTHOP */
	RULE_NKEYS,
};
extern const char *const hold_rule_keys[RULE_NKEYS];

struct hold_rule {
	uint32_t number; /* from 1, never used again */
	uid_t uid;       /* of the operator */
	usec_t since_wall;
	usec_t until_wall;               /* 0: until it is removed */
	const char *pattern[RULE_NKEYS]; /* "": any; `*': any bytes */
	const char *reason;              /* "": none was given */
};

struct hold_rules {
	uint32_t count;
	uint32_t next; /* number of the next one */
	struct hold_rule *rows;
	struct buf text;  /* holds their strings */
	struct stat seen; /* the file; of none all is 0 */
};

/* The rules that are in the file; without one there are none. -EBADMSG: it is
 * damaged, or not ours; *ret then has its identity and no rules. Other errors:
 * untouched, but for that. */
int hold_rules_read(
    const struct spool_sys *sys, const char *base, struct hold_rules *ret);
void hold_rules_done(struct hold_rules *rules);
/* Is the file another one than that which was seen? */
bool hold_rules_changed(const char *base, const struct stat *seen);

/* For hold_rule_write.c: the directory, by O_RDONLY to write and lock, by
 * O_PATH for readers, who may not list it; and the file in it. */
#define HOLD_RULES_NAME "hold"
#define HOLD_RULES_HEAD "hold-rules 1\n"
int
hold_rules_open_dir(const struct spool_sys *sys, const char *base, int access);
int hold_rules_read_at(
    const struct spool_sys *sys, int dir, struct hold_rules *rules);
bool hold_rule_is_over(const struct hold_rule *rule, usec_t now_wall);

/* Is it one that can be kept? At least one pattern, all of it clean text. */
bool hold_rule_is_right(const struct hold_rule *rule);

struct hold_rules_change {
	const struct hold_rule *more; /* NULL: none */
	uint32_t without;             /* with more NULL: the number of one */
	usec_t now_wall;
	/* Results. */
	uint32_t number; /* of the one more */
	bool aside; /* the file was damaged: it is kept as hold.aside-N, and its
		       rules are lost */
};
/* Writes the file with one rule more, or one less, synced; rules whose time is
 * over go. -ENOSPC: HOLD_RULES_MAX are there, or the disk is full; -EINVAL: not
 * a rule; -ESRCH: no such rule; -EBADMSG: damaged, and no rule more; -EAGAIN:
 * another process is writing; -ENOENT: no directory. After any of these the
 * rules are the old ones. Other errors, of the last sync, may leave the new
 * ones. */
int hold_rules_change(
    const struct spool_sys *sys, const char *base, struct hold_rules_change *c);

/* A recipient, and where mail for it goes. */
struct hold_mail {
	const char *sender, *recipient;
	const char *transport, *nexthop; /* NULL: no route */
	bool report;                     /* of this system */
};
/* A rule whose time is over fits nothing. One about the sender alone fits no
 * report of this system. */
bool hold_rule_fits(const struct hold_rule *rule, const struct hold_mail *mail,
    usec_t now_wall);
/* The first one that fits; NULL: none. */
const struct hold_rule *hold_rules_find(const struct hold_rules *rules,
    const struct hold_mail *mail, usec_t now_wall);
/* NULL: no rule of this number, or its time is over. */
const struct hold_rule *hold_rules_number(
    const struct hold_rules *rules, uint32_t number, usec_t now_wall);

#endif
