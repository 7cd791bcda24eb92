/* The life of a configuration. */
#include "config/param.h"

#include <errno.h>
#include <stdlib.h>

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
