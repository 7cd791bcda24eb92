/* deliver-smtp/reach/mx.h - the hosts of a domain, the order in which their
 * addresses are tried, and what DNS said of it.
 *
 *	mx.c      hosts from an MX answer; which of them are tried
 *	mx_name.c the name of a set of hosts
 *	order.c   their addresses, in the order of attempts
 *	memory.c  what was learned, for as long as DNS says, within bounds
 *
 * Pure: no I/O and no clock; chance comes in as a seed. Answers and names are a
 * stranger's: all is bounded, whatever they are.
 */
#ifndef DELIVER_SMTP_REACH_MX_H
#define DELIVER_SMTP_REACH_MX_H

#include <netinet/in.h>
#include <sys/queue.h>

#include "route/mx_site.h"
#include "route/nexthop.h"

#define MX_HOSTS_MAX     10 /* of a domain that are looked up */
#define MX_ADDRESSES_MAX 16 /* of a host */
#define MX_TARGETS_MAX   32 /* addresses that one delivery tries */
/* Longest time that an answer is believed, whatever its TTL; and one that says
 * no. In seconds. */
#define MX_TTL_MAX       300
#define MX_TTL_NO        60

/* ---- hosts ---- */

union mx_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct mx_host {
	char name[NEXTHOP_HOST_MAX]; /* in lower case */
	uint16_t preference;
	bool ours;   /* by name, or one of its addresses is this host's */
	bool unsure; /* the servers did not say all of its addresses */
	union mx_address own; /* this host's address, if the host is ours by
			       * an address */
	uint8_t naddresses;
	union mx_address addresses[MX_ADDRESSES_MAX]; /* without a port */
};

enum mx_verdict {
	MX_FOUND,
	MX_NO_NAME,    /* there is no such domain */
	MX_NO_MAIL,    /* RFC 7505: the domain takes none */
	MX_NO_HOST,    /* no MX record names what can be a host */
	MX_NO_ADDRESS, /* none of the hosts has an address to connect to */
	MX_UNSURE,     /* the servers did not say whether one of them has */
	MX_LOOP,       /* this host is the best one itself */
	MX_NVERDICTS,
};

/* The hosts of a next hop, by preference. */
struct mx_set {
	enum mx_verdict verdict;
	uint32_t ttl; /* seconds, at most MX_TTL_MAX */
	bool listed;  /* by MX records, not the domain itself */
	bool cut;     /* there were more hosts */
	/* The preference of the first record that names this host, else
	 * MX_NOT_OURS: hosts from there on are no good. */
	uint32_t ours_from;
	char own[NEXTHOP_HOST_MAX]; /* name of this host in the record of
				     * ours_from; "": none */
	uint8_t nhosts;
	struct mx_host hosts[MX_HOSTS_MAX];
};
#define MX_NOT_OURS UINT32_MAX

/* The answer to a query for MX records, a whole message of DNS. The best hosts
 * are kept, those of one preference by chance. Names that are none are passed
 * over: addresses, octets that no host name has. own: names of this host,
 * ended by NULL. 0; -ENODATA: there is no MX record; -EBADMSG. */
int mx_read(const unsigned char *answer, size_t len, const char *const own[],
    uint64_t seed, struct mx_set *ret_set);
/* The domain as its only host. */
void mx_set_alone(struct mx_set *set, const char *domain);
void mx_set_ttl(struct mx_set *set, int64_t ttl);
/* One more address of a host; false: it can be none, or there are enough. */
bool mx_add_address(struct mx_host *host, const struct sockaddr *address);
/* Without the port. */
bool mx_address_equal(const union mx_address *a, const union mx_address *b);
/* The next number that a seed makes. */
uint64_t mx_chance(uint64_t *seed);
/* Hosts of this preference and worse ones are not tried: this host is one of
 * them. MX_NOT_OURS: all are tried. */
uint32_t mx_limit(const struct mx_set *set, bool loops);
/* All addresses are known: what is the set worth? With loops hosts that are no
 * better than this one are left out. */
enum mx_verdict mx_judge(const struct mx_set *set, bool loops);

/* ---- the name of a set (route/mx_site.h) ---- */

/* Write the name of the set into out: the name is made of the hosts of the MX
 * records. With loops, only the records before the first record that names this
 * host count. A record whose host is this host by an address counts: addresses
 * may be known only in the second answer of a lookup, and both answers must
 * give one name. -ENOENT: the set has no name, since the set is not of MX
 * records, or not all records are known. */
int mx_name(const struct mx_set *set, bool loops, char out[MX_SITE_MAX + 1]);
/* Is it one of the hosts that may be tried? */
bool
mx_has_host(const struct mx_set *set, bool loops, const char *name, size_t len);

/* ---- the order of attempts ---- */

struct mx_target {
	struct sockaddr_storage address; /* with the port */
	socklen_t address_len;
	uint32_t rank; /* equal ones may be tried side by side */
	char host[NEXTHOP_HOST_MAX];
};

struct mx_targets {
	size_t count;
	struct mx_target list[MX_TARGETS_MAX];
};

struct mx_plan {
	uint16_t port;
	bool loops; /* hosts that are no better than this one are left out */
	bool randomize; /* addresses of a host, and hosts of one preference */
	/* Of a host the families in turn, the family of its first address first
	 * (RFC 8305, section 4); and no family takes all attempts. */
	bool balance;
	uint32_t limit; /* addresses that are tried; 0: MX_TARGETS_MAX */
	uint64_t seed;
};

/* By preference, then by host. No address twice. With one seed, what is not
 * known of a host does not change the order of better hosts. */
void mx_order(const struct mx_set *set, const struct mx_plan *plan,
    struct mx_targets *ret_targets);

/* ---- memory ---- */

/* Names that are known at most; the one that was learned first makes room. */
#define MX_MEMORY_MAX 1024

struct mx_memory;

/* NULL: no memory. */
struct mx_memory *mx_memory_new(void);
void mx_memory_free(struct mx_memory **memory);
/* Short of memory nothing is kept. */
void mx_memory_put(struct mx_memory *m, const char *name,
    const struct mx_set *set, usec_t now);
/* True: *ret_set is what was put, and its ttl what is left of it. */
bool mx_memory_get(
    struct mx_memory *m, const char *name, usec_t now, struct mx_set *ret_set);
void mx_memory_forget(struct mx_memory *m, const char *name);
void mx_memory_clear(struct mx_memory *m);
size_t mx_memory_count(const struct mx_memory *m);

#endif
