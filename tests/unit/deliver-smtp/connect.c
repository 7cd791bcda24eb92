/* Several addresses, the first that answers: one where nobody answers is a
 * listening socket whose queue is full. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "deliver-smtp/reach/reach.h"
#include "tests/unit/descriptors.h"

#define NEVER   (60 * USEC_PER_SEC)
#define SHORTLY (20 * USEC_PER_MSEC)
#define FILLERS 4

struct field {
	struct event_base *base;
	struct mx_targets targets;
	bool over[MX_TARGETS_MAX];
	struct connect_source source;
	struct connect_plan plan;
	struct connect_race *race;
	int socks[64];
	size_t nsocks;
	bool done;
	struct connect_result result;
	bool told[MX_TARGETS_MAX]; /* failed while another one was left */
};

static void
on_goes_on(void *arg, const struct connect_result *result)
{
	struct field *f = arg;

	cr_expect_lt(result->result, 0);
	cr_expect_not(f->told[result->target], "told twice");
	f->told[result->target] = true;
}

static void
open_field(struct field *f)
{
	memset(f, 0, sizeof(*f));
	f->base = event_base_new();
	f->plan = (struct connect_plan){ .base = f->base,
		.targets = &f->targets,
		.over = f->over,
		.limit = NEVER,
		.limit_all = NEVER,
		.head_start = SHORTLY,
		.source = &f->source,
		.goes_on = on_goes_on };
}

static void
close_field(struct field *f)
{
	connect_cancel(&f->race);
	if (f->done && f->result.result >= 0)
		close(f->result.result);
	while (f->nsocks > 0)
		close(f->socks[--f->nsocks]);
	event_base_free(f->base);
}

static int
keep(struct field *f, int sock)
{
	cr_assert_geq(sock, 0);
	f->socks[f->nsocks++] = sock;
	return sock;
}

/* A listening socket of 127.0.0.1, as one more target. */
static int
add_server(struct field *f, uint32_t rank)
{
	struct mx_target *t = &f->targets.list[f->targets.count++];
	struct sockaddr_in *in = (struct sockaddr_in *)&t->address;
	int sock = keep(f, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));

	t->rank = rank;
	t->address_len = sizeof(*in);
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cr_assert_eq(bind(sock, (struct sockaddr *)in, sizeof(*in)), 0);
	cr_assert_eq(
	    getsockname(sock, (struct sockaddr *)in, &t->address_len), 0);
	cr_assert_eq(listen(sock, 0), 0);
	return sock;
}

