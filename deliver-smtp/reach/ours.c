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

bool
address_is_ours(const struct sockaddr *address)
{
	union mx_address to = { 0 }, from = { 0 };
	socklen_t len =
	    address->sa_family == AF_INET ? sizeof(to.in) : sizeof(to.in6);
	socklen_t from_len = sizeof(from);
	bool ours = false;
	int sock;

	memcpy(&to, address, len);
	if (is_loopback(&to))
		return true;
	to.in.sin_port = htons(ANY_PORT); /* of both families at one place */
	sock = socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return false;
	if (connect(sock, &to.any, len) == 0 &&
	    getsockname(sock, &from.any, &from_len) == 0)
		ours = mx_address_equal(&to, &from);
	io_close(&sock);
	return ours;
}
