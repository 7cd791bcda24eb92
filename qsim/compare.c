/* qsim compare: the delays of workloads under several settings. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/option.h"
#include "base/text.h"
#include "qsim/measure.h"
#include "qsim/qsim.h"

/* A policy: settings on top of those of the scenario. */
#define SETTINGS_MAX 64
struct policy {
	const char *label, *given; /* given: of --set, or NULL */
	char *text;                /* that the settings point into */
	char number[24];
	struct conf_setting settings[SETTINGS_MAX];
	size_t n;
	bool fifo; /* no preemption, in any transport */
};

/* Two that are always there, and those of --set. */
#define POLICIES_MAX (2 + OPTIONS_SETS_MAX)
struct compare {
	const struct options *o;
	struct policy policies[POLICIES_MAX];
	uint32_t n;
	struct measure measures[POLICIES_MAX]; /* of one file */
	struct buf out;
};

/* ---- policies ---- */

static int
bad_set(const char *given, const char *why)
{
	struct buf error = { 0 };
	int code;

	(void)option_wrong(&error, "--set ", given, why);
	code = qsim_complain(EXIT_PERMANENT, buf_str(&error));
	buf_done(&error);
	return code;
}

/* "name=value,name=value" cut into settings; an exit code. */
static int
cut_settings(struct policy *p, const char *given, uint32_t number)
{
	char *next = p->text, *item, *equals;

	while ((item = next) != NULL) {
		next = strchr(item, ',');
		if (next != NULL)
			*next++ = '\0';
		equals = strchr(item, '=');
		if (equals == NULL || equals == item || equals[1] == '\0')
			return bad_set(given, ": not NAME=VALUE,...");
		*equals = '\0';
		if (p->n == SETTINGS_MAX)
			return bad_set(given, ": too many settings");
		p->settings[p->n++] = (struct conf_setting){
			.name = item,
			.value = equals + 1,
			.line = number,
		};
	}
	return 0;
}

static int
begin_policies(struct compare *c)
{
	uint32_t i;
	int code = 0;

	c->policies[c->n].label = "first come, first served";
	c->policies[c->n++].fifo = true;
	c->policies[c->n++].label = "as in the file";
	for (i = 0; code == 0 && i < c->o->nsets; i++) {
		struct policy *p = &c->policies[c->n++];

		p->given = c->o->sets[i];
		p->text = strdup(p->given);
		(void)snprintf(
		    p->number, sizeof(p->number), "--set %" PRIu32, i + 1);
		p->label = p->number;
		if (p->text == NULL)
			return qsim_complain(EXIT_TEMPORARY, strerror(ENOMEM));
		code = cut_settings(p, p->given, i + 1);
	}
	return code;
}

static void
end_policies(struct compare *c)
{
	uint32_t i;

	for (i = 0; i < c->n; i++)
		free(c->policies[i].text);
}

/* An exit code. */
static int
configure(
    const struct scenario *sc, const struct policy *p, struct conf *ret_conf)
{
	struct buf error = { 0 };
	uint32_t i;
	int code = 0;
	int r = scenario_configure(
	    sc, "--set", p->settings, p->n, ret_conf, &error);

	if (r < 0)
		code = qsim_complain(
		    r == -EINVAL ? EXIT_PERMANENT : EXIT_TEMPORARY,
		    error.len > 0 ? buf_str(&error) : strerror(-r));
	for (i = 0; r == 0 && p->fifo && i < ret_conf->ntransports; i++)
		ret_conf->transports[i].sched.delivery_slot_cost = 0;
	buf_done(&error);
	return code;
}

/* ---- the table ---- */

static int
add_head(
    const char *path, const struct scenario *sc, uint64_t seed, struct buf *out)
{
	uint64_t rcpts = 0;
	uint32_t i;
	int r = text_clean(out, path, strlen(path), PATH_MAX);

	for (i = 0; i < sc->nmessages; i++)
		rcpts += sc->messages[i].nrcpts;
	if (r < 0)
		return r;
	return buf_printf(out,
	    ": %" PRIu32 " messages, %" PRIu64 " recipients, seed %" PRIu64
	    "; delays in seconds\n\n"
	    "recipients  messages  deferred      mean    median      95 %%"
	    "      99 %%  slowdown\n",
	    sc->nmessages, rcpts, seed);
}

