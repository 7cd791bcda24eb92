#include "qscheduler/supervisor/supervisor.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

static bool
has(char *const *env, const char *string)
{
	for (; *env != NULL; env++)
		if (strcmp(*env, string) == 0)
			return true;
	return false;
}

static size_t
length(char *const *env)
{
	size_t n = 0;

	while (env[n] != NULL)
		n++;
	return n;
}

static char *const from[] = { (char[]){ "LD_PRELOAD=/evil.so" },
	(char[]){ "PATH=/evil" }, (char[]){ "QUEUE_BASE=/changed" },
	(char[]){ "QUEUE_COUNT=3" }, (char[]){ "QSCHED_CONF=/c" },
	(char[]){ "ERROR_INTERVAL=5" }, (char[]){ "ERROR_INTERVALS=5" },
	(char[]){ "NOTIFY_SOCKET=/s" }, (char[]){ "WATCHDOG_USEC=1" },
	(char[]){ "LISTEN_FDS=1" }, (char[]){ "HOME=/root" },
	(char[]){ "TZ=UTC" }, (char[]){ "JOURNAL_STREAM=1:2" },
	(char[]){ "TSAN_OPTIONS=exitcode=0" }, (char[]){ "no-equals-sign" },
	(char[]){ "" }, NULL };
static char *const pins[] = { (char[]){ "QUEUE_BASE=/started" },
	(char[]){ "QSCHED_INSTANCE=i" }, NULL };

Test(env, P19_root_passes_on_what_is_known_to_be_needed)
{
	char **env = env_make(from, false, pins);

	cr_assert_not_null(env);
	cr_expect(has(env, "QUEUE_BASE=/started"));
	cr_expect(has(env, "QSCHED_INSTANCE=i"));
	cr_expect(has(env, "QUEUE_COUNT=3"));
	cr_expect(has(env, "QSCHED_CONF=/c"));
	cr_expect(has(env, "ERROR_INTERVAL=5"));
	cr_expect(has(env, "TZ=UTC"));
	cr_expect(has(env, "JOURNAL_STREAM=1:2"));
	cr_expect(has(env, "TSAN_OPTIONS=exitcode=0"));
	cr_expect_eq(length(env), 9); /* and a PATH of ours */
	env_free(&env);
	cr_expect_null(env);
}

Test(env, a_private_instance_passes_on_its_users)
{
	char **env = env_make(from, true, pins);

	cr_assert_not_null(env);
	cr_expect(has(env, "LD_PRELOAD=/evil.so"));
	cr_expect(has(env, "PATH=/evil"));
	cr_expect(has(env, "HOME=/root"));
	cr_expect(has(env, "QUEUE_BASE=/started"));
	cr_expect_not(has(env, "QUEUE_BASE=/changed"));
	cr_expect_not(has(env, "NOTIFY_SOCKET=/s"));
	cr_expect_not(has(env, "WATCHDOG_USEC=1"));
	cr_expect_not(has(env, "LISTEN_FDS=1"));
	env_free(&env);
}

Test(env, P19_a_huge_environment)
{
	static char huge[100000] = "QUEUE_HUGE=";
	char *const big[] = { huge, NULL };
	char **env;

	memset(huge + 11, 'x', sizeof(huge) - 12);
	env = env_make(big, false, pins);
	cr_assert_not_null(env);
	cr_expect_eq(length(env), 3);
	env_free(&env);
}
