/* How many queues there are where nobody says. */
#include "config/conf.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/param.h"

static uint32_t
count_of(const char *settings_of_max)
{
	struct conf_setting settings[] = { { "queue_max", settings_of_max,
	    1 } };
	struct conf conf;
	struct buf error = { 0 };
	uint32_t count;

	cr_assert_eq(conf_from_settings("where", settings,
			 settings_of_max == NULL ? 0 : 1, &conf, &error),
	    0, "%s", buf_str(&error));
	count = conf.queue_count;
	conf_done(&conf);
	buf_done(&error);
	return count;
}

/* mutation: common/config/check.c: conf_queues_for() says one for each core. */
Test(config_queues, one_for_two_cores_and_at_least_two)
{
	static const struct {
		uint32_t cores, most, want;
	} rows[] = {
		{ 0, 20, 2 }, /* not known */
		{ 1, 20, 2 },
		{ 2, 20, 2 },
		{ 4, 20, 2 },
		{ 5, 20, 2 },
		{ 6, 20, 3 },
		{ 16, 20, 8 },
		{ 40, 20, 20 },
		{ 512, 20, 20 },
		{ 16, 1, 1 },
		{ 16, 5, 5 },
		{ 512, 256, 256 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		cr_expect_eq(conf_queues_for(rows[i].cores, rows[i].most),
		    rows[i].want, "%u cores, %u at most", rows[i].cores,
		    rows[i].most);
}

Test(config_queues, cores_of_this_process)
{
	cpu_set_t cores;

	cr_assert_eq(sched_getaffinity(0, sizeof(cores), &cores), 0);
	cr_expect_eq(
	    count_of(NULL), conf_queues_for((uint32_t)CPU_COUNT(&cores), 20));
	cr_expect_eq(count_of("1"), 1);
}

Test(config_queues, a_count_that_is_set_stays)
{
	static const struct conf_setting settings[] = { { "queue_count", "5",
	    1 } };
	struct conf conf;
	struct buf error = { 0 };

	cr_assert_eq(
	    conf_from_settings("where", settings, 1, &conf, &error), 0);
	cr_expect_eq(conf.queue_count, 5);
	conf_done(&conf);
	buf_done(&error);
}
