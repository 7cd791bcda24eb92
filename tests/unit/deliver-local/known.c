/* Accounts that were found a short time ago. */
#include "deliver-local/child.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "config/conf.h"
#include "scratch.h"

#define NOW (1000 * USEC_PER_SEC)

static struct known *known;

static void
setup(void)
{
	cr_assert_eq(known_new(&known), 0);
}

static void
teardown(void)
{
	known_free(&known);
	cr_expect_null(known);
}

static struct known_news
news_of(uid_t uid)
{
	return (struct known_news){ .tag = KNOWN_TAG,
		.kept = 1,
		.account = { .uid = uid,
		    .gid = uid,
		    .name = "bob",
		    .home = "/home/bob",
		    .shell = "/bin/sh",
		    .ngroups = 2,
		    .groups = { uid, 7 } } };
}

/* mutation: deliver-local/known.c, known_find() without the time. */
Test(known, an_account_is_known_for_a_time, .init = setup, .fini = teardown)
{
	const struct known_news news = news_of(1000);
	const struct account *a;

	cr_expect_null(known_find(known, "bob", NOW));
	known_take(known, "bob", &news, NOW);
	a = known_find(known, "bob", NOW + KNOWN_TIME - 1);
	cr_assert_not_null(a);
	cr_expect_eq(a->uid, 1000);
	cr_expect_eq(a->groups[1], 7);
	cr_expect_str_eq(a->home, "/home/bob");
	cr_expect_null(known_find(known, "bob", NOW + KNOWN_TIME));
	cr_expect_null(known_find(known, "bobby", NOW));
	cr_expect_null(known_find(known, "", NOW));
	known_forget(known);
	cr_expect_null(known_find(known, "bob", NOW));
}

Test(known, no_name_has_the_account_of_another, .init = setup, .fini = teardown)
{
	char name[16];
	uid_t uid;
	int found = 0;

	for (uid = 1; uid <= 5000; uid++) {
		const struct account a = { .uid = uid };

		snprintf(name, sizeof(name), "user%u", uid);
		known_put(known, name, &a, NOW);
	}
	for (uid = 1; uid <= 5000; uid++) {
		const struct account *a;

		snprintf(name, sizeof(name), "user%u", uid);
		a = known_find(known, name, NOW);
		found += a != NULL;
		cr_expect(a == NULL || a->uid == uid);
	}
	cr_expect_gt(found, 100);
}

/* A name that is too long for a row is not cut. */
Test(known, a_long_name_is_not_kept, .init = setup, .fini = teardown)
{
	const struct account a = { .uid = 1 };
	char name[2 * MAILBOX_PART_MAX];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	known_put(known, name, &a, NOW);
	cr_expect_null(known_find(known, name, NOW));
	name[MAILBOX_PART_MAX] = '\0';
	cr_expect_null(known_find(known, name, NOW));
	known_put(known, "", &a, NOW);
	cr_expect_null(known_find(known, "", NOW));
}

/* mutation: deliver-local/known.c, is_whole() that is always true. */
Test(known, what_is_not_whole_is_not_kept, .init = setup, .fini = teardown)
{
	struct known_news rows[7];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		rows[i] = news_of(1000);
	rows[0].tag = 0;
	rows[1].kept = 0;
	rows[2].account.ngroups = 0;
	rows[3].account.ngroups = ACCOUNT_GROUPS_MAX + 1;
	memset(rows[4].account.name, 'x', sizeof(rows[4].account.name));
	memset(rows[5].account.home, 'x', sizeof(rows[5].account.home));
	memset(rows[6].account.shell, 'x', sizeof(rows[6].account.shell));
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		known_take(known, "bob", &rows[i], NOW);
		cr_expect_null(known_find(known, "bob", NOW), "row %zu", i);
	}
}

/* ---- the child's side ---- */

static char no_user[] = "", service[] = SCRATCH_USER;
static struct agent_delivery delivery = { .kind = AGENT_LOCAL };

static struct child_plan
plan_of(const char *recipient, char *maildir_user)
{
	return (struct child_plan){ .delivery = &delivery,
		.recipient = recipient,
		.maildir_user = maildir_user };
}

Test(known, a_delivery_begins_with_the_account_that_it_needs, .init = setup,
    .fini = teardown)
{
	struct child_plan plan = plan_of("Bob+x@y", no_user);
	const struct known_news news = news_of(1000);

	known_plan(&plan, known, NOW);
	cr_expect_str_eq(plan.asks, "bob+x");
	cr_expect_null(plan.account);
	known_take(known, "bob+x", &news, NOW);
	known_plan(&plan, known, NOW);
	cr_assert_not_null(plan.account);
	cr_expect_eq(plan.asked, 1);
	plan = plan_of("bob@y", service);
	known_plan(&plan, known, NOW);
	cr_expect_str_eq(plan.asks, SCRATCH_USER);
	plan = plan_of("../bob@y", no_user);
	known_plan(&plan, known, NOW);
	cr_expect_str_eq(plan.asks, "");
	plan = plan_of("bob@y", no_user);
	known_plan(&plan, NULL, NOW);
	cr_expect_str_eq(plan.asks, "");
	plan.private = true;
	known_plan(&plan, known, NOW);
	cr_expect_str_eq(plan.asks, "");
}

/* mutation: deliver-local/known.c, known_ask() without the groups. */
Test(known, what_is_found_is_told_with_its_groups, .init = setup,
    .fini = teardown)
{
	struct child_plan plan = plan_of(SCRATCH_USER "@y", no_user);
	struct known_news told, news;
	struct account got;
	gid_t groups[ACCOUNT_GROUPS_MAX];
	int p[2], n = ACCOUNT_GROUPS_MAX;

	cr_assert_eq(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	known_plan(&plan, known, NOW);
	cr_assert_eq(known_ask(&plan, &told, p[1]), 0);
	cr_assert_eq(known_account(&plan, SCRATCH_USER, &got), 1);
	cr_assert_eq(read(p[0], &news, sizeof(news)), (ssize_t)sizeof(news));
	known_take(known, plan.asks, &news, NOW);
	plan = plan_of(SCRATCH_USER "@y", no_user);
	known_plan(&plan, known, NOW);
	cr_assert_not_null(plan.account);
	cr_expect_eq(plan.account->uid, got.uid);
	cr_assert_geq(getgrouplist(got.name, got.gid, groups, &n), 0);
	cr_expect_eq(plan.account->ngroups, (uint32_t)n);
	cr_expect_eq(
	    memcmp(plan.account->groups, groups, (size_t)n * sizeof(groups[0])),
	    0);
	/* A known one is not told again. */
	cr_expect_eq(known_ask(&plan, &told, p[1]), 0);
	cr_expect_eq(read(p[0], &news, sizeof(news)), -1);
	io_close(&p[0]);
	io_close(&p[1]);
}

Test(known, what_is_not_there_is_told_and_not_kept, .init = setup,
    .fini = teardown)
{
	struct child_plan plan = plan_of("no-such-user@y", no_user);
	struct known_news told, news;
	struct account got;
	int p[2];

	cr_assert_eq(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
	known_plan(&plan, known, NOW);
	cr_assert_eq(known_ask(&plan, &told, p[1]), 0);
	cr_expect_eq(known_account(&plan, "no-such-user", &got), 0);
	cr_assert_eq(read(p[0], &news, sizeof(news)), (ssize_t)sizeof(news));
	known_take(known, plan.asks, &news, NOW);
	cr_expect_null(known_find(known, "no-such-user", NOW));
	io_close(&p[0]);
	io_close(&p[1]);
}
