/* The road of a message through queue-send, to each of its ends. */
#include "tests/unit/queue-send/world.h"

#include "queue-send/backlog/backlog.h"
#include "queue-send/agents/agents.h"
#include "queue-send/message/path.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct world w;

static void
start(void)
{
	world_start(&w, "");
}

static void
end(void)
{
	world_end(&w);
}

TestSuite(road, .init = start, .fini = end, .timeout = 60);

static void
spool_is_empty(void)
{
	int dir;

	for (dir = SPOOL_MAILDROP; dir <= SPOOL_BOUNCE; dir++)
		cr_assert_eq(world_count(&w, (enum spool_dir)dir), 0, "%s",
		    spool_dirs[dir].name);
	cr_assert_eq(w.s.active, 0);
	cr_assert_eq(sched_figures(w.s.sched).recipients, 0);
	cr_assert_eq(w.s.due.count, 0);
	cr_assert_eq(w.s.ages.count, 0);
	cr_assert_eq(sched_figures(w.s.sched).messages, 0);
}

/* mutation: messages_rest() closes the file. */
Test(road, a_message_that_goes_its_way_is_opened_once)
{
	uint64_t inode = world_file(&w, "d", 2, 0);

	world_offer(&w, SPOOL_INCOMING, inode);
	(void)world_opens();
	world_run(&w);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 2);
	cr_expect_eq(world_opens(), 1);
}

Test(road, D9_one_that_waits_keeps_no_file_open_for_long)
{
	struct world_delivery delivery;
	uint64_t runs = world_message(&w, "d", 2), waits;

	cr_assert(world_take(&w, &delivery));
	waits = world_message(&w, "x@smtp.test", 1); /* without an agent */
	cr_expect_geq(messages_find(&w.s.messages, waits)->fd, 0);
	messages_close_resting(&w.s.messages);
	cr_expect_eq(messages_find(&w.s.messages, waits)->fd, -1);
	cr_expect_geq(messages_find(&w.s.messages, runs)->fd, 0);
}

Test(road, delivered_and_removed)
{
	uint64_t inode = world_message(&w, "d", 2);
	struct world_delivery delivery;

	cr_assert_eq(world_where(&w, inode), SPOOL_ACTIVE);
	cr_assert_eq(w.s.active, 1);
	cr_assert(world_take(&w, &delivery));
	cr_assert_str_eq(delivery.first, "r0@d0.test");
	cr_assert_str_eq(delivery.nexthop, "d0.test");
	cr_assert_str_eq(delivery.sender, "s@here.test");
	cr_assert_eq(delivery.content.len, 0, "nobody reads it");
	cr_assert_eq(delivery.fd, -1);

	world_result(&w, &delivery, 0, AGENT_SENT);
	world_run(&w);
	cr_assert_str_eq(world_marks(&w, SPOOL_ACTIVE, inode), "D.",
	    "marked before the delivery is done");
	world_done(&w, &delivery);
	world_run(&w);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_assert_eq(w.s.counters.delivered, 2);
	cr_assert_eq(w.s.counters.finished, 1);
	spool_is_empty();
}

/* mutation: queue-send/agents/dispatch.c, fits_whole() returns false always. */
Test(road, X14_an_agent_gets_the_content_and_no_queue_file)
{
	struct world_delivery delivery;

	world_message(&w, "x@pipe.test", 1);
	cr_assert(world_take(&w, &delivery));
	cr_assert_eq(delivery.content.len, 5);
	cr_assert_eq(memcmp(delivery.content.data, "a\n\nb\n", 5), 0);
	cr_assert_eq(delivery.fd, -1, "no descriptor of the queue file");
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	spool_is_empty();
}

Test(road, temporary_failure_is_deferred_and_tried_again)
{
	uint64_t inode = world_message(&w, "d", 2);
	struct world_delivery delivery;

	cr_assert(world_take(&w, &delivery));
	close(delivery.fd);
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	cr_assert(world_take(&w, &delivery));
	close(delivery.fd);
	world_result(&w, &delivery, 0, AGENT_DEFERRED);
	world_done(&w, &delivery);
	world_run(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_assert_str_eq(world_marks(&w, SPOOL_DEFERRED, inode), "D.");
	cr_assert_str_eq(
	    world_reason(&w, SPOOL_DEFER, inode, 1), "4.2.1 as told");
	cr_assert_eq(w.s.active, 0);
	cr_assert_eq(w.s.due.count, 1);
	cr_assert_gt(due_next(&w.s.due), w.s.now + 260 * USEC_PER_SEC);
	cr_assert_lt(due_next(&w.s.due), w.s.now + 340 * USEC_PER_SEC);
	cr_assert_eq(w.nprepared, 0);

	deferred_flush(&w.s);
	send_wake(&w.s);
	world_run(&w);
	cr_assert_eq(w.nprepared, 1);
	cr_assert_eq(w.prepared[0], inode);
	world_offer(&w, SPOOL_DEFERRED, inode);
	world_run(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_ACTIVE);
	cr_assert_eq(w.s.due.count, 0);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1, "only what is left");
	cr_assert_eq(w.s.counters.delivered, 2);
	spool_is_empty();
}

