/* base/line.h - the lines of a file that people write, one at a time.
 *
 * CRLF and a missing last newline are accepted. A byte-order
 * mark, a NUL, another control character and a line above the limit are errors.
 */
#ifndef BASE_LINE_H
#define BASE_LINE_H

#include "base/buf.h"

struct line_cursor {
	char *next, *end;
	size_t max;      /* the longest line */
	uint32_t number; /* number of the last line returned, from 1 */
};

/* text is cut into strings in place. The caller owns it; a NUL must follow it,
 * as in a buf. */
void line_begin(struct line_cursor *c, struct buf *text, size_t max);
/* 1: *ret_line is the next line; 0: the end; -EINVAL with the reason. */
int line_next(struct line_cursor *c, char **ret_line, const char **ret_why);

/* Cut off a comment: `#` at the start or behind a blank, to the end. */
void line_uncomment(char *line);
/* Cut off blanks at both ends; returns the new start. */
char *line_trim(char *line);
/* One word, which begins at *at and ends at a blank or the end, into out; *at
 * ends behind it. "Double quotes" group, and within them \" and \\ stand for
 * themselves. NULL, or the reason: a quote is not closed, out of memory. */
const char *line_word(const char **at, struct buf *out);
/* All words, each of malloc(), the caller's also after a failure. NULL, or the
 * reason: as line_word(), or there are more than `most'. */
const char *
line_words(const char *line, char **words, size_t most, size_t *ret_count);
/* The end of the word that begins at p, with its quotes, within which a
 * backslash takes the next character along. *ret_open: a quote is not closed.
 */
char *line_word_end(char *p, bool *ret_open);

#endif
