/* Which hosts an MX answer names, and in what order their addresses are tried.
 */
#include "deliver-smtp/reach/mx.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"

#define TYPE_CNAME 5
#define TYPE_MX    15

static const char *const own[] = { "me.test", "Helo.Test", NULL };
static const char *const nobody[] = { NULL };

/* ---- answers ---- */

static void
put(struct buf *b, unsigned value)
{
	cr_assert_eq(buf_add_char(b, (char)(value >> 8)), 0);
	cr_assert_eq(buf_add_char(b, (char)value), 0);
}

static void
put_name(struct buf *b, const char *name)
{
	size_t len;

	for (; *name != '\0'; name += len + (name[len] == '.')) {
		len = strcspn(name, ".");
		cr_assert_eq(buf_add_char(b, (char)len), 0);
		cr_assert_eq(buf_add(b, name, len), 0);
	}
	cr_assert_eq(buf_add_char(b, '\0'), 0);
}

static void
put_record(struct buf *b, unsigned type, unsigned ttl, const struct buf *data)
{
	put_name(b, "d.test");
	put(b, type);
	put(b, 1);
	put(b, ttl >> 16);
	put(b, ttl & 0xffff);
	put(b, (unsigned)data->len);
	cr_assert_eq(buf_add(b, data->data, data->len), 0);
}

static void
put_mx(struct buf *b, unsigned ttl, unsigned preference, const char *name)
{
	struct buf data = { 0 };

	put(&data, preference);
	put_name(&data, name);
	put_record(b, TYPE_MX, ttl, &data);
	buf_done(&data);
}

static void
put_head(struct buf *b, unsigned records)
{
	buf_reset(b);
	put(b, 1);
	put(b, 0x8180);
	put(b, 1);
	put(b, records);
	put(b, 0);
	put(b, 0);
	put_name(b, "d.test");
	put(b, TYPE_MX);
	put(b, 1);
}

static int
read_it(const struct buf *b, const char *const names[], uint64_t seed,
    struct mx_set *set)
{
	memset(set, 0xaa, sizeof(*set));
	return mx_read(
	    (const unsigned char *)b->data, b->len, names, seed, set);
}

struct record {
	unsigned preference;
	const char *name;
};

static int
read_records(const struct record *records, size_t n, struct mx_set *set)
{
	struct buf b = { 0 };
	size_t i;
	int r;

	put_head(&b, (unsigned)n);
	for (i = 0; i < n; i++)
		put_mx(&b, 100, records[i].preference, records[i].name);
	r = read_it(&b, own, 1, set);
	buf_done(&b);
	return r;
}

/* "10 a.test 20 b.test", as they are kept. */
static const char *
hosts_of(const struct mx_set *set)
{
	static char text[MX_HOSTS_MAX * (NEXTHOP_HOST_MAX + 8)];
	size_t i, used = 0;

	text[0] = '\0';
	for (i = 0; i < set->nhosts; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
		    "%s%u %s", i == 0 ? "" : " ", set->hosts[i].preference,
		    set->hosts[i].name);
	return text;
}

#define LABEL "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define LONGER                        \
	LABEL "." LABEL "." LABEL "." \
	      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* mutation: deliver-smtp/reach/mx.c, take_host() without nexthop_of_domain().
 */
