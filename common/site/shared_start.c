#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "ipc/mapping.h"
#include "site/shared_parts.h"

/* ---- parameters ---- */

static void
set_params(struct shared *s, const struct shared_params *params)
{
	uint32_t i;

	site_backoff_fit(&params->backoff, &s->backoff);
	for (i = 0; i < s->count; i++)
		site_rules(&params->sites[i], &s->rules[i]);
}

int
shared_configure(struct shared *shared, const struct shared_params *params)
{
	if (params->count != shared->count)
		return -EINVAL;
	set_params(shared, params);
	return 0;
}

/* ---- start and end ---- */

/* Why no place can be taken, beside damage. */
#define NONE_YET "there is none yet"
#define UNUSABLE "there is a new one, which cannot be used"
#define ENDS     "this process ends"

static int
names_copy(struct shared *s, const struct shared_params *params)
{
	uint32_t i;

	s->names = calloc(params->count + 1, sizeof(*s->names));
	for (i = 0; s->names != NULL && i < params->count; i++) {
		s->names[i] = strdup(params->names[i]);
		if (s->names[i] == NULL)
			break;
	}
	return s->names == NULL || i < params->count ? -ENOMEM : 0;
}

int
shared_new(const struct shared_params *params, uint64_t seed,
    struct shared **ret_shared)
{
	struct shared *s;
	int r;

	if (params->count > UINT16_MAX)
		return -EINVAL;
	s = calloc(1, sizeof(*s) + params->count * sizeof(struct window_rules));
	if (s == NULL)
		return -ENOMEM;
	s->count = params->count;
	s->lost = NONE_YET;
	s->random = seed;
	s->secret = site_mix(~seed);
	s->next_check = s->next_pass_on = s->told = USEC_NEVER;
	RB_INIT(&s->handles);
	TAILQ_INIT(&s->ready);
	set_params(s, params);
	r = shared_waker_open(&s->waker);
	if (r == 0)
		r = names_copy(s, params);
	if (r < 0)
		shared_free(&s);
	*ret_shared = s;
	return r;
}

/* The fields of struct shared that belong to one segment. */
struct attachment {
	struct shared_segment seg;
	struct shared_set_state *sets;
	uint64_t *forgets;
	uint64_t owner;
	uint32_t member;
	bool borrowed;
};

static struct attachment
attachment_of(const struct shared *s)
{
	return (struct attachment){ s->seg, s->sets, s->forgets, s->owner,
		s->member, s->borrowed };
}

static void
attachment_set(struct shared *s, const struct attachment *p)
{
	s->seg = p->seg;
	s->sets = p->sets;
	s->forgets = p->forgets;
	s->owner = p->owner;
	s->member = p->member;
	s->borrowed = p->borrowed;
}

static void
attachment_free(struct attachment *p)
{
	if (!p->borrowed)
		shared_segment_unmap(&p->seg);
	free(p->sets);
	free(p->forgets);
}

static void
detach(struct shared *s)
{
	struct attachment old = attachment_of(s);

	shared_waker_stop(&s->waker);
	if (s->owner != 0 && !shared_is_lost(s))
		shared_member_give_up(s, clock_mono());
	attachment_free(&old);
	attachment_set(s, &(struct attachment){ 0 });
}

void
shared_free(struct shared **shared)
{
	struct shared *s = *shared;
	uint32_t i;

	if (s == NULL)
		return;
	shared_handles_free(s);
	detach(s);
	shared_waker_close(&s->waker);
	for (i = 0; s->names != NULL && i < s->count; i++)
		free(s->names[i]);
	free(s->names);
	free(s);
	*shared = NULL;
}

void
shared_abandon(struct shared *shared)
{
	if (shared->lost == NULL)
		shared->lost = ENDS;
	shared->owner = 0;
}

/* ---- the segment ---- */

/* Memory first: a member is claimed when only the thread can fail. */
static int
attach(struct shared *s, uint64_t owner)
{
	uint32_t i;
	int r;

	s->sets = calloc(s->seg.sets, sizeof(*s->sets));
	s->forgets = calloc(s->seg.members, sizeof(*s->forgets));
	if (s->sets == NULL || s->forgets == NULL)
		return -ENOMEM;
	for (i = 0; i < s->seg.sets; i++)
		LIST_INIT(&s->sets[i].watched);
	r = shared_member_claim(s, owner);
	if (r < 0)
		return r;
	return shared_waker_start(
	    &s->waker, &shared_segment_member(&s->seg, s->member)->word);
}

static void
begin(struct shared *s, uint64_t owner, usec_t now)
{
	s->lost = NULL;
	s->untidy = !shared_member_clear(s, s->member, owner, now);
	s->secret = s->seg.secret;
	shared_handles_move(s);
	s->uncounted = !shared_handles_count(s, now);
	shared_work_at(s, now);
}

/* The member in the old segment stays as it is: others may still count its
 * places. */
int
shared_attach_segment(struct shared *s, const struct shared_segment *seg,
    uint64_t owner, usec_t now)
{
	struct attachment old = attachment_of(s), fresh;
	int r;

	shared_waker_stop(&s->waker);
	attachment_set(
	    s, &(struct attachment){ .seg = *seg, .borrowed = s->borrowed });
	r = attach(s, owner);
	if (r == 0) {
		begin(s, owner, now);
		attachment_free(&old);
		return 0;
	}
	fresh = attachment_of(s);
	attachment_set(s, &old);
	attachment_free(&fresh);
	shared_lose(s, UNUSABLE);
	if (s->seg.base != NULL)
		(void)shared_waker_start(&s->waker,
		    &shared_segment_member(&s->seg, s->member)->word);
	return r;
}

int
shared_attach(struct shared *shared, int fd, uint32_t queue,
    uint32_t generation, usec_t now)
{
	struct shared_segment seg;
	int r = shared_segment_map(fd, &seg);

	if (r < 0) {
		shared_lose(shared, UNUSABLE);
		return r;
	}
	return shared_attach_segment(
	    shared, &seg, shared_member_owner(queue, generation), now);
}

static int
attach_alone(struct shared *s, uint32_t slots)
{
	int fd, r = shared_create_alone(slots, s->secret, &fd);

	if (r < 0)
		return r;
	r = shared_open_up(fd);
	if (r == 0)
		r = shared_attach(s, fd, 0, 0, 0);
	close(fd);
	return r;
}

int
shared_new_alone(const struct shared_params *params, uint32_t slots,
    uint64_t seed, struct shared **ret_shared)
{
	int r = shared_new(params, seed, ret_shared);

	if (r < 0)
		return r;
	r = attach_alone(*ret_shared, slots);
	if (r < 0)
		shared_free(ret_shared);
	return r;
}

void
shared_set_barred(struct shared *shared,
    bool (*barred)(void *ctx, struct site *site), void *ctx)
{
	shared->barred = barred;
	shared->barred_ctx = ctx;
}

bool
shared_is_attached(const struct shared *shared)
{
	return shared->seg.base != NULL;
}

uint32_t
shared_number(const struct shared *shared)
{
	return shared->seg.number;
}

bool
shared_is_counted(const struct shared *shared)
{
	return !shared->uncounted;
}

void
shared_figures(const struct shared *shared, struct shared_figures *ret)
{
	*ret = shared->figures;
}

int
shared_wake_fd(const struct shared *shared)
{
	return shared->waker.fd;
}
