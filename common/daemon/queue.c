#include "daemon/daemon.h"

#include <string.h>

#include "log/log.h"
#include "spool/spool.h"

int
daemon_take_queue(const struct daemon *d, struct spool *ret_sp)
{
	const char *base = d->conf->queue_base;
	int lock, r = spool_open(ret_sp, &spool_sys_real, base, d->queue);

	if (r < 0) {
		log_error("%s/queue%u: %s", base, d->queue, strerror(-r));
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
