/* qsim/reader.h - a scenario while it is being read. Private to the reader:
 * scenario.c has the statements, messages.c those that bring mail, settings.c
 * what becomes the configuration. */
#ifndef QSIM_READER_H
#define QSIM_READER_H

#include "qsim/names.h"
#include "qsim/scenario.h"

struct reader {
	struct scenario sc;
	struct names names;
	uint32_t line;
	uint32_t settings_cap, messages_cap, rcpts_cap;
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
/* The two halves of it: cuts the transport off, looks the rest up. */
int reader_transport(struct reader *rd, char **word, uint32_t *ret_transport);
int reader_destination_of(struct reader *rd, uint32_t transport,
    const char *name, uint32_t *ret_destination);

/* Statements (messages.c, settings.c). */
int reader_at(struct reader *rd);
int reader_repeat(struct reader *rd);
int reader_set(struct reader *rd);
int reader_agents(struct reader *rd);
/* A transport that was not there before: may it be called so? */
int reader_check_transport(struct reader *rd, const char *name);
/* All lines were read: the configuration they make. */
int reader_configure(struct reader *rd);

#endif
