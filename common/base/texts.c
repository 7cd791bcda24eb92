#include "base/texts.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

struct texts_one {
	struct texts_one *next;
	char text[];
};

const char *
texts_keep(struct texts *t, const char *text)
{
	const size_t size = strlen(text) + 1;
	struct texts_one *one = malloc(sizeof(*one) + size);

	if (one == NULL)
		return NULL;
	one->next = t->first;
	t->first = one;
	return memcpy(one->text, text, size);
}

void
texts_done(struct texts *t)
{
	struct texts_one *one;

	while ((one = t->first) != NULL) {
		t->first = one->next;
		free(one);
	}
}

/* ---- a set ---- */

static int
compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

bool
texts_set_has(const struct texts_set *s, const char *text)
{
	return tfind(text, &s->root, compare) != NULL;
}

int
texts_set_add(struct texts_set *s, const char *text)
{
	char *copy;

	if (texts_set_has(s, text))
		return 0;
	copy = strdup(text);
	if (copy == NULL || tsearch(copy, &s->root, compare) == NULL) {
		free(copy);
		return -ENOMEM;
	}
	return 1;
}

void
texts_set_done(struct texts_set *s)
{
	tdestroy(s->root, free);
	s->root = NULL;
}
