/* The instance that a tool uses. */
#include "config/param.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static int
put(struct buf *ret_instance, const char *name)
{
	buf_reset(ret_instance);
	return buf_add_str(ret_instance, name);
}

int
param_check(
    const char *name, const char *value, struct buf *ret_text, struct buf *why)
{
	const struct param *p = param_find(name);
	struct conf conf = { 0 };
	int r = param_set(p, &conf, value, why);

	if (r == 0) {
		buf_reset(ret_text);
		r = param_format(p, &conf, ret_text);
	}
	param_free(p, &conf);
	return r;
}

static int
take(const char *where, const char *value, struct buf *ret_instance,
    struct buf *error)
{
	struct buf why = { 0 };
	int r = param_check("instance", value, ret_instance, &why);

	if (r == -EINVAL &&
	    (buf_printf(error, "%s ", where) < 0 ||
		text_quote(error, value) < 0 ||
		buf_printf(error, ": %s", buf_str(&why)) < 0))
		r = -ENOMEM;
	buf_done(&why);
	return r;
}

int
conf_instance(const char *given, const char *path, struct buf *ret_instance,
    struct buf *ret_error)
{
	const char *env = param_find("instance")->env;
	struct conf conf;
	int r, wrong;

	if (given != NULL)
		return take("-i", given, ret_instance, ret_error);
	if (path == NULL && getenv(env) != NULL)
		return take(env, getenv(env), ret_instance, ret_error);
	wrong = conf_load_in_force(path, &conf, ret_error);
	if (wrong < 0)
		return wrong;
	r = put(ret_instance, conf.instance);
	conf_done(&conf);
	return r < 0 ? r : wrong;
}

int
conf_instance_base(const char *path, const char *instance, struct buf *ret_base)
{
	struct buf error = { 0 };
	struct conf conf;
	int r = conf_load_in_force(path, &conf, &error);

	buf_reset(ret_base);
	buf_done(&error);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = strcmp(conf.instance, instance) == 0
	    ? buf_add_str(ret_base, conf.queue_base)
	    : 0;
	conf_done(&conf);
	return r;
}
