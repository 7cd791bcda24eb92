#include "qscheduler/children/children.h"

#include <inttypes.h>
#include <stdio.h>

/* A program of the instance is one more row, with SCOPE_INSTANCE
 * (docs/SUPERVISION.md, "One more program"). */
static const struct role roles[] = {
	{
	    .name = "queue-send",
	    .user = DAEMON_AS_ROOT,
	    .objects = OBJECT(PAGE) | OBJECT(REPORTS) | OBJECT(SITES),
	    .leads = true,
	    .batch = true,
	},
	{
	    .name = "todo-proc",
	    .user = DAEMON_AS_ROOT,
	    .objects = OBJECT(BELL),
	    .batch = true,
	},
	{
	    .name = "deliver-local",
	    .user = DAEMON_AS_ROOT,
	    .stops_last = true,
	},
	{
	    .name = "deliver-smtp",
	    .user = DAEMON_AS_ROOT,
	    .stops_last = true,
	},
};

struct role_table role_table = { roles, ARRAY_LEN(roles) };

unsigned
roles_of(enum role_scope scope, const struct role *ret[GROUP_MAX])
{
	unsigned n = 0;
	size_t i;

	for (i = 0; i < role_table.n && n < GROUP_MAX; i++)
		if (role_table.rows[i].scope == scope)
			ret[n++] = &role_table.rows[i];
	return n;
}

void
role_describe(uint32_t queue, uint32_t place, char out[CHILD_NAME_SIZE])
{
	const struct role *of[GROUP_MAX];
	const unsigned n =
	    roles_of(queue == 0 ? SCOPE_INSTANCE : SCOPE_QUEUE, of);
	const char *name = place < n ? of[place]->name : "program";

	if (queue == 0)
		snprintf(out, CHILD_NAME_SIZE, "%s", name);
	else
		snprintf(out, CHILD_NAME_SIZE, "%s/%" PRIu32, name, queue);
}
