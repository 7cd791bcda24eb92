/* The life of a configuration. */
#include "config/param.h"

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
