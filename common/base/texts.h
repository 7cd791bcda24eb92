/* base/texts.h - strings that live as long as their owner, for tables that keep
 * a text in another form than the file has. {0} is empty. */
#ifndef BASE_TEXTS_H
#define BASE_TEXTS_H

#include "base/base.h"

struct texts {
	struct texts_one *first;
};

/* A copy that lives until texts_done(). NULL: no memory. */
const char *texts_keep(struct texts *t, const char *text);
void texts_done(struct texts *t);

#endif
