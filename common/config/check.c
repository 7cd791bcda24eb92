/* Checks of several values together. */
#include "config/param.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static int complain(const struct conf *conf, const char *name,
    const char *other, struct buf *error, const char *fmt, ...) PRINTF(5, 6);

/* Reported under the name of the parameter that was set, not of a default. */
static int
complain(const struct conf *conf, const char *name, const char *other,
    struct buf *error, const char *fmt, ...)
{
	const struct param *p = param_find(name), *q = param_find(other);
	va_list ap;
	int r;

	if (conf->origins->all[p - params].source == CONF_FROM_DEFAULT)
		p = q;
	r = conf_add_origin(conf, p, -1, error);
	if (r < 0)
		return r;
	va_start(ap, fmt);
	r = buf_vprintf(error, fmt, ap);
	va_end(ap);
	return r < 0 ? r : -EINVAL;
}

static int
check_count(struct conf *conf, struct buf *error)
{
	if (conf->queue_count <= conf->queue_max)
		return 0;
	return complain(conf, "queue_count", "queue_max", error,
	    "queue_count %u is above queue_max %u", conf->queue_count,
	    conf->queue_max);
}

static int
check_numbers(struct conf *conf, struct buf *error)
{
	uint32_t last = conf->queue_start + conf->queue_max - 1;

	if (last <= CONF_QUEUE_NUM_MAX)
		return 0;
	return complain(conf, "queue_start", "queue_max", error,
	    "the last queue would be number %u, above %u", last,
	    CONF_QUEUE_NUM_MAX);
}

static int
check_backoff(struct conf *conf, struct buf *error)
{
	if (conf->backoff.minimal_backoff_time <=
	    conf->backoff.maximal_backoff_time)
		return 0;
	return complain(conf, "minimal_backoff_time", "maximal_backoff_time",
	    error, "minimal_backoff_time is above maximal_backoff_time");
}

/* The initial window is never above the limit. */
static int
cap_initial(struct conf *conf, struct buf *error UNUSED)
{
	struct conf_transport *t;
	uint32_t i;

	for (i = 0; i < conf->ntransports; i++) {
		t = &conf->transports[i];
		if (t->site.destination_concurrency_limit != 0 &&
		    t->site.initial_destination_concurrency >
			t->site.destination_concurrency_limit)
			t->site.initial_destination_concurrency =
			    t->site.destination_concurrency_limit;
	}
	return 0;
}

static int (*const checks[])(struct conf *conf, struct buf *error) = {
	check_count,
	check_numbers,
	check_backoff,
	cap_initial,
};

int
conf_check(struct conf *conf, struct buf *error)
{
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < ARRAY_LEN(checks); i++)
		r = checks[i](conf, error);
	return r;
}
