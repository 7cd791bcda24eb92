#include "qtop/qtop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "qtop/model.h"

static int
complain(int code, const char *object, const char *why)
{
	fprintf(stderr, "qtop: %s%s\n", object, why);
	return code;
}

int
model_exit_code(const struct model *model)
{
	if (model->error == -EPERM || model->error == -EACCES)
		return EX_NOPERM;
	if (model->error == -ENOMEM)
		return EX_OSERR;
	return model->error < 0 || model->stale ? EX_UNAVAILABLE : EX_OK;
}

/* An old page is shown, with a warning. */
static int
write_look(const struct model *model, const char *instance, struct buf *text)
{
	const int code = model_exit_code(model);
	struct buf trouble = { 0 };
	int r = format_trouble(model, instance, &trouble);

	if (r == 0 && trouble.len > 0)
		(void)complain(code, "", buf_str(&trouble));
	buf_done(&trouble);
	if (r == 0 && model->error < 0)
		return code;
	if (r == 0)
		r = format_batch(model, instance, text);
	if (r < 0)
		return complain(EX_OSERR, "", strerror(-r));
	r = io_write_all(STDOUT_FILENO, text->data, text->len);
	return r < 0 ? complain(EX_IOERR, "standard output: ", strerror(-r))
		     : code;
}

static void
wait_until(usec_t deadline)
{
	const struct timespec t = {
		.tv_sec = deadline / USEC_PER_SEC,
		.tv_nsec = deadline % USEC_PER_SEC * 1000,
	};

	while (
	    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

int
batch_run(const struct options *options, const char *instance,
    const struct model_source *source)
{
	static struct model model;
	struct buf text = { 0 };
	uint64_t i;
	int code = 0;

	for (i = 0; code == 0 && (options->count == 0 || i < options->count);
	     i++) {
		usec_t now = clock_mono();

		if (i > 0) {
			wait_until(model.now_mono + options->delay);
			now = clock_mono();
			(void)buf_add_char(&text, '\n');
		}
		model_sample(&model, source, instance, now, clock_wall());
		code = write_look(&model, instance, &text);
		buf_reset(&text);
	}
	buf_done(&text);
	return code;
}