Test(road, permanent_failure_is_reported_with_its_reason)
{
	uint64_t inode = world_message(&w, "d", 1);

	cr_assert_eq(world_deliver(&w, AGENT_FAILED), 1);
	cr_assert_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_assert_not_null(strstr(world_report(&w), "\nStatus: 5.1.1\n"));
	cr_assert_not_null(strstr(world_report(&w), "as told"));
	cr_assert_eq(w.s.counters.failed, 1);
	cr_assert_eq(w.s.active, 0);
	cr_assert_eq(w.s.walks[WALK_HOLD].count, 0);
}

Test(road, what_is_too_old_expires_after_an_attempt)
{
	uint64_t inode = world_file(&w, "d", 1, 6 * 86400);

	w.s.expire_after = 0; /* it runs for long */
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_assert_eq(world_deliver(&w, AGENT_DEFERRED), 1);
	cr_assert_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_assert_not_null(strstr(world_report(&w), "\nStatus: 4.4.7\n"));
	cr_assert_not_null(
	    strstr(world_report(&w), "delivery time expired: 4.2.1 as told"));
	cr_assert_eq(w.s.counters.expired, 1);
	cr_assert_eq(w.s.counters.failed, 0);
	/* And what can be delivered is, however old. */
	inode = world_file(&w, "d", 1, 60 * 86400);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_assert_eq(world_where(&w, inode), SPOOL_NDIRS);
}

