#include "qsim/scenario.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/line.h"
#include "base/num.h"
#include "base/text.h"
#include "qsim/reader.h"

#define FILE_BYTES_MAX (64u << 20)
#define SERVE_MAX      10000

/* ---- statements ---- */

/* `dur DEST MS`, `dur * MS`. */
static int
read_dur(struct reader *rd)
{
	char *word = reader_word(rd);
	uint32_t destination = 0, ms = 0;
	bool all = word != NULL && strcmp(word, "*") == 0;
	int r = all ? 0 : reader_destination(rd, word, &destination);

	if (r == 0)
		r = reader_number(rd, reader_word(rd), 0, 1000000000,
		    "milliseconds (0 to 1000000000)", &ms);
	if (r == 0)
		r = reader_end(rd);
	if (r < 0)
		return r;
	if (all)
		rd->duration = ms * USEC_PER_MSEC;
	else
		rd->names.destinations[destination].duration =
		    ms * USEC_PER_MSEC;
	return 0;
}

/* STATEMENT DEST NUMBER; field: offset of the number in a destination. */
static int
read_fault(struct reader *rd, size_t field, uint32_t max, const char *what)
{
	uint32_t destination, n;
	int r = reader_destination(rd, reader_word(rd), &destination);

	if (r == 0)
		r = reader_number(rd, reader_word(rd), 0, max, what, &n);
	if (r == 0)
		r = reader_end(rd);
	if (r == 0)
		memcpy((char *)&rd->names.destinations[destination] + field, &n,
		    sizeof(n));
	return r;
}

static int
read_fail(struct reader *rd)
{
	return read_fault(rd, offsetof(struct scenario_destination, fail),
	    UINT32_MAX, "a number of deliveries (0 to 4294967295)");
}

static int
read_refuse(struct reader *rd)
{
	return read_fault(rd, offsetof(struct scenario_destination, refuse),
	    UINT32_MAX - 1, "a number of connections (0 to 4294967294)");
}

/* serve DEST N QUEUE SECONDS. */
static int
read_serve(struct reader *rd)
{
	uint32_t destination = 0, serve = 0, backlog = 0;
	struct scenario_destination *d;
	usec_t hang = 0;
	int r = reader_destination(rd, reader_word(rd), &destination);

	if (r == 0)
		r = reader_number(rd, reader_word(rd), 1, SERVE_MAX,
		    "how many are served at once (1 to 10000)", &serve);
	if (r == 0)
		r = reader_number(rd, reader_word(rd), 0, SERVE_MAX,
		    "how many may wait (0 to 10000)", &backlog);
	if (r == 0)
		r = reader_time(rd, reader_word(rd),
		    "seconds that others hang (0 to 1000000000)", &hang);
	if (r == 0)
		r = reader_end(rd);
	if (r < 0)
		return r;
	d = &rd->names.destinations[destination];
	d->serve = serve;
	d->backlog = backlog;
	d->hang = hang;
	return 0;
}

static int
read_bad(struct reader *rd)
{
	return read_fault(rd, offsetof(struct scenario_destination, bad_pct),
	    100, "a percentage (0 to 100)");
}

static int
read_lose(struct reader *rd)
{
	return read_fault(rd, offsetof(struct scenario_destination, lose_pct),
	    100, "a percentage (0 to 100)");
}

static int
read_spread(struct reader *rd)
{
	int r = reader_number(rd, reader_word(rd), 0, 90,
	    "a percentage (0 to 90)", &rd->sc.spread_pct);

	return r < 0 ? r : reader_end(rd);
}

static int
read_seed(struct reader *rd)
{
	const char *word = reader_word(rd);

	if (word == NULL || num_u64(word, 0, UINT64_MAX, &rd->sc.seed) < 0)
		return reader_expected(rd, "a number", word);
	return reader_end(rd);
}

static const struct statement {
	const char *name;
	int (*read)(struct reader *rd);
} statements[] = {
	{ "set", reader_set },
	{ "agents", reader_agents },
	{ "dur", read_dur },
	{ "fail", read_fail },
	{ "refuse", read_refuse },
	{ "serve", read_serve },
	{ "bad", read_bad },
	{ "lose", read_lose },
	{ "spread", read_spread },
	{ "seed", read_seed },
	{ "at", reader_at },
	{ "repeat", reader_repeat },
};

