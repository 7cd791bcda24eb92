/* set PARAMETER VALUE, agents TRANSPORT N: settings as a configuration file
 * has them, and the configuration that they make. */
#include "qsim/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/line.h"
#include "base/array.h"

/* A later one takes the place of an earlier one. */
static int
add_setting(
    struct reader *rd, const char *name, const char *value, uint32_t line)
{
	struct scenario *sc = &rd->sc;
	struct scenario_setting *rows, *s;
	char *copy = strdup(value);
	uint32_t i;

	if (copy == NULL)
		return -ENOMEM;
	for (i = 0; i < sc->nsettings; i++) {
		s = &sc->settings[i];
		if (strcmp(s->name, name) == 0) {
			free(s->value);
			s->value = copy;
			s->line = line;
			return 0;
		}
	}
	rows = array_room(
	    sc->settings, sc->nsettings, &rd->settings_cap, sizeof(*rows));
	if (rows != NULL)
		sc->settings = rows;
	s = rows == NULL ? NULL : &rows[sc->nsettings];
	if (s == NULL || (s->name = strdup(name)) == NULL) {
		free(copy);
		return -ENOMEM;
	}
	s->value = copy;
	s->line = line;
	sc->nsettings++;
	return 0;
}

int
reader_set(struct reader *rd)
{
	const char *name = reader_word(rd), *value;

	if (name == NULL)
		return reader_expected(rd, "a parameter and its value", NULL);
	value = line_trim(rd->rest);
	if (*value == '\0')
		return reader_expected(rd, "a value", NULL);
	return add_setting(rd, name, value, rd->line);
}

int
reader_agents(struct reader *rd)
{
	char *word = reader_word(rd);
	struct buf name = { 0 };
	uint32_t transport, n;
	const char *value;
	bool new;
	int r;

	if (word == NULL)
		return reader_expected(rd, "a transport and a number", NULL);
	r = names_transport(&rd->names, word, &new, &transport);
	if (r == -ENOSPC)
		return reader_expected(rd,
		    "at most " READER_TEXT(
			CONF_TRANSPORTS_LISTED_MAX) " transports",
		    word);
	if (r == 0 && new)
		r = reader_check_transport(rd, word);
	value = reader_word(rd);
	if (r == 0)
		r = reader_number(
		    rd, value, 1, 10000, "a number of agents (1 to 10000)", &n);
	if (r == 0)
		r = reader_end(rd);
	if (r == 0)
		r = buf_printf(&name, "%s_process_limit", word);
	if (r == 0)
		r = add_setting(rd, buf_str(&name), value, rd->line);
	buf_done(&name);
	return r;
}

/* ---- transports ---- */

/* A transport is of the kind that it is named after, else smtp. */
static int
add_transport(struct buf *list, const char *name)
{
	size_t i = 0;

	while (i < AGENT_NKINDS && strcmp(agent_kinds[i].name, name) != 0)
		i++;
	return buf_printf(list, " %s%s", name, i < AGENT_NKINDS ? "" : ":smtp");
}

int
reader_check_transport(struct reader *rd, const char *name)
{
	struct buf list = { 0 };
	struct conf conf;
	int r = add_transport(&list, name);

	if (r == 0) {
		const struct conf_setting alone = {
			.name = "transports",
			.value = buf_str(&list),
			.line = rd->line,
		};

		r = conf_from_settings(
		    rd->sc.path, &alone, 1, &conf, rd->error);
	}
	if (r == 0)
		conf_done(&conf);
	buf_done(&list);
	return r;
}

/* Is there NAME or NAME:KIND in a list that somebody wrote? */
static bool
lists(const char *list, const char *name)
{
	const size_t len = strlen(name);

	for (;;) {
		size_t n;

		list += strspn(list, " \t,");
		if (*list == '\0')
			return false;
		n = strcspn(list, " \t,:");
		if (n == len && memcmp(list, name, n) == 0)
			return true;
		list += strcspn(list, " \t,");
	}
}

/* When a transport gets its first recipient: the order in which they stand in
 * the list, and take turns. */
struct first_use {
	usec_t at;        /* USEC_NEVER: never */
	uint32_t message; /* number, of those of one instant */
	uint32_t place;   /* in the message */
	uint32_t transport;
};

static int
compare_uses(const void *a, const void *b)
{
	const struct first_use *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->message != y->message)
		return x->message < y->message ? -1 : 1;
	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return x->transport < y->transport ? -1 : x->transport > y->transport;
}

static void
find_uses(const struct reader *rd, struct first_use uses[CONF_TRANSPORTS_MAX])
{
	const struct scenario *sc = &rd->sc;
	uint32_t i, k;

	for (i = 0; i < CONF_TRANSPORTS_MAX; i++)
		uses[i] = (struct first_use){
			.at = USEC_NEVER,
			.transport = i,
		};
	for (i = 0; i < sc->nmessages; i++) {
		const struct scenario_message *m = &sc->messages[i];

		/* The repetitions of a line come later than its first. */
		for (k = 0; k < m->n && (i == 0 || m->line != m[-1].line);
		     k++) {
			struct first_use use = { m->at, i, k,
				sc->rcpts[m->first + k].transport };

			if (compare_uses(&use, &uses[use.transport]) < 0)
				uses[use.transport] = use;
		}
	}
	qsort(uses, rd->names.ntransports, sizeof(*uses), compare_uses);
}

