#include "model.h"

#include <inttypes.h>
#include <stdlib.h>

/* Seconds without trailing zeros. */
static int
add_time(struct buf *text, usec_t at)
{
	int r = buf_printf(text, "%" PRId64, at / USEC_PER_SEC);
	usec_t rest = at % USEC_PER_SEC, unit = USEC_PER_SEC / 10;

	if (r == 0 && rest > 0)
		r = buf_add_char(text, '.');
	for (; r == 0 && rest > 0; rest %= unit, unit /= 10)
		r = buf_add_char(text, (char)('0' + rest / unit));
	return r;
}

static int
add_line(
    const struct scenario *sc, const struct model_pick *p, struct buf *text)
{
	int r = add_time(text, p->at);

	return r < 0
	    ? r
	    : buf_printf(text, " %u %s/%s %u\n", p->message + 1,
		  sc->conf.transports[p->transport].name, p->name, p->nrcpts);
}

void
model_print(
    const struct scenario *sc, const struct model_output *out, struct buf *text)
{
	size_t i;

	for (i = 0; i < out->n; i++)
		if (!out->picks[i].deferred)
			ASSERT(add_line(sc, &out->picks[i], text) == 0);
}

void
model_output_done(struct model_output *out)
{
	size_t i;

	for (i = 0; i < out->nnames; i++)
		free(out->names[i]);
	free(out->names);
	free(out->picks);
	*out = (struct model_output){ 0 };
}
