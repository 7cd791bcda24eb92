/* The program: its link, its stop, its reload. */
#include "deliver-smtp/smtp.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "ipc/wire.h"
#include "tests/unit/deliver-smtp/bench.h"

/* A daemon without its start-up, in the loop of a bench whose link it has. */
struct program {
	struct session_context context;
	struct daemon daemon;
	struct conf conf;
	int supervisor;
	struct bench bench;
};

static void
on_frame(void *arg UNUSED, struct wire *w UNUSED, struct chan_frame *f UNUSED)
{
}

static void
on_closed(void *arg UNUSED, struct wire *w UNUSED)
{
}

static const struct wire_ops wire_ops = {
	.frame = on_frame,
	.closed = on_closed,
};

static void
new_link(struct program *p)
{
	int pair[2];

	io_close(&p->bench.link);
	cr_assert_eq(chan_pair(pair), 0);
	p->bench.link = pair[0];
	smtp_ops.linked(&p->daemon, "queue-send", pair[1]);
}

static struct program *
start(const struct step *steps)
{
	struct program *p = calloc(1, sizeof(*p));
	struct buf error = { 0 };
	int pair[2];

	bench_open(&p->bench, BENCH_CONTENT, strlen(BENCH_CONTENT));
	bench_serve(&p->bench, NULL, steps);
	unsetenv("QSCHED_CONF");
	cr_assert_eq(
	    conf_load(NULL, &p->conf, &error), 0, "%s", buf_str(&error));
	free(p->conf.smtp_helo_name);
	p->conf.smtp_helo_name = strdup("me.example");
	cr_assert_eq(chan_pair(pair), 0);
	p->supervisor = pair[0];
	p->daemon.ops = &smtp_ops;
	p->daemon.base = p->bench.base;
	p->daemon.conf = &p->conf;
	p->daemon.state = &p->context;
	cr_assert_eq(
	    wire_new(p->bench.base, pair[1], &wire_ops, p, &p->daemon.channel),
	    0);
	cr_assert_eq(smtp_ops.start(&p->daemon), 0);
	new_link(p);
	buf_done(&error);
	return p;
}

static void
end(struct program *p)
{
	smtp_ops.done(&p->daemon);
	wire_free(&p->daemon.channel);
	io_close(&p->supervisor);
	conf_done(&p->conf);
	bench_close(&p->bench);
	free(p);
}

static void
deliver(struct program *p)
{
	bench_deliver(&p->bench, AGENT_SMTP, "127.0.0.1:%u", 1);
}

static void
wait_for_session(struct program *p)
{
	while (p->bench.server.connections == 0)
		bench_turn(&p->bench);
}

static void
wait_for_exit(struct program *p)
{
	while (!p->daemon.exiting)
		event_base_loop(p->bench.base, EVLOOP_ONCE);
}

/* clang-format off */
static const struct step silent[] = { { NULL, NULL } };
/* clang-format on */

Test(program, delivers)
{
	struct program *p = start(bench_plain);

	deliver(p);
	bench_run(&p->bench);
	bench_expect(&p->bench, "0S2.0.0:127.0.0.1[127.0.0.1]:", false);
	cr_expect_not(p->daemon.exiting);
	end(p);
}

Test(program, P10_stops_at_once_when_idle)
{
	struct program *p = start(silent);

	bench_turn(&p->bench); /* its first frame goes out */
	smtp_ops.stop(&p->daemon, 3600 * USEC_PER_SEC);
	cr_expect(p->daemon.exiting);
	cr_expect_eq(p->daemon.status, 0);
	end(p);
}

Test(program, P10_a_stop_lets_sessions_end)
{
	struct program *p = start(bench_plain);

	deliver(p);
	wait_for_session(p);
	smtp_ops.stop(&p->daemon, 3600 * USEC_PER_SEC);
	cr_expect_not(p->daemon.exiting);
	bench_run(&p->bench);
	bench_expect(&p->bench, "0S2.0.0:", false);
	cr_expect(p->daemon.exiting);
	end(p);
}

Test(program, P10_a_stop_ends_sessions_after_its_limit)
{
	struct program *p = start(silent);

	deliver(p);
	wait_for_session(p);
	smtp_ops.stop(&p->daemon, USEC_PER_MSEC);
	bench_run(&p->bench);
	bench_expect(&p->bench, "0D4.3.2:", false);
	cr_expect(p->daemon.exiting);
	end(p);
}

Test(program, nothing_new_is_begun_while_stopping)
{
	struct program *p = start(silent);

	deliver(p);
	wait_for_session(p);
	smtp_ops.stop(&p->daemon, 3600 * USEC_PER_SEC);
	/* The number of a delivery is not that of the one that runs. */
	p->bench.number = 8;
	deliver(p);
	bench_run(&p->bench);
	bench_expect(&p->bench, "0D4.3.2:none:", false);
	cr_expect_eq(strncmp(buf_str(&p->bench.site), "4.3.2 ", 6), 0,
	    "it says nothing of the site");
	cr_expect_eq(p->bench.server.connections, 1);
	end(p);
}

Test(program, P1_ends_with_queue_send)
{
	struct program *p = start(silent);

	deliver(p);
	wait_for_session(p);
	io_close(&p->bench.link);
	wait_for_exit(p);
	cr_expect(TAILQ_EMPTY(&p->context.running));
	cr_expect_eq(p->daemon.status, 0);
	end(p);
}

Test(program, a_new_link_takes_the_place_of_the_old)
{
	struct program *p = start(bench_plain);

	deliver(p);
	while (TAILQ_EMPTY(&p->context.running))
		bench_turn(&p->bench);
	new_link(p);
	cr_expect(TAILQ_EMPTY(&p->context.running));
	deliver(p);
	bench_run(&p->bench);
	bench_expect(&p->bench, "0S2.0.0:", false);
	end(p);
}

Test(program, a_link_of_another_name_is_closed)
{
	struct program *p = start(silent);
	int pair[2];
	char octet;

	cr_assert_eq(chan_pair(pair), 0);
	smtp_ops.linked(&p->daemon, "bell", pair[1]);
	cr_expect_eq(read(pair[0], &octet, 1), 0);
	close(pair[0]);
	end(p);
}

Test(program, P11_a_reload_is_for_sessions_that_begin_later)
{
	struct program *p = start(bench_plain);
	struct conf fresh = p->conf;
	char other[] = "other.example";

	deliver(p);
	while (TAILQ_EMPTY(&p->context.running))
		bench_turn(&p->bench);
	fresh.smtp_helo_name = other;
	smtp_ops.reload(&p->daemon, &fresh);
	bench_run(&p->bench);
	bench_expect(&p->bench, "0S2.0.0:", false);
	cr_expect_str_eq(p->context.settings.helo, "other.example");
	end(p);
}

/* The server has no STARTTLS. A weaker level comes in force with the policies
 * alone. */
Test(program, N8_a_reload_that_fails_keeps_the_level_of_TLS)
{
	struct program *p = start(bench_plain);
	struct conf fresh = p->conf;
	const int place = conf_transport_find(&fresh, "smtp");
	char absent[] = "/nosuch/policies";

	cr_assert_geq(place, 0);
	fresh.transports[place].tls_level = TLS_LEVEL_ENCRYPT;
	smtp_ops.reload(&p->daemon, &fresh);
	fresh.transports[place].tls_level = TLS_LEVEL_NONE;
	fresh.smtp_tls_policy_file = absent;
	smtp_ops.reload(&p->daemon, &fresh);
	deliver(p);
	bench_run(&p->bench);
	bench_expect(&p->bench, "0D4.7.4:", true);
	end(p);
}