/* No address of these answers. */
static void
add_silence(struct field *f, uint32_t rank)
{
	const struct mx_target *t = &f->targets.list[f->targets.count];
	int i;

	(void)add_server(f, rank);
	for (i = 0; i < FILLERS; i++)
		(void)connect(
		    keep(f,
			socket(AF_INET,
			    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
		    (const struct sockaddr *)&t->address, t->address_len);
}

/* No process listens there. */
static void
add_refusal(struct field *f, uint32_t rank)
{
	(void)add_server(f, rank);
	close(f->socks[--f->nsocks]);
}

static void
on_done(void *arg, const struct connect_result *result)
{
	struct field *f = arg;

	f->race = NULL;
	f->done = true;
	f->result = *result;
}

static void
run(struct field *f)
{
	int r = connect_start(&f->plan, on_done, f, &f->result, &f->race);

	if (r < 0)
		f->done = true;
	while (!f->done)
		event_base_loop(f->base, EVLOOP_ONCE);
}

/* mutation: deliver-smtp/reach/connect.c, watch() without the head start. */
Test(connect, N1_the_next_address_after_the_head_start)
{
	struct field f;

	open_field(&f);
	add_silence(&f, 0);
	add_silence(&f, 0);
	(void)add_server(&f, 0);
	run(&f);
	cr_expect_geq(f.result.result, 0);
	cr_expect_eq(f.result.target, 2);
	cr_expect_not(f.over[0] || f.over[1] || f.over[2]);
	cr_expect_not(f.told[0] || f.told[1], "none has failed");
	close_field(&f);
}

/* mutation: deliver-smtp/reach/connect.c, next_target() without the rank. */
Test(connect, N1_a_worse_one_only_when_the_better_failed)
{
	struct field f;

	open_field(&f);
	f.plan.limit = 10 * SHORTLY;
	add_silence(&f, 10);
	(void)add_server(&f, 20);
	run(&f);
	cr_expect_geq(f.result.result, 0);
	cr_expect_eq(f.result.target, 1);
	cr_expect(f.over[0] && f.told[0]);
	close_field(&f);
}

/* The second answer of DNS may append a host of a better rank than the hosts
 * before.
 *
 * mutation: deliver-smtp/reach/connect.c, next_target() takes the first. */
Test(connect, N1_the_better_one_first_wherever_it_stands)
{
	struct field f;

	open_field(&f);
	add_refusal(&f, 10);
	(void)add_server(&f, 20);
	(void)add_server(&f, 10);
	run(&f);
	cr_expect_geq(f.result.result, 0);
	cr_expect_eq(f.result.target, 2);
	close_field(&f);
}

Test(connect, N1_one_after_the_other_without_a_head_start)
{
	struct field f;

	open_field(&f);
	f.plan.limit = SHORTLY;
	f.plan.head_start = 0;
	add_silence(&f, 0);
	(void)add_server(&f, 0);
	run(&f);
	cr_expect_eq(f.result.target, 1);
	cr_expect(f.over[0]);
	close_field(&f);
}

/* mutation: deliver-smtp/reach/connect.c, on_ready() without tell_failure(). */
Test(connect, N1_at_once_after_a_refusal)
{
	struct field f;

	open_field(&f);
	f.plan.head_start = NEVER;
	add_refusal(&f, 0);
	add_refusal(&f, 1);
	(void)add_server(&f, 2);
	run(&f);
	cr_expect_geq(f.result.result, 0);
	cr_expect_eq(f.result.target, 2);
	cr_expect(f.over[0] && f.over[1] && !f.over[2]);
	cr_expect(f.told[0] && f.told[1] && !f.told[2]);
	close_field(&f);
}

/* connect() itself refuses a broadcast address of TCP.
 *
 * mutation: deliver-smtp/reach/connect.c, begin_next() without tell_failure().
 */
Test(connect, N1_one_that_fails_at_once)
{
	struct sockaddr_in *in;
	struct field f;

	open_field(&f);
	add_refusal(&f, 0);
	(void)add_server(&f, 1);
	in = (struct sockaddr_in *)&f.targets.list[0].address;
	in->sin_addr.s_addr = htonl(INADDR_BROADCAST);
	run(&f);
	cr_expect_eq(f.result.target, 1);
	cr_expect(f.over[0] && f.told[0] && !f.told[1]);
	close_field(&f);
}

/* mutation: deliver-smtp/reach/connect.c, race_new() without limit_all. */
Test(connect, N1_all_within_one_limit)
{
	struct field f;
	int i;

	open_field(&f);
	f.plan.limit_all = 10 * SHORTLY;
	for (i = 0; i < 6; i++)
		add_silence(&f, 0);
	run(&f);
	cr_expect_eq(f.result.result, -ETIMEDOUT);
	cr_expect_not(f.result.ours);
	for (i = 0; i < 6; i++)
		cr_expect_not(f.told[i], "no other one follows");
	close_field(&f);
}

Test(connect, N1_none)
{
	struct field f;

	open_field(&f);
	add_refusal(&f, 0);
	add_refusal(&f, 0);
	run(&f);
	cr_expect_eq(f.result.result, -ECONNREFUSED);
	cr_expect_not(f.result.ours);
	cr_expect(f.over[0] && f.over[1]);
	/* The failure of the last one is the result. */
	cr_expect_neq(f.told[0], f.told[1]);
	cr_expect_not(f.told[f.result.target]);
	close_field(&f);
}

/* When the winner is told no other socket is open.
 * mutation: deliver-smtp/reach/connect.c, race_free() without close_attempt().
 */
Test(connect, N1_the_losers_are_closed)
{
	struct field f;
	unsigned before;

	open_field(&f);
	add_silence(&f, 0);
	add_silence(&f, 0);
	(void)add_server(&f, 0);
	before = unit_descriptors();
	run(&f);
	cr_expect_eq(f.result.target, 2);
	cr_expect_eq(unit_descriptors(), before + 1);
	close_field(&f);
}

/* mutation: deliver-smtp/reach/connect.c, bind_source() binds nothing. */
Test(connect, N1_the_address_to_connect_from)
{
	struct sockaddr_in peer;
	socklen_t len = sizeof(peer);
	struct field f;
	int sock;

	open_field(&f);
	sock = add_server(&f, 0);
	f.source.in = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(0x7f000003) };
	run(&f);
	cr_assert_geq(f.result.result, 0);
	sock = keep(&f, accept(sock, (struct sockaddr *)&peer, &len));
	cr_expect_eq(ntohl(peer.sin_addr.s_addr), 0x7f000003);
	close_field(&f);
	/* An address of a network for documentation: no host has it. */
	open_field(&f);
	(void)add_server(&f, 0);
	f.source.in = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(0xc0000201) };
	run(&f);
	cr_expect_eq(f.result.result, -EADDRNOTAVAIL);
	cr_expect(f.result.ours && f.result.bind);
	close_field(&f);
}

Test(connect, P12_no_descriptor)
{
	struct rlimit limit, none;
	struct field f;

	open_field(&f);
	(void)add_server(&f, 0);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	run(&f);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_expect_eq(f.result.result, -EMFILE);
	cr_expect(f.result.ours && !f.result.bind);
	close_field(&f);
}
