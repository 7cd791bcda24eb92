/* deliver-smtp/ehlo.h - what a server offers in its answer to EHLO or LHLO. */
#ifndef DELIVER_SMTP_EHLO_H
#define DELIVER_SMTP_EHLO_H

#include "deliver-smtp/reply.h"

struct ehlo {
	bool pipelining;   /* RFC 2920 */
	bool eight_bit;    /* 8BITMIME, RFC 6152 */
	bool utf8;         /* SMTPUTF8, RFC 6531 */
	bool size;         /* SIZE, RFC 1870 */
	uint64_t size_max; /* 0: no limit is told */
};

/* Keywords without case; what is not known, or not well-formed, is ignored. */
void ehlo_parse(const struct reply *reply, struct ehlo *ret_ehlo);

#endif
