/* Each of these may wait for a disk for ever. */
#include "qscheduler/queues/queues.h"

#include <errno.h>
#include <string.h>

static int
add_facts(const struct worker_call *call, const struct base_facts *facts)
{
	return buf_add(call->more, facts, sizeof(*facts));
}

/* A worker that died while it answered has not said that there is no mail. */
struct base_facts
disk_facts_of(const struct buf *more)
{
	struct base_facts facts = {
		.listed = true, .mail = true, .error = -EIO
	};

	if (more->len == sizeof(facts))
		memcpy(&facts, more->data, sizeof(facts));
	return facts;
}

int
disk_facts(const struct worker_call *call)
{
	const struct queues *all = call->ctx;
	struct base_facts facts = { 0 };

	base_inspect(all->base, call->number, &facts);
	return add_facts(call, &facts);
}

int
disk_mail(const struct worker_call *call)
{
	const struct queues *all = call->ctx;
	struct base_facts facts = { 0 };
	int r;

	base_inspect(all->base, call->number, &facts);
	r = add_facts(call, &facts);
	return r < 0 ? r : facts.error;
}

int
disk_check(const struct worker_call *call)
{
	const struct queues *all = call->ctx;
	const struct base *b = all->base;
	const struct conf *conf = all->instance->conf;
	const struct room_want want = { conf->queue_minfree_bytes,
		conf->queue_minfree_inodes, ROOM_USER };
	struct base_room room = { 0 };
	int r = base_check(b, call->number, &want, &room);

	if (r < 0)
		(void)base_describe_gone(r, call->error);
	if (r == 0)
		r = buf_add(call->more, &room, sizeof(room));
	if (r < 0 || !spool_is_sealed_at(b->path, call->number))
		return r;
	r = spool_set_sealed(b->path, call->number, false);
	return r < 0 ? r : 1;
}

int
disk_make(const struct worker_call *call)
{
	const struct queues *all = call->ctx;
	struct base_facts facts = { .wanted = true };
	int r = base_read_list(all->base, call->error);

	if (r < 0)
		return r;
	base_inspect(all->base, call->number, &facts);
	if (facts.marked)
		r = base_judge_names(all->base, call->number, call->error);
	if (r < 0)
		return r;
	if (base_judge(&facts) != VERDICT_DISABLE)
		return base_make(all->base, call->number,
		    all->instance->conf->queue_split, call->error);
	(void)base_describe_lost(all->base, call->number, &facts, call->error);
	return facts.error < 0 ? facts.error : -ENOENT;
}

int
disk_make_again(const struct worker_call *call)
{
	const struct queues *all = call->ctx;

	return base_is_taken(all->base, call->number) ? -EAGAIN
						      : disk_make(call);
}

int
disk_seal(const struct worker_call *call)
{
	const struct queues *all = call->ctx;

	return base_seal(all->base, call->number);
}

/* A disk that hangs is left to the worker that met it: the next sweep passes by
 * it. A queue of another layout may hold mail. */
int
disk_sweep(const struct worker_call *call)
{
	const struct queues *all = call->ctx;
	uint32_t disk[QUEUE_NUM_MAX];
	int i, r = 0, n = spool_list(all->base->path, disk, ARRAY_LEN(disk));

	for (i = 0; i < n && r == 0; i++) {
		struct base_facts facts = { 0 };

		if (queue_find(all, disk[i]) != NULL ||
		    worker_runs(all->workers, disk[i]))
			continue;
		*call->at = disk[i];
		base_inspect(all->base, disk[i], &facts);
		if (facts.mail || facts.error == -EMEDIUMTYPE)
			r = buf_add(call->more, &disk[i], sizeof(disk[i]));
	}
	return n < 0 ? n : r;
}
