#include "qsim/simulate_parts.h"

#include <errno.h>
#include <stdlib.h>

#include "base/random.h"

struct server {
	uint32_t begun;       /* deliveries so far, while that matters */
	uint32_t connections; /* served or waiting */
	usec_t *free_at;      /* [serve] */
};

struct servers {
	const struct scenario *sc;
	uint64_t random;
	bool queues; /* one has free_at */
	struct server *all;
};

int
servers_new(
    const struct scenario *sc, uint64_t seed, struct servers **ret_servers)
{
	struct servers *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->sc = sc;
	s->random = seed;
	s->all = calloc(sc->ndestinations, sizeof(*s->all));
	if (s->all == NULL) {
		free(s);
		return -ENOMEM;
	}
	*ret_servers = s;
	return 0;
}

void
servers_free(struct servers **servers)
{
	struct servers *s = *servers;
	uint32_t i;

	if (s == NULL)
		return;
	for (i = 0; s->queues && i < s->sc->ndestinations; i++)
		free(s->all[i].free_at);
	free(s->all);
	free(s);
	*servers = NULL;
}

/* 0 to 1, 1 excluded. */
static double
random_unit(uint64_t *random)
{
	return (double)(random_next(random) >> 11) * 0x1p-53;
}

static usec_t
spread(struct servers *s, usec_t duration)
{
	double part = s->sc->spread_pct / 100.0;

	if (s->sc->spread_pct == 0)
		return duration;
	return (usec_t)((double)duration *
		(1 + part * (2 * random_unit(&s->random) - 1)) +
	    0.5);
}

static struct delivery_fate
failure(usec_t length, const char *why)
{
	return (struct delivery_fate){
		.length = length,
		.result = SITE_FAILED,
		.why = why,
	};
}

/* The slot that is free first serves the delivery, in the order of coming. */
static int
serve(struct servers *s, struct server *server,
    const struct scenario_destination *d, usec_t now,
    struct delivery_fate *fate)
{
	uint32_t i, first = 0;
	usec_t begins;

	if (server->free_at == NULL)
		server->free_at = calloc(d->serve, sizeof(*server->free_at));
	if (server->free_at == NULL)
		return -ENOMEM;
	s->queues = true;
	for (i = 1; i < d->serve; i++)
		if (server->free_at[i] < server->free_at[first])
			first = i;
	begins = server->free_at[first] > now ? server->free_at[first] : now;
	server->free_at[first] = begins + fate->length;
	fate->length += begins - now;
	return 0;
}

/* A first delivery that was to fail has no connection. */
static bool
fails_first(struct server *server, const struct scenario_destination *d)
{
	if (server->begun >= d->fail)
		return false;
	server->begun++;
	return true;
}

int
servers_begin(struct servers *s, uint32_t destination, usec_t now,
    struct delivery_fate *ret_fate)
{
	const struct scenario_destination *d =
	    &s->sc->destinations[destination];
	struct server *server = &s->all[destination];
	const usec_t length = spread(s, d->duration);
	struct delivery_fate fate = {
		.length = length,
		.result = SITE_DELIVERED,
		.connected = true,
	};
	int r = 0;

	if (fails_first(server, d))
		fate = failure(length, "connection failed");
	else if (server->connections >= d->refuse)
		fate = failure(0, "421 too many connections");
	else if (d->serve > 0 && server->connections >= d->serve + d->backlog)
		fate = failure(d->hang, "connection timed out");
	else if (d->bad_pct > 0 && random_unit(&s->random) * 100 < d->bad_pct)
		fate = failure(length, "connection failed at random");
	else if (d->lose_pct > 0 && random_unit(&s->random) * 100 < d->lose_pct)
		fate.result = SITE_DOUBTED;
	else if (d->serve > 0)
		r = serve(s, server, d, now, &fate);
	if (r < 0)
		return r;
	if (fate.result == SITE_DOUBTED)
		fate.why = "lost connection in mid-session";
	server->connections += fate.connected ? 1 : 0;
	*ret_fate = fate;
	return 0;
}

void
servers_end(
    struct servers *s, uint32_t destination, const struct delivery_fate *fate)
{
	s->all[destination].connections -= fate->connected ? 1 : 0;
}
