#include <arpa/inet.h>
#include <string.h>

#include "base/io.h"
#include "deliver-smtp/reach/lookup.h"

#define ANY_PORT 25

static bool
is_loopback(const union mx_address *a)
{
	return a->any.sa_family == AF_INET
	    ? ntohl(a->in.sin_addr.s_addr) >> 24 == 127
	    : IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr) != 0;
}

/* The address that the kernel would send from. No packet is sent. False: there
 * is no way. */
static bool
source_find(
    const union mx_address *to, socklen_t len, union mx_address *ret_from)
{
	socklen_t from_len = sizeof(*ret_from);
	int sock = socket(to->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool found;

	if (sock < 0)
		return false;
	found = connect(sock, &to->any, len) == 0 &&
	    getsockname(sock, &ret_from->any, &from_len) == 0;
	io_close(&sock);
	return found;
}

bool
address_is_ours(const struct sockaddr *address)
{
	union mx_address to = { 0 }, from = { 0 };
	socklen_t len =
	    address->sa_family == AF_INET ? sizeof(to.in) : sizeof(to.in6);

	memcpy(&to, address, len);
	if (is_loopback(&to))
		return true;
	to.in.sin_port = htons(ANY_PORT); /* of both families at one place */
	return source_find(&to, len, &from) && mx_address_equal(&to, &from);
}

/* Unique local, 6to4, Teredo: their precedence is below that of IPv4. */
static bool
is_native_six(const struct in6_addr *ip)
{
	const unsigned char *o = ip->s6_addr;

	return (o[0] & 0xfe) != 0xfc && (o[0] != 0x20 || o[1] != 0x02) &&
	    (o[0] != 0x20 || o[1] != 0x01 || o[2] != 0 || o[3] != 0);
}

bool
address_six_first(const struct sockaddr_in6 *address)
{
	union mx_address to = { .in6 = *address }, from = { 0 };

	to.in6.sin6_port = htons(ANY_PORT);
	return is_native_six(&to.in6.sin6_addr) &&
	    source_find(&to, sizeof(to.in6), &from) &&
	    is_native_six(&from.in6.sin6_addr) &&
	    is_loopback(&to) == is_loopback(&from);
}