/* The parameter `transports`: those that were set, and those that the lines
 * name. */
static int
set_transports(struct reader *rd)
{
	struct first_use uses[CONF_TRANSPORTS_MAX];
	const struct scenario_setting *s = rd->sc.settings;
	struct buf list = { 0 };
	const char *set = "";
	uint32_t i, line = rd->line;
	int r;

	for (i = 0; i < rd->sc.nsettings; i++)
		if (strcmp(s[i].name, "transports") == 0) {
			set = s[i].value;
			line = s[i].line;
		}
	r = buf_add_str(&list, set);
	find_uses(rd, uses);
	for (i = 0; r == 0 && i < rd->names.ntransports; i++) {
		const char *name = rd->names.transports[uses[i].transport];

		if (!lists(set, name))
			r = add_transport(&list, name);
	}
	if (r == 0)
		r = add_setting(rd, "transports", buf_str(&list), line);
	buf_done(&list);
	return r;
}

/* From numbers in the order of the lines to those of the configuration. */
static void
renumber(struct reader *rd)
{
	struct scenario *sc = &rd->sc;
	uint32_t to[CONF_TRANSPORTS_MAX] = { 0 }, i;

	for (i = 0; i < rd->names.ntransports; i++) {
		int at =
		    conf_transport_find(&sc->conf, rd->names.transports[i]);

		ASSERT(at >= 0);
		to[i] = (uint32_t)at;
	}
	for (i = 0; i < sc->ndestinations; i++)
		sc->destinations[i].transport =
		    to[sc->destinations[i].transport];
	for (i = 0; i < sc->nrcpts; i++)
		sc->rcpts[i].transport = to[sc->rcpts[i].transport];
}

/* ---- the configuration ---- */

static void
put_over(struct conf_setting *all, size_t *n, struct conf_setting new)
{
	size_t i = 0;

	while (i < *n && strcmp(all[i].name, new.name) != 0)
		i++;
	all[i] = new;
	if (i == *n)
		++*n;
}

static bool
is_set(const struct conf_setting *all, size_t n, const char *name)
{
	size_t i = 0;

	while (i < n && strcmp(all[i].name, name) != 0)
		i++;
	return i < n;
}

/* The new settings are judged without those of the scenario, so that an error
 * names its own place; but with its transports, since names of parameters
 * depend on them. */
static int
check_more(const struct scenario *sc, const char *where,
    const struct conf_setting *more, size_t count, struct conf_setting *room,
    struct buf *ret_error)
{
	struct conf conf;
	size_t i, n = 0;
	int r;

	for (i = 0; i < sc->nsettings; i++)
		if (strcmp(sc->settings[i].name, "transports") == 0)
			room[n++] = (struct conf_setting){
				.name = "transports",
				.value = sc->settings[i].value,
			};
	for (i = 0; i < count; i++) {
		if (strcmp(more[i].name, "transports") == 0) {
			(void)buf_printf(ret_error,
			    "%s:%u: transports: are those of the scenario",
			    where, more[i].line);
			return -EINVAL;
		}
		put_over(room, &n, more[i]);
	}
	r = conf_from_settings(where, room, n, &conf, ret_error);
	if (r == 0)
		conf_done(&conf);
	return r;
}

int
scenario_configure(const struct scenario *sc, const char *where,
    const struct conf_setting *more, size_t count, struct conf *ret_conf,
    struct buf *ret_error)
{
	struct conf_setting *all =
	    calloc(sc->nsettings + count + 1, sizeof(*all));
	size_t i, n = 0;
	int r = 0;

	if (all == NULL)
		return -ENOMEM;
	if (count > 0)
		r = check_more(sc, where, more, count, all, ret_error);
	for (i = 0; i < sc->nsettings; i++)
		put_over(all, &n,
		    (struct conf_setting){ .name = sc->settings[i].name,
			.value = sc->settings[i].value,
			.line = sc->settings[i].line });
	for (i = 0; i < count; i++)
		put_over(all, &n, more[i]);
	if (r == 0)
		r = conf_from_settings(sc->path, all, n, ret_conf, ret_error);
	if (r == 0 && !is_set(all, n, "backoff_jitter"))
		ret_conf->backoff.jitter_pct = 0;
	free(all);
	return r;
}

int
reader_configure(struct reader *rd)
{
	struct scenario *sc = &rd->sc;
	uint32_t i;
	int r = set_transports(rd);

	if (r == 0)
		r = scenario_configure(
		    sc, sc->path, NULL, 0, &sc->conf, rd->error);
	if (r < 0)
		return r;
	for (i = 0; i < sc->nsettings; i++)
		if (strcmp(sc->settings[i].name, "backoff_jitter") == 0)
			sc->jitter_set = true;
	renumber(rd);
	return 0;
}
