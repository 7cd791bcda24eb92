/* qctl/select/select.h - which messages a command is about: ids, ALL, and
 * filters, each a word KEY=VALUE of one grammar for every verb.
 *
 * Ids name messages, filters narrow: a message is selected when it is named
 * (or none is), and every key that is given fits. Of one key given several
 * times one value has to fit. Keys about recipients (recipient, domain,
 * destination, reason) fit when one recipient that is not delivered yet fits
 * all of them. KEY!=VALUE leaves out what KEY=VALUE selects.
 *
 * Soft: -EINVAL with the complaint in *error, which is printable; -ENOMEM.
 * Ownership: values of filters point into the words, which outlive the select.
 */
#ifndef QCTL_SELECT_SELECT_H
#define QCTL_SELECT_SELECT_H

#include "qctl/read/message.h"

struct select_id {
	struct queue_id id;
	bool found;
};

enum select_key {
	SELECT_ID,
	SELECT_SENDER,
	SELECT_RECIPIENT,
	SELECT_DOMAIN,
	SELECT_DESTINATION,
	SELECT_REASON,
	SELECT_QUEUE,
	SELECT_STATE,
	SELECT_OLDER,
	SELECT_YOUNGER,
	SELECT_LARGER,
	SELECT_SMALLER,
	SELECT_ATTEMPTS,
	SELECT_FEWER,
	SELECT_RULE,
	SELECT_NKEYS,
	SELECT_NOT = SELECT_NKEYS, /* a bit of select.keys: some leave out */
};

struct select_term {
	enum select_key key;
	const char *text; /* of an address, a domain, a reason */
	uint64_t number;  /* of a size, a time, attempts or a rule */
	bool part;        /* any part of it may be the text */
	bool leaves_out;
};

struct select {
	bool all; /* ALL was given */
	bool from_stdin;
	bool no_reports; /* of this system: rules about the sender alone */
	struct select_id *ids;
	size_t nids, ids_cap;
	struct select_term *terms;
	size_t nterms, terms_cap;
	unsigned keys;     /* bits of the keys that are given */
	unsigned states;   /* with SELECT_STATE: bits of enum spool_dir */
	bool with_corrupt; /* without SELECT_STATE: corrupt/ is listed, too */
	bool queues[QUEUE_NUM_MAX + 1]; /* with SELECT_QUEUE */
};

/* A word: ALL, -, an id, or KEY=VALUE. An id may be in lower case, and have
 * `#' in front and marks of listings behind it. */
int select_add(struct select *s, const char *word, struct buf *error);
/* The same for a word of one kind. */
int select_add_id(struct select *s, const char *word, struct buf *error);
/* The value of one key. */
int select_add_value(struct select *s, enum select_key key, const char *value,
    struct buf *error);
/* `text` is a part of what the key is about. leave_out: what fits is not
 * selected. */
int select_add_part(
    struct select *s, enum select_key key, const char *text, bool leave_out);
/* Ids from a stream, the first word of each line, until its end; empty lines
 * are passed over. */
int select_read_ids(struct select *s, int fd, struct buf *error);
void select_done(struct select *s);
/* Each key with its values, for the help. -ENOMEM. */
int select_help(struct buf *out);

/* The bits of the states that are wanted: those given, else all of messages
 * that are named, else all but deleted/ and, unless with_corrupt, corrupt/. */
unsigned select_states(const struct select *s);
/* Is a filter by destination among them? */
bool select_by_destination(const struct select *s);
/* Is any of its messages wanted, as far as the number says? */
bool select_queue(const struct select *s, uint32_t queue);
/* 1: selected; 0: not; -errno: its recipients or attempts cannot be
 * read. */
int
select_fits(const struct select *s, const struct message *m, usec_t now_wall);

/* ---- destination.c: the routing that is in force ---- */

/* Reads it, in the command's process. -EINVAL: it cannot be read, and no
 * destination is known. destination_end() is called in either case. */
int destination_begin(const char *conf_path);
void destination_end(void);
/* Does mail from this sender for this recipient go there? */
bool select_fits_destination(const char *pattern, const char *sender,
    const char *recipient, bool expanded);
/* Does an agent of this host serve the recipient's transport? */
bool destination_is_local(const char *recipient, bool expanded);

#endif
