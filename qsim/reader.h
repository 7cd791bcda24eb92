/* qsim/reader.h - a scenario while it is being read, private to its sources:
 *
 *   scenario.c    the file, and the statements about destinations
 *   messages.c    the statements that bring mail
 *   settings.c    the statements that become the configuration
 *   reader.c      words of a line, and what is said of a wrong one
 *   names.c       the transports and destinations named so far, each once
 */
#ifndef QSIM_READER_H
#define QSIM_READER_H

#include <bsd/sys/tree.h>

#include "qsim/scenario.h"

/* ---- names: owns its copies; -ENOMEM, -ENOSPC for one transport too many.
 * Destinations compare without case, as nexthops do. ---- */

struct names_node;
RB_HEAD(names_tree, names_node);

struct names {
	char *transports[CONF_TRANSPORTS_MAX];
	uint32_t ntransports;
	struct names_tree tree;
	struct scenario_destination *destinations;
	uint32_t ndestinations;
	size_t cap;
};

void names_init(struct names *names);
/* The index; *ret_new when it was not there before. */
int names_transport(struct names *names, const char *name, bool *ret_new,
    uint32_t *ret_transport);
/* A new destination has duration -1 and no faults. */
int names_destination(struct names *names, uint32_t transport, const char *name,
    uint32_t *ret_destination);
/* The destinations are given away to *ret_destinations. */
void names_take(struct names *names,
    struct scenario_destination **ret_destinations, uint32_t *ret_count);
void names_done(struct names *names);

/* ---- the reader ---- */

struct reader {
	struct scenario sc;
	struct names names;
	uint32_t line;
	size_t settings_cap, messages_cap, rcpts_cap;
	uint64_t all_rcpts; /* of all messages */
	usec_t duration;    /* `dur *` */
	char *rest;         /* of the line */
	struct buf *error;
};

/* A bound in the words of an error. */
#define READER_TEXT_1(n) #n
#define READER_TEXT(n)   READER_TEXT_1(n)

#define READER_TIME_MAX  1000000000 /* seconds */

/* "FILE:LINE: expected WHAT, not `got'"; got NULL: the line ends. -EINVAL. */
int reader_expected(struct reader *rd, const char *what, const char *got);
/* The next word; NULL at the end of the line. */
char *reader_word(struct reader *rd);
/* Nothing may follow. */
int reader_end(struct reader *rd);
int reader_number(struct reader *rd, const char *word, uint64_t min,
    uint64_t max, const char *what, uint32_t *ret_value);
/* Decimal, of a second. */
int reader_time(
    struct reader *rd, const char *word, const char *what, usec_t *ret_time);
/* DEST or TRANSPORT/DEST; word is cut. */
int
reader_destination(struct reader *rd, char *word, uint32_t *ret_destination);
/* The two halves of reader_destination(): cut the transport off, find the
 * destination. */
int reader_transport(struct reader *rd, char **word, uint32_t *ret_transport);
int reader_destination_of(struct reader *rd, uint32_t transport,
    const char *name, uint32_t *ret_destination);

/* Statements (messages.c, settings.c). */
int reader_at(struct reader *rd);
int reader_repeat(struct reader *rd);
int reader_set(struct reader *rd);
int reader_agents(struct reader *rd);
/* Is this a good name for a new transport? */
int reader_check_transport(struct reader *rd, const char *name);
/* Make the configuration, after all lines were read. */
int reader_configure(struct reader *rd);

#endif
