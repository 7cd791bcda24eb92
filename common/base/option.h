/* base/option.h - the command line of a program as a table: the parser, the
 * complaints and the help text come from it.
 *
 * Options and words may stand in any order; behind `--` all are words. A
 * complaint is printable and short, whatever was typed.
 * Soft: -EINVAL with the complaint in *error.
 */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H

#include "base/buf.h"

#define OPTION_ROWS_MAX 24
#define OPTION_END      1 /* nothing after this option counts: --help */

struct option_row {
	const char *name;  /* --name; NULL: none */
	char letter;       /* -x; 0: none */
	const char *value; /* name of the value in the help; NULL: takes none */
	const char *help;  /* lines; NULL: not in the help */
	/* 0, OPTION_END, or -EINVAL. */
	int (*take)(const struct option_row *row, void *options,
	    const char *value, struct buf *error);
	size_t arg; /* for take */
};

struct option_table {
	const struct option_row *rows;
	size_t nrows; /* OPTION_ROWS_MAX */
	/* NULL: optind is the index of the first word afterwards. It ends the
	 * options, or (words_last) has been moved behind all of them. */
	bool words_last;
	int (*take_word)(void *options, const char *word, struct buf *error);
};

/* Takers of a row whose arg is the offset of a field in the options: the field
 * is a string that becomes the value, or a bool that becomes true. */
int option_take_string(const struct option_row *row, void *options,
    const char *value, struct buf *error);
int option_take_flag(const struct option_row *row, void *options,
    const char *value, struct buf *error);
/* A taker of words, of a program that has none. -EINVAL. */
int option_no_word(void *options, const char *word, struct buf *error);

/* 0, or OPTION_END when a row said so. Values point into argv. */
int option_parse(const struct option_table *table, int argc, char **argv,
    void *options, struct buf *error);
/* The help lines of each row. -ENOMEM. */
int option_help(const struct option_table *table, struct buf *out);

/* Append "WHAT `TYPED'WHY" to error; -EINVAL. */
int option_wrong(
    struct buf *error, const char *what, const char *typed, const char *why);

#endif
