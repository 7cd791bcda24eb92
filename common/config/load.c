/* The reader: defaults, control file, file, environment, in this order; a later
 * source overrides an earlier one. */
#include "config/param.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/line.h"
#include "base/wrong_lines.h"

/* One line of the file. */
struct setting {
	const char *name, *value; /* in the text of the file */
	uint32_t line;
	const struct param *param;
	int transport; /* transport that it overrides; -1 */
};

struct reading {
	struct conf conf;
	struct buf text; /* of the file */
	struct setting *settings;
	size_t nsettings, cap;
	struct buf *error;
	/* Of conf_judge(), which goes on behind a wrong line; else NULL. */
	struct wrong_lines *wrong;
	bool no_list; /* of transports: that line is wrong */
};

static int
go_on(struct reading *rd, uint32_t line, int r)
{
	return wrong_lines_go_on(rd->wrong, line, r, rd->error);
}

static int
set_value(struct reading *rd, const struct param *p, int transport,
    const char *value, struct conf_origin from)
{
	struct conf *conf = &rd->conf;
	size_t row = (size_t)(p - params);
	struct buf why = { 0 };
	void *base = conf;
	int r;

	if (transport >= 0) {
		conf->origins->override[(size_t)transport * nparams + row] =
		    from;
		base = &conf->transports[transport];
	} else {
		conf->origins->all[row] = from;
		if (p->per_transport)
			base = &conf->origins->inherited;
	}
	r = param_set(p, base, value, &why);
	if (r == -EINVAL &&
	    (conf_add_origin(conf, p, transport, rd->error) < 0 ||
		buf_add_str(rd->error, buf_str(&why)) < 0))
		r = -ENOMEM;
	buf_done(&why);
	return r;
}

