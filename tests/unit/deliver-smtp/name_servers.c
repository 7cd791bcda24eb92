/* Which name server is asked first. */
#include "deliver-smtp/reach/name_servers.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define TIMEOUT (5 * USEC_PER_SEC)

static struct name_servers servers;

static void
start(size_t count)
{
	servers = (struct name_servers){
		.count = count,
		.timeout_msec = TIMEOUT / USEC_PER_MSEC,
		.attempts = 2,
	};
}

/* The order of the next question, as in "0 1 2". */
static const char *
ask(usec_t now, struct name_servers_order *order)
{
	static char text[NAME_SERVERS_MAX * 8];
	size_t i;

	name_servers_order(&servers, now, order);
	text[0] = '\0';
	for (i = 0; i < order->count; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
		    "%s%zu", i == 0 ? "" : " ", order->at[i].place);
	return text;
}

/* mutation: deliver-smtp/reach/name_servers.c, server_rests() is never true. */
Test(name_servers, N37_a_dead_one_is_asked_last)
{
	struct name_servers_order order, other;
	usec_t rested = 1 + NAME_SERVERS_REST;

	start(3);
	cr_expect_str_eq(ask(0, &order), "0 1 2");
	name_servers_answered(&servers, &order, 0, 1);
	cr_expect_str_eq(ask(1, &order), "0 1 2");
	/* The first two did not answer, the third one did. */
	name_servers_answered(&servers, &order, 2, 1);
	cr_expect_str_eq(ask(2, &order), "2 0 1");
	cr_expect_str_eq(ask(rested - 1, &order), "2 0 1");
	/* One question tries; the others wait for none of it. */
	cr_expect_str_eq(ask(rested, &order), "0 1 2");
	cr_expect_str_eq(ask(rested, &other), "1 2 0");
	cr_expect_str_eq(ask(rested, &other), "2 0 1");
	name_servers_answered(&servers, &order, 0, rested + 1);
	cr_expect_str_eq(ask(rested + 1, &other), "0 2 1");
	/* Without an answer in time the next one tries. */
	start(2);
	ask(0, &order);
	name_servers_answered(&servers, &order, 1, 1);
	cr_expect_str_eq(ask(rested, &order), "0 1");
	cr_expect_str_eq(ask(rested + TIMEOUT - 1, &order), "1 0");
	cr_expect_str_eq(ask(rested + TIMEOUT, &order), "0 1");
}

Test(name_servers, N37_what_says_nothing_of_a_server)
{
	struct name_servers_order order;

	start(2);
	/* All were asked more than once. */
	ask(0, &order);
	name_servers_answered(&servers, &order, 2, 1);
	cr_expect_str_eq(ask(2, &order), "0 1");
	/* They were read again meanwhile. */
	servers.loaded++;
	servers.count = 1;
	name_servers_answered(&servers, &order, 1, 3);
	cr_expect_str_eq(ask(4, &order), "0");
	start(0);
	cr_expect_str_eq(ask(0, &order), "");
}

/* mutation: deliver-smtp/reach/name_servers.c, name_servers_order() does not
 * rotate. */
Test(name_servers, N37_rotate)
{
	struct name_servers_order order;

	start(3);
	servers.rotate = true;
	cr_expect_str_eq(ask(0, &order), "0 1 2");
	cr_expect_str_eq(ask(0, &order), "1 2 0");
	name_servers_answered(&servers, &order, 1, 0);
	cr_expect_str_eq(ask(1, &order), "2 0 1");
	cr_expect_str_eq(ask(1, &order), "0 2 1");
	cr_expect_str_eq(ask(1, &order), "2 0 1");
}

Test(name_servers, the_systems_are_read)
{
	servers = (struct name_servers){ .loaded = 7 };
	cr_assert_eq(name_servers_load(&servers), 0);
	cr_expect_eq(servers.loaded, 8);
	cr_expect_leq(servers.count, NAME_SERVERS_MAX);
	cr_expect_gt(servers.timeout_msec, 0);
	cr_expect_gt(servers.attempts, 0);
}
