#include "spool/id.h"

#include "base/num.h"

#include <errno.h>
#include <string.h>

#define ARRIVAL_DIGITS 14
#define NONCE_DIGITS   2
#define QUEUE_DIGITS   3
#define INODE_DIGITS   16
#define FIXED_DIGITS   (ARRIVAL_DIGITS + NONCE_DIGITS + QUEUE_DIGITS)

_Static_assert(FIXED_DIGITS + INODE_DIGITS < QUEUE_ID_SIZE, "an id fits");
_Static_assert(QUEUE_NUM_MAX < 1 << 4 * QUEUE_DIGITS, "a queue number fits");
_Static_assert(QUEUE_ID_ARRIVAL_MAX >> 4 * ARRIVAL_DIGITS == 0, "so do times");

/* The last n upper-case hexadecimal digits; what follows them. */
static char *
put_hex(char *out, unsigned n, uint64_t value)
{
	unsigned i;

	for (i = n; i-- > 0; value >>= 4)
		out[i] = "0123456789ABCDEF"[value & 15];
	return out + n;
}

static unsigned
hex_digits(uint64_t value)
{
	unsigned n = 1;

	while (n < INODE_DIGITS && value >> 4 * n != 0)
		n++;
	return n;
}

void
queue_id_format(const struct queue_id *id, char out[QUEUE_ID_SIZE])
{
	ASSERT(
	    id->arrival_wall >= 0 && id->arrival_wall <= QUEUE_ID_ARRIVAL_MAX);
	ASSERT(id->queue <= QUEUE_NUM_MAX);
	out = put_hex(out, ARRIVAL_DIGITS, (uint64_t)id->arrival_wall);
	out = put_hex(out, NONCE_DIGITS, id->nonce);
	out = put_hex(out, QUEUE_DIGITS, id->queue);
	*put_hex(out, hex_digits(id->inode), id->inode) = '\0';
}

/* Exactly n upper-case hexadecimal digits. */
static bool
take_hex(const char **s, size_t n, uint64_t *ret_value)
{
	static const char digits[] = "0123456789ABCDEF";
	uint64_t value = 0;

	for (; n > 0; n--, (*s)++) {
		const char *d = **s == '\0'
		    ? NULL
		    : memchr(digits, **s, sizeof(digits) - 1);

		if (d == NULL)
			return false;
		value = value << 4 | (uint64_t)(d - digits);
	}
	*ret_value = value;
	return true;
}

int
queue_id_parse(const char *s, struct queue_id *ret_id)
{
	size_t len = strnlen(s, QUEUE_ID_SIZE);
	uint64_t arrival, nonce, queue, inode;

	if (len <= FIXED_DIGITS || len > FIXED_DIGITS + INODE_DIGITS)
		return -EINVAL;
	if (!take_hex(&s, ARRIVAL_DIGITS, &arrival) ||
	    !take_hex(&s, NONCE_DIGITS, &nonce) ||
	    !take_hex(&s, QUEUE_DIGITS, &queue) || *s == '0' ||
	    !take_hex(&s, len - FIXED_DIGITS, &inode))
		return -EINVAL;
	*ret_id = (struct queue_id){
		.arrival_wall = (usec_t)arrival,
		.nonce = (uint8_t)nonce,
		.queue = (uint32_t)queue,
		.inode = inode,
	};
	return 0;
}

void
queue_file_name(uint64_t inode, char out[QUEUE_FILE_MAX])
{
	num_format(inode, out);
}

int
queue_file_parse(const char *name, uint64_t *ret_inode)
{
	if (name[0] == '0' || num_u64(name, 1, UINT64_MAX, ret_inode) < 0)
		return -EINVAL;
	return 0;
}
