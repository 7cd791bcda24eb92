#include "deliver-local/child.h"

#include <errno.h>

#include "base/address.h"

#define PROGRAM_PATH "PATH=/usr/local/bin:/usr/bin:/bin"

/* A small, fixed set; addresses hold no control characters, so no value can
 * hold a line end. */
static int
make_environment(const struct child_plan *plan, const char *local,
    const struct account *account, struct buf env[], size_t max)
{
	const struct {
		const char *name, *value;
	} rows[] = {
		{ "HOME", account->home },
		{ "USER", account->name },
		{ "LOGNAME", account->name },
		{ "SHELL", account->shell },
		{ "SENDER", plan->delivery->sender },
		{ "RECIPIENT", plan->recipient },
		{ "LOCAL", local },
		{ "DOMAIN", address_domain(plan->recipient) },
		{ "QUEUE_ID", plan->delivery->id },
	};
	size_t i;
	int r = buf_add_str(&env[0], PROGRAM_PATH);

	ASSERT(ARRAY_LEN(rows) + 1 <= max);
	for (i = 0; i < ARRAY_LEN(rows) && r == 0; i++)
		r = buf_printf(
		    &env[i + 1], "%s=%s", rows[i].name, rows[i].value);
	return r;
}

#define ENV_MAX 16

void
child_run(const struct child_plan *plan, const char *name, char *const *argv,
    const struct account *account, struct message *m, struct verdict *v)
{
	struct buf env[ENV_MAX] = { 0 }, local = { 0 };
	char *envp[ENV_MAX + 1] = { NULL };
	size_t i;
	int r = buf_add(
	    &local, plan->recipient, address_local_len(plan->recipient));

	if (r == 0)
		r = make_environment(
		    plan, buf_str(&local), account, env, ENV_MAX);
	for (i = 0; i < ENV_MAX && env[i].len > 0; i++)
		envp[i] = env[i].data;
	if (r < 0)
		verdict_error(v, r, "make the environment");
	else
		command_run(&(struct command){ .name = name,
				.argv = argv,
				.envp = envp,
				.home = account->home,
				.limit = plan->command_time_limit },
		    m, v);
	for (i = 0; i < ENV_MAX; i++)
		buf_done(&env[i]);
	buf_done(&local);
}

static int
make_arguments(const struct child_plan *plan, const struct program *program,
    char ***ret_argv)
{
	const char *values[PROGRAM_NVALUES];
	struct buf local = { 0 };
	int r = buf_add(
	    &local, plan->recipient, address_local_len(plan->recipient));

	values[PROGRAM_SENDER] = plan->delivery->sender;
	values[PROGRAM_RECIPIENT] = plan->recipient;
	values[PROGRAM_USER] = buf_str(&local);
	values[PROGRAM_DOMAIN] = address_domain(plan->recipient);
	values[PROGRAM_NEXTHOP] = plan->delivery->nexthop;
	if (r == 0)
		r = program_argv(program, values, ret_argv);
	buf_done(&local);
	return r;
}

static void
run_program(const struct child_plan *plan, const struct program *program,
    const struct account *account, struct message *m, struct verdict *v)
{
	char **argv = NULL;
	int r = make_arguments(plan, program, &argv);

	if (r == -EPERM)
		verdict_set(v, AGENT_FAILED, "5.1.3",
		    "an address that begins with - is not passed on");
	else if (r < 0)
		verdict_error(v, r, "make the arguments");
	else
		child_run(plan, program->name, argv, account, m, v);
	program_argv_free(&argv);
}

void
child_pipe(const struct child_plan *plan, struct message *m, struct verdict *v)
{
	const struct program *program =
	    programs_find(plan->programs, plan->delivery->nexthop);
	struct account account;

	if (program == NULL) {
		verdict_set(v, AGENT_DEFERRED, "4.3.5",
		    "there is no program \"%s\"", plan->delivery->nexthop);
		return;
	}
	if (child_service_user(plan, program->user, &account, v) &&
	    child_become(plan, &account, v) && child_no_loop(m, v))
		run_program(plan, program, &account, m, v);
}