Test(road, recipients_without_a_result_are_deferred)
{
	uint64_t inode = world_message(&w, "u@one.test", 3);
	struct world_delivery delivery;

	cr_assert(world_take(&w, &delivery));
	close(delivery.fd);
	cr_assert_eq(delivery.nrcpts, 3, "one destination");
	world_result(&w, &delivery, 1, AGENT_SENT);
	world_done(&w, &delivery);
	world_run(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_assert_str_eq(world_marks(&w, SPOOL_DEFERRED, inode), ".D.");
	cr_assert_neq(world_reason(&w, SPOOL_DEFER, inode, 0)[0], '\0');
	cr_assert_eq(world_reason(&w, SPOOL_DEFER, inode, 1)[0], '\0');
}

Test(road, without_its_agent_a_transport_waits)
{
	uint64_t inode = world_message(&w, "u@smtp.test", 1);
	uint64_t other = world_message(&w, "d", 1);

	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_assert_eq(world_where(&w, other), SPOOL_NDIRS);
	cr_assert_eq(world_where(&w, inode), SPOOL_ACTIVE);
	cr_assert_eq(sched_figures(w.s.sched).waiting, 1);
}

Test(road, an_agent_that_dies_is_not_held_against_the_message)
{
	uint64_t inode = world_file(&w, "d", 1, 6 * 86400); /* too old */
	struct world_delivery delivery;
	const struct due *d;

	world_offer(&w, SPOOL_INCOMING, inode);
	world_run(&w);
	cr_assert(world_take(&w, &delivery));
	close(delivery.fd);
	close(w.agent);
	w.agent = -1;
	world_run(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_DEFERRED);
	cr_assert_str_eq(world_marks(&w, SPOOL_DEFERRED, inode), ".");
	cr_assert_eq(world_count(&w, SPOOL_BOUNCE), 0);
	d = due_find(&w.s.due, inode);
	cr_assert_leq(d->at_mono, w.s.now + RETRY_AGENT_DELAY);
	cr_assert_eq(d->deaths, 1);
	cr_assert_eq(sched_figures(w.s.sched).running, 0);
	/* The next death doubles it. */
	world_link_agent(&w);
	deferred_flush(&w.s);
	send_wake(&w.s);
	world_run(&w);
	world_offer(&w, SPOOL_DEFERRED, inode);
	world_run(&w);
	cr_assert(world_take(&w, &delivery));
	close(delivery.fd);
	world_link_agent(&w); /* replaced while it runs */
	world_run(&w);
	d = due_find(&w.s.due, inode);
	cr_assert_eq(d->deaths, 2);
	cr_assert_gt(d->at_mono, w.s.now + RETRY_AGENT_DELAY);
}

Test(road, results_that_an_agent_sent_before_its_end_count)
{
	uint64_t inode = world_message(&w, "d", 1);
	struct world_delivery delivery;

	cr_assert(world_take(&w, &delivery));
	close(delivery.fd);
	world_result(&w, &delivery, 0, AGENT_SENT);
	world_done(&w, &delivery);
	world_link_agent(&w); /* its successor is there before it is read */
	world_run(&w);
	cr_assert_eq(world_where(&w, inode), SPOOL_NDIRS);
	cr_assert_eq(w.s.counters.delivered, 1);
}

/* These start with a configuration of their own. */
TestSuite(limits, .fini = end, .timeout = 60);

/* Whatever the limits in memory, all is delivered, and they hold. */
Test(limits, recipients_come_in_batches)
{
	uint32_t sent = 0, most = 0;
	struct world_delivery delivery;
	uint64_t inode;

	world_start(&w,
	    "qmgr_message_recipient_limit = 20\n"
	    "qmgr_message_recipient_minimum = 3\n"
	    "default_recipient_limit = 20\n"
	    "default_extra_recipient_limit = 5\n"
	    "default_destination_recipient_limit = 2\n");
	inode = world_file(&w, "d", 90, 0);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_message(&w, "e", 90);
	world_message(&w, "f", 9);
	while (world_take(&w, &delivery)) {
		most = sched_figures(w.s.sched).recipients > most
		    ? sched_figures(w.s.sched).recipients
		    : most;
		close(delivery.fd);
		world_result(&w, &delivery, 0, AGENT_SENT);
		world_done(&w, &delivery);
		world_run(&w);
		sent++;
	}
	cr_assert_eq(sent, 189);
	/* The bound of docs/SCHEDULING.md: three messages, one transport. */
	cr_expect_leq(most, 3 * 3 + 20 + 5);
	cr_expect_gt(most, 20);
	spool_is_empty();
}

Test(limits, incoming_and_deferred_take_turns_when_it_is_full)
{
	uint64_t inode[6], got[6];
	char order[8] = "";
	struct world_delivery delivery;
	int i, k;

	world_start(&w, "qmgr_message_active_limit = 1\n");
	/* Three that are deferred, then three new ones. */
	for (i = 0; i < 3; i++) {
		inode[i] = world_message(&w, "d", 1);
		world_deliver(&w, AGENT_DEFERRED);
		cr_assert_eq(world_where(&w, inode[i]), SPOOL_DEFERRED);
	}
	w.s.admission.turn = ADMISSION_INCOMING;
	deferred_flush(&w.s);
	send_wake(&w.s);
	world_run(&w);
	for (i = 0, k = 3; i < 6; i++) {
		if (k < 6 && w.credit > 0)
			inode[k++] = world_message(&w, "d", 1);
		while (w.nprepared > 0)
			world_offer(
			    &w, SPOOL_DEFERRED, w.prepared[--w.nprepared]);
		world_run(&w);
		cr_assert_eq(w.s.active, 1, "the limit holds");
		cr_assert(world_take(&w, &delivery));
		close(delivery.fd);
		got[i] = w.s.counters.accepted;
		order[i] = delivery.id[0] == '\0' ? '?' : 'x';
		world_result(&w, &delivery, 0, AGENT_SENT);
		world_done(&w, &delivery);
		world_run(&w);
	}
	/* accepted counts 1 more for each that came from incoming. */
	for (i = 1; i < 6; i++)
		order[i] = got[i] > got[i - 1] ? 'i' : 'd';
	order[0] = got[0] > 3 ? 'i' : 'd';
	cr_assert(strcmp(order, "ididid") == 0 || strcmp(order, "dididi") == 0,
	    "%s", order);
	spool_is_empty();
}

Test(road, after_a_crash_everything_goes_on)
{
	uint64_t a = world_message(&w, "d", 2), b = world_message(&w, "d", 1),
		 c = world_message(&w, "d", 1);
	struct world_delivery delivery;
	int i;

	/* a: one delivered; b: delivered, not removed; c: failed, not reported.
	 */
	for (i = 0; i < 4; i++) {
		cr_assert(world_take(&w, &delivery));
		close(delivery.fd);
		if (strcmp(delivery.first, "r1@d1.test") == 0)
			continue;
		world_result(
		    &w, &delivery, 0, i == 3 ? AGENT_FAILED : AGENT_SENT);
	}
	world_run(&w);
	world_again(&w);
	cr_assert_eq(world_where(&w, a), SPOOL_INCOMING);
	cr_assert_str_eq(world_marks(&w, SPOOL_INCOMING, a), "D.");
	cr_assert_eq(world_where(&w, b), SPOOL_NDIRS);
	cr_assert_eq(world_where(&w, c), SPOOL_INCOMING);
	world_again(&w); /* D24: again changes nothing */
	cr_assert_eq(world_where(&w, a), SPOOL_INCOMING);
	world_offer(&w, SPOOL_INCOMING, a);
	world_run(&w);
	cr_assert_eq(world_deliver(&w, AGENT_SENT), 1);
	cr_assert_eq(world_where(&w, a), SPOOL_NDIRS);
}

/* The room of the other transports of its kind does not hide that one is full.
 */
Test(road, load_is_that_of_the_busiest_transport)
{
	struct queue_page page = { 0 };

	world_message(&w, "d", 60);
	publish_fill(&w.s, &page);
	cr_expect_eq(page.local_used + page.remote_used, 60);
	cr_expect_gt(page.local_limit, 100);
	cr_expect_eq(page.busiest_pct, 60);
	cr_expect_eq(queue_page_load(&page), 60);
}

Test(road, due_times_survive_a_restart)
{
	uint64_t inode = world_message(&w, "d", 1);
	usec_t left;

	world_deliver(&w, AGENT_DEFERRED);
	left = due_next(&w.s.due) - w.s.now;
	world_again(&w);
	cr_assert_eq(w.s.due.count, 1);
	cr_assert_not_null(due_find(&w.s.due, inode));
	left -= due_next(&w.s.due) - w.s.now;
	cr_assert(left > -5 * USEC_PER_SEC && left < 5 * USEC_PER_SEC);
}

/* A restored backup: the inode makes another id of it. */
Test(road, D21_two_files_of_the_same_message_have_ids_of_their_own)
{
	struct world_delivery delivery[2];
	char path[160], copy[160], content[4096];
	struct stat st;
	uint64_t inode;
	ssize_t n;
	int fd, i;

	inode = world_file(&w, "x", 1, 0);
	snprintf(path, sizeof(path), "%s/queue1/incoming/%llu/%llu", w.dir,
	    (unsigned long long)(inode % 3), (unsigned long long)inode);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, content, sizeof(content));
	cr_assert_gt(n, 0);
	close(fd);
	snprintf(copy, sizeof(copy), "%s/copy", w.dir);
	fd = open(copy, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_eq(write(fd, content, (size_t)n), n);
	cr_assert_eq(fstat(fd, &st), 0);
	close(fd);
	snprintf(path, sizeof(path), "%s/queue1/incoming/%llu/%llu", w.dir,
	    (unsigned long long)(st.st_ino % 3), (unsigned long long)st.st_ino);
	cr_assert_eq(rename(copy, path), 0);
	world_offer(&w, SPOOL_INCOMING, inode);
	world_offer(&w, SPOOL_INCOMING, (uint64_t)st.st_ino);
	world_run(&w);
	for (i = 0; i < 2; i++) {
		cr_assert(world_take(&w, &delivery[i]), "both are delivered");
		close(delivery[i].fd);
	}
	cr_expect_str_neq(delivery[0].id, delivery[1].id);
}

Test(road, how_delays_are_written)
{
	static const struct {
		usec_t delay;
		const char *want;
	} rows[] = {
		{ -5 * USEC_PER_SEC, "0" },
		{ 0, "0" },
		{ 9999, "0" },
		{ 10000, "0.01" },
		{ 999999, "0.99" },
		{ 1000000, "1.0" },
		{ 9999999, "9.9" },
		{ 10000000, "10" },
		{ 73 * USEC_PER_SEC, "73" },
		{ INT64_MAX, "9223372036854" },
	};
	char got[DELAY_SIZE];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		cr_expect_eq(
		    delay_format(rows[i].delay, got), strlen(rows[i].want));
		cr_expect_str_eq(got, rows[i].want);
	}
}

/* ---- loops ---- */

static void
offer_with_hops(uint32_t hops, bool again)
{
	uint64_t inode = world_file(&w, "d", 2, 0);

	w.hops = hops;
	world_offer(&w, SPOOL_INCOMING, inode);
	w.hops = 0;
	world_run(&w);
	cr_expect_eq(world_deliver(&w, AGENT_SENT), again ? 2u : 0u);
	world_run(&w);
}

Test(road, C16_a_message_with_too_many_hops_fails)
{
	offer_with_hops(50, true);
	cr_expect_eq(w.s.counters.failed, 0);
	offer_with_hops(51, false);
	cr_expect_eq(w.s.counters.failed, 2);
	cr_expect_not_null(strstr(world_report(&w), "\nStatus: 5.4.6\n"));
	offer_with_hops(UINT32_MAX, false);
	cr_expect_eq(w.s.counters.failed, 4);
}
