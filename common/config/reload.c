/* The values that a running instance keeps when its configuration is read
 * again. */
#include "config/param.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int
row_differs(const struct param *p, const struct conf *old,
    const struct conf *new, bool *ret_differs)
{
	struct buf a = { 0 }, b = { 0 };
	int r = param_format(p, old, &a);

	if (r == 0)
		r = param_format(p, new, &b);
	if (r == 0)
		*ret_differs = strcmp(buf_str(&a), buf_str(&b)) != 0;
	buf_done(&a);
	buf_done(&b);
	return r;
}

int
conf_frozen_changes(
    const struct conf *old, const struct conf *new, struct buf *out)
{
	const struct param *p;
	size_t start = out->len;
	int r = 0;

	for (p = params; r == 0 && p < params + nparams; p++) {
		bool differs = false;

		if (p->change != PARAM_RESTART)
			continue;
		r = row_differs(p, old, new, &differs);
		if (r == 0 && differs)
			r = buf_printf(
			    out, "%s%s", out->len > start ? " " : "", p->name);
	}
	return r;
}

static int
keep_value(const struct param *p, const struct conf *old, struct conf *fresh)
{
	struct buf value = { 0 }, why = { 0 };
	size_t row = (size_t)(p - params);
	int r = param_format(p, old, &value);

	if (r == 0)
		r = param_set(p, fresh, buf_str(&value), &why);
	if (r == 0)
		fresh->origins->all[row] = old->origins->all[row];
	buf_done(&value);
	buf_done(&why);
	return r;
}

/* The old list, in its order. A transport takes its values from the fresh
 * transport of its name and kind, if there is one, else it keeps them. */
static void
keep_limits(const struct conf *old, const struct conf *was,
    const struct conf_origin *was_override, struct conf *fresh)
{
	size_t size = nparams * sizeof(struct conf_origin);
	uint32_t i;

	for (i = 0; i < fresh->ntransports; i++) {
		struct conf_transport *t = &fresh->transports[i];
		int k = conf_transport_find(was, t->name);
		bool same = k >= 0 && was->transports[k].kind == t->kind;
		const struct conf_transport *from =
		    same ? &was->transports[k] : &old->transports[i];
		const struct conf_origin *origin = same
		    ? &was_override[(size_t)k * nparams]
		    : &old->origins->override[i * nparams];
		char *name = t->name;

		*t = *from;
		t->name = name;
		memcpy(&fresh->origins->override[i * nparams], origin, size);
	}
}

static int
keep_transports(
    const struct param *p, const struct conf *old, struct conf *fresh)
{
	size_t size =
	    nparams * CONF_TRANSPORTS_MAX * sizeof(struct conf_origin);
	struct conf_origin *override = malloc(size);
	struct conf was = *fresh;
	uint32_t i;
	int r = -ENOMEM;

	/* The fresh list stays until its values have been taken. */
	if (override != NULL) {
		memcpy(override, fresh->origins->override, size);
		memset(fresh->transports, 0, sizeof(fresh->transports));
		fresh->ntransports = 0;
		r = keep_value(p, old, fresh);
	}
	if (r == 0) {
		keep_limits(old, &was, override, fresh);
		for (i = 0; i < was.ntransports; i++)
			free(was.transports[i].name);
	} else {
		memcpy(fresh->transports, was.transports,
		    sizeof(fresh->transports));
		fresh->ntransports = was.ntransports;
	}
	free(override);
	return r;
}

int
conf_keep_frozen(const struct conf *old, struct conf *fresh)
{
	const struct param *p;
	int r = 0;

	for (p = params; r == 0 && p < params + nparams; p++) {
		bool differs = false;

		if (p->change != PARAM_RESTART)
			continue;
		r = row_differs(p, old, fresh, &differs);
		if (r == 0 && differs)
			r = p->type == PARAM_TRANSPORTS
			    ? keep_transports(p, old, fresh)
			    : keep_value(p, old, fresh);
	}
	return r;
}
