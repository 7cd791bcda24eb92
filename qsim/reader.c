#include "qsim/reader.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "base/text.h"

/* ---- errors ---- */

int
reader_expected(struct reader *rd, const char *what, const char *got)
{
	struct buf *e = rd->error;

	(void)buf_printf(
	    e, "%s:%u: expected %s, ", rd->sc.path, rd->line, what);
	if (got == NULL) {
		(void)buf_add_str(e, "but the line ends");
	} else {
		(void)buf_add_str(e, "not ");
		(void)text_quote(e, got);
	}
	return -EINVAL;
}

/* ---- words ---- */

char *
reader_word(struct reader *rd)
{
	char *word = rd->rest + strspn(rd->rest, " \t");
	size_t len = strcspn(word, " \t");

	if (len == 0)
		return NULL;
	rd->rest = word + len;
	if (*rd->rest != '\0')
		*rd->rest++ = '\0';
	return word;
}

int
reader_end(struct reader *rd)
{
	const char *word = reader_word(rd);

	return word == NULL ? 0
			    : reader_expected(rd, "the end of the line", word);
}

int
reader_number(struct reader *rd, const char *word, uint64_t min, uint64_t max,
    const char *what, uint32_t *ret_value)
{
	uint64_t n;

	if (word == NULL || num_u64(word, min, max, &n) < 0)
		return reader_expected(rd, what, word);
	*ret_value = (uint32_t)n;
	return 0;
}

int
reader_time(
    struct reader *rd, const char *word, const char *what, usec_t *ret_time)
{
	double seconds;

	if (word == NULL || num_decimal(word, 0, READER_TIME_MAX, &seconds) < 0)
		return reader_expected(rd, what, word);
	*ret_time = (usec_t)(seconds * (double)USEC_PER_SEC + 0.5);
	return 0;
}

/* ---- destinations ---- */

int
reader_transport(struct reader *rd, char **word, uint32_t *ret_transport)
{
	char *slash = strchr(*word, '/');
	const char *name = "smtp";
	bool new;
	int r;

	if (slash == *word)
		return reader_expected(rd, "a transport before `/'", *word);
	if (slash != NULL) {
		name = *word;
		*word = slash + 1;
		*slash = '\0';
	}
	r = names_transport(&rd->names, name, &new, ret_transport);
	if (r == -ENOSPC)
		return reader_expected(rd,
		    "at most " READER_TEXT(
			CONF_TRANSPORTS_LISTED_MAX) " transports",
		    name);
	return r == 0 && new ? reader_check_transport(rd, name) : r;
}

int
reader_destination_of(struct reader *rd, uint32_t transport, const char *name,
    uint32_t *ret_destination)
{
	const unsigned char *c = (const unsigned char *)name;

	while (*c > ' ' && *c < 0x7f && strchr("*#/", *c) == NULL)
		c++;
	if (c == (const unsigned char *)name || *c != '\0')
		return reader_expected(rd,
		    "a destination (no blank, `*', `#' or second `/')", name);
	if (strlen(name) > SCENARIO_NAME_MAX)
		return reader_expected(rd,
		    "a destination of at most " READER_TEXT(
			SCENARIO_NAME_MAX) " bytes",
		    name);
	return names_destination(&rd->names, transport, name, ret_destination);
}

int
reader_destination(struct reader *rd, char *word, uint32_t *ret_destination)
{
	uint32_t transport;
	int r;

	if (word == NULL)
		return reader_expected(rd, "a destination", NULL);
	r = reader_transport(rd, &word, &transport);
	return r < 0
	    ? r
	    : reader_destination_of(rd, transport, word, ret_destination);
}