static int
read_statement(struct reader *rd, char *line)
{
	const char *word;
	size_t i;

	line_uncomment(line);
	rd->rest = line;
	word = reader_word(rd);
	if (word == NULL)
		return 0;
	for (i = 0; i < ARRAY_LEN(statements); i++)
		if (strcmp(statements[i].name, word) == 0)
			return statements[i].read(rd);
	return reader_expected(rd,
	    "set, agents, dur, fail, refuse, serve, bad, lose, spread, seed, "
	    "at or "
	    "repeat",
	    word);
}

/* ---- the file ---- */

static int
read_lines(struct reader *rd, struct buf *text)
{
	struct line_cursor cursor;
	const char *why;
	char *line;
	int r;

	line_begin(&cursor, text, SCENARIO_LINE_MAX);
	while ((r = line_next(&cursor, &line, &why)) > 0) {
		rd->line = cursor.number;
		r = read_statement(rd, line);
		if (r < 0)
			return r;
	}
	if (r == 0)
		return 0;
	(void)buf_printf(rd->error, "%s:%u: expected lines of text, not a %s",
	    rd->sc.path, cursor.number, why);
	return r;
}

static void
end_destinations(struct reader *rd)
{
	struct scenario *sc = &rd->sc;
	uint32_t i;

	names_take(&rd->names, &sc->destinations, &sc->ndestinations);
	for (i = 0; i < sc->ndestinations; i++)
		if (sc->destinations[i].duration < 0)
			sc->destinations[i].duration = rd->duration;
}

static int
read_text(struct reader *rd, struct buf *text)
{
	uint32_t smtp;
	bool new;
	int r = names_transport(&rd->names, "smtp", &new, &smtp);

	if (r == 0)
		r = read_lines(rd, text);
	if (r == 0 && rd->sc.nmessages == 0) {
		(void)buf_printf(rd->error,
		    "%s: expected a message (at T msg SPEC), but the file ends",
		    rd->sc.path);
		r = -EINVAL;
	}
	if (r == 0) {
		end_destinations(rd);
		r = reader_configure(rd);
	}
	return r;
}

static int
parse(const char *path, struct buf *text, struct scenario *ret_scenario,
    struct buf *ret_error)
{
	struct reader rd = {
		.sc = { .path = strdup(path), .seed = 1 },
		.duration = USEC_PER_SEC,
		.error = ret_error,
	};
	int r = -ENOMEM;

	names_init(&rd.names);
	if (rd.sc.path != NULL)
		r = read_text(&rd, text);
	names_done(&rd.names);
	if (r == -ENOMEM && ret_error->len == 0)
		(void)buf_printf(ret_error, "%s: %s", path, strerror(ENOMEM));
	if (r < 0)
		scenario_done(&rd.sc);
	else
		*ret_scenario = rd.sc;
	return r;
}

int
scenario_parse(const char *path, const char *text, size_t len,
    struct scenario *ret_scenario, struct buf *ret_error)
{
	struct buf copy = { 0 };
	int r = buf_add(&copy, text, len);

	if (r == 0)
		r = parse(path, &copy, ret_scenario, ret_error);
	buf_done(&copy);
	return r;
}

static int
read_all(int fd, struct buf *out)
{
	const size_t room = 65536;
	int64_t n;
	int r;

	do {
		r = buf_reserve(out, room);
		if (r < 0)
			return r;
		n = io_read_all(fd, out->data + out->len, room);
		if (n < 0)
			return (int)n;
		out->len += (size_t)n;
		if (out->len > FILE_BYTES_MAX)
			return -EFBIG;
	} while ((size_t)n == room);
	out->data[out->len] = '\0';
	return 0;
}

/* A scenario has no power over anything: pipes, and files that others may
 * write to, are read as well. */
int
scenario_read(
    const char *path, struct scenario *ret_scenario, struct buf *ret_error)
{
	struct buf text = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int r = fd < 0 ? -errno : read_all(fd, &text);

	if (r < 0) {
		(void)text_clean(ret_error, path, strlen(path), 200);
		(void)buf_printf(ret_error, ": %s", strerror(-r));
	} else {
		r = parse(path, &text, ret_scenario, ret_error);
	}
	io_close(&fd);
	buf_done(&text);
	return r;
}

void
scenario_done(struct scenario *sc)
{
	uint32_t i;

	for (i = 0; i < sc->ndestinations; i++)
		free(sc->destinations[i].name);
	for (i = 0; i < sc->nsettings; i++) {
		free(sc->settings[i].name);
		free(sc->settings[i].value);
	}
	free(sc->destinations);
	free(sc->settings);
	free(sc->messages);
	free(sc->rcpts);
	free(sc->path);
	conf_done(&sc->conf);
	*sc = (struct scenario){ 0 };
}