Test(mx, N2_what_records_make)
{
	static const struct {
		const char *what;
		struct record records[4];
		enum mx_verdict verdict;
		const char *hosts;
	} rows[] = {
		{ "by preference", { { 20, "b.test" }, { 10, "a.test" } },
		    MX_FOUND, "10 a.test 20 b.test" },
		{ "case", { { 10, "A.Test" } }, MX_FOUND, "10 a.test" },
		{ "the extremes", { { 65535, "z.test" }, { 0, "y.test" } },
		    MX_FOUND, "0 y.test 65535 z.test" },
		{ "no dot", { { 10, "mail" } }, MX_FOUND, "10 mail" },
		{ "twice", { { 10, "a.test" }, { 10, "a.test" } }, MX_FOUND,
		    "10 a.test" },
		{ "the longest", { { 10, LONGER } }, MX_FOUND, "10 " LONGER },
		{ "null", { { 0, "" } }, MX_NO_MAIL, "" },
		{ "null among others", { { 0, "" }, { 10, "a.test" } },
		    MX_FOUND, "10 a.test" },
		{ "null twice", { { 0, "" }, { 10, "" } }, MX_NO_HOST, "" },
		{ "an address", { { 10, "192.0.2.1" } }, MX_NO_HOST, "" },
		{ "half an address", { { 10, "127.1" } }, MX_NO_HOST, "" },
		{ "an address among others",
		    { { 10, "192.0.2.1" }, { 20, "a.test" } }, MX_FOUND,
		    "20 a.test" },
		{ "octets of no name",
		    { { 1, "a b.test" }, { 2, "a/b" }, { 3, "[::1]" },
			{ 4, "-o.test" } },
		    MX_NO_HOST, "" },
		{ "a dot within a label", { { 10, "\\..test" } }, MX_NO_HOST,
		    "" },
		{ "ours", { { 10, "me.test" } }, MX_LOOP, "" },
		{ "ours by HELO", { { 10, "HELO.test" } }, MX_LOOP, "" },
	};
	struct mx_set set;
	size_t i, n;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		for (n = 0; n < 4 && rows[i].records[n].name != NULL; n++)
			continue;
		cr_assert_eq(read_records(rows[i].records, n, &set), 0, "%s",
		    rows[i].what);
		cr_expect_eq(set.verdict, rows[i].verdict, "%s", rows[i].what);
		cr_expect_str_eq(
		    hosts_of(&set), rows[i].hosts, "%s", rows[i].what);
		cr_expect(set.listed);
	}
}

static void
order(const struct mx_set *set, bool loops, uint64_t seed,
    struct mx_targets *targets)
{
	const struct mx_plan plan = {
		.port = 25,
		.loops = loops,
		.randomize = true,
		.balance = true,
		.seed = seed,
	};

	mx_order(set, &plan, targets);
}

static void
give_address(struct mx_host *host, unsigned last)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	in.sin_addr.s_addr = htonl(0xc0000200 + last);
	cr_assert(mx_add_address(host, (struct sockaddr *)&in));
}

/* mutation: deliver-smtp/reach/mx.c, mx_limit() returns MX_NOT_OURS. */
Test(mx, N2_only_hosts_better_than_ours)
{
	static const struct {
		struct record records[4];
		const char *ours; /* by an address */
		enum mx_verdict verdict;
		const char *tried;
	} rows[] = {
		{ { { 10, "a.test" }, { 20, "me.test" }, { 30, "b.test" } }, "",
		    MX_FOUND, " a.test" },
		{ { { 10, "a.test" }, { 10, "me.test" } }, "", MX_LOOP, "" },
		{ { { 20, "a.test" }, { 10, "me.test" } }, "", MX_LOOP, "" },
		{ { { 10, "a.test" }, { 20, "b.test" }, { 30, "c.test" } },
		    "b.test", MX_FOUND, " a.test" },
		{ { { 10, "a.test" }, { 20, "b.test" } }, "a.test", MX_LOOP,
		    "" },
		{ { { 10, "a.test" }, { 10, "b.test" } }, "b.test", MX_LOOP,
		    "" },
		{ { { 10, "a.test" }, { 20, "b.test" } }, "", MX_FOUND,
		    " a.test b.test" },
	};
	struct mx_targets targets;
	struct mx_set set;
	char tried[200];
	size_t i, j, n, len;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		for (n = 0; n < 4 && rows[i].records[n].name != NULL; n++)
			continue;
		cr_assert_eq(read_records(rows[i].records, n, &set), 0);
		for (j = 0; j < set.nhosts; j++) {
			give_address(&set.hosts[j], (unsigned)j + 1);
			set.hosts[j].ours =
			    strcmp(set.hosts[j].name, rows[i].ours) == 0;
		}
		cr_expect_eq(mx_judge(&set, true), rows[i].verdict, "%zu", i);
		order(&set, true, 1, &targets);
		tried[0] = '\0';
		for (j = len = 0; j < targets.count; j++)
			len += (size_t)snprintf(tried + len,
			    sizeof(tried) - len, " %s", targets.list[j].host);
		cr_expect_str_eq(tried, rows[i].tried, "%zu: %s", i, tried);
		/* Where no loop is looked for all of them are. */
		order(&set, false, 1, &targets);
		cr_expect_eq(targets.count, set.nhosts);
	}
}

