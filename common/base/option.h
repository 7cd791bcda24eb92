/* base/option.h - the command line of a program as a table: parser, complaints
 * and help come from it.
 *
 * Options and words may stand in any order; behind `--` all are words. What is
 * said of what cannot be taken is fit to be shown, and short, whatever was
 * typed (A1). Soft: -EINVAL with that in *error.
 */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H

#include "base/buf.h"

#define OPTION_ROWS_MAX 24
#define OPTION_END      1 /* what follows does not count: --help */

struct option_row {
	const char *name;  /* --name; NULL: none */
	char letter;       /* -x; 0: none */
	const char *value; /* what the help calls its value; NULL: takes none */
	const char *help;  /* a line each */
	/* 0, OPTION_END, or -EINVAL. */
	int (*take)(void *options, const char *value, struct buf *error);
};

struct option_table {
	const struct option_row *rows;
	size_t nrows; /* OPTION_ROWS_MAX */
	int (*take_word)(void *options, const char *word, struct buf *error);
};

/* 0, or OPTION_END when a row said so. Values point into argv. */
int option_parse(const struct option_table *table, int argc, char **argv,
    void *options, struct buf *error);
/* A line or more for each row. -ENOMEM. */
int option_help(const struct option_table *table, struct buf *out);

/* Append "WHAT `TYPED'WHY" to error; -EINVAL. */
int option_wrong(
    struct buf *error, const char *what, const char *typed, const char *why);
/* The same for what getopt_long(), with `:` in its letters, could not take: c
 * is `:` or `?`. Values of long options count from OPTION_LONG. -EINVAL. */
#define OPTION_LONG 256
int option_unknown(struct buf *error, int c, char *const *argv);

#endif
