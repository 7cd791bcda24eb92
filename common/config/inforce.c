/* The configuration in force, which is used when the operator's file is wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/line.h"
#include "config/param.h"

/* ---- where QUEUE_BASE is ---- */

/* A value that the parameter queue_base may have; *ret_base is replaced. */
static bool
take_base(const char *value, struct buf *ret_base)
{
	struct buf why = { 0 };
	const bool good = param_check("queue_base", value, ret_base, &why) == 0;

	buf_done(&why);
	return good;
}

/* 1: the line sets queue_base to *ret_value, in place; 0: the line sets another
 * parameter; -EINVAL: the line is wrong and may be meant to set queue_base, as
 * `queue_bse = /srv/queue` is: a path behind no known name. */
static int
read_line(char *line, const char **ret_value)
{
	const char *name;
	bool is_path;
	char *equals;

	line_uncomment(line);
	is_path = strchr(line, '/') != NULL ||
	    strncmp(line_trim(line), "queue_base", 10) == 0;
	equals = strchr(line, '=');
	if (equals == NULL)
		return is_path ? -EINVAL : 0;
	*equals = '\0';
	name = line_trim(line);
	if (strcmp(name, "queue_base") == 0) {
		*ret_value = line_trim(equals + 1);
		return 1;
	}
	return is_path && param_find(name) == NULL ? -EINVAL : 0;
}

/* 1: exactly one line sets queue_base, and the value is right; 0: no line does;
 * -EINVAL: the text leaves open which base is meant. */
static int
find_base(struct buf *text, struct buf *ret_base)
{
	struct line_cursor cursor;
	const char *why, *value, *found = NULL;
	bool doubtful = false;
	char *line;
	int r;

	line_begin(&cursor, text, CONF_LINE_MAX);
	while ((r = line_next(&cursor, &line, &why)) != 0) {
		if (r > 0)
			r = read_line(line, &value);
		if (r > 0 && found != NULL)
			return -EINVAL;
		if (r > 0)
			found = value;
		doubtful = doubtful || r < 0;
	}
	if (found == NULL)
		return doubtful ? -EINVAL : 0;
	return take_base(found, ret_base) ? 1 : -EINVAL;
}

/* 1: the file sets queue_base; 0: the file could be read and does not; -EINVAL,
 * as find_base(); -errno. */
static int
base_of_file(const char *path, struct buf *base)
{
	struct buf text = { 0 }, why = { 0 };
	int r = file_read(path, CONF_FILE_MAX, &text, &why);

	if (r == 0)
		r = find_base(&text, base);
	buf_done(&text);
	buf_done(&why);
	return r;
}

static int
base_of_control(const char *path, struct buf *base)
{
	struct buf control = { 0 }, value = { 0 }, why = { 0 };
	char *copy = strdup(path);
	int r = copy == NULL
	    ? -ENOMEM
	    : buf_printf(&control, "%s/queue_base", dirname(copy));

	if (r == 0)
		r = control_read(buf_str(&control), &value, &why);
	if (r > 0 && !take_base(buf_str(&value), base))
		r = -EINVAL;
	buf_done(&control);
	buf_done(&value);
	buf_done(&why);
	free(copy);
	return r;
}

/* The sources have the order of conf_load(). A source that is wrong, or that
 * this user may not read, does not pass the choice on to the next source: mail
 * would lie in a base that no supervisor serves. A named file that is absent
 * does not mean the default instance: the name may be mistyped. */
static int
locate_base(const char *path, struct buf *base)
{
	const struct param *p = param_find("queue_base");
	const char *env = getenv(p->env);
	int r;

	if (env != NULL)
		return take_base(env, base) ? 0 : -EINVAL;
	r = base_of_file(path, base);
	if (r == 0 || (r == -ENOENT && strcmp(path, CONF_DEFAULT_FILE) == 0))
		r = base_of_control(path, base);
	if (r != 0)
		return r < 0 ? r : 0;
	return take_base(p->fallback, base) ? 0 : -ENOMEM;
}

/* ---- the file QUEUE_BASE/conf ---- */

/* Owned by root or by this user, and writable by no other. */
static int
check_owner(const char *path, mode_t kind)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return -errno;
	if ((st.st_mode & S_IFMT) != kind)
		return -EINVAL;
	if ((st.st_uid != 0 && st.st_uid != geteuid()) ||
	    (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return -EPERM;
	return 0;
}

/* False of a copy of another QUEUE_BASE: its conf names the original. */
static int
load_from(const char *base, struct conf *ret_conf, struct buf *why)
{
	struct buf path = { 0 };
	struct conf conf;
	int r = check_owner(base, S_IFDIR);

	if (r == 0)
		r = buf_printf(&path, "%s/" CONF_IN_FORCE_NAME, base);
	if (r == 0)
		r = check_owner(buf_str(&path), S_IFREG);
	if (r == 0)
		r = conf_load(buf_str(&path), &conf, why);
	buf_done(&path);
	if (r < 0)
		return r;
	if (strcmp(conf.queue_base, base) != 0) {
		conf_done(&conf);
		return -EXDEV;
	}
	*ret_conf = conf;
	return 0;
}

int
conf_load_last(const char *path, struct conf *ret_conf)
{
	struct buf base = { 0 }, why = { 0 };
	int r;

	if (path == NULL)
		path = getenv("QSCHED_CONF");
	if (path == NULL)
		path = CONF_DEFAULT_FILE;
	r = locate_base(path, &base);
	if (r == 0)
		r = load_from(buf_str(&base), ret_conf, &why);
	buf_done(&base);
	buf_done(&why);
	return r;
}

int
conf_load_in_force(
    const char *path, struct conf *ret_conf, struct buf *ret_error)
{
	int r = conf_load(path, ret_conf, ret_error);

	if (r < 0 && r != -ENOMEM && conf_load_last(path, ret_conf) == 0)
		return 1;
	return r;
}

/* ---- of a directory ---- */

static bool
is_own(const struct conf *conf, const char *base)
{
	struct stat named, here;

	return stat(conf->queue_base, &named) == 0 && stat(base, &here) == 0 &&
	    named.st_dev == here.st_dev && named.st_ino == here.st_ino;
}

int
conf_load_base(const char *base, struct conf *ret_conf)
{
	struct buf path = { 0 }, why = { 0 };
	int r = buf_printf(&path, "%s/" CONF_IN_FORCE_NAME, base);

	if (r == 0)
		r = conf_load(buf_str(&path), ret_conf, &why);
	if (r == 0 && !is_own(ret_conf, base)) {
		r = -EXDEV;
		conf_done(ret_conf);
	}
	buf_done(&path);
	buf_done(&why);
	return r;
}
