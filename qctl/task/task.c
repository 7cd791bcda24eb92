#include "qctl/task/task.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

void
task_tell(const struct options *o, const char *fmt, ...)
{
	struct buf text = { 0 };
	va_list ap;

	va_start(ap, fmt);
	(void)buf_vprintf(&text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s: %s\n", o->program, buf_str(&text));
	buf_done(&text);
}

int
task_complain(const struct options *o, int code, const char *text)
{
	task_tell(o, "%s", text);
	return code;
}

int
task_fail(const struct options *o, const struct failure *rows, size_t count,
    int error)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (rows[i].error == error)
			return task_complain(o, rows[i].code, rows[i].text);
	return task_complain(o, EX_OSERR, strerror(-error));
}

int
task_put(const struct options *o, int r, struct buf *text)
{
	int code = EX_OK;

	if (r == 0)
		r = text->error;
	if (r < 0)
		code = task_complain(o, EX_OSERR, strerror(-r));
	else if (fputs(buf_str(text), stdout) < 0 || fflush(stdout) != 0)
		code = task_complain(
		    o, EX_IOERR, "standard output cannot be written");
	buf_done(text);
	return code;
}

struct worker_job
task_job(struct task *t, int (*run)(struct worker *w, void *task),
    const char *silent)
{
	return (struct worker_job){
		.program = t->options.program,
		.queues = t->queues,
		.nqueues = t->nqueues < 0 ? 0 : (size_t)t->nqueues,
		.silence_limit = t->silence_limit,
		.silent = silent,
		.run = run,
		.arg = t,
	};
}

void
task_take_tally(uint32_t queue UNUSED, const void *data, size_t len, void *arg)
{
	struct task *t = arg;
	struct tally tally;

	if (len != sizeof(tally))
		return;
	memcpy(&tally, data, sizeof(tally));
	t->tally.done += tally.done;
	t->tally.later += tally.later;
	t->tally.damaged += tally.damaged;
	t->tally.refused += tally.refused;
	t->tally.unknown += tally.unknown;
	t->tally.marked += tally.marked;
	t->tally.gone += tally.gone;
}
