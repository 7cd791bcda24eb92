#include "sched_drive.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

void
drive_add_shared(struct drive *d, struct drive_message *m, uint32_t transport,
    const struct sched_rcpt *rcpt)
{
	const uint8_t group = (uint8_t)drive_dice(d, 1, 3);
	char name[16];

	snprintf(name, sizeof(name), "mx:%u", drive_dice(d, 0, 2));
	m->group[rcpt->index] = group;
	cr_assert_eq(
	    sched_rcpt_add_shared(m->m, transport, name, group, rcpt), 0);
}

void
drive_move(struct drive *d)
{
	struct sched_entry *e;
	uint32_t i, k, before;
	char to[16];

	if (d->ntaken == 0)
		return;
	i = drive_dice(d, 0, d->ntaken - 1);
	e = d->taken[i].entry;
	snprintf(to, sizeof(to), "mx:%u", drive_dice(d, 0, 2));
	if (d->taken[i].dead || strcmp(to, e->destination) == 0)
		return;
	before = sched_transport_running(d->sched, e->transport);
	for (k = 0; k < e->nrcpts; k++)
		d->taken[i].of->selected[e->rcpts[k].index] = false;
	d->taken[i].of->waiting += e->nrcpts;
	cr_assert_eq(sched_move(d->sched, e, to, d->now), 0);
	cr_assert_eq(
	    sched_transport_running(d->sched, e->transport), before - 1);
	drive_forget_taken(d, i);
}
