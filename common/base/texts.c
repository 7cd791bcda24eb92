#include "base/texts.h"

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
