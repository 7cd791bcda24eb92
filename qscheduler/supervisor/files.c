#include "qscheduler/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include "base/io.h"
#include "base/wrong_lines.h"
#include "route/alias.h"
#include "route/credentials.h"
#include "route/programs.h"
#include "route/route.h"
#include "route/sender_relay.h"
#include "route/sender_rewrite.h"

static int
check_routing(const struct conf *conf, struct buf *ret_error)
{
	struct route_transport known[CONF_TRANSPORTS_MAX + 1];
	struct route_table *table = NULL;
	int r;

	daemon_route_transports(conf, known);
	r = route_load(conf->routing_file, known, &table, ret_error);
	route_free(&table);
	return r;
}

static int
check_map(
    const char *path, const struct sender_kind *kind, struct buf *ret_error)
{
	struct sender_map *map = NULL;
	int r = sender_map_load(path, kind, &map, ret_error);

	sender_map_free(&map);
	return r == -ENOENT ? -EINVAL : r; /* a file that is named is there */
}

static int
check_senders(const struct conf *conf, struct buf *ret_error)
{
	return check_map(
	    conf->sender_dependent_relayhost, &sender_relay_kind, ret_error);
}

static int
check_rewrites(const struct conf *conf, struct buf *ret_error)
{
	return check_map(conf->sender_rewrite, &sender_rewrite_kind, ret_error);
}

static int
check_programs(const struct conf *conf, struct buf *ret_error)
{
	struct programs *programs = NULL;
	int r = programs_load(conf->programs_file, &programs, ret_error);

	programs_free(&programs);
	return r;
}

static int
check_aliases(const struct conf *conf, struct buf *ret_error)
{
	struct alias_table *table = NULL;
	int r = alias_load(conf->alias_file, &table, ret_error);

	alias_free(&table);
	return r;
}

static int
check_tls(const struct conf *conf, struct buf *ret_error)
{
	struct tls_policies *policies = NULL;
	int r =
	    tls_policies_load(conf->smtp_tls_policy_file, &policies, ret_error);

	tls_policies_free(&policies);
	return r;
}

static int
check_passwords(const struct conf *conf, struct buf *ret_error)
{
	struct credentials *credentials = NULL;
	int r =
	    credentials_load(conf->smtp_password_file, &credentials, ret_error);

	credentials_free(&credentials);
	return r;
}

/* Files of todo-proc and queue-send come first. */
#define ROW(parameter, name, ...)                                       \
	{                                                               \
		.path = offsetof(struct conf, parameter), .copy = name, \
		__VA_ARGS__                                             \
	}
const struct files_row files_rows[FILES_N] = {
	ROW(routing_file, "routing", .mode = 0640, .check = check_routing,
	    .may_be_absent = true, .of_queue = true),
	ROW(sender_dependent_relayhost, "sender-relays", .mode = 0640,
	    .check = check_senders, .of_queue = true),
	ROW(alias_file, "aliases", .mode = 0640, .check = check_aliases,
	    .may_be_absent = true, .of_queue = true),
	ROW(programs_file, "programs", .mode = 0640, .check = check_programs),
	ROW(smtp_tls_policy_file, "tls-policy", .mode = 0644,
	    .check = check_tls),
	ROW(sender_rewrite, "sender-rewrite", .mode = 0644,
	    .check = check_rewrites),
	ROW(smtp_password_file, "passwords", .mode = 0640,
	    .check = check_passwords, .secret = true),
};

bool
files_have_aliases(const struct conf *conf, bool private)
{
	return conf->alias_file[0] != '\0' &&
	    (!private || conf_is_set(conf, "alias_file"));
}

char **
files_path(const struct conf *conf, const struct files_row *row)
{
	return (char **)((uintptr_t)conf + row->path);
}

bool
files_are_read(
    const struct conf *conf, const struct files_row *row, bool private)
{
	return row->check == check_aliases ? files_have_aliases(conf, private)
					   : **files_path(conf, row) != '\0';
}

static int
check_pipe(const struct conf *conf, const struct programs *programs,
    const struct route *to, uint32_t line, struct buf *ret_error)
{
	if (to->target != ROUTE_TO_PROGRAM ||
	    (to->nexthop != NULL &&
		programs_find(programs, to->nexthop) != NULL))
		return 0;
	(void)buf_printf(
	    ret_error, "%s:%u: %s: ", conf->routing_file, line, to->transport);
	if (to->nexthop == NULL)
		(void)buf_add_str(ret_error, "no program is named");
	else
		(void)buf_printf(ret_error, "%s has no program \"%s\"",
		    conf->programs_file, to->nexthop);
	return -EINVAL;
}

