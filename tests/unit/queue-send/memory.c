/* What a queued message costs: at most 1 KiB for one recipient, in all of
 * queue-send, and a deferred one much less (D23). */
#include "queue-send/backlog/backlog.h"
#include "queue-send/state/message.h"
#include "queue-send/state/send.h"
#include "sched/sched.h"
#include "site/shared.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#define N 20000

static size_t
in_use(void)
{
	struct mallinfo2 now = mallinfo2();

	return now.uordblks + now.hblkhd;
}

/* With the longest strings that are usual, each its own destination. */
static void
add_message(struct send *send, struct messages *ms, struct sched *s, uint32_t i)
{
	const struct sched_rcpt rcpt = { .offset = 4096, .index = 0 };
	struct msg_MESSAGE frame = {
		.inode = i + 1,
		.dir = SPOOL_INCOMING,
		.arrival_wall = i,
		.recipients = 1,
		.sender =
		    MSG_S("bounces+4711-recipient=example.org@lists.test"),
		.census = { "0123456789abcdef", 16 },
	};
	struct message *m = messages_add(ms, &frame);
	char address[96], nexthop[64];

	cr_assert_not_null(m);
	messages_put(ms, m, STATE_ENTERING_INCOMING);
	free(messages_activate(ms, m, 0));
	cr_assert_eq(sched_message_new(s, m, 0, &m->sched), 0);
	snprintf(nexthop, sizeof(nexthop), "mail.customer-%u.example.org", i);
	m->backlog = backlog_get(send, 0, nexthop);
	cr_assert_not_null(m->backlog);
	snprintf(address, sizeof(address), "firstname.lastname@%s", nexthop);
	cr_assert_eq(sched_rcpt_add(m->sched, 0, nexthop, address, &rcpt), 0);
	sched_batch_end(m->sched, true, 0);
}

Test(memory, at_most_1_KiB_per_active_message_and_128_bytes_for_its_line)
{
	static struct send send;
	const struct sched_params params = { N, 1, N };
	const struct sched_transport_params transport = {
		.process_limit = 1,
		.destination_recipient_limit = 1,
		.delivery_slot_cost = 5,
		.recipient_limit = N,
	};
	const struct site_params site = { 5, 20, { 1, 0 }, { 1, 0 }, 1 };
	const struct site_backoff backoff = { USEC_PER_SEC, USEC_PER_SEC, 10 };
	static const char *const name = "smtp";
	const struct shared_params table = { &site, &name, 1, backoff };
	struct shared *sites;
	struct messages ms;
	struct message *m;
	struct sched *s;
	size_t before, each;
	uint32_t i;

	messages_init(&ms, 16);
	share_init(&send);
	cr_assert_eq(shared_new_alone(&table, N, 1, &sites), 0);
	cr_assert_eq(sched_new(&params, &transport, 1, sites, &s), 0);
	before = in_use();
	for (i = 0; i < N; i++)
		add_message(&send, &ms, s, i);
	each = (in_use() - before) / N;
	cr_log_info("active: %zu bytes", each);
	cr_assert_leq(each, 1024 + 128, "%zu", each); /* a sanitizer says 0 */
	while ((m = messages_first(&ms, STATE_ACTIVE)) != NULL)
		messages_drop(&ms, m);
	share_done(&send);
	sched_free(&s);
	shared_free(&sites);
}

Test(memory, D23_at_most_100_bytes_per_deferred_message)
{
	struct due_queue q;
	size_t before = in_use(), each;
	uint64_t i;

	due_init(&q);
	for (i = 1; i <= N; i++)
		cr_assert_not_null(due_put(&q, i, (usec_t)(i * 7919 % N)));
	each = (in_use() - before) / N;
	cr_log_info("deferred: %zu bytes", each);
	cr_assert_leq(each, 100, "%zu", each);
	due_done(&q);
}
