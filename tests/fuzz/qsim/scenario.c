/* Scenarios of qsim: one that reads well is in its bounds, and its parts point
 * to what is there; a broken one is told with its line. */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qsim/scenario.h"

static void
check_messages(const struct scenario *sc)
{
	uint32_t i, k;

	for (i = 0; i < sc->nmessages; i++) {
		const struct scenario_message *m = &sc->messages[i];
		uint64_t sum = 0;

		/* Repeated messages share their recipients. */
		MUST(m->at >= 0 && m->n >= 1);
		MUST(m->first + m->n <= sc->nrcpts);
		for (k = m->first; k < m->first + m->n; k++) {
			const struct scenario_rcpts *r = &sc->rcpts[k];

			MUST(r->count >= 1);
			MUST(r->transport < sc->conf.ntransports);
			MUST(r->destination < sc->ndestinations);
			sum += r->count;
		}
		MUST(sum == m->nrcpts);
	}
}

static void
check_scenario(const struct scenario *sc)
{
	uint32_t i;

	MUST(sc->nmessages <= SCENARIO_MESSAGES_MAX);
	MUST(sc->nrcpts <= SCENARIO_ROWS_MAX);
	MUST(sc->spread_pct <= 100);
	for (i = 0; i < sc->ndestinations; i++) {
		const struct scenario_destination *d = &sc->destinations[i];

		MUST(
		    d->name[0] != '\0' && strlen(d->name) <= SCENARIO_NAME_MAX);
		MUST(d->transport < sc->conf.ntransports);
		MUST(d->duration >= 0 && d->bad_pct <= 100);
	}
	check_messages(sc);
}

/* A line that makes many messages is told by the work it makes: the target
 * leaves out what is large and right. */
static bool
is_large(const char *s, size_t len)
{
	size_t i, digits = 0;

	for (i = 0; i < len; i++) {
		digits = s[i] >= '0' && s[i] <= '9' ? digits + 1 : 0;
		if (digits > 3)
			return true;
	}
	return false;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	struct buf error = { 0 };
	struct scenario sc;
	size_t len;
	char *text = fuzz_rest(&in, &len);
	int r;

	if (is_large(text, len)) {
		free(text);
		return 0;
	}
	FUZZ_FILL(sc);
	r = scenario_parse("scn", text, len, &sc, &error);
	if (r < 0) {
		MUST(r == -EINVAL && FUZZ_UNTOUCHED(sc));
		MUST(strncmp(buf_str(&error), "scn:", 4) == 0);
		MUST(error.len < 10000);
	} else {
		MUST(error.len == 0);
		check_scenario(&sc);
		scenario_done(&sc);
	}
	free(text);
	buf_done(&error);
	return 0;
}