static int
add_part(const char *class, const struct measure_part *p, struct buf *out)
{
	int r = buf_printf(out, "%-10s  %8" PRIu32 "  %6.1f %%", class,
	    p->messages, 100 * (double)p->deferred / (double)p->rcpts);

	if (r < 0)
		return r;
	if (p->ndelays == 0)
		return buf_printf(out, "  %8s  %8s  %8s  %8s  %8s\n", "-", "-",
		    "-", "-", "-");
	r = buf_printf(out, "  %8.2f  %8.2f  %8.2f  %8.2f", measure_mean(p),
	    measure_percentile(p, 50), measure_percentile(p, 95),
	    measure_percentile(p, 99));
	if (r < 0)
		return r;
	return p->nwhole == 0 ? buf_printf(out, "  %8s\n", "-")
			      : buf_printf(out, "  %8.2f\n", p->slowdown);
}

static int
add_measure(const struct policy *p, const struct measure *m, struct buf *out)
{
	char time[QSIM_TIME_MAX];
	int i,
	    r = buf_printf(out, "%s%s%s; all done after %s s\n", p->label,
		p->given == NULL ? "" : ": ", p->given == NULL ? "" : p->given,
		qsim_time(m->end, time));

	for (i = 0; r == 0 && i < MEASURE_CLASSES; i++)
		if (m->parts[i].messages > 0)
			r = add_part(
			    measure_classes[i].name, &m->parts[i], out);
	return r;
}

static int
add_plot(const struct compare *c, int class, struct buf *out)
{
	struct plot_axis axis = { 0 };
	const struct measure_part *p;
	uint32_t i;
	int r = 0;

	for (i = 0; i < c->n; i++) {
		p = &c->measures[i].parts[class];
		plot_axis_add(&axis, p->delays, p->ndelays);
	}
	if (axis.low == 0)
		return 0;
	r = buf_printf(out, "\ndelays of messages with %s recipients\n",
	    measure_classes[class].name);
	for (i = 0; r == 0 && i < c->n; i++) {
		p = &c->measures[i].parts[class];
		r = plot_add_bars(
		    &axis, c->policies[i].label, p->delays, p->ndelays, out);
	}
	return r < 0 ? r : plot_add_axis(&axis, out);
}

static int
print_file(struct compare *c, const char *path, const struct scenario *sc,
    uint64_t seed)
{
	uint32_t i;
	int class, r;

	buf_reset(&c->out);
	r = add_head(path, sc, seed, &c->out);
	for (i = 0; r == 0 && i < c->n; i++)
		r = add_measure(&c->policies[i], &c->measures[i], &c->out);
	for (class = 0; r == 0 && c->o->plot && class < MEASURE_CLASSES;
	     class ++)
		r = add_plot(c, class, &c->out);
	return r < 0 ? r : qsim_print(&c->out);
}

/* ---- files ---- */

static int
measure(struct compare *c, const struct scenario *sc, uint32_t i, uint64_t seed)
{
	struct progress progress;
	const struct simulate_watch watch = {
		.progress = progress_tell,
		.progress_ctx = &progress,
	};
	struct conf conf;
	int r, code = configure(sc, &c->policies[i], &conf);

	if (code != 0)
		return code;
	progress_begin(&progress, c->o, "compare", "recipients");
	r = measure_run(sc, &conf, seed, &watch, &c->measures[i]);
	progress_end(&progress);
	conf_done(&conf);
	return r < 0 ? qsim_ended(r) : 0;
}

static int
compare_file(struct compare *c, const char *path)
{
	struct scenario sc;
	uint64_t seed;
	uint32_t i;
	int code = qsim_read(path, &sc);

	if (code != 0)
		return code;
	seed = c->o->seed_given ? c->o->seed : sc.seed;
	for (i = 0; code == 0 && i < c->n; i++)
		code = measure(c, &sc, i, seed);
	if (code == 0)
		code = qsim_ended(print_file(c, path, &sc, seed));
	for (i = 0; i < c->n; i++)
		measure_done(&c->measures[i]);
	scenario_done(&sc);
	return code;
}

int
compare_main(const struct options *o)
{
	struct compare *c = calloc(1, sizeof(*c));
	uint32_t i;
	int code;

	if (c == NULL)
		return qsim_complain(EXIT_TEMPORARY, strerror(ENOMEM));
	c->o = o;
	code = begin_policies(c);
	for (i = 0; code == 0 && i < o->nfiles; i++) {
		if (i > 0)
			(void)putchar('\n');
		code = compare_file(c, o->files[i]);
	}
	end_policies(c);
	buf_done(&c->out);
	free(c);
	return code;
}
