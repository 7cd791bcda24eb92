/* The order in which the addresses of hosts are tried. */
#include "deliver-smtp/reach/mx.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static bool
add(struct mx_host *host, const char *text)
{
	union mx_address a = { 0 };

	if (inet_pton(AF_INET, text, &a.in.sin_addr) == 1)
		a.in.sin_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &a.in6.sin6_addr) == 1)
		a.in6.sin6_family = AF_INET6;
	return mx_add_address(host, &a.any);
}

static void
give_address(struct mx_host *host, unsigned last)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	in.sin_addr.s_addr = htonl(0xc0000200 + last);
	cr_assert(mx_add_address(host, (struct sockaddr *)&in));
}

/* mutation: deliver-smtp/reach/order.c, host_add() without address_next().
 */
Test(order, N1_families_in_turn)
{
	static const struct {
		const char *of[6], *want;
	} rows[] = {
		{ { "2001:db8::1", "2001:db8::2", "192.0.2.1", "192.0.2.2" },
		    "2001:db8::1 192.0.2.1 2001:db8::2 192.0.2.2" },
		{ { "192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1" },
		    "192.0.2.1 2001:db8::1 192.0.2.2 192.0.2.3" },
		{ { "192.0.2.1" }, "192.0.2.1" },
		{ { "192.0.2.1", "192.0.2.1", "2001:db8::1", "2001:db8::1" },
		    "192.0.2.1 2001:db8::1" },
	};
	struct mx_targets targets;
	struct mx_set set;
	char text[400], ip[INET6_ADDRSTRLEN];
	size_t i, j;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		mx_set_alone(&set, "a.test");
		for (j = 0; j < 6 && rows[i].of[j] != NULL; j++)
			add(&set.hosts[0], rows[i].of[j]);
		mx_order(&set,
		    &(struct mx_plan){ .port = 2525, .balance = true },
		    &targets);
		text[0] = '\0';
		for (j = 0; j < targets.count; j++) {
			const union mx_address *a =
			    (const void *)&targets.list[j].address;

			if (a->any.sa_family == AF_INET)
				inet_ntop(
				    AF_INET, &a->in.sin_addr, ip, sizeof(ip));
			else
				inet_ntop(AF_INET6, &a->in6.sin6_addr, ip,
				    sizeof(ip));
			cr_expect_eq(ntohs(a->in.sin_port), 2525);
			snprintf(text + strlen(text),
			    sizeof(text) - strlen(text), "%s%s",
			    j == 0 ? "" : " ", ip);
		}
		cr_expect_str_eq(text, rows[i].want, "%s", text);
	}
}

static void
give_six(struct mx_host *host, unsigned last)
{
	union mx_address a = { 0 };

	a.in6.sin6_family = AF_INET6;
	a.in6.sin6_addr.s6_addr[0] = 0x20;
	a.in6.sin6_addr.s6_addr[15] = (unsigned char)last;
	cr_assert(mx_add_address(host, &a.any));
}

/* mutation: deliver-smtp/reach/order.c, host_add() without
 * addresses_shuffle(). */
Test(order, N34_the_addresses_of_a_host_share_the_mail)
{
	enum {
		ADDRESSES = 12,
		TIMES = 12000,
	};
	unsigned first[ADDRESSES + 1] = { 0 }, i;
	struct mx_targets targets;
	struct mx_set set;
	uint64_t seed = 1;

	mx_set_alone(&set, "a.test");
	for (i = 1; i <= ADDRESSES; i++)
		give_address(&set.hosts[0], i);
	for (i = 0; i < TIMES; i++) {
		const struct mx_plan plan = {
			.randomize = true,
			.balance = true,
			.limit = 5,
			.seed = mx_chance(&seed),
		};

		mx_order(&set, &plan, &targets);
		cr_assert_eq(targets.count, 5);
		first[ntohl(((const struct sockaddr_in *)(const void *)&targets
				 .list[0]
				 .address)
				->sin_addr.s_addr) &
		    0xff]++;
	}
	for (i = 1; i <= ADDRESSES; i++)
		cr_expect(first[i] > TIMES / ADDRESSES * 8 / 10 &&
			first[i] < TIMES / ADDRESSES * 12 / 10,
		    "address %u was the first %u times", i, first[i]);
	/* In the order of the answer. */
	mx_order(&set, &(struct mx_plan){ .seed = 7 }, &targets);
	cr_assert_eq(targets.count, ADDRESSES);
	for (i = 0; i < ADDRESSES; i++)
		cr_expect_eq(
		    ntohl(((const struct sockaddr_in *)(const void *)&targets
			       .list[i]
			       .address)
			      ->sin_addr.s_addr),
		    0xc0000200 + i + 1);
}

static struct mx_set
two_hosts(void)
{
	return (struct mx_set){
		.ours_from = MX_NOT_OURS,
		.nhosts = 2,
		.hosts = { { .name = "a.test", .preference = 10 },
		    { .name = "b.test", .preference = 20 } },
	};
}

/* mutation: deliver-smtp/reach/order.c, quotas_set() without balance. */
Test(order, N34_no_family_takes_all_attempts)
{
	static const struct {
		unsigned six, four; /* addresses of the best, of the worse */
		uint32_t limit;
		bool balance;
		unsigned want_six, want_four;
	} rows[] = {
		{ 12, 4, 5, true, 3, 2 },
		{ 12, 1, 5, true, 4, 1 },
		{ 12, 0, 5, true, 5, 0 },
		{ 1, 12, 5, true, 1, 4 },
		{ 12, 4, 5, false, 5, 0 },
		{ 3, 2, 5, true, 3, 2 },
		{ 12, 4, 1, true, 1, 0 },
		{ 12, 4, 0, true, 12, 4 },
	};
	struct mx_targets targets;
	struct mx_set set;
	size_t i, j, six;
	unsigned n;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct mx_plan plan = {
			.randomize = true,
			.balance = rows[i].balance,
			.limit = rows[i].limit,
			.seed = i,
		};

		set = two_hosts();
		for (n = 1; n <= rows[i].six; n++)
			give_six(&set.hosts[0], n);
		for (n = 1; n <= rows[i].four; n++)
			give_address(&set.hosts[1], n);
		mx_order(&set, &plan, &targets);
		for (j = six = 0; j < targets.count; j++)
			six += targets.list[j].address.ss_family == AF_INET6;
		cr_expect_eq(six, rows[i].want_six, "%zu: %zu", i, six);
		cr_expect_eq(targets.count - six, rows[i].want_four, "%zu", i);
	}
}

Test(order, N1_no_more_than_a_bound)
{
	struct mx_targets targets;
	struct mx_set set = { .ours_from = MX_NOT_OURS };
	size_t i, j;

	set.nhosts = MX_HOSTS_MAX;
	for (i = 0; i < MX_HOSTS_MAX; i++)
		for (j = 0; j < MX_ADDRESSES_MAX; j++)
			give_address(&set.hosts[i],
			    (unsigned)(1 + i * MX_ADDRESSES_MAX + j));
	mx_order(&set, &(struct mx_plan){ .port = 25 }, &targets);
	cr_expect_eq(targets.count, MX_TARGETS_MAX);
}
