/* at T msg SPEC…, repeat N [every S] at T msg SPEC… */
#include "qsim/reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/array.h"

#define WHAT_COUNT \
	"a count of recipients (1 to " READER_TEXT(SCENARIO_RCPTS_MAX) ")"
#define WHAT_RANGE \
	"#LOW-HIGH (0 to " READER_TEXT(SCENARIO_NUMBER_MAX) ", LOW <= HIGH)"
#define WHAT_TIME "a time in seconds (0 to " READER_TEXT(READER_TIME_MAX) ")"

static int
add_rcpts(
    struct reader *rd, uint32_t transport, const char *name, uint32_t count)
{
	struct scenario *sc = &rd->sc;
	struct scenario_rcpts *rows =
	    array_room(sc->rcpts, sc->nrcpts, &rd->rcpts_cap, sizeof(*rows));
	uint32_t destination;
	int r;

	if (rows == NULL)
		return -ENOMEM;
	sc->rcpts = rows;
	r = reader_destination_of(rd, transport, name, &destination);
	if (r < 0)
		return r;
	if (sc->nrcpts == SCENARIO_ROWS_MAX)
		return reader_expected(rd,
		    "at most " READER_TEXT(
			SCENARIO_ROWS_MAX) " recipients in the file",
		    name);
	rows[sc->nrcpts++] = (struct scenario_rcpts){
		.transport = transport,
		.destination = destination,
		.count = count,
	};
	return 0;
}

/* a#LOW-HIGH: one recipient at each of a00000 … */
static int
read_range(struct reader *rd, uint32_t transport, const char *stem,
    const char *given, char *range)
{
	char name[SCENARIO_NAME_MAX + 16], *dash = strchr(range, '-');
	uint64_t low, high, i;
	int r = 0;

	if (dash == NULL || strlen(stem) > SCENARIO_NAME_MAX)
		return reader_expected(rd, WHAT_RANGE, given);
	*dash = '\0';
	if (num_u64(range, 0, SCENARIO_NUMBER_MAX, &low) < 0 ||
	    num_u64(dash + 1, low, SCENARIO_NUMBER_MAX, &high) < 0)
		return reader_expected(rd, WHAT_RANGE, given);
	for (i = low; r == 0 && i <= high; i++) {
		snprintf(name, sizeof(name), "%s%05u", stem, (unsigned int)i);
		r = add_rcpts(rd, transport, name, 1);
	}
	return r;
}

/* a, a*4, a#0-9, each with TRANSPORT/ before it. */
static int
read_spec(struct reader *rd, char *word)
{
	struct buf whole = { 0 };
	uint32_t transport, count = 1;
	char *mark;
	int r = buf_add_str(&whole, word);

	if (r == 0)
		r = reader_transport(rd, &word, &transport);
	if (r < 0)
		goto out;
	mark = strpbrk(word, "*#");
	if (mark != NULL && *mark == '#') {
		*mark = '\0';
		r = *word == '\0'
		    ? reader_expected(
			  rd, "a destination before `#'", buf_str(&whole))
		    : read_range(
			  rd, transport, word, buf_str(&whole), mark + 1);
		goto out;
	}
	if (mark != NULL) {
		*mark = '\0';
		r = reader_number(
		    rd, mark + 1, 1, SCENARIO_RCPTS_MAX, WHAT_COUNT, &count);
	}
	if (r == 0)
		r = add_rcpts(rd, transport, word, count);
out:
	buf_done(&whole);
	return r;
}

static int
add_message(struct reader *rd, const struct scenario_message *m)
{
	struct scenario *sc = &rd->sc;
	struct scenario_message *rows = array_room(
	    sc->messages, sc->nmessages, &rd->messages_cap, sizeof(*rows));

	if (rows == NULL)
		return -ENOMEM;
	sc->messages = rows;
	rows[sc->nmessages++] = *m;
	return 0;
}

/* Counts the recipients of one message, and of all with its repetitions. */
static int
count_rcpts(struct reader *rd, struct scenario_message *m, uint32_t repeat)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = m->first; i < rd->sc.nrcpts; i++)
		sum += rd->sc.rcpts[i].count;
	m->n = rd->sc.nrcpts - m->first;
	m->nrcpts = (uint32_t)sum;
	/* Each count is below 2^25 and there are below 2^25 of them. */
	if (sum <= SCENARIO_RCPTS_MAX)
		rd->all_rcpts += sum * repeat;
	if (sum <= SCENARIO_RCPTS_MAX && rd->all_rcpts <= SCENARIO_RCPTS_MAX)
		return 0;
	(void)buf_printf(rd->error,
	    "%s:%u: expected at most %u recipients in all messages together",
	    rd->sc.path, rd->line, SCENARIO_RCPTS_MAX);
	return -EINVAL;
}

static int
add_messages(struct reader *rd, const struct scenario_message *first,
    uint32_t repeat, usec_t every)
{
	struct scenario_message m = *first;
	uint32_t i;
	int r = 0;

	if (repeat > SCENARIO_MESSAGES_MAX - rd->sc.nmessages) {
		(void)buf_printf(rd->error,
		    "%s:%u: expected at most %u messages in all", rd->sc.path,
		    rd->line, SCENARIO_MESSAGES_MAX);
		return -EINVAL;
	}
	for (i = 0; r == 0 && i < repeat; i++) {
		r = add_message(rd, &m);
		m.at += every;
	}
	return r;
}

/* T msg SPEC…, behind `at`. */
static int
read_messages(struct reader *rd, uint32_t repeat, usec_t every)
{
	struct scenario_message m = {
		.line = rd->line,
		.first = rd->sc.nrcpts,
	};
	char *word;
	int r = reader_time(rd, reader_word(rd), WHAT_TIME, &m.at);

	if (r < 0)
		return r;
	word = reader_word(rd);
	if (word == NULL || strcmp(word, "msg") != 0)
		return reader_expected(rd, "msg", word);
	word = reader_word(rd);
	if (word == NULL)
		return reader_expected(rd, "recipients (a, a*4, a#0-9)", NULL);
	for (; r == 0 && word != NULL; word = reader_word(rd))
		r = read_spec(rd, word);
	if (r == 0)
		r = count_rcpts(rd, &m, repeat);
	return r < 0 ? r : add_messages(rd, &m, repeat, every);
}

int
reader_at(struct reader *rd)
{
	return read_messages(rd, 1, 0);
}

int
reader_repeat(struct reader *rd)
{
	const char *word;
	uint32_t repeat;
	usec_t every = 0;
	int r = reader_number(rd, reader_word(rd), 1, SCENARIO_MESSAGES_MAX,
	    "a number of messages (1 to " READER_TEXT(
		SCENARIO_MESSAGES_MAX) ")",
	    &repeat);

	if (r < 0)
		return r;
	word = reader_word(rd);
	if (word != NULL && strcmp(word, "every") == 0) {
		word = reader_word(rd);
		r = reader_time(rd, word, WHAT_TIME, &every);
		if (r < 0)
			return r;
		if (every > READER_TIME_MAX * USEC_PER_SEC / repeat)
			return reader_expected(
			    rd, "less than 1000000000 seconds in all", word);
		word = reader_word(rd);
	}
	if (word == NULL || strcmp(word, "at") != 0)
		return reader_expected(rd, "every or at", word);
	return read_messages(rd, repeat, every);
}
