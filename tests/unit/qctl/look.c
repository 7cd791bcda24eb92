/* Who reads through queue-look, and what it can do there. */
#include "qctl/read/look.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "qctl/qctl.h"

#define NONE ((gid_t)-1)

static char groups_path[64];

static void
start(void)
{
	FILE *f;

	snprintf(groups_path, sizeof(groups_path), "/tmp/look-%d", getpid());
	f = fopen(groups_path, "w");
	cr_assert_not_null(f);
	fputs("root:x:0:\nadm:x:4:syslog\nqmail:x:70:\nops:x:80:a,b\n", f);
	fclose(f);
}

static void
end(void)
{
	(void)unlink(groups_path);
}

TestSuite(look, .init = start, .fini = end, .timeout = 60);

Test(look, groups)
{
	static const struct {
		const char *name;
		gid_t want;
	} cases[] = {
		{ "adm", 4 },
		{ "ops", 80 },
		{ "o", NONE },
		{ "opsx", NONE },
		{ "a", NONE },
		{ "80", 80 },
		{ "4294967294", 4294967294 },
		{ "4294967295", NONE },
		{ "", NONE },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++)
		cr_assert_eq(look_find_group(groups_path, cases[i].name),
		    cases[i].want, "%s", cases[i].name);
	cr_assert_eq(look_find_group("/nonexistent", "adm"), NONE);
}

Test(look, readers)
{
	static struct {
		char reader[16], operator[8];
		gid_t groups[2];
		bool want;
	} cases[] = {
		{ "adm", "", { 1000, 4 }, true },
		{ "adm", "", { 4, 1000 }, true },
		{ "adm", "", { 1000, 80 }, false },
		{ "adm", "ops", { 1000, 80 }, true },
		{ "", "", { 1000, 70 }, true },
		{ "", "", { 1000, 0 }, false },
		{ "none", "", { 1000, NONE }, false },
		{ "1000", "", { 1000, 1000 }, true },
		{ CONF_READERS_ALL, "", { 1000, 1000 }, true },
		{ "every", "", { 1000, 1000 }, false },
	};
	char qmail[] = "qmail";
	struct conf conf = { .qmail_group = qmail };
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		conf.reader_group = cases[i].reader;
		conf.operator_group = cases[i].operator;
		cr_assert_eq(
		    look_is_reader(&conf, groups_path, cases[i].groups, 2),
		    cases[i].want, "case %zu", i);
	}
}

Test(look, X24_shows)
{
	struct options o = { 0 };
	unsigned verb, shown = 0;

	for (verb = 0; verb < NVERBS; verb++) {
		o.verb = (enum verb)verb;
		o.content = false;
		shown += qctl_only_shows(&o, false) ? 1 : 0;
		cr_assert_eq(
		    qctl_only_shows(&o, true), verb == VERB_SHARES, "%u", verb);
		o.content = true;
		cr_assert_not(qctl_only_shows(&o, false), "%u", verb);
	}
	cr_assert_eq(shown, 7);
	o.content = false;
	o.verb = VERB_ACT;
	cr_assert_not(qctl_only_shows(&o, false));
	o.verb = VERB_CHECK;
	cr_assert_not(qctl_only_shows(&o, false));
}

/* The exit code of the child: the step that was not as it has to be. */
static int
try_to_write(void)
{
	char name[80];
	int r = look_lock_down();

	if (r == -EOPNOTSUPP)
		return 77;
	if (r != 0)
		return 1;
	snprintf(name, sizeof(name), "%s.new", groups_path);
	if (open(groups_path, O_WRONLY) >= 0 || errno != EACCES)
		return 2;
	if (open(name, O_WRONLY | O_CREAT, 0600) >= 0 || errno != EACCES)
		return 3;
	if (unlink(groups_path) == 0 || errno != EACCES)
		return 4;
	if (rename(groups_path, name) == 0 || link(groups_path, name) == 0 ||
	    symlink("x", name) == 0)
		return 5;
	if (open(groups_path, O_RDONLY) < 0)
		return 6;
	return open("/dev/null", O_RDWR) < 0 ? 7 : 0;
}

Test(look, attack_5_nothing_can_be_written)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(try_to_write());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		cr_skip_test("a kernel without Landlock");
	cr_assert_eq(WEXITSTATUS(status), 0, "step %d", WEXITSTATUS(status));
}
