/* base/line_file.h - a table that people write, a row to a line: the error
 * names file, line and reason, and the word that is wrong. The first wrong line
 * ends the reading, or a check collects all of them (base/wrong_lines.h).
 */
#ifndef BASE_LINE_FILE_H
#define BASE_LINE_FILE_H

#include "base/buf.h"
#include "base/wrong_lines.h"

struct line_file {
	size_t max_bytes, max_line;
	bool may_be_absent; /* as an empty one */
	/* The next line, number from 1, which may be cut into words in place;
	 * empty ones and comments come as well. -errno with the reason, and the
	 * word that it is about, where it is about one. */
	int (*take)(void *arg, char *line, uint32_t number,
	    const char **ret_word, const char **ret_why);
};

/* -errno with the error appended: of file_read(), of line_next(), or of take().
 * The text is wiped behind it, since it may hold secrets. */
int line_file_read(const char *path, const struct line_file *how, void *arg,
    struct buf *ret_error);
/* The same, but the text stays in *ret_text. wrong: NULL, or wrong lines go
 * there, and the reading goes on. */
int line_file_read_on(const char *path, const struct line_file *how, void *arg,
    struct buf *ret_text, struct wrong_lines *wrong, struct buf *ret_error);
/* Appends "PATH:LINE: WHY", with the word that is wrong unless NULL. -EINVAL.
 */
int line_file_fail(struct buf *error, const char *path, uint32_t line,
    const char *word, const char *why);

#endif
