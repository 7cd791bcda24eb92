#include "queue-send/state/pure.h"

usec_t
jumps_find(struct jumps *j, usec_t wall, usec_t boot)
{
	const usec_t expected = j->wall + (boot - j->boot);
	const usec_t size = j->boot == 0 ? 0 : wall - expected;

	j->wall = wall;
	j->boot = boot;
	if (size > -JUMPS_LEAST && size < JUMPS_LEAST)
		return 0;
	j->last[j->next++ % JUMPS_MAX] = (struct jump){ expected, size };
	return size;
}

void
jumps_resume(struct jumps *j, const struct jumps *saved, bool same_boot,
    usec_t wall, usec_t boot, usec_t believed)
{
	const usec_t gap = wall - saved->wall;

	*j = *saved;
	if (same_boot)
		return;
	j->boot = gap >= 0 && gap <= believed ? boot - gap : boot;
	if (j->boot == 0) /* which would be "none yet" */
		j->boot = 1;
}

static bool
has_seen(const struct jump *jump, usec_t arrival_wall, usec_t now_wall)
{
	if (jump->size > 0)
		return arrival_wall <= jump->before_wall;
	return arrival_wall <= jump->before_wall + jump->size ||
	    arrival_wall > now_wall;
}

usec_t
jumps_age(const struct jumps *j, usec_t arrival_wall, usec_t now_wall)
{
	usec_t age = now_wall - arrival_wall;
	uint32_t i;

	for (i = 0; i < JUMPS_MAX && i < j->next; i++)
		if (has_seen(&j->last[i], arrival_wall, now_wall))
			age -= j->last[i].size;
	return age;
}