Test(mx, N2_hosts_without_an_address)
{
	static const struct record records[] = { { 10, "a.test" },
		{ 20, "b.test" }, { 30, "me.test" } };
	struct mx_set set;

	cr_assert_eq(read_records(records, 3, &set), 0);
	cr_expect_eq(mx_judge(&set, true), MX_NO_ADDRESS);
	set.hosts[1].unsure = true;
	cr_expect_eq(mx_judge(&set, true), MX_UNSURE);
	set.hosts[1].unsure = false;
	set.cut = true; /* more hosts than are looked up */
	cr_expect_eq(mx_judge(&set, true), MX_UNSURE);
	give_address(&set.hosts[1], 1);
	cr_expect_eq(mx_judge(&set, true), MX_FOUND);
}

/* mutation: deliver-smtp/reach/mx.c, insert() keeps the first ten. */
Test(mx, N2_the_best_of_many_are_kept)
{
	struct buf b = { 0 };
	struct mx_set set;
	char name[32];
	unsigned i;

	put_head(&b, 2000);
	for (i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "h%u.test", 1999 - i);
		put_mx(&b, 100, 1999 - i, name);
	}
	cr_assert_eq(read_it(&b, own, 1, &set), 0);
	cr_assert_eq(set.nhosts, MX_HOSTS_MAX);
	for (i = 0; i < set.nhosts; i++)
		cr_expect_eq(set.hosts[i].preference, i);
	buf_done(&b);
}

/* Each of twenty equal hosts is kept by some seed, and is the first by some. */
Test(mx, N2_equal_ones_are_chosen_by_chance)
{
	bool kept[20] = { false }, first[20] = { false };
	struct mx_targets targets;
	struct buf b = { 0 };
	struct mx_set set;
	char name[32];
	unsigned i, host;
	uint64_t seed;

	put_head(&b, 20);
	for (i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "h%u.test", i);
		put_mx(&b, 100, 10, name);
	}
	for (seed = 0; seed < 500; seed++) {
		cr_assert_eq(read_it(&b, own, seed, &set), 0);
		cr_assert_eq(set.nhosts, MX_HOSTS_MAX);
		for (i = 0; i < set.nhosts; i++) {
			cr_assert_eq(
			    sscanf(set.hosts[i].name, "h%u.", &host), 1);
			cr_assert_lt(host, 20);
			kept[host] = true;
			give_address(&set.hosts[i], host + 1);
		}
		order(&set, true, seed, &targets);
		cr_assert_eq(targets.count, MX_HOSTS_MAX);
		cr_assert_eq(sscanf(targets.list[0].host, "h%u.", &host), 1);
		first[host] = true;
	}
	for (i = 0; i < 20; i++)
		cr_expect(kept[i] && first[i], "%u", i);
	buf_done(&b);
}

Test(mx, N2_ttl)
{
	struct buf b = { 0 }, data = { 0 };
	struct mx_set set;

	put_head(&b, 2);
	put_mx(&b, 0xffffffff, 10, "a.test");
	put_mx(&b, 7200, 10, "b.test");
	cr_assert_eq(read_it(&b, own, 1, &set), 0);
	cr_expect_eq(set.ttl, MX_TTL_MAX);
	mx_set_ttl(&set, MX_TTL_MAX + 1);
	cr_expect_eq(set.ttl, MX_TTL_MAX);
	mx_set_ttl(&set, -1);
	cr_expect_eq(set.ttl, 0);
	/* The alias that leads there counts as well. */
	put_head(&b, 2);
	put_name(&data, "e.test");
	put_record(&b, TYPE_CNAME, 17, &data);
	put_mx(&b, 200, 10, "a.test");
	cr_assert_eq(read_it(&b, own, 1, &set), 0);
	cr_expect_eq(set.ttl, 17);
	cr_expect_eq(set.nhosts, 1);
	/* An alias alone. */
	put_head(&b, 1);
	put_record(&b, TYPE_CNAME, 17, &data);
	cr_expect_eq(read_it(&b, own, 1, &set), -ENODATA);
	buf_done(&b);
	buf_done(&data);
}

