/* Members, as processes take them from each other. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "site_shared_scratch.h"

#define CLAIMERS      3
#define CLAIMS_ROUNDS 20000

struct claimer {
	struct shared *s;
	pthread_t thread;
	pthread_barrier_t *barrier;
	uint32_t index, failed;
};

/* All want the only members there are. */
static void *
claim_often(void *arg)
{
	struct claimer *c = arg;
	uint32_t round, i;

	for (round = 1; round <= CLAIMS_ROUNDS; round++) {
		if (c->index == 0)
			for (i = 0; i < CLAIMERS; i++)
				shared_segment_member(&c->s->seg, i)->owner = 0;
		pthread_barrier_wait(c->barrier);
		c->failed += shared_member_claim(c->s,
				 shared_member_owner(c->index, round)) < 0;
		pthread_barrier_wait(c->barrier);
		c->failed +=
		    shared_segment_member(&c->s->seg, c->s->member)->owner !=
		    c->s->owner;
		pthread_barrier_wait(c->barrier);
	}
	return NULL;
}

Test(site_shared_member, P1_each_column_that_is_free_is_taken_once)
{
	struct claimer claimers[CLAIMERS] = { 0 };
	pthread_barrier_t barrier;
	struct scratch t;
	uint32_t i;

	scratch_begin(&t, 64, CLAIMERS);
	cr_assert_eq(pthread_barrier_init(&barrier, NULL, CLAIMERS), 0);
	for (i = 0; i < CLAIMERS; i++) {
		struct claimer *c = &claimers[i];

		c->barrier = &barrier;
		c->index = i;
		c->s = calloc(1, sizeof(*c->s));
		cr_assert_not_null(c->s);
		cr_assert_eq(shared_segment_map(t.fd, &c->s->seg), 0);
	}
	for (i = 0; i < CLAIMERS; i++)
		cr_assert_eq(pthread_create(&claimers[i].thread, NULL,
				 claim_often, &claimers[i]),
		    0);
	for (i = 0; i < CLAIMERS; i++) {
		pthread_join(claimers[i].thread, NULL);
		cr_expect_eq(claimers[i].failed, 0, "%u", claimers[i].failed);
		shared_segment_unmap(&claimers[i].s->seg);
		free(claimers[i].s);
	}
	pthread_barrier_destroy(&barrier);
	scratch_end(&t);
}
