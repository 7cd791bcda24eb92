#include "qctl/act/act.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"

#define COUNT_MAX 1000000

int
pace_parse(const char *text, uint32_t *ret_count, usec_t *ret_unit)
{
	static const struct {
		const char *name;
		usec_t unit;
	} units[] = {
		{ "", USEC_PER_SEC },
		{ "/s", USEC_PER_SEC },
		{ "/m", 60 * USEC_PER_SEC },
		{ "/h", 3600 * USEC_PER_SEC },
	};
	const size_t len = strcspn(text, "/");
	char number[16];
	uint64_t count;
	size_t i;

	if (len >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, len);
	number[len] = '\0';
	if (num_u64(number, 1, COUNT_MAX, &count) < 0)
		return -EINVAL;
	for (i = 0; i < ARRAY_LEN(units); i++)
		if (strcmp(units[i].name, text + len) == 0) {
			*ret_count = (uint32_t)count;
			*ret_unit = units[i].unit;
			return 0;
		}
	return -EINVAL;
}

/* The first is due now, so the last is one step before the end. */
usec_t
pace_span(const struct options *o, size_t count)
{
	if (o->rate_count == 0 || count == 0)
		return 0;
	return (usec_t)((double)(count - 1) * (double)o->rate_unit /
	    (double)o->rate_count);
}

/* Messages of a queue are spread over the whole span, so that all queues
 * together keep the rate, and none is behind another. */
usec_t
pace_due(const struct task *t, size_t index, size_t own)
{
	const double span = (double)pace_span(&t->options, t->ntargets + 1);

	if (t->options.rate_count == 0)
		return 0;
	return t->view.now_wall + (usec_t)(span * (double)index / (double)own);
}