Test(mx, N2_an_answer_that_ends_anywhere)
{
	struct buf b = { 0 };
	struct mx_set set, untouched;
	size_t len, whole;

	put_head(&b, 2);
	put_mx(&b, 100, 10, "a.test");
	put_mx(&b, 100, 10, "b.test");
	whole = b.len;
	memset(&untouched, 0xaa, sizeof(untouched));
	for (len = 0; len < whole; len++) {
		b.len = len;
		cr_expect_eq(read_it(&b, own, 1, &set), -EBADMSG, "%zu", len);
		cr_expect_eq(memcmp(&set, &untouched, sizeof(set)), 0);
	}
	b.len = whole;
	cr_expect_eq(read_it(&b, nobody, 1, &set), 0);
	buf_done(&b);
}

/* ---- addresses ---- */

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

/* mutation: deliver-smtp/reach/mx.c, mx_add_address() without
 * nexthop_is_server(). */
Test(mx, N17_addresses_that_are_no_server)
{
	static const char *const no[] = { "0.0.0.0", "0.1.2.3", "169.254.1.1",
		"224.0.0.1", "::", "fe80::1", "ff02::1", "::ffff:127.0.0.1",
		"::127.0.0.1", "none" };
	static const char *const yes[] = { "127.0.0.1", "::1", "10.0.0.1",
		"192.0.2.1", "2001:db8::1", "fd00::1" };
	struct mx_host host = { .name = "a.test" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(no); i++)
		cr_expect_not(add(&host, no[i]), "%s", no[i]);
	cr_expect_eq(host.naddresses, 0);
	for (i = 0; i < ARRAY_LEN(yes); i++)
		cr_expect(add(&host, yes[i]), "%s", yes[i]);
	cr_expect_eq(host.naddresses, ARRAY_LEN(yes));
	for (i = 0; i < 2 * MX_ADDRESSES_MAX; i++)
		add(&host, "192.0.2.9");
	cr_expect_eq(host.naddresses, MX_ADDRESSES_MAX);
}

/* ---- memory ---- */

Test(mx, N2_memory_has_bounds)
{
	struct mx_memory *m = mx_memory_new();
	struct mx_set set, got;
	char name[32];
	unsigned i;

	mx_set_alone(&set, "a.test");
	set.ttl = 10;
	give_address(&set.hosts[0], 1);
	mx_memory_put(m, "a.test", &set, 5);
	cr_expect(mx_memory_get(m, "a.test", 5, &got));
	cr_expect_eq(got.nhosts, 1);
	cr_expect_str_eq(got.hosts[0].name, "a.test");
	cr_expect(mx_memory_get(m, "a.test", 5 + 10 * USEC_PER_SEC - 1, &got));
	cr_expect_not(mx_memory_get(m, "a.test", 5 + 10 * USEC_PER_SEC, &got));
	cr_expect_eq(mx_memory_count(m), 0);
	set.ttl = 0;
	mx_memory_put(m, "a.test", &set, 5);
	cr_expect_eq(mx_memory_count(m), 0);
	set.ttl = 10;
	for (i = 0; i < 2 * MX_MEMORY_MAX; i++) {
		snprintf(name, sizeof(name), "h%u.test", i);
		mx_memory_put(m, name, &set, 5);
		mx_memory_put(m, name, &set, 5);
	}
	cr_expect_eq(mx_memory_count(m), MX_MEMORY_MAX);
	cr_expect_not(mx_memory_get(m, "h0.test", 5, &got));
	cr_expect(mx_memory_get(m, name, 5, &got));
	mx_memory_forget(m, name);
	cr_expect_not(mx_memory_get(m, name, 5, &got));
	mx_memory_clear(m);
	cr_expect_eq(mx_memory_count(m), 0);
	mx_memory_free(&m);
}
