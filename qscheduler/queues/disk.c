/* What the processes of look.h do, each in its own: any of it may wait for a
 * disk for ever. */
#include <errno.h>

#include "qscheduler/queues/override_file.h"
#include "qscheduler/supervisor/super.h"

void (*look_seam)(enum look_kind kind, uint32_t number);

/* What one look is about, and what it fills in. */
struct run {
	struct super *s;
	uint32_t number;
	volatile uint32_t *at;
	struct look_result *out;
	struct buf *error, *more;
};

static int
run_facts(const struct run *run)
{
	base_look(&run->s->base, run->number, &run->out->facts);
	return 0;
}

static int
run_mail(const struct run *run)
{
	base_look(&run->s->base, run->number, &run->out->facts);
	return run->out->facts.error;
}

static int
run_check(const struct run *run)
{
	const struct base *b = &run->s->base;
	int r = base_check(b, run->number);

	if (r < 0 || !spool_is_closed_at(b->path, run->number))
		return r;
	r = spool_set_closed(b->path, run->number, false);
	return r < 0 ? r : 1;
}

static int
run_make(const struct run *run)
{
	struct super *s = run->s;
	struct queue_facts *facts = &run->out->facts;
	int r = base_read_list(&s->base, run->error);

	if (r < 0)
		return r;
	facts->wanted = true;
	base_look(&s->base, run->number, facts);
	if (base_judge(facts) != VERDICT_DISABLE)
		return base_make(
		    &s->base, run->number, s->conf->queue_split, run->error);
	(void)base_describe_lost(&s->base, run->number, facts, run->error);
	return facts->error < 0 ? facts->error : -ENOENT;
}

static int
run_seal(const struct run *run)
{
	return base_seal(&run->s->base, run->number);
}

/* One that hangs is left to the process that met it: the next sweep passes by
 * it. */
static int
run_sweep(const struct run *run)
{
	struct super *s = run->s;
	uint32_t disk[QUEUE_NUM_MAX];
	int i, n = spool_list(s->base.path, disk, ARRAY_LEN(disk));

	for (i = 0; i < n; i++) {
		struct queue_facts facts = { 0 };

		if (queue_find(s, disk[i]) != NULL || look_runs(s, disk[i]))
			continue;
		*run->at = disk[i];
		base_look(&s->base, disk[i], &facts);
		run->out->mail[disk[i]] = facts.mail;
	}
	return n < 0 ? n : 0;
}

static int
run_save(const struct run *run)
{
	return hand_write(run->s, run->error);
}

static int
run_judge(const struct run *run)
{
	return reload_judge(run->s, run->error, run->more);
}

static int (*const runs[LOOK_NKINDS])(const struct run *run) = {
	[LOOK_FACTS] = run_facts,
	[LOOK_CHECK] = run_check,
	[LOOK_MAIL] = run_mail,
	[LOOK_MAKE] = run_make,
	[LOOK_SEAL] = run_seal,
	[LOOK_SWEEP] = run_sweep,
	[LOOK_SAVE] = run_save,
	[LOOK_JUDGE] = run_judge,
};

int
look_run(struct super *s, enum look_kind kind, uint32_t number,
    volatile uint32_t *at, struct look_result *out, struct buf *error,
    struct buf *more)
{
	const struct run run = { s, number, at, out, error, more };

	if (look_seam != NULL)
		look_seam(kind, number);
	return runs[kind](&run);
}
