#include "queue-send/disk/work.h"

#include "base/clock.h"
#include "ipc/page.h"
#include "queue-send/state/send.h"

#define SLOW_TIME     (10 * USEC_PER_SEC)
#define LOOP_WAIT_MAX (5 * USEC_PER_MSEC)

/* A file system renames one file at a time, and most disks remove files as fast
 * by one thread as by more. Acts are short. Of marks, reads and questions one
 * after the other is done. */
static const struct {
	struct executor_kind kind; /* in a queue on a disk */
	bool in_memory;            /* threads do it there, too */
	bool shows_slow;           /* a sync takes long on any disk */
	enum disk_work work;
} kinds[DISK_NKINDS] = {
	/* clang-format off */
	[DISK_MOVE]   = { .kind = { 4, 4, 32, false }, .shows_slow = true,
	    .work = DISK_WORK_MOVE },
	[DISK_REMOVE] = { .kind = { 4, 16, 16, false },
	    .shows_slow = true, .work = DISK_WORK_REMOVAL },
	[DISK_RECORD] = { .kind = { 1, 1, 32, false }, .shows_slow = true,
	    .work = DISK_WORK_MARK },
	[DISK_MARK]   = { .kind = { 0, 0, 0, false } },
	[DISK_READ]   = { .kind = { 4, 1, 1, false }, .shows_slow = true,
	    .work = DISK_WORK_READ },
	[DISK_ACT]    = { .kind = { 4, 4, 4, false }, .shows_slow = true,
	    .work = DISK_WORK_ACT },
	[DISK_SYNC]   = { .kind = { 4, 1, 1, false }, .in_memory = true,
	    .work = DISK_WORK_SYNC },
	[DISK_WALK]   = { .kind = { 1, 1, 1, false } },
	[DISK_REPORT] = { .kind = { 4, 1, 1, false }, .in_memory = true },
	[DISK_PROBE]  = { .kind = { 1, 1, 1, false } },
	[DISK_ASK]    = { .kind = { 1, 1, 1, false }, .work = DISK_WORK_PROBE },
	[DISK_CLOCK]  = { .kind = { 1, 1, 1, false } },
	/* All queues may hang: another thread is started when all that there
	 * are do. */
	[DISK_OPEN]   = { .kind = { PAGE_QUEUES_MAX, 1, 1, true } },
	[DISK_RULES]  = { .kind = { 1, 1, 1, true }, .in_memory = true },
	/* clang-format on */
};

/* ---- start and end ---- */

void
disk_set_kinds(struct send *s)
{
	enum disk_kind i;

	for (i = 0; i < DISK_NKINDS; i++) {
		s->disk.kinds[i] = kinds[i].kind;
		if (s->in_memory && !kinds[i].in_memory)
			s->disk.kinds[i].threads = 0;
	}
}

static void
woken(void *arg)
{
	send_read_clocks(arg);
	send_wake(arg);
}

int
disk_start(struct send *s)
{
	const struct executor_owner owner = { s->base, s->sp.sys, s, woken };

	return executor_new(
	    &owner, s->disk.kinds, DISK_NKINDS, &s->disk.executor);
}

bool
disk_end(struct send *s)
{
	return executor_free(&s->disk.executor);
}

void
disk_do(struct send *s, enum disk_kind kind, struct sync_task *task)
{
	executor_do(s->disk.executor, kind, task);
}

bool
disk_has_threads(const struct send *s, enum disk_kind kind)
{
	return executor_has_threads(s->disk.executor, kind);
}

usec_t
disk_look(struct send *s)
{
	return executor_look(s->disk.executor, s->now);
}

/* ---- how fast ---- */

static bool
is_recent(const struct send *s, usec_t slow_at)
{
	return slow_at > 0 && s->now - slow_at < SLOW_TIME;
}

static bool
was_slow_lately(const struct send *s)
{
	enum disk_kind i;

	for (i = 0; i < DISK_NKINDS; i++)
		if (kinds[i].shows_slow &&
		    is_recent(s, executor_slow_at(s->disk.executor, i, s->now)))
			return true;
	return is_recent(s, s->disk.slow_at);
}

bool
disk_is_slow(struct send *s)
{
	struct disk *p = &s->disk;

	if (p->looked != s->now)
		p->slow = was_slow_lately(s);
	p->looked = s->now;
	return p->slow;
}

enum disk_kind
disk_kind_of_mark(struct send *s, const struct message *m, bool has_reason)
{
	return !has_reason && m->fd >= 0 && !disk_is_slow(s) ? DISK_MARK
							     : DISK_RECORD;
}

void
disk_waited(struct send *s, usec_t began)
{
	const usec_t now = clock_mono();

	if (now - began < LOOP_WAIT_MAX)
		return;
	s->disk.slow_at = now;
	s->disk.slow = true;
}

usec_t
disk_oldest(const struct send *s, usec_t least, uint32_t *ret_work)
{
	usec_t oldest = s->now - least, found = 0;
	enum disk_kind i;

	for (i = 0; i < DISK_NKINDS; i++) {
		const usec_t began = kinds[i].work == DISK_WORK_NONE
		    ? 0
		    : executor_oldest(s->disk.executor, i);

		if (began > 0 && began <= oldest) {
			found = oldest = began;
			*ret_work = kinds[i].work;
		}
	}
	return found;
}
