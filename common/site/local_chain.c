/* The chains of the table of one process: linear hashing. The number of chains
 * need not be a power of two, so one chain at a time comes or goes, and only
 * the sites of that one move. */
#include "site/local.h"

#include <stdlib.h>
#include <strings.h>

/* The last chain has the number of an earlier one and another bit: from that
 * one it was split. */
static uint64_t
split_from(uint64_t chain)
{
	return chain ^ (uint64_t)1 << (63 - __builtin_clzll(chain));
}

static struct local_chain *
chain_at(const struct local *local, uint64_t i)
{
	return &local->pieces[i / CHAINS_PIECE][i % CHAINS_PIECE];
}

/* As many bits of the hash as the highest number of a chain has; one less for
 * numbers that there are not. */
static struct local_chain *
chain_of(const struct local *local, uint64_t hash)
{
	uint64_t last = local->nchains - 1;
	uint64_t mask = last == 0 ? 0 : UINT64_MAX >> __builtin_clzll(last);

	return chain_at(
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
	p = slab_get(&local->piece_slab);
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
	slab_put(&local->piece_slab, local->pieces[--local->npieces]);
}

/* By bits of the hash that chains are found by only when there are very many.
 */
static uint64_t
mark_of(uint32_t hash)
{
	return (uint64_t)1 << (hash >> 26);
}

static void
chain_put(struct local_chain *chain, struct site *site)
{
	LIST_INSERT_HEAD(&chain->sites, site, chain);
	chain->marks |= mark_of(site->hash);
}

/* A chain that moves soon is fetched into the processor's cache. */
static void
fetch_sites(const struct local_chain *chain)
{
	const struct site *first = LIST_FIRST(&chain->sites);

	if (first != NULL)
		__builtin_prefetch(&first->chain);
}

/* All sites of the chain, to the chains that they belong to now. */
static void
chain_spread(struct local *local, struct local_chain *chain)
{
	struct site *site = LIST_FIRST(&chain->sites), *next;

	*chain = (struct local_chain){ .marks = 0 };
	for (; site != NULL; site = next) {
		next = LIST_NEXT(site, chain);
		chain_put(chain_of(local, site->hash), site);
	}
}

static void
grow(struct local *local)
{
	uint64_t new = local->nchains;

	if (local->nsites < new || !piece_reserve(local))
		return;
	*chain_at(local, new) = (struct local_chain){ .marks = 0 };
	local->nchains++;
	if (new == 0)
		return;
	chain_spread(local, chain_at(local, split_from(new)));
	fetch_sites(chain_at(local, split_from(new + 1)));
}

static void
shrink(struct local *local)
{
	struct local_chain *last;
	int n;

	for (n = 0; n < 2; n++) {
		if (local->nchains < 2 || local->nsites >= local->nchains / 2)
			return;
		last = chain_at(local, local->nchains - 1);
		local->nchains--;
		chain_spread(local, last);
		piece_spare(local);
		fetch_sites(chain_at(local, local->nchains - 1));
	}
}

/* ---- all of them ---- */

struct site *
local_chains_find(const struct local *local, uint32_t hash, uint32_t transport,
    const char *name)
{
	const struct local_chain *chain;
	struct site *site;

	if (local->nchains == 0)
		return NULL;
	chain = chain_of(local, hash);
	if ((chain->marks & mark_of(hash)) == 0)
		return NULL;
	LIST_FOREACH (site, &chain->sites, chain)
		if (site->hash == hash && site->transport == transport &&
		    strcasecmp(site->name, name) == 0)
			break;
	return site;
}

void
local_chains_fetch(const struct local *local, uint32_t hash)
{
	__builtin_prefetch(chain_of(local, hash));
}

bool
local_chains_put(struct local *local, struct site *site)
{
	grow(local);
	if (local->nchains == 0)
		return false;
	chain_put(chain_of(local, site->hash), site);
	local->nsites++;
	return true;
}

void
local_chains_remove(struct local *local, struct site *site)
{
	struct local_chain *chain = chain_of(local, site->hash);

	LIST_REMOVE(site, chain);
	if (LIST_EMPTY(&chain->sites))
		chain->marks = 0;
	local->nsites--;
	shrink(local);
}

void
local_chains_walk(
    struct local *local, void (*each)(struct local *local, struct site *site))
{
	struct site *site, *next;
	uint64_t i;

	for (i = 0; i < local->nchains; i++)
		for (site = LIST_FIRST(&chain_at(local, i)->sites);
		     site != NULL; site = next) {
			next = LIST_NEXT(site, chain);
			each(local, site);
		}
}

void
local_chains_done(struct local *local)
{
	while (local->npieces > 0)
		slab_put(&local->piece_slab, local->pieces[--local->npieces]);
	free(local->pieces);
}