static int
set_defaults(struct reading *rd)
{
	const struct conf_origin from = { .source = CONF_FROM_DEFAULT };
	const struct param *p;
	int r;

	for (p = params; p < params + nparams; p++) {
		if (p->type == PARAM_SECTION)
			continue;
		r = set_value(rd, p, -1, p->fallback, from);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool
has_setting(const struct reading *rd, const char *name)
{
	size_t i;

	for (i = 0; i < rd->nsettings; i++)
		if (strcmp(rd->settings[i].name, name) == 0)
			return true;
	return false;
}

/* The control file queue_base beside the configuration file. It is not opened
 * when the configuration sets queue_base, so that a configuration in memory can
 * be read while the disk does not answer. */
static int
read_control(struct reading *rd)
{
	const struct conf_origin from = { .source = CONF_FROM_CONTROL };
	struct buf value = { 0 };
	int r = control_read(rd->conf.origins->control, &value, rd->error);

	if (r > 0)
		r = set_value(
		    rd, param_find("queue_base"), -1, buf_str(&value), from);
	buf_done(&value);
	return r;
}

static int
add_setting(
    struct reading *rd, const char *name, const char *value, uint32_t line)
{
	struct setting *more =
	    array_room(rd->settings, rd->nsettings, &rd->cap, sizeof(*more));

	if (more == NULL)
		return -ENOMEM;
	rd->settings = more;
	rd->settings[rd->nsettings++] = (struct setting){
		.name = name,
		.value = value,
		.line = line,
		.transport = -1,
	};
	return 0;
}

static int
read_line(struct reading *rd, char *line, uint32_t number)
{
	const char *path = rd->conf.origins->file;
	char *equals;

	line_uncomment(line);
	line = line_trim(line);
	if (*line == '\0')
		return 0;
	equals = strchr(line, '=');
	if (equals == NULL)
		return conf_fail(rd->error, path, number, "not `name = value`");
	*equals = '\0';
	return add_setting(rd, line_trim(line), line_trim(equals + 1), number);
}

static int
read_file(struct reading *rd, bool may_be_absent)
{
	const char *path = rd->conf.origins->file, *text_why = NULL;
	struct line_cursor cursor;
	struct buf why = { 0 };
	char *line;
	int r = file_read(path, CONF_FILE_MAX, &rd->text, &why);

	if (r < 0 && may_be_absent && (r == -ENOENT || r == -ENOTDIR)) {
		buf_done(&why);
		return 0;
	}
	if (r < 0)
		conf_fail(rd->error, path, 0, buf_str(&why));
	buf_done(&why);
	if (r < 0)
		return r;
	line_begin(&cursor, &rd->text, CONF_LINE_MAX);
	while ((r = line_next(&cursor, &line, &text_why)) != 0) {
		r = r < 0 ? conf_fail(rd->error, path, cursor.number, text_why)
			  : read_line(rd, line, cursor.number);
		r = go_on(rd, cursor.number, r);
		if (r < 0)
			return r;
	}
	return 0;
}

static int fail_setting(struct reading *rd, const struct setting *s,
    const char *fmt, ...) PRINTF(3, 4);
static int
fail_setting(struct reading *rd, const struct setting *s, const char *fmt, ...)
{
	va_list ap;
	int r = buf_printf(
	    rd->error, "%s:%u: %s: ", rd->conf.origins->file, s->line, s->name);

	if (r < 0)
		return r;
	va_start(ap, fmt);
	r = buf_vprintf(rd->error, fmt, ap);
	va_end(ap);
	return r < 0 ? r : -EINVAL;
}

static int
fail_unknown(struct reading *rd, const struct setting *s)
{
	const char *ours = param_of_postfix(s->name);

	return fail_setting(rd, s, "unknown parameter; %s%s",
	    ours == NULL ? "correct or remove the line" : "see ",
	    ours == NULL ? "" : ours);
}

/* The transport of a name TRANSPORT_X. Nothing is said of it where the list of
 * transports is wrong. */
static int
resolve_override(struct reading *rd, struct setting *s)
{
	const struct conf *conf = &rd->conf;
	size_t len = 0;
	uint32_t i;

	s->param = param_find_override(s->name, &len);
	if (s->param == NULL)
		return fail_unknown(rd, s);
	for (i = 0; i < conf->ntransports; i++)
		if (strlen(conf->transports[i].name) == len &&
		    memcmp(conf->transports[i].name, s->name, len) == 0)
			s->transport = (int)i;
	if (s->transport < 0 && rd->no_list)
		s->param = NULL;
	else if (s->transport < 0)
		return fail_setting(
		    rd, s, "there is no transport \"%.*s\"", (int)len, s->name);
	return 0;
}

/* The parameter that a line sets; a name stands in one line only. */
static int
resolve_setting(struct reading *rd, struct setting *s)
{
	struct conf_origins *o = rd->conf.origins;
	struct conf_origin *from;
	int r;

	s->param = param_find(s->name);
	if (s->param == NULL) {
		r = resolve_override(rd, s);
		if (r < 0 || s->param == NULL)
			return r;
	}
	from = s->transport < 0 ? o->all
				: &o->override[(size_t)s->transport * nparams];
	from += s->param - params;
	if (from->source == CONF_FROM_FILE && from->line != s->line)
		return fail_setting(
		    rd, s, "already set in line %u", from->line);
	*from = (struct conf_origin){ CONF_FROM_FILE, s->line };
	return 0;
}

/* Wrong lines have no parameter afterwards. */
static int
resolve_settings(struct reading *rd)
{
	struct setting *s;
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < rd->nsettings; i++) {
		s = &rd->settings[i];
		r = resolve_setting(rd, s);
		if (r < 0)
			s->param = NULL;
		r = go_on(rd, s->line, r);
	}
	return r;
}

static int
apply_setting(struct reading *rd, const struct setting *s)
{
	return set_value(rd, s->param, s->transport, s->value,
	    (struct conf_origin){ CONF_FROM_FILE, s->line });
}

/* The list of transports first: other names depend on it. */
static int
apply_transports(struct reading *rd)
{
	struct setting *s;
	size_t i;
	int r;

	for (i = 0; i < rd->nsettings; i++) {
		s = &rd->settings[i];
		if (strcmp(s->name, "transports") == 0) {
			s->param = param_find(s->name);
			r = apply_setting(rd, s);
			rd->no_list = r < 0;
			return go_on(rd, s->line, r);
		}
	}
	return 0;
}

static int
apply_settings(struct reading *rd, bool overrides)
{
	struct setting *s;
	size_t i;
	int r;

	for (i = 0; i < rd->nsettings; i++) {
		s = &rd->settings[i];
		if (s->param == NULL || (s->transport >= 0) != overrides ||
		    s->param->type == PARAM_TRANSPORTS)
			continue;
		r = go_on(rd, s->line, apply_setting(rd, s));
		if (r < 0)
			return r;
	}
	return 0;
}

static int
apply_environment(struct reading *rd)
{
	const struct conf_origin from = { .source = CONF_FROM_ENV };
	const struct param *p;
	int r;

	for (p = params; p < params + nparams; p++) {
		const char *value = p->env == NULL ? NULL : getenv(p->env);

		if (value == NULL)
			continue;
		r = set_value(rd, p, -1, value, from);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Every transport starts with the values for all; the default of kinds local
 * and alias in the table overrides these. */
static int
inherit(struct reading *rd)
{
	const struct conf_origin from = { .source = CONF_FROM_DEFAULT };
	struct conf *conf = &rd->conf;
	const struct param *p;
	uint32_t i;
	int r;

	for (i = 0; i < conf->ntransports; i++) {
		struct conf_transport *t = &conf->transports[i];
		struct conf_transport fresh = conf->origins->inherited;

		fresh.name = t->name;
		fresh.kind = t->kind;
		*t = fresh;
		for (p = params; p < params + nparams; p++) {
			if (p->fallback_local == NULL ||
			    (t->kind != AGENT_LOCAL && t->kind != AGENT_ALIAS))
				continue;
			r = set_value(rd, p, (int)i, p->fallback_local, from);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int
begin(struct reading *rd, const char *path)
{
	struct conf_origins *o = calloc(1, sizeof(*o));
	struct buf control = { 0 };
	char *copy = strdup(path);
	int r = -ENOMEM;

	rd->conf.origins = o;
	if (o == NULL || copy == NULL ||
	    buf_printf(&control, "%s/queue_base", dirname(copy)) < 0)
		goto out;
	o->file = strdup(path);
	o->control = strdup(buf_str(&control));
	o->all = calloc(nparams, sizeof(*o->all));
	o->override =
	    calloc(nparams * CONF_TRANSPORTS_MAX, sizeof(*o->override));
	if (o->file != NULL && o->control != NULL && o->all != NULL &&
	    o->override != NULL)
		r = 0;
out:
	buf_done(&control);
	free(copy);
	return r;
}

/* The configuration from the settings that were read. Values are compared when
 * each of them is right. */
static int
apply(struct reading *rd, bool environment)
{
	int r = apply_transports(rd);

	if (r == 0)
		r = resolve_settings(rd);
	if (r == 0)
		r = apply_settings(rd, false);
	if (r == 0 && environment)
		r = apply_environment(rd);
	if (r == 0)
		r = inherit(rd);
	if (r == 0)
		r = apply_settings(rd, true);
	if (r == 0 && (rd->wrong == NULL || rd->wrong->n == 0))
		r = conf_check(&rd->conf, rd->error);
	return r;
}

static int
load(struct reading *rd, const char *path, bool may_be_absent)
{
	int r = begin(rd, path);

	if (r == 0)
		r = set_defaults(rd);
	if (r == 0)
		r = read_file(rd, may_be_absent);
	if (r == 0 && !has_setting(rd, "queue_base"))
		r = read_control(rd);
	if (r == 0)
		r = apply(rd, true);
	return r;
}

static int
finish(struct reading *rd, const char *path, int r, struct conf *ret_conf)
{
	if (r == -ENOMEM && rd->error->len == 0)
		(void)conf_fail(rd->error, path, 0, strerror(ENOMEM));
	buf_done(&rd->text);
	free(rd->settings);
	if (r < 0)
		conf_done(&rd->conf);
	else
		*ret_conf = rd->conf;
	return r;
}

static int
load_path(struct reading *rd, const char *path, struct conf *ret_conf)
{
	bool may_be_absent = false;
	int r;

	if (path == NULL)
		path = getenv("QSCHED_CONF");
	if (path == NULL) {
		path = CONF_DEFAULT_FILE;
		may_be_absent = true;
	}
	if (*path == '\0')
		return conf_fail(
		    rd->error, "QSCHED_CONF", 0, "must not be empty");
	r = load(rd, path, may_be_absent);
	r = wrong_lines_tell(rd->wrong, r, rd->error);
	return finish(rd, path, r, ret_conf);
}

int
conf_load(const char *path, struct conf *ret_conf, struct buf *ret_error)
{
	struct reading rd = { .error = ret_error };

	return load_path(&rd, path, ret_conf);
}

int
conf_judge(const char *path, struct conf *ret_conf, struct buf *ret_errors)
{
	struct wrong_lines wrong = { 0 };
	struct reading rd = { .error = ret_errors, .wrong = &wrong };

	return load_path(&rd, path, ret_conf);
}

int
conf_from_settings(const char *path, const struct conf_setting *settings,
    size_t count, struct conf *ret_conf, struct buf *ret_error)
{
	struct reading rd = { .error = ret_error };
	int r = begin(&rd, path);
	size_t i;

	if (r == 0)
		r = set_defaults(&rd);
	for (i = 0; r == 0 && i < count; i++)
		r = add_setting(
		    &rd, settings[i].name, settings[i].value, settings[i].line);
	if (r == 0)
		r = apply(&rd, false);
	return finish(&rd, path, r, ret_conf);
}
