/* The life of a configuration. */
#include "config/param.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void
conf_done(struct conf *conf)
{
	struct conf_origins *o = conf->origins;
	const struct param *p;
	uint32_t i;

	for (p = params; p < params + nparams; p++)
		if (!p->per_transport)
			param_free(p, conf);
	for (i = 0; i < conf->ntransports; i++)
		free(conf->transports[i].name);
	if (o != NULL) {
		free(o->file);
		free(o->control);
		free(o->all);
		free(o->override);
		free(o);
	}
	*conf = (struct conf){ 0 };
}

void
conf_free(struct conf **conf)
{
	if (*conf != NULL)
		conf_done(*conf);
	free(*conf);
	*conf = NULL;
}

const char *
conf_path(const struct conf *conf)
{
	return conf->origins->file;
}

int
conf_add_origin(const struct conf *conf, const struct param *p, int transport,
    struct buf *out)
{
	const struct conf_origins *o = conf->origins;
	size_t row = (size_t)(p - params);
	struct conf_origin from = transport < 0
	    ? o->all[row]
	    : o->override[(size_t)transport * nparams + row];
	int r = 0;

	if (from.source == CONF_FROM_ENV)
		return buf_printf(out, "environment %s: ", p->env);
	if (from.source == CONF_FROM_FILE &&
	    conf_fail(out, o->file, from.line, "") == -ENOMEM)
		r = -ENOMEM;
	if (from.source == CONF_FROM_CONTROL &&
	    conf_fail(out, o->control, 0, "") == -ENOMEM)
		r = -ENOMEM;
	if (r < 0)
		return r;
	if (transport < 0)
		return buf_printf(out, "%s: ", p->name);
	return buf_printf(
	    out, "%s_%s: ", conf->transports[transport].name, param_suffix(p));
}

/* The parameter whose path the text begins with, or NULL. *ret_why is the part
 * of the text behind the path and ": ". */
static const struct param *
param_of_path(const struct conf *conf, const char *text, const char **ret_why)
{
	const struct param *p;
	const char *path;
	size_t len;

	for (p = params; p < params + nparams; p++) {
		if (p->type != PARAM_PATH && p->type != PARAM_DIR)
			continue;
		path = *(char *const *)(const void *)((const char *)conf +
		    p->offset);
		len = strlen(path);
		if (len > 0 && strncmp(text, path, len) == 0 &&
		    strncmp(text + len, ": ", 2) == 0) {
			*ret_why = text + len + 2;
			return p;
		}
	}
	return NULL;
}

int
conf_name_file(const struct conf *conf, struct buf *error)
{
	const char *text = buf_str(error), *why = "";
	const struct param *p = param_of_path(conf, text, &why);
	struct buf named = { 0 };
	int r;

	if (p == NULL)
		return 0;
	r = conf_add_origin(conf, p, -1, &named);
	if (r == 0)
		r = buf_add_str(&named, text);
	if (r == 0 && strcmp(why, strerror(ENOENT)) == 0)
		r = buf_add_str(&named,
		    "; create the file (it may be empty) or remove the "
		    "parameter");
	if (r == 0) {
		buf_done(error);
		*error = named;
	} else {
		buf_done(&named);
	}
	return r;
}
