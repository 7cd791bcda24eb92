/* The configuration of a world, and its reload. */
#include "tests/unit/queue-send/world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "log/log.h"
#include "tests/unit/files.h"

void
world_be_silent(void)
{
	log_open("test", LOG_TARGET_STDERR, LOG_FORMAT_TEXT, LOG_ERROR_L + 1);
}

/* The path of the configuration. */
static const char *
write_conf(const struct world *w, const char *conf)
{
	struct buf text = { 0 };
	const char *path;

	unit_put_file(w->dir, "routing",
	    "smtp.test smtp\n.silent.test smtp\nroll0.test smtp\nroll1.test "
	    "smtp\nroll2.test "
	    "smtp\nroll3.test smtp\npipe.test pipe:x\nlocal.test "
	    "local\n* discard\n");
	buf_printf(&text,
	    "queue_base = %s\nrouting_file = %s/routing\nlog_level = error\n%s",
	    w->dir, w->dir, conf);
	path = unit_put_file(w->dir, "conf", buf_str(&text));
	buf_done(&text);
	return path;
}

void
world_read_conf(struct world *w, const char *conf)
{
	struct buf error = { 0 };

	cr_assert_eq(conf_load(write_conf(w, conf), &w->conf, &error), 0, "%s",
	    buf_str(&error));
}

void
world_reload_begin(struct world *w, const char *conf)
{
	struct daemon *d = &w->daemon;

	d->ops = &w->ops;
	d->base = w->s.base;
	d->state = &w->s;
	d->conf_path = write_conf(w, conf);
	d->conf = malloc(sizeof(*d->conf));
	cr_assert_not_null(d->conf);
	*d->conf = w->conf;
	daemon_reload(d);
}

void
world_reload_end(struct world *w)
{
	struct daemon *d = &w->daemon;

	while (d->reload.away)
		event_base_loop(w->s.base, EVLOOP_ONCE);
	world_be_silent();
	cr_assert(daemon_reload_done(d));
	w->conf = *d->conf;
	free(d->conf);
	d->conf = NULL;
	w->s.conf = &w->conf;
	world_run(w);
}

void
world_reload(struct world *w, const char *conf)
{
	world_reload_begin(w, conf);
	world_reload_end(w);
}
