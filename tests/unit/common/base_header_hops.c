#include "base/header.h"

#include <criterion/criterion.h>
#include <string.h>

/* clang-format off */
static const struct {
	const char *head;
	uint32_t count;
	bool ended;
} rows[] = {
	{ "", 0, false },
	{ "Received: x", 1, false },
	{ "Received", 0, false },
	{ "Received: a\nRECEIVED:b\nreceived \t: c\n\nReceived: body\n", 3, true },
	{ "Received: a\r\nReceived: b\r\n\r\nReceived: body\r\n", 2, true },
	{ "Received: a\n\tReceived: fold\nX-Received: b\nReceived-SPF: c\n\n", 1, true },
	{ "Receive: a\nReceivedx: b\nReceived b: c\nRReceived: d\n\n", 0, true },
	{ "\nReceived: body\n", 0, true },
	{ "\r\nReceived: body\n", 0, true },
	{ "\rReceived: a\n\n", 0, true },
	{ "Received\nReceived: a\n\n", 1, true },
	{ "Received:\n\n", 1, true },
	{ ":\n:\nReceived::\n", 1, false },
	{ "a\r\rb\nReceived: x\n\r\rReceived: y\nReceived: z\n\r\n", 2, true },
};
/* clang-format on */

Test(header, C16_hops_are_counted_whatever_the_pieces)
{
	size_t i, at, len;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		len = strlen(rows[i].head);
		for (at = 0; at <= len; at++) {
			struct header_hops h = { 0 };

			header_hops_add(&h, rows[i].head, at);
			header_hops_add(&h, rows[i].head + at, len - at);
			cr_expect_eq(h.count, rows[i].count, "%zu at %zu: %u",
			    i, at, h.count);
			cr_expect_eq(h.ended, rows[i].ended, "%zu", i);
		}
	}
}
