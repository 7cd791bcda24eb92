/* base/texts.h - strings that live as long as their owner, for tables that keep
 * a text in another form than the file has. {0} is empty.
 * And a set of strings. */
#ifndef BASE_TEXTS_H
#define BASE_TEXTS_H

#include "base/base.h"

struct texts {
	struct texts_one *first;
};

/* A copy that lives until texts_done(). NULL: no memory. */
const char *texts_keep(struct texts *t, const char *text);
void texts_done(struct texts *t);

/* Each string once, compared as it is. {0} is empty. */
struct texts_set {
	void *root;
};

bool texts_set_has(const struct texts_set *s, const char *text);
/* 1: it is new; 0: it was there; -ENOMEM. */
int texts_set_add(struct texts_set *s, const char *text);
void texts_set_done(struct texts_set *s);

#endif
