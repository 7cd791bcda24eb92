#include "daemon/daemon.h"

#include <errno.h>
#include <string.h>

#include "base/io.h"
#include "log/log.h"
#include "spool/spool.h"

int
daemon_take_queue(const struct daemon *d, struct spool *ret_sp)
{
	const char *base = d->conf->queue_base;
	int lock, r = spool_open(ret_sp, &spool_sys_real, base, d->queue);

	if (r < 0) {
		if (r == -EMEDIUMTYPE) /* the text has the path */
			log_error("%s", spool_error(r));
		else
			log_error(
			    "%s/queue%u: %s", base, d->queue, strerror(-r));
		return r;
	}
	lock = spool_lock(ret_sp, d->ops->name, true);
	if (lock < 0) {
		log_error("%s/lock/%s: %s", ret_sp->path, d->ops->name,
		    strerror(-lock));
		spool_close(ret_sp);
	}
	return lock;
}

void
daemon_leave_queue(int *lock, struct spool *sp)
{
	io_close(lock);
	spool_close(sp);
}

void
daemon_take_link(const struct daemon_link *links, size_t count, void *state,
    const char *name, int fd)
{
	int r = -ENOENT;
	size_t i;

	for (i = 0; r == -ENOENT && i < count; i++)
		if (strcmp(links[i].name, name) == 0)
			r = links[i].linked(state, fd);
	if (r == 0)
		return;
	log_error("link \"%s\": %s", name, strerror(-r));
	io_close(&fd);
}