int
files_check_pipes(const struct conf *conf, struct buf *ret_error)
{
	struct route_transport known[CONF_TRANSPORTS_MAX + 1];
	struct route_table *table = NULL;
	struct programs *programs = NULL;
	struct wrong_lines wrong = { 0 };
	struct route to;
	const char *key;
	uint32_t line;
	size_t i;
	int r;

	daemon_route_transports(conf, known);
	r = route_load(conf->routing_file, known, &table, ret_error);
	if (r == -ENOENT) {
		buf_reset(ret_error);
		return 0;
	}
	if (r == 0)
		r = programs_load(conf->programs_file, &programs, ret_error);
	for (i = 0; r == 0 && (line = route_rule(table, i, &to, &key)) != 0;
	     i++)
		r = wrong_lines_go_on(&wrong, line,
		    check_pipe(conf, programs, &to, line, ret_error),
		    ret_error);
	r = wrong_lines_tell(&wrong, r, ret_error);
	programs_free(&programs);
	route_free(&table);
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

/* Absent is right. */
static int
unless_absent(int r, struct buf *ret_error)
{
	if (r != -ENOENT)
		return r;
	buf_reset(ret_error);
	return 0;
}

/* Let an error about a file name the parameter of that file. */
static int
named(const struct conf *conf, int r, struct buf *error)
{
	return r < 0 && conf_name_file(conf, error) < 0 ? -ENOMEM : r;
}

/* todo-proc and queue-send read the file, each as its user. */
static int
check_readers(const struct conf *conf, const struct files_row *row,
    const struct daemon_users *users, struct buf *ret_error)
{
	const char *path = *files_path(conf, row);
	int r = check_readable(
	    path, users->qmailq, conf->qmailq_user, users, ret_error);

	return r < 0 ? r
		     : check_readable(path, users->qmails, conf->qmails_user,
			   users, ret_error);
}

int
files_judge(const struct conf *conf, bool private,
    const struct daemon_users *users, struct buf *ret_error)
{
	const struct files_row *row;
	int r = 0;

	for (row = files_rows; r == 0 && row < files_rows + FILES_N; row++) {
		if (!files_are_read(conf, row, private))
			continue;
		r = row->check(conf, ret_error);
		if (r == 0 && users != NULL && row->of_queue)
			r = check_readers(conf, row, users, ret_error);
		if (row->may_be_absent)
			r = unless_absent(r, ret_error);
	}
	return r;
}

int
files_check(const struct conf *conf, const struct daemon_users *users,
    struct buf *ret_error)
{
	return named(conf, files_judge(conf, users->private, users, ret_error),
	    ret_error);
}

/* Adds the complaints about a file of senders. */
static int
judge_map(const struct conf *conf, const char *path,
    const struct sender_kind *kind, int before, struct buf *ret_errors)
{
	struct buf more = { 0 };
	int r = 0;

	if (*path != '\0')
		r = named(conf, sender_map_judge(path, kind, &more), &more);
	if (r < 0 &&
	    buf_printf(ret_errors, "%s%s", ret_errors->len > 0 ? "\n" : "",
		buf_str(&more)) < 0)
		r = -ENOMEM;
	buf_done(&more);
	return before < 0 ? before : r == -ENOENT ? -EINVAL : r;
}

int
files_check_lines(const struct conf *conf, struct buf *ret_errors)
{
	struct route_transport known[CONF_TRANSPORTS_MAX + 1];
	int r;

	daemon_route_transports(conf, known);
	r = unless_absent(
	    route_judge(conf->routing_file, known, ret_errors), ret_errors);
	r = named(conf, r, ret_errors);
	r = judge_map(conf, conf->sender_dependent_relayhost,
	    &sender_relay_kind, r, ret_errors);
	return judge_map(
	    conf, conf->sender_rewrite, &sender_rewrite_kind, r, ret_errors);
}

/* Adds the complaints about the file of aliases; one that cannot be read is for
 * files_check(). */
int
files_alias_complaints(const struct conf *conf, bool private, struct buf *out)
{
	struct alias_table *table = NULL;
	struct buf error = { 0 };
	int r = 0;

	if (files_have_aliases(conf, private) &&
	    alias_load(conf->alias_file, &table, &error) == 0 &&
	    alias_complaints(table)[0] != '\0')
		r = buf_printf(out, "%s\n", alias_complaints(table));
	alias_free(&table);
	buf_done(&error);
	return r;
}
