/* The chains of the table of one process: linear hashing. The number of chains
 * need not be a power of two, so one chain at a time comes or goes, and only
 * the sites of that one move. */
#include "site/local.h"

#include <stdlib.h>

/* The last chain has the number of an earlier one and another bit: from that
 * one it was split. */
static uint64_t
split_from(uint64_t chain)
{
	return chain ^ (uint64_t)1 << (63 - __builtin_clzll(chain));
}

struct local_chain *
local_chain_at(const struct local *local, uint64_t i)
{
	return &local->pieces[i / CHAINS_PIECE][i % CHAINS_PIECE];
}

/* As many bits of the hash as the highest number of a chain has; one less for
 * numbers that there are not. */
struct local_chain *
local_chain_of(const struct local *local, uint64_t hash)
{
	uint64_t last = local->nchains - 1;
	uint64_t mask = last == 0 ? 0 : UINT64_MAX >> __builtin_clzll(last);

	return local_chain_at(
	    local, (hash & mask) <= last ? hash & mask : hash & mask >> 1);
}

/* There is memory for one chain more. */
static bool
piece_reserve(struct local *local)
{
	uint64_t room = local->pieces_room == 0 ? 8 : 2 * local->pieces_room;
	void *p;

	if (local->nchains < local->npieces * CHAINS_PIECE)
		return true;
	if (local->npieces == local->pieces_room) {
		p = realloc(local->pieces, room * sizeof(*local->pieces));
		if (p == NULL)
			return false;
		local->pieces = p;
		local->pieces_room = room;
	}
	p = malloc(CHAINS_PIECE * sizeof(**local->pieces));
	if (p == NULL)
		return false;
	local->pieces[local->npieces++] = p;
	return true;
}

/* The first piece stays, and one that is not used. */
static void
piece_spare(struct local *local)
{
	if (local->nchains + 2 * CHAINS_PIECE > local->npieces * CHAINS_PIECE)
		return;
	free(local->pieces[--local->npieces]);
}

/* All sites of the chain, to the chains that they belong to now. */
static void
chain_spread(struct local *local, struct local_chain *chain)
{
	struct site *site = SLIST_FIRST(chain), *next;

	SLIST_INIT(chain);
	for (; site != NULL; site = next) {
		next = SLIST_NEXT(site, link);
		SLIST_INSERT_HEAD(
		    local_chain_of(local, site->hash), site, link);
	}
}

void
local_chains_grow(struct local *local)
{
	uint64_t new = local->nchains;

	if (local->nsites < local->nchains || !piece_reserve(local))
		return;
	SLIST_INIT(local_chain_at(local, new));
	local->nchains++;
	if (new > 0)
		chain_spread(local, local_chain_at(local, split_from(new)));
}

void
local_chains_shrink(struct local *local)
{
	struct local_chain *last;
	int n;

	for (n = 0; n < 2; n++) {
		if (local->nchains < 2 || local->nsites >= local->nchains / 2)
			return;
		last = local_chain_at(local, local->nchains - 1);
		local->nchains--;
		chain_spread(local, last);
		piece_spare(local);
	}
}

void
local_chains_free(struct local *local)
{
	while (local->npieces > 0)
		free(local->pieces[--local->npieces]);
	free(local->pieces);
}
