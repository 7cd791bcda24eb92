/* base/bytes.h - integers as bytes, little-endian, at any address: on disk, in
 * messages and in records between programs. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void
bytes_put_u16(void *out, uint16_t value)
{
	value = htole16(value);
	memcpy(out, &value, sizeof(value));
}

static inline void
bytes_put_u32(void *out, uint32_t value)
{
	value = htole32(value);
	memcpy(out, &value, sizeof(value));
}

static inline void
bytes_put_u64(void *out, uint64_t value)
{
	value = htole64(value);
	memcpy(out, &value, sizeof(value));
}

static inline uint16_t
bytes_get_u16(const void *in)
{
	uint16_t value;

	memcpy(&value, in, sizeof(value));
	return le16toh(value);
}

static inline uint32_t
bytes_get_u32(const void *in)
{
	uint32_t value;

	memcpy(&value, in, sizeof(value));
	return le32toh(value);
}

static inline uint64_t
bytes_get_u64(const void *in)
{
	uint64_t value;

	memcpy(&value, in, sizeof(value));
	return le64toh(value);
}

#endif
