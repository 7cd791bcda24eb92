#include "daemon/daemon.h"

#include <errno.h>
#include <stdlib.h>

#include "log/log.h"

static void
warn_frozen(const struct conf *old, const struct conf *fresh)
{
	struct buf names = { 0 };

	if (conf_frozen_changes(old, fresh, &names) == 0 && names.len > 0)
		log_warning("reload: changed, but needs a restart: %s",
		    buf_str(&names));
	buf_done(&names);
}

int
daemon_load_again(
    const char *path, const struct conf *old, struct conf **ret_fresh)
{
	struct conf *fresh = calloc(1, sizeof(*fresh));
	struct buf error = { 0 };
	int r = fresh == NULL ? -ENOMEM : conf_load(path, fresh, &error);

	if (r == 0) {
		warn_frozen(old, fresh);
		/* Sizes and indexes that were built on these values stay right.
		 */
		r = conf_keep_frozen(old, fresh);
	}
	if (r == 0) {
		*ret_fresh = fresh;
	} else {
		log_error("reload: %s: the old configuration stays in force",
		    error.len > 0 ? buf_str(&error) : strerror(-r));
		conf_free(&fresh);
	}
	buf_done(&error);
	return r;
}
