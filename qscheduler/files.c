#include "qscheduler/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include "base/io.h"
#include "route/programs.h"
#include "route/route.h"

static int
check_routing(const struct conf *conf, struct buf *ret_error)
{
	const char *names[CONF_TRANSPORTS_MAX + 1];
	struct route_table *table = NULL;
	int r;

	conf_transport_names(conf, names);
	r = route_load(conf->routing_file, names, &table, ret_error);
	if (r >= 0)
		route_free(&table);
	return r;
}

static int
check_programs(const struct conf *conf, struct buf *ret_error)
{
	struct programs *programs = NULL;
	int r = programs_load(conf->programs_file, &programs, ret_error);

	if (r >= 0)
		programs_free(&programs);
	return r;
}

/* Opened with the rights of another user, for the time of the call. */
static int
open_as(const char *path, uid_t uid, gid_t gid)
{
	int fd, r;

	(void)setfsgid(gid);
	(void)setfsuid(uid);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	r = fd < 0 ? -errno : 0;
	(void)setfsuid(geteuid());
	(void)setfsgid(getegid());
	io_close(&fd);
	return r;
}

static int
check_readable(const char *path, uid_t uid, const char *name,
    const struct daemon_users *users, struct buf *ret_error)
{
	int r = users->private ? 0 : open_as(path, uid, users->qmail);

	if (r < 0)
		(void)buf_printf(ret_error, "%s: cannot be read by user %s: %s",
		    path, name, strerror(-r));
	return r;
}

int
files_check(const struct conf *conf, const struct daemon_users *users,
    struct buf *ret_error)
{
	const char *routing = conf->routing_file;
	int r = check_routing(conf, ret_error);

	if (r == 0)
		r = check_readable(routing, users->qmailq, conf->qmailq_user,
		    users, ret_error);
	if (r == 0)
		r = check_readable(routing, users->qmails, conf->qmails_user,
		    users, ret_error);
	if (r == -ENOENT) {
		buf_reset(ret_error);
		r = 0;
	}
	return r < 0 ? r : check_programs(conf, ret_error);
}
