#include "base/option.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define HELP_INDENT 22
#define FIRST_LONG  256 /* long options count from here, above all letters */

int
option_wrong(
    struct buf *error, const char *what, const char *typed, const char *why)
{
	(void)buf_add_str(error, what);
	(void)text_quote(error, typed);
	(void)buf_add_str(error, why);
	return -EINVAL;
}

/* The complaint about what getopt_long() could not take: c is `:` or `?`. */
static int
unknown(struct buf *error, int c, char *const *argv)
{
	const char letter[] = { '-', (char)optopt, '\0' };
	const char *name =
	    optopt > 0 && optopt < FIRST_LONG ? letter : argv[optind - 1];

	if (c == ':') {
		(void)buf_printf(error, "option %s needs a value", name);
		return -EINVAL;
	}
	return option_wrong(error, "unknown option ", name, "");
}

/* ---- the table as getopt_long() wants it ---- */

struct forms {
	char letters[2 * OPTION_ROWS_MAX + 3];
	struct option longs[OPTION_ROWS_MAX + 1];
};

static void
make_forms(const struct option_table *table, struct forms *f)
{
	char *letter = f->letters;
	struct option *l = f->longs;
	size_t i;

	ASSERT(table->nrows <= OPTION_ROWS_MAX);
	/* -: each word is returned where it stands, as 1; +: the first word
	 * ends the options; neither: words are moved behind the options. */
	if (!table->words_last)
		*letter++ = table->take_word != NULL ? '-' : '+';
	*letter++ = ':';
	for (i = 0; i < table->nrows; i++) {
		const struct option_row *row = &table->rows[i];
		const bool has_value = row->value != NULL;

		if (row->name != NULL)
			*l++ = (struct option){ row->name,
				has_value ? required_argument : no_argument,
				NULL, FIRST_LONG + (int)i };
		if (row->letter == 0)
			continue;
		*letter++ = row->letter;
		if (has_value)
			*letter++ = ':';
	}
	*letter = '\0';
	*l = (struct option){ NULL, 0, NULL, 0 };
}

static const struct option_row *
find_row(const struct option_table *table, int c)
{
	size_t i;

	if (c >= FIRST_LONG)
		return &table->rows[c - FIRST_LONG];
	for (i = 0; i < table->nrows; i++)
		if (table->rows[i].letter != 0 && table->rows[i].letter == c)
			return &table->rows[i];
	return NULL;
}

static int
take(const struct option_table *table, int c, char *const *argv, void *options,
    struct buf *error)
{
	const struct option_row *row;

	if (c == 1)
		return table->take_word(options, optarg, error);
	if (c == ':' || c == '?')
		return unknown(error, c, argv);
	row = find_row(table, c);
	ASSERT(row != NULL);
	return row->take(row, options, optarg, error);
}

int
option_parse(const struct option_table *table, int argc, char **argv,
    void *options, struct buf *error)
{
	struct forms forms;
	int c, r = 0;

	make_forms(table, &forms);
	opterr = 0;
	optind = 0; /* a new list, also after an earlier one */
	while (r == 0 &&
	    (c = getopt_long(argc, argv, forms.letters, forms.longs, NULL)) !=
		-1)
		r = take(table, c, argv, options, error);
	while (r == 0 && optind < argc && table->take_word != NULL)
		r = table->take_word(options, argv[optind++], error);
	return r;
}

/* ---- takers ---- */

int
option_take_string(const struct option_row *row, void *options,
    const char *value, struct buf *error UNUSED)
{
	memcpy((char *)options + row->arg, &value, sizeof(value));
	return 0;
}

int
option_take_flag(const struct option_row *row, void *options,
    const char *value UNUSED, struct buf *error UNUSED)
{
	memcpy((char *)options + row->arg, &(bool){ true }, sizeof(bool));
	return 0;
}

int
option_no_word(void *options UNUSED, const char *word UNUSED, struct buf *error)
{
	(void)buf_add_str(error, "too many arguments");
	return -EINVAL;
}

/* ---- help ---- */

static void
add_form(const struct option_row *row, struct buf *out)
{
	char letter[] = { '-', row->letter, '\0' };

	buf_printf(out, "  %s%s%s%s%s%s", row->letter != 0 ? letter : "",
	    row->letter != 0 && row->name != NULL ? ", " : "",
	    row->name != NULL ? "--" : "", row->name != NULL ? row->name : "",
	    row->value != NULL ? " " : "",
	    row->value != NULL ? row->value : "");
}

/* Help begins at column HELP_INDENT, on a new line if the option is longer. */
static void
add_help(const char *help, size_t column, struct buf *out)
{
	while (*help != '\0') {
		const size_t len = strcspn(help, "\n");

		if (column >= HELP_INDENT) {
			buf_add_char(out, '\n');
			column = 0;
		}
		buf_printf(out, "%*s%.*s\n", (int)(HELP_INDENT - column), "",
		    (int)len, help);
		column = 0;
		help += len + (help[len] == '\n' ? 1 : 0);
	}
}

int
option_help(const struct option_table *table, struct buf *out)
{
	size_t i;

	for (i = 0; i < table->nrows; i++) {
		const size_t start = out->len;

		if (table->rows[i].help == NULL)
			continue;
		add_form(&table->rows[i], out);
		add_help(table->rows[i].help, out->len - start, out);
	}
	return out->error;
}
