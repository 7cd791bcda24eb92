#include "qscheduler/children/children.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/io.h"
#include "ipc/msg.h"
#include "ipc/wire.h"

static void
fill_argv(const struct child *c, const char *path, const char *number,
    const char *argv[ROLE_ARGS_MAX + 5])
{
	const char *conf_path = c->group->all->instance->conf_path;
	size_t n = 0, i;

	argv[n++] = path;
	if (conf_path != NULL) {
		argv[n++] = "-c";
		argv[n++] = conf_path;
	}
	for (i = 0; c->role->args[i] != NULL; i++)
		argv[n++] = c->role->args[i];
	if (c->role->scope == SCOPE_QUEUE)
		argv[n++] = number;
	argv[n] = NULL;
}

static int
exec_child(struct child *c, int channel, const char **ret_step)
{
	const struct children *all = c->group->all;
	const char *argv[ROLE_ARGS_MAX + 5];
	char number[16], *path = NULL;
	int r;

	*ret_step = "memory";
	if (asprintf(&path, "%s/%s", all->program_dir, c->role->name) < 0)
		return -ENOMEM;
	snprintf(number, sizeof(number), "%" PRIu32, c->group->number);
	fill_argv(c, path, number, argv);
	r = process_spawn(
	    &(struct spawn){
		.path = path,
		.argv = (char *const *)(uintptr_t)argv,
		.envp = all->env,
		.channel = channel,
		.lock = all->orphans.fd,
		.lock_at = child_lock_at(
		    c->group->number, (uint32_t)(c - c->group->child)),
		.memory = all->instance->conf->process_memory_limit,
		.fork = fork,
		.users = &all->instance->users,
		.user = c->role->user,
		.batch = c->role->batch,
	    },
	    &c->process, ret_step);
	free(path);
	return r;
}

int
child_launch(struct child *c, const char **ret_step)
{
	int ends[2], r;

	*ret_step = "socket";
	r = chan_pair(ends);
	if (r < 0)
		return r;
	r = channel_open(c, ends[0]);
	if (r < 0) {
		io_close(&ends[0]);
	} else {
		r = exec_child(c, ends[1], ret_step);
		if (r < 0)
			wire_free(&c->channel.wire);
	}
	io_close(&ends[1]);
	c->mute = 0;
	c->text[0] = '\0';
	heartbeat_init(c);
	return r;
}
