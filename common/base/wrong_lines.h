/* base/wrong_lines.h - the wrong lines of a file, for a check that tells each
 * of them: the first WRONG_LINES_MAX by their numbers, and how many more.
 *
 * {0} has none. Failure: -ENOMEM. The owner calls wrong_lines_done(), or
 * wrong_lines_tell(), which does.
 */
#ifndef BASE_WRONG_LINES_H
#define BASE_WRONG_LINES_H

#include "base/buf.h"

#define WRONG_LINES_MAX 20

struct wrong_lines {
	struct wrong_line {
		uint32_t line;
		struct buf text;
	} rows[WRONG_LINES_MAX]; /* by line */
	size_t n;
	uint32_t more; /* that are not kept */
};

/* r is what came of a line. When it is -EINVAL the complaint goes out of *text,
 * which becomes empty, into w, and the rest of the file can be read: 0. Else,
 * and when w is NULL, r. */
int wrong_lines_go_on(
    struct wrong_lines *w, uint32_t line, int r, struct buf *text);
/* r is what came of the file, without these. Puts them in front of *text, a
 * line each without a line end behind the last: -EINVAL. When there is none, or
 * w is NULL, r. */
int wrong_lines_tell(struct wrong_lines *w, int r, struct buf *text);
void wrong_lines_done(struct wrong_lines *w);

#endif
