/* The table as text: --dump, the sample file, the list of the manual page. */
#include "config/param.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int
flushed(FILE *out)
{
	return fflush(out) != 0 || ferror(out) ? -EIO : 0;
}

static void
print_origin(const struct conf_origins *o, const struct param *p,
    struct conf_origin from, FILE *out)
{
	switch (from.source) {
	case CONF_FROM_DEFAULT:
		fputs("default", out);
		break;
	case CONF_FROM_CONTROL:
		fprintf(out, "control file %s", o->control);
		break;
	case CONF_FROM_FILE:
		fprintf(out, "file %s:%u", o->file, from.line);
		break;
	case CONF_FROM_ENV:
		fprintf(out, "environment %s", p->env);
		break;
	}
}

static int
dump_row(const struct conf *conf, const struct param *p, FILE *out)
{
	const struct conf_origins *o = conf->origins;
	const void *base =
	    p->per_transport ? (const void *)&o->inherited : conf;
	struct buf value = { 0 };
	int r = param_format(p, base, &value);

	if (r == 0) {
		fprintf(out, "%s = %s  # ", p->name, buf_str(&value));
		print_origin(o, p, o->all[p - params], out);
		fputc('\n', out);
	}
	buf_done(&value);
	return r;
}

/* Shown if it differs from the value for all transports, or was set. */
static int
dump_override(
    const struct conf *conf, const struct param *p, uint32_t i, FILE *out)
{
	const struct conf_origins *o = conf->origins;
	struct conf_origin from =
	    o->override[i * nparams + (size_t)(p - params)];
	struct buf all = { 0 }, one = { 0 };
	int r = param_format(p, &o->inherited, &all);

	if (r == 0)
		r = param_format(p, &conf->transports[i], &one);
	if (r == 0 &&
	    (from.source != CONF_FROM_DEFAULT ||
		strcmp(buf_str(&all), buf_str(&one)) != 0)) {
		fprintf(out, "%s_%s = %s  # ", conf->transports[i].name,
		    param_suffix(p), buf_str(&one));
		print_origin(o, p, from, out);
		fputc('\n', out);
	}
	buf_done(&all);
	buf_done(&one);
	return r;
}

int
conf_dump(const struct conf *conf, FILE *out)
{
	const struct param *p;
	uint32_t i;
	int r = 0;

	for (p = params; r == 0 && p < params + nparams; p++)
		if (p->type != PARAM_SECTION)
			r = dump_row(conf, p, out);
	for (i = 0; i < conf->ntransports; i++)
		for (p = params; r == 0 && p < params + nparams; p++)
			if (p->per_transport)
				r = dump_override(conf, p, i, out);
	return r < 0 ? r : flushed(out);
}

/* Words of at most 72 columns a line behind `# `. */
static void
print_folded(const char *text, FILE *out)
{
	size_t column = 0;

	while (*text != '\0') {
		size_t len = strcspn(text, " ");

		if (column > 0 && column + 1 + len > 72) {
			fputc('\n', out);
			column = 0;
		}
		column += (size_t)fprintf(
		    out, "%s%.*s", column == 0 ? "# " : " ", (int)len, text);
		text += len + (text[len] == ' ');
	}
	fputc('\n', out);
}

int
conf_sample(FILE *out)
{
	const struct param *p;

	fputs("# Configuration of qscheduler, see qscheduler.conf(5). Every "
	      "line shows a default.\n",
	    out);
	for (p = params; p < params + nparams; p++) {
		if (p->type == PARAM_SECTION) {
			fprintf(out, "\n# ---- %s ----\n", p->help);
			continue;
		}
		fputc('\n', out);
		print_folded(p->help, out);
		if (p->env != NULL)
			fprintf(out, "# Environment: %s.\n", p->env);
		if (p->fallback_local != NULL)
			fprintf(out, "# %s for transports of kind local.\n",
			    p->fallback_local);
		fprintf(out, "#%s =%s%s\n", p->name,
		    *p->fallback == '\0' ? "" : " ", p->fallback);
	}
	return flushed(out);
}

/* Text of a macro line: backslashes are escaped, and no punctuation is taken
 * for a delimiter. */
static void
print_mdoc_arg(const char *text, FILE *out)
{
	fputc('"', out);
	for (; *text != '\0'; text++) {
		if (*text == '"')
			fputc('"', out);
		fputs(*text == '\\' ? "\\e" : (char[]){ *text, '\0' }, out);
	}
	fputc('"', out);
}

/* A sentence a line, as man macros expect. */
static void
print_mdoc_text(const char *text, FILE *out)
{
	for (; *text != '\0'; text++) {
		bool ends = text[0] == '.' && text[1] == ' ';

		fputs(ends ? ".\n" : (char[]){ *text, '\0' }, out);
		text += ends;
	}
	fputc('\n', out);
}

static void
print_mdoc_row(const struct param *p, FILE *out)
{
	fprintf(out, ".It Sy %s Pq %s\n", p->name, param_type_word(p->type));
	print_mdoc_text(p->help, out);
	fprintf(out, ".br\nDefault: %s",
	    *p->fallback == '\0' ? "empty" : p->fallback);
	if (p->fallback_local != NULL)
		fprintf(out, "; %s for transports of kind local",
		    p->fallback_local);
	fputs(".\n", out);
	if (p->type <= PARAM_DECIMAL)
		fprintf(out, "Range: %s to %s.\n", p->min, p->max);
	if (p->env != NULL)
		fprintf(out, "Environment:\n.Ev %s .\n", p->env);
	if (p->change == PARAM_RESTART)
		fputs("A change needs a restart.\n", out);
	if (p->per_transport)
		fprintf(out, "For one:\n.Ar TRANSPORT Ns Sy _%s .\n",
		    param_suffix(p));
}

int
conf_manual(FILE *out)
{
	const struct param *p;
	bool open = false;

	for (p = params; p < params + nparams; p++) {
		if (p->type != PARAM_SECTION) {
			print_mdoc_row(p, out);
			continue;
		}
		if (open)
			fputs(".El\n", out);
		fputs(".Ss ", out);
		print_mdoc_arg(p->help, out);
		fputs("\n.Bl -tag -width Ds\n", out);
		open = true;
	}
	if (open)
		fputs(".El\n", out);
	return flushed(out);
}
